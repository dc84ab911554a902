"""Serving engines: what each accepts, how it picks replicas, which map and which flags it loads. One module an engine; this one finds them.

Shapes: L layers, P slots, G GPUs.
"""

import difflib
import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt

from planner.engines.command import NodeCommand
from planner.engines.releases import Release
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
    ignored: str = ""  # why this engine would not serve the plan's placement; the launch then has its flags alone, and `files` no map
    commands: tuple[NodeCommand, ...] = ()  # what launch.sh starts, in node order; what other launchers are made from


NUMBERINGS = {
    "decoder": "the n-th row is decoder layer n; dense layers have a row, draft layers have none",
    "absolute": "each row is keyed by its absolute layer id, draft layers included",
    "moe": "the n-th row is the n-th MoE layer; dense and draft layers have none",
    "placed": "the n-th row is the n-th MoE layer; rows of draft layers may follow",
}


@dataclass(frozen=True)
class MapFile:
    """A map as its file has it: rows by the file's own numbering, cells unchecked. `planner.map_rules` is its judge."""

    kind: str
    rows: tuple[tuple[int, Any], ...]
    numbering: str  # a key of NUMBERINGS
    slots: int | None = None  # the row length the file itself states
    gpus: int | None = None  # the EP size the file itself states
    needs_draft_rows: bool = False  # its engine asks for the draft layers' rows
    problems: tuple[str, ...] = ()  # what is wrong with the file around its rows

    def layer_ids(self, model: ModelSpec) -> tuple[int, ...]:
        """The absolute layer id of each row. Rows past the model's last layer get ids past its last."""
        if self.numbering in ("decoder", "absolute"):
            return tuple(number for number, _ in self.rows)
        known = model.moe_layer_ids if self.numbering == "moe" else model.placed_layer_ids
        after = max(known) + 1
        return tuple(known[number] if number < len(known) else after + number - len(known) for number, _ in self.rows)


class Engine(Protocol):
    """What every engine module offers."""

    NAME: str
    TITLE: str
    VERSION: str  # the release whose rules these are
    RELEASES: Sequence[Release]  # every known one, oldest first
    REPLICA_RULE: str  # of its usual launch; a name that planner.replica knows

    def transport(self, phase: str, topology: Topology, model: ModelSpec | None = None) -> str:
        """How dispatch moves bytes, a key of planner.problem.TRANSPORTS."""

    def replica_rule(self, phase: str, topology: Topology) -> str:
        """The rule of the launch that is emitted for this machine."""

    def dispatch_dtype(self, model: ModelSpec) -> str:
        """What a token's activations are sent as: fp8 or bf16."""

    def reads_map(self, model: ModelSpec) -> bool:
        """Whether the engine is known to serve this model from a map file."""

    def default_placement(self, model: ModelSpec, gpus: int, redundant: int) -> Placement:
        """The map the engine makes itself when it is given none."""

    def limits(self, problem: Problem) -> list[Violation]:
        """The engine's own limits that this question breaks."""

    def map_limits(self, model: ModelSpec, slots: int, gpus: int) -> list[Violation]:
        """Those of its limits that a map alone can break."""

    def emit(self, placement: Placement, problem: Problem, model_path: str, version: str | None = None) -> Emission:
        """Files and launch script that serve `placement`; flags alone and `ignored` where the engine would not read its map.

        BadInput where the placement breaks a hard rule or a limit, or the version is known to differ.
        """

    def read_map(self, value: Any) -> MapFile | None:
        """The map in a parsed JSON or YAML file, or None where this is not the engine's format."""


class MapFormat(Protocol):
    """What a module offers that reads and writes a map file."""

    TITLE: str
    MAP_NAME: str

    def read_map(self, value: Any) -> MapFile | None:
        """As an engine's."""

    def map_text(self, rows: Mapping[int, Sequence[int]], model: ModelSpec, gpus: int) -> str:
        """The file with the rows by absolute layer id, as many of them as the format holds."""

    def held_layers(self, model: ModelSpec) -> tuple[int, ...]:
        """The layers that the format has a row for."""


def engine_names() -> tuple[str, ...]:
    """Names of the engines, in alphabetical order."""
    return tuple(sorted(_engines()))


def find_engine(name: str) -> Engine:
    return _find(name, _engines(), "engine")


def map_formats() -> tuple[str, ...]:
    """Names of the map formats: of each engine that reads one, and of the balancers' plain tensors."""
    return tuple(sorted(_formats()))


def find_format(name: str) -> MapFormat:
    return _find(name, _formats(), "map format")


Found = TypeVar("Found")


def _find(name: str, known: Mapping[str, Found], kind: str) -> Found:
    if name not in known:
        nearest = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.4)
        meant = f"did you mean '{nearest[0]}'? " if nearest else ""
        raise BadInput(f"{kind} {name!r} is unknown; {meant}known are {', '.join(sorted(known))}")
    return known[name]


def _engines() -> dict[str, Engine]:
    """Every module here that has a NAME is an engine; the others are what engines share."""
    return {module.NAME: cast("Engine", module) for module in _modules() if hasattr(module, "NAME")}


def _formats() -> dict[str, MapFormat]:
    """Every module here that has a MAP_NAME reads and writes a map, under the module's own name."""
    return {module.__name__.rpartition(".")[2]: cast("MapFormat", module) for module in _modules() if hasattr(module, "MAP_NAME")}


def _modules() -> list[ModuleType]:
    return [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]


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
