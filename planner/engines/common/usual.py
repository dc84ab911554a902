"""What most engines answer: a module takes these as its own where its engine does as others do."""

from collections.abc import Callable
from typing import Any

from planner.engines.common import deepep
from planner.model import ModelSpec
from planner.topology import Topology


def deepep_transport(phase: str, topology: Topology, model: ModelSpec | None = None) -> str:
    """That of DeepEP, whatever the model."""
    del model
    return deepep.transport(phase, topology)


def one_rule(rule: str) -> Callable[[str, Topology, ModelSpec | None], str]:
    """A replica rule that holds for every phase, machine and model."""

    def replica_rule(phase: str, topology: Topology, model: ModelSpec | None = None) -> str:
        del phase, topology, model
        return rule

    return replica_rule


def block_fp8(model: ModelSpec) -> str:
    """Activations are sent as fp8 where the weights are fp8 in blocks."""
    return "fp8" if model.weight_dtype == "fp8" else "bf16"


def no_map(value: Any) -> None:
    """Of an engine that reads no map file, no file is its map."""
    del value
