"""The map of HYGON's vLLM plugin, version 2: one for the model, one for its draft model, by class."""

from collections.abc import Mapping, Sequence
from typing import Any

from planner.base import dump_json
from planner.engines.common.interface import MapFile
from planner.model import ModelSpec

MAP_NAME = "offline_eplb.json"
_KIND = "vllm-plugin-das offline map"
FORMAT, MAPS, KEY = "vllm_offline_eplb_physical_to_logical_by_model", "model_maps", "physical_to_logical_map"
CLASSES = {  # vLLM's class and that of its draft model, which are the keys, by model_type
    "deepseek_v2": ("DeepseekV2ForCausalLM", ""),
    "deepseek_v3": ("DeepseekV3ForCausalLM", "DeepSeekMTP"),
    "kimi_k2": ("DeepseekV3ForCausalLM", ""),
    "glm4_moe": ("Glm4MoeForCausalLM", "Glm4MoeMTP"),
    "hy_v4": ("HYV4ForCausalLM", "HYV4MTP"),
    "qwen3_moe": ("Qwen3MoeForCausalLM", ""),
}


def map_text(rows: Mapping[int, Sequence[int]], model: ModelSpec, gpus: int) -> str:
    """A map for the model and one for its draft model, each with a row for each of its MoE layers."""
    del gpus
    main, draft = CLASSES.get(model.architecture, ("", ""))
    maps = {main or model.architecture: _entry(main or model.architecture, rows, model, model.moe_layer_ids)}
    if draft and model.draft_layer_ids:
        maps[draft] = _entry(draft, rows, model, model.draft_layer_ids)
    return dump_json({"version": 2, "format": FORMAT, MAPS: maps})


def held_layers(model: ModelSpec) -> tuple[int, ...]:
    has_draft = CLASSES.get(model.architecture, ("", ""))[1]
    return model.placed_layer_ids if has_draft else model.moe_layer_ids


def read_map(value: Any) -> MapFile | None:
    """The model's rows, then those of its draft model, whose class has MTP in its name."""
    if not isinstance(value, dict) or MAPS not in value:
        return None
    maps, problems = value[MAPS], []
    if value.get("version") != 2 or value.get("format") != FORMAT:
        problems.append(f"version must be 2 and format {FORMAT}; later plugins stop without them")
    if not isinstance(maps, dict) or not maps:
        problems.append(f"{MAPS} must hold a map for each model, by the name of its class")
        maps = {}
    rows: list[Any] = []
    for key in sorted(maps, key=lambda key: "MTP" in str(key)):
        rows += _rows(key, maps[key], problems)
    if sum("MTP" not in str(key) for key in maps) > 1:
        problems.append("several models' maps; expected one, and that of its draft model")
    return MapFile(_KIND, tuple(enumerate(rows)), "placed", problems=tuple(problems))


def _entry(
    key: str, rows: Mapping[int, Sequence[int]], model: ModelSpec, layers: Sequence[int]
) -> dict[str, Any]:
    held = [list(rows[layer]) for layer in layers]
    return {
        "record_kind": "proposal",  # what the engine itself calls a map that may be served
        "model_name": model.name,
        "model_class": key,
        "num_moe_layers": len(held),
        "num_logical_experts": model.experts,
        "num_physical_experts": len(held[0]),
        "num_redundant_experts": len(held[0]) - model.experts,
        KEY: held,
    }


def _rows(key: Any, entry: Any, problems: list[str]) -> list[Any]:
    """The rows of one model's map, and what its own figures say against them."""
    rows = entry.get(KEY) if isinstance(entry, dict) else None
    if not isinstance(rows, list) or not rows:
        problems.append(f"{str(key)[:40]}: {KEY} must be a list of rows, one for each MoE layer")
        return []
    if entry.get("model_class", key) != key:
        problems.append(f"{str(key)[:40]}: model_class is {repr(entry['model_class'])[:40]}, not the key")
    if entry.get("num_moe_layers", len(rows)) != len(rows):
        counted = repr(entry["num_moe_layers"])[:40]
        problems.append(f"{str(key)[:40]}: num_moe_layers is {counted}, and there are {len(rows)} rows")
    return rows
