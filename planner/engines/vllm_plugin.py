"""The map that the vLLM plugin of a plan returns. A format, no engine: vLLM itself reads none."""

from planner.engines.common.vllm_plugin_map import MAP_NAME, TITLE, held_layers, map_text, read_map

__all__ = ["MAP_NAME", "TITLE", "held_layers", "map_text", "read_map"]

PLUGIN_OF = "vllm"  # the engine whose plugin it is
