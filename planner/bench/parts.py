"""Parts: `auto` beside itself with each of its parts switched off, on load that it was not fitted to.

A part is a method of the portfolio, levelling, or settling.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

from planner.bench.frame import Peers, Table, each
from planner.bench.traces import ABSENT, FOLDER, of_rows, trace_file, traces_found
from planner.cost import windows_of
from planner.engines import find_engine
from planner.load import LoadProfile, read_load, shipped_load, split_windows
from planner.model import find_model
from planner.placement import Placement
from planner.planning import PlanRequest, workload_for
from planner.problem import Problem, check_slots
from planner.solvers import (
    PORTFOLIO,
    SMALL_CELLS,
    Progress,
    Score,
    Search,
    Workforce,
    best_rows,
    find_candidates,
    find_placement,
    fitted_windows,
    in_expectation,
    layer_by_layer,
    levelled,
    objective_score,
    settled_rows,
)
from planner.topology import read_topology

TITLE = (
    "Parts: auto with each of its parts switched off, predicted seconds beside auto's, held-out third, every "
    "twelfth layer"
)
OLMOE = FOLDER / "olmoe-1b-7b_1024-examples_counts.npz"
EVERY = 12
PHASES = ("decode", "prefill")
METHODS = (*PORTFOLIO, "cpsat")
PARTS = ("levelling", "settling", *METHODS)
NOTES = (
    "a share above 0: the part makes the plan better by so much; below 0: auto would do better without it",
    "without a method: only where that changes the portfolio's answer; alone: the best method by itself",
    "lp under SGLang, else each engine's own rule and transport; even: no engine",
)


@dataclass(frozen=True)
class Source:
    """A load: of which model, out of which files (none: the published one), on which machine with which R."""

    model: str
    files: tuple[str, ...]
    machine: str
    redundant: int


TRACED = ("deepseek-v2-lite", "hgx-h100:4x2", 16)
SOURCES = {
    "intent": Source(TRACED[0], ("intent",), *TRACED[1:]),
    "law": Source(TRACED[0], ("law",), *TRACED[1:]),
    "both": Source(TRACED[0], ("intent", "law"), *TRACED[1:]),
    "OLMoE": Source("olmoe", (OLMOE.name,), "hgx-h100:4x2", 16),
    "Mixtral": Source("mixtral", (), "hgx-h100:2x2", 8),
}
# The engine, and a rule in place of its own
RULES = {"sglang": ("sglang", None), "vllm": ("vllm", None), "even": (None, "even"), "lp": ("sglang", "lp")}


def run(peers: Peers, repeats: int, progress: Progress | None) -> Table:
    """A row for each load, rule and phase; a search is deterministic, so it runs once."""
    del peers, repeats
    if not (traces_found() and OLMOE.is_file()):
        return Table(TITLE, (), (ABSENT,))
    cases = list(product(SOURCES, RULES, PHASES))
    told = each(cases, progress, ", ".join)
    return Table(TITLE, tuple(row_of(*posed(*case), ", ".join(case)) for case in told), NOTES)


def posed(source: str, rule: str, phase: str) -> tuple[Problem, LoadProfile]:
    """(problem on the fitted windows, the held-out ones)."""
    asked, (name, given) = SOURCES[source], RULES[rule]
    fitted, held_out = _load(asked)
    model = replace(find_model(asked.model), moe_layer_ids=fitted.layer_ids)
    topology, engine = read_topology(asked.machine), find_engine(name) if name else None
    workload = workload_for(PlanRequest(asked.model, phase=phase), model, topology, engine)
    own = given or (engine.replica_rule(phase, topology, model) if engine else "even")
    slots = check_slots(model, topology.gpu_count, asked.redundant)
    return Problem(topology, model, fitted, workload, slots, own), held_out


def _load(asked: Source) -> tuple[LoadProfile, LoadProfile]:
    """Fitted and held out, of every twelfth layer; of those that were measured where not all were."""
    model = find_model(asked.model)
    paths = [FOLDER / name if name.endswith(".npz") else trace_file(name) for name in asked.files]
    load = read_load(paths, model) if paths else shipped_load(model)
    assert load is not None
    measured = [row for row, layer in enumerate(load.layer_ids) if layer not in load.unmeasured_layer_ids]
    whole = len(measured) == len(load.layer_ids)
    fitted, held_out = split_windows(of_rows(load, measured[::EVERY] if whole else measured))
    assert held_out is not None
    return fitted, held_out


def row_of(problem: Problem, held_out: LoadProfile, instance: str) -> dict[str, object]:
    """Seconds of `auto`, and by which share of them each variant is slower."""
    score = objective_score(problem, windows_of(problem, held_out))
    offered = {name: list(find_candidates(name)(in_expectation(problem))) for name in _methods(problem)}
    alone = {name: float(score(placements[-1]).sum()) for name, placements in offered.items() if placements}
    auto = float(score(find_placement(problem, Search(workforce=Workforce(1))).placement).sum())
    seconds = {name: float(score(placement).sum()) for name, placement in _without(problem, offered)}
    return {
        "instance": instance,
        "method": "auto",
        "seconds": auto,
        **{f"no {part}_share": seconds[part] / auto - 1 if part in seconds else None for part in PARTS},
        "alone_share": min(alone.values()) / auto - 1,
        "best alone": min(alone, key=lambda name: alone[name]),
    }


def _methods(problem: Problem) -> tuple[str, ...]:
    """Those that `auto` asks without a budget."""
    small = problem.model.experts * problem.gpus <= SMALL_CELLS
    return METHODS if small else PORTFOLIO


def _best(offered: Iterable[Placement], score: Score) -> Placement:
    first, *others = offered
    return best_rows(first, others, score)


def _without(problem: Problem, offered: Mapping[str, list[Placement]]) -> Iterator[tuple[str, Placement]]:
    """Each part, and the answer without it."""
    searched, windows = in_expectation(problem), fitted_windows(problem)
    score = objective_score(searched, windows)
    whole = _best([one for placements in offered.values() for one in placements], score)
    yield "levelling", settled_rows(problem, windows, whole)
    own = objective_score(layer_by_layer(problem), windows)
    yield "settling", levelled(searched, windows, whole, own)
    for name in offered:
        others = [one for other, placements in offered.items() for one in placements if other != name]
        rest = _best(others, score)
        if (rest.expert_LP != whole.expert_LP).any():
            yield name, settled_rows(problem, windows, levelled(searched, windows, rest, own))
