"""The GPUs that a question is about: the machine asked for, cut to the EP size, without lost GPUs."""

from dataclasses import dataclass
from pathlib import Path

from planner.base import BadInput
from planner.load import named_spans, spans
from planner.maps import read_value
from planner.plan import SCHEMA, plan_from_dict
from planner.planning.lookup import find_topology
from planner.planning.request import PlanRequest
from planner.topology import Topology, ranks_named


@dataclass(frozen=True, eq=False)
class Machine:
    """`topology` is planned for; `whole` has also the GPUs `lost` (their ranks there)."""

    topology: Topology
    whole: Topology
    lost: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


def find_machine(request: PlanRequest) -> Machine:
    """The machine; of the plan that runs where none is named. BadInput names what there is not."""
    text = request.topology
    if text is None and request.previous is not None:
        text = _planned_topology(request.previous)
    whole, notes = find_topology(text, request.ep, request.calibrations)
    if request.without is None:
        return Machine(whole, whole, notes=notes)
    lost = ranks_named(whole, request.without, "--without")
    left = whole.without(lost)
    return Machine(left, whole, lost, (*notes, _renumbered(whole, lost)))


def _planned_topology(path: Path) -> Topology | None:
    """That of a plan file; None of a map, which names no machine."""
    value = read_value(path)
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        return None
    return plan_from_dict(value, str(path)).problem.topology


def _renumbered(whole: Topology, lost: tuple[int, ...]) -> str:
    """Which GPU of the machine each rank of the plan is."""
    kept = [gpu for gpu in range(whole.gpu_count) if gpu not in lost]
    runs, rank = [], 0
    for run in spans(kept).split(", "):
        first, _, last = run.partition("-")
        size = int(last or first) - int(first) + 1
        ranks = str(rank) if size == 1 else f"{rank}-{rank + size - 1}"
        runs.append(f"{ranks} = GPU {run}")
        rank += size
    return f"without {named_spans('GPU', lost)} of {whole.name}, ranks close up: {', '.join(runs)}"


def same_ranks(path: Path, old: Topology, new: Topology) -> None:
    """BadInput where the first GPUs of the two sit on nodes otherwise: no rank may change its place."""
    shared = min(old.gpu_count, new.gpu_count)
    if (old.node_G[:shared] == new.node_G[:shared]).all():
        return
    had, has = ("+".join(str(len(node.gpus)) for node in each.nodes) for each in (old, new))
    raise BadInput(
        f"--from {path}: its {old.gpu_count} GPUs are on nodes of {had}, the machine asked for has {has}; "
        f"name the same machine with more or fewer GPUs, give --ep {old.gpu_count}, or plan without --from"
    )
