"""Serving engines: what each accepts, how it picks replicas, which map and which flags it loads. One module an engine; this one finds them.

Shapes: L layers, P slots, G GPUs.
"""

import difflib
import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from planner.errors import BadInput
from planner.model import ModelSpec
from planner.placement import Placement
from planner.problem import Problem, check_slots
from planner.rules import Violation, violations
from planner.topology import Topology


@dataclass(frozen=True)
class Emission:
    """What an engine is started with. `files` maps names to texts and holds `launch` under 'launch.sh'; a note that begins with WARNING must be shown."""

    files: Mapping[str, str]
    launch: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class MapFile:
    """A map as its file has it: rows by absolute layer id, cells unchecked. `planner.check` is its judge."""

    kind: str
    rows: tuple[tuple[int, Any], ...]
    every_layer: bool  # a row for every decoder layer and no draft layer (SGLang), or for the placed layers alone
    slots: int | None = None  # the row length the file itself states
    problems: tuple[str, ...] = ()  # what is wrong with the file around its rows


class Engine(Protocol):
    """What every engine module offers."""

    NAME: str
    TITLE: str
    VERSION: str  # the release whose rules these are
    REPLICA_RULE: str  # a name that planner.replica knows

    def transport(self, phase: str, topology: Topology, model: ModelSpec | None = None) -> str:
        """How dispatch moves bytes, a key of planner.problem.TRANSPORTS."""

    def dispatch_dtype(self, model: ModelSpec) -> str:
        """What a token's activations are sent as: fp8 or bf16."""

    def reads_map(self, model: ModelSpec) -> bool:
        """Whether the engine is known to serve this model from a map file."""

    def default_placement(self, model: ModelSpec, gpus: int, redundant: int) -> Placement:
        """The map the engine makes itself when it is given none."""

    def limits(self, problem: Problem) -> list[Violation]:
        """The engine's own limits that this question breaks."""

    def emit(self, placement: Placement, problem: Problem, model_path: str) -> Emission:
        """Files and launch script that serve `placement`. BadInput where it breaks a hard rule or a limit."""

    def read_map(self, value: Any) -> MapFile | None:
        """The map in a parsed JSON or YAML file, or None where this is not the engine's format."""


def engine_names() -> tuple[str, ...]:
    """Names of the engines, in alphabetical order."""
    return tuple(sorted(_engines()))


def find_engine(name: str) -> Engine:
    engines = _engines()
    if name not in engines:
        nearest = difflib.get_close_matches(name.lower(), engines, n=1, cutoff=0.4)
        meant = f"did you mean '{nearest[0]}'? " if nearest else ""
        raise BadInput(f"engine {name!r} is unknown; {meant}known are {', '.join(sorted(engines))}")
    return engines[name]


def _engines() -> dict[str, Engine]:
    """Every module here that has a NAME is an engine; the others are what engines share."""
    modules = [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    return {module.NAME: cast("Engine", module) for module in modules if hasattr(module, "NAME")}


def default_placement(engine: str | None, problem: Problem) -> Placement:
    """The engine's own map for this question; without an engine the cyclic one, which most share."""
    make = find_engine(engine).default_placement if engine else cyclic_placement
    return make(problem.model, problem.gpus, problem.redundant)


def refuse_broken(placement: Placement, problem: Problem, limits: Sequence[Violation]) -> None:
    """Nothing is written for a placement that breaks a hard rule, nor for a question past the engine's limits."""
    broken = violations(problem, placement) or list(limits)
    if broken:
        more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
        raise BadInput(f"this placement cannot be emitted: {broken[0].text}{more}")


def same_rows(model: ModelSpec, gpus: int, expert_P: npt.NDArray[np.int64]) -> Placement:
    """One row for every placed layer. Infeasible where the slots do not divide over the GPUs."""
    check_slots(model, gpus, len(expert_P) - model.experts)
    return Placement(np.tile(expert_P, (len(model.placed_layer_ids), 1)), model.placed_layer_ids, gpus)


def cyclic_placement(model: ModelSpec, gpus: int, redundant: int) -> Placement:
    """Expert p % E in slot p: the default of SGLang and vLLM. Its copies lie E slots apart and S <= E, so no GPU holds an expert twice."""
    check_slots(model, gpus, redundant)
    return same_rows(model, gpus, np.arange(model.experts + redundant) % model.experts)


def gpus_per_node(topology: Topology) -> tuple[int, ...]:
    """GPUs of each node, in node order."""
    return tuple(np.bincount(topology.node_G, minlength=topology.node_count).tolist())


def uneven_nodes(topology: Topology, why: str) -> list[Violation]:
    """The limit of engines that start as many ranks on each node."""
    counts = gpus_per_node(topology)
    return [] if len(set(counts)) == 1 else [Violation("nodes", f"the nodes hold {', '.join(map(str, counts))} GPUs; {why}")]
