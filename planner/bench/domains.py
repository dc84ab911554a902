"""Domains: plans for one kind of traffic, for the sum of two, and for both at once.

Judged on held-out sequences of each.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from planner.bench.frame import Peers, Table, as_method
from planner.bench.traces import ABSENT, DOMAINS, trace_file
from planner.cost import cost, objective_seconds_L, windows_of
from planner.load import LoadProfile, read_load, split_windows
from planner.model import find_model
from planner.placement import Placement
from planner.plan import Origin
from planner.planning import make_plan
from planner.problem import Objective, Problem, Workload, check_slots, violations
from planner.solvers import Progress, Search, find_method
from planner.topology import read_topology

TITLE = (
    "Domains: DeepSeek-V2-Lite, two routing traces, 8 GPUs on 4 nodes, R = 16, even split; judged on the "
    "held-out third of each"
)
FILES = {domain: trace_file(domain) for domain in DOMAINS}
MACHINE, REDUNDANT = "hgx-h100:4x2", 16
NOTES = (
    (
        "seconds: predicted step, mean over windows, decode, 128 tokens a rank, transport slot; of_own: "
        "beside our plan of that domain alone"
    ),
)


def run(peers: Peers, repeats: int, progress: Progress | None) -> Table:
    """Every placement on both domains; nothing here is a time that was measured, so nothing is repeated."""
    del repeats
    if not all(path.is_file() for path in FILES.values()):
        return Table(TITLE, (), (ABSENT,))
    fitted, held_out = {}, {}
    for name, path in FILES.items():
        fitted[name], held_out[name] = _split(read_load([path], find_model("deepseek-v2-lite")))
    both, _ = _split(read_load(list(FILES.values()), find_model("deepseek-v2-lite")))
    found: dict[str, Placement] = {}
    for number, (name, placement) in enumerate(_placements(fitted, both, peers)):
        found[name] = placement
        if progress:
            progress(number / 8, name)
    rows = (row for name, load in held_out.items() for row in _rows(name, _problem(both), load, found))
    return Table(TITLE, tuple(rows), NOTES)


def _split(load: LoadProfile) -> tuple[LoadProfile, LoadProfile]:
    fitted, held_out = split_windows(load)
    assert held_out is not None  # a trace of several sequences
    return fitted, held_out


def _problem(load: LoadProfile) -> Problem:
    model, topology = find_model("deepseek-v2-lite"), read_topology(MACHINE)
    return Problem(topology, model, load, Workload(), check_slots(model, topology.gpu_count, REDUNDANT))


def _placements(
    fitted: Mapping[str, LoadProfile], both: LoadProfile, peers: Peers
) -> Iterator[tuple[str, Placement]]:
    for name, load in fitted.items():
        yield f"auto on {name}", _planned(_problem(load))
    for name, policy in peers.policies.items():
        yield f"{name} on both", as_method(policy)(_problem(both))
    yield "refine on both", find_method("refine")(_problem(both))
    yield "auto on both", _planned(_problem(both))
    yield "auto on both, --robust", _planned(replace(_problem(both), objective=Objective(robust=True)))


def _planned(problem: Problem) -> Placement:
    return make_plan(lambda _: problem, REDUNDANT, Search(), Origin()).placement


def _rows(
    domain: str, problem: Problem, load: LoadProfile, found: Mapping[str, Placement]
) -> Iterator[dict[str, object]]:
    windows = windows_of(problem, load)
    seconds = {
        name: float(objective_seconds_L(problem, windows, placement).sum())
        for name, placement in found.items()
    }
    for name, placement in found.items():
        yield {
            "instance": f"held-out {domain}",
            "method": name,
            "seconds": seconds[name],
            "of_own": seconds[name] / seconds[f"auto on {domain}"],
            "max_over_mean": cost(problem, placement, load).max_over_mean,
            "valid": not violations(problem, placement),
        }
