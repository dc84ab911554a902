"""The replay of a trace in vLLM: a package for pip that routes tokens by the trace's rows.

vLLM's RoutingSimulator takes strategies of others; the package registers one. Its classes were run by vLLM
0.33.0's own routers and runners on a CPU; never served on a GPU.

Shapes: L layers, T tokens, K = top_k.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from planner.base import BadInput, dump_json
from planner.engines.common import vllm_replay_plugin
from planner.engines.common.command import Requirement
from planner.engines.common.vllm_package import pyproject, requirement
from planner.load import LoadProfile, Trace
from planner.model import ModelSpec

PACKAGE = "moeplan_vllm_replay"  # of distribution and module
FOLDER = "vllm_replay"  # beside launch.sh
RELEASE = "1"
STRATEGY = ("VLLM_MOE_ROUTING_SIMULATION_STRATEGY", vllm_replay_plugin.NAME)
MOST_IDS = 8_000_000  # of the file: some 30 MB, and as many int32 on the layers' device
REQUIREMENT: Requirement = requirement(PACKAGE, RELEASE, FOLDER, "the trace's replay")


@dataclass(frozen=True, eq=False)
class Replay:
    """The rows of a trace that are replayed."""

    source: str
    trace: Trace
    layer_ids: tuple[int, ...]  # of the rows of the trace
    model: ModelSpec

    @property
    def tokens(self) -> int:
        """As many as fit, from the first on."""
        layers, tokens, top_k = self.trace.experts_LTK.shape
        return int(min(tokens, MOST_IDS // (layers * top_k)))


def replay_of(load: LoadProfile, model: ModelSpec) -> Replay:
    """BadInput where the load has no trace, or a MoE layer of the model has no rows there."""
    if load.trace is None:
        raise BadInput(f"{load.source}: has counts and no trace of tokens; record one (docs/recording.md)")
    recorded = load.trace.recorded_L
    missing = [
        layer
        for layer, there in zip(load.layer_ids, recorded, strict=True)
        if layer in model.moe_layer_ids and not there
    ]
    if missing:
        raise BadInput(
            f"{load.source}: layer {missing[0]} has no rows in the trace; a replay needs every layer"
        )
    return Replay(load.source, load.trace, load.layer_ids, model)


def package(replay: Replay) -> dict[str, str]:
    """Files of the package by their path in the plan's folder."""
    module = Path(__file__).with_name("vllm_replay_plugin.py").read_text(encoding="utf-8")
    rows_LTK = replay.trace.experts_LTK[:, : replay.tokens]
    layers = {
        str(layer): np.ravel(row_TK).tolist()
        for layer, row_TK, there in zip(replay.layer_ids, rows_LTK, replay.trace.recorded_L, strict=True)
        if there
    }
    value = {"experts": replay.model.experts, "top_k": replay.model.top_k, "layers": layers}
    title = "Routes vLLM's tokens by the rows of a trace that moeplan was given"
    return {
        f"{FOLDER}/pyproject.toml": pyproject(PACKAGE, RELEASE, title),
        f"{FOLDER}/{PACKAGE}/__init__.py": module,
        f"{FOLDER}/{PACKAGE}/{vllm_replay_plugin.ROWS}": dump_json(value),
    }


def notes(replay: Replay) -> tuple[str, ...]:
    """What a person must do and know."""
    name, value = STRATEGY
    there = replay.trace.experts_LTK.shape[1]
    rows = f"{replay.tokens:,} rows" + (f", the first of {there:,}" if replay.tokens < there else "")
    install = f"install the replay into vLLM's environment on every node: pip install ./{FOLDER}"
    return (
        f"{install} (and list {PACKAGE} in VLLM_PLUGINS where you set that); launch.sh needs it",
        f"WARNING: {name}={value} routes by {rows} of {replay.source}: what the model says means nothing",
        "WARNING: the replay was run with vLLM 0.33.0's own code on a CPU, never served on a GPU",
    )
