"""What an engine's module offers, and the values it gives: an emission, a map as its file has it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from planner.engines.common.command import NodeCommand
from planner.engines.common.releases import Release
from planner.engines.common.verdict import MIXED, Verdict
from planner.engines.common.vllm_replay import Replay
from planner.model import ModelSpec
from planner.placement import Placement
from planner.problem import Problem, Violation
from planner.topology import Topology


@dataclass(frozen=True)
class Emission:
    """What an engine is started with. A note that begins with WARNING must be shown."""

    files: Mapping[str, str]  # texts by name, launch.sh among them
    launch: str  # the text of launch.sh
    notes: tuple[str, ...]
    # Why this engine would not serve the plan's placement; the launch then has its flags alone, and `files`
    # no map.
    ignored: str = ""
    # What launch.sh starts, in node order; what other launchers are made from.
    commands: tuple[NodeCommand, ...] = ()


NUMBERINGS = {
    "decoder": "the n-th row is decoder layer n; dense layers have a row, draft layers have none",
    "absolute": "each row is keyed by its absolute layer id, draft layers included",
    "moe": "the n-th row is the n-th MoE layer; dense and draft layers have none",
    "placed": "the n-th row is the n-th MoE layer; rows of draft layers may follow",
}


@dataclass(frozen=True)
class MapFile:
    """A map as its file has it: rows by the file's own numbering, cells unchecked.

    `planner.maps.rules` is its judge.
    """

    kind: str
    rows: tuple[tuple[int, Any], ...]
    numbering: str  # a key of NUMBERINGS
    slots: int | None = None  # the row length the file itself states
    gpus: int | None = None  # the EP size the file itself states
    needs_draft_rows: bool = False  # its engine asks for the draft layers' rows
    no_lookup: bool = False  # nobody looks a row up by its layer: each must be of a layer that holds experts
    problems: tuple[str, ...] = ()  # what is wrong with the file around its rows

    def layer_ids(self, model: ModelSpec) -> tuple[int, ...]:
        """The absolute layer id of each row. Rows past the model's last layer get ids past its last."""
        if self.numbering in ("decoder", "absolute"):
            return tuple(number for number, _ in self.rows)
        known = model.moe_layer_ids if self.numbering == "moe" else model.placed_layer_ids
        past_last = max(known) + 1 - len(known)
        return tuple(known[n] if n < len(known) else past_last + n for n, _ in self.rows)


class Engine(Protocol):
    """What every engine module offers.

    One that places experts anew after a loss, or changes its size while it serves, has an ELASTIC too.
    """

    NAME: str
    TITLE: str
    VERSION: str  # the release whose rules these are
    RELEASES: Sequence[Release]  # every known one, oldest first
    REPLICA_RULE: str  # of its usual launch; a name that planner.replica knows
    ACCELERATOR: str  # what it runs on: nvidia, ascend or hygon
    DRAFT_IS_OPTIONAL: bool  # whether it can be started without the model's draft (MTP) layers
    ROLES: Sequence[str]  # mixed, and prefill and decode where it can be started as a disaggregated pair

    def transport(self, phase: str, topology: Topology, model: ModelSpec | None = None) -> str:
        """How dispatch moves bytes, a key of planner.problem.TRANSPORTS."""

    def replica_rule(self, phase: str, topology: Topology, model: ModelSpec | None = None) -> str:
        """The rule of the launch that is emitted for this machine, and for this model where one is named."""

    def dispatch_dtype(self, model: ModelSpec) -> str:
        """What a token's activations are sent as: fp8 or bf16."""

    def reads_map(self, model: ModelSpec) -> bool:
        """Whether the engine is known to serve this model by what is emitted for it, a map in most."""

    def default_placement(self, model: ModelSpec, gpus: int, redundant: int) -> Placement:
        """The map the engine makes itself when it is given none."""

    def map_limits(self, model: ModelSpec, slots: int, gpus: int) -> list[Violation]:
        """Those of its limits that a map alone can break."""

    def emit(
        self,
        placement: Placement,
        problem: Problem,
        model_path: str,
        version: str | None = None,
        role: str = MIXED,
    ) -> Emission:
        """Files and launch script that serve `placement`, as the server for all traffic or half of a pair.

        Flags alone and `ignored` where the engine would not read its map.
        BadInput where the placement breaks a hard rule or a limit, or the version is known to differ.
        """

    def judge(self, problem: Problem, version: str | None = None, role: str = MIXED) -> Verdict:
        """Whether the launch of this question would stand, and what must be said for it to."""

    def read_map(self, value: Any) -> MapFile | None:
        """The map in a parsed JSON or YAML file, or None where this is not the engine's format."""


class PairedEngine(Engine, Protocol):
    """An engine that can be started as a pair of servers, one for prefill and one for decode."""

    def router_text(self, prefill: Problem, decode: Problem) -> str:
        """A script that starts the router in front of the two."""


class PluginEngine(Engine, Protocol):
    """An engine that serves a plan's placement where a plugin of ours is installed beside it."""

    def plugin_serves(self, model: ModelSpec) -> bool:
        """Whether the plugin can make it serve this model."""

    def emit_with_plugin(
        self,
        placement: Placement,
        problem: Problem,
        model_path: str,
        version: str | None = None,
        role: str = MIXED,
    ) -> Emission:
        """As `emit`, with the plugin among the files."""


class ReplayEngine(Engine, Protocol):
    """An engine whose tokens a package of ours can route by the rows of a trace."""

    def emit_with_replay(
        self,
        placement: Placement,
        problem: Problem,
        model_path: str,
        replay: Replay,
        version: str | None = None,
        role: str = MIXED,
        *,
        plugin: bool = False,
    ) -> Emission:
        """As `emit`, or as `emit_with_plugin`, with the trace's rows among the files."""


class StandIn(Engine, Protocol):
    """An engine that takes no map: it is given counts or a list, and makes a placement of its own of it.

    Its `emit` says how much longer a step of that is than the plan's.
    """

    TABLE_NAME: str  # of the file that it is given

    def served(self, placement: Placement, problem: Problem) -> Placement:
        """What it makes of what is emitted for this placement."""


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
