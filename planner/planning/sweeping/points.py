"""The points of a sweep, and what each of them asks of `solve`."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from planner.base import BadInput
from planner.planning.groups import ep_sizes, groups_of
from planner.planning.lookup import DEFAULT_TOPOLOGY, find_topology
from planner.planning.request import PlanRequest
from planner.planning.sweeping.request import METHOD, Point, SweepRequest
from planner.topology import Topology

SLICED_TRANSPORT = "allgather"  # of experts without expert parallelism, whatever the engine's own is
MOST_POINTS = 10_000  # more are a slip of the pen


@dataclass(frozen=True, eq=False)
class Layout:
    """The points of one EP size on one machine; they share what is placed.

    `groups`: the machines of its groups, one of each kind. They stand for `Point.groups` of them.
    """

    groups: tuple[Topology, ...]
    points: tuple[Point, ...]


def layouts_of(asked: SweepRequest) -> tuple[list[Layout], tuple[str, ...]]:
    """The points, EP sizes rising machine by machine, and notes on what was assumed.

    BadInput for an EP size that divides none of the machines, and for more points than anybody reads.
    """
    found: list[Layout] = []
    notes: list[str] = []
    divided: set[int] = set()
    for text in asked.topologies:
        topology, assumed = find_topology(text, calibrations=asked.base.calibrations)
        notes += assumed
        sizes = [size for size in ep_sizes(topology) if asked.ep is None or size in asked.ep]
        divided.update(sizes)
        found += [
            Layout(groups_of(topology, ep), tuple(make(asked, topology, machine_name(text), ep)))
            for ep in sizes
            for make in (_points, _sliced_points)
        ]
    _refuse_sizes(asked, divided)
    _refuse_shared(asked, divided)
    count = sum(len(layout.points) for layout in found)
    if count > MOST_POINTS:
        raise BadInput(f"{count:,} points are asked for, and at most {MOST_POINTS:,} are looked at")
    if not count:
        raise BadInput(
            "--experts tp: a group of one GPU has nothing to slice; ask for a larger --ep, or for ep"
        )
    return [layout for layout in found if layout.points], tuple(dict.fromkeys(notes))


def question(base: PlanRequest, point: Point, group: Topology) -> PlanRequest:
    """What `solve` is asked for this point, R aside: that is an answer where it is `fewest` or `auto`."""
    return replace(
        base,
        topology=group,
        calibrations=(),  # the group has them
        redundant=None,
        ep=None,
        engine=point.engine,
        method=METHOD,
        budget_seconds=None,
        phase=point.phase,
        tokens_per_rank=point.tokens_per_rank,
        transport=SLICED_TRANSPORT if point.sliced else point.transport,
        attention_tp=point.attention_tp,
    )


def machine_name(text: str | Topology | None) -> str:
    """As it was asked for."""
    if text is None:
        return DEFAULT_TOPOLOGY
    return text if isinstance(text, str) else text.name


def _points(asked: SweepRequest, topology: Topology, machine: str, ep: int) -> Iterator[Point]:
    if "ep" not in asked.experts:
        return
    choices = product(
        asked.redundant,
        asked.engines,
        asked.phases,
        asked.transports,
        asked.tokens_per_rank,
        asked.attention_tp,
    )
    for redundant, engine, phase, transport, tokens, attention_tp in choices:
        if ep % attention_tp == 0:  # the GPUs of a group that share attention, in whole groups
            groups = topology.gpu_count // ep
            yield Point(machine, ep, groups, redundant, engine, phase, transport, tokens, attention_tp)


def _sliced_points(asked: SweepRequest, topology: Topology, machine: str, gpus: int) -> Iterator[Point]:
    """Without expert parallelism; attention over all GPUs of a group too, as engines do unless told."""
    if "tp" not in asked.experts or gpus == 1:
        return
    shared = dict.fromkeys(one for one in (*asked.attention_tp, gpus) if gpus % one == 0)
    choices = product(asked.engines, asked.phases, asked.tokens_per_rank, shared)
    for engine, phase, tokens, attention_tp in choices:
        groups = topology.gpu_count // gpus
        yield Point(machine, gpus, groups, 0, engine, phase, None, tokens, attention_tp, sliced=True)


def _refuse_sizes(asked: SweepRequest, divided: set[int]) -> None:
    for ep in asked.ep or ():
        if ep not in divided:
            machines = (find_topology(text)[0] for text in asked.topologies)
            told = (f"{one.name} into {', '.join(map(str, ep_sizes(one)))}" for one in machines)
            raise BadInput(f"--ep {ep}: equal groups divide {'; '.join(told)}")


def _refuse_shared(asked: SweepRequest, sizes: set[int]) -> None:
    for shared in asked.attention_tp:
        if all(ep % shared for ep in sizes):
            told = ", ".join(map(str, sorted(sizes)))
            raise BadInput(f"--attention-tp {shared}: it divides none of the EP sizes {told}")
