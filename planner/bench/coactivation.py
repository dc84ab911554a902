"""Co-activation: other nodes that a token reaches, ours beside the engines' balancers.

On sequences of real traces that no plan was fitted to.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from planner.bench.frame import Peers, Policy, Table, each
from planner.bench.traces import ABSENT, DOMAINS, traced_problem, traces_found
from planner.cost import cost, remote_places_L
from planner.load import LoadProfile, drawn_trace
from planner.placement import Placement
from planner.problem import Problem, violations
from planner.solvers import Progress, find_candidates, find_method, in_expectation

TITLE = (
    "Co-activation: DeepSeek-V2-Lite, 4 nodes x 2 GPUs; other nodes a token reaches, held-out sequences, "
    "mean over 26 layers"
)
MACHINE = "hgx-h100:4x2"
# Peers by how their names begin, and the replica rule that their engine follows
ENGINES = {"vLLM": "hashed", "SGLang": "nearest-static"}
NOTES = (
    (
        "of_own_eplb: against the engine's own balancer under the same rule; of_vllm_eplb: against vLLM's "
        "balancer under vLLM's rule. Same histogram for all."
    ),
    "other_domain: the same placement judged on all of the other trace's held-out sequences.",
    (
        "affinity-1 weighs traffic more, affinity-2 (what --method affinity answers) balance; 'from pairs' "
        "sees co-occurrence counts instead of the trace."
    ),
)


def run(peers: Peers, repeats: int, progress: Progress | None) -> Table:
    """R = 0 and 16, both domains; a search is deterministic, so it runs once."""
    del repeats
    if not traces_found():
        return Table(TITLE, (), (ABSENT,))
    cases = [(domain, redundant) for domain in DOMAINS for redundant in (0, 16)]
    told = each(cases, progress, lambda case: f"{case[0]}, R = {case[1]}")
    rows = tuple(row for domain, redundant in told for row in _rows(domain, redundant, peers.policies))
    missing = () if peers.policies else ("no wheel was given: nothing to compare with",)
    return Table(TITLE, rows, (*NOTES, *missing))


def _rows(domain: str, redundant: int, policies: Mapping[str, Policy]) -> Iterator[dict[str, object]]:
    other = next(name for name in DOMAINS if name != domain)
    _, other_load = traced_problem(other, MACHINE, redundant, "even", "node")
    vllm: float | None = None
    for engine, rule in ENGINES.items():
        problem, held_out = traced_problem(domain, MACHINE, redundant, rule, "node")
        own: float | None = None
        for name, placement in _placements(engine, problem, policies).items():
            remote = _mean_remote(problem, placement, held_out)
            own = remote if own is None and not name.startswith("affinity") else own
            vllm = remote if vllm is None and name.startswith("vLLM") else vllm
            yield {
                "instance": f"{domain}, R = {redundant}, {rule}",
                "method": name,
                "remote_nodes_per_token": remote,
                "of_own_eplb": remote / own if own else None,
                "of_vllm_eplb": remote / vllm if vllm else None,
                **_judged(problem, placement, held_out, other_load),
            }


def _placements(engine: str, problem: Problem, policies: Mapping[str, Policy]) -> dict[str, Placement]:
    """The engine's balancers first, then what `affinity` offers."""
    found, searched = placed_by_engine(engine, problem, policies), in_expectation(problem)
    for number, placement in enumerate(find_candidates("affinity")(searched), start=1):
        found[f"affinity-{number}"] = placement
    if engine == "SGLang":  # under one rule is enough to see
        found["affinity from pairs"] = find_method("affinity")(in_expectation(paired(problem)))
    return found


def _judged(
    problem: Problem, placement: Placement, held_out: LoadProfile, other: LoadProfile
) -> dict[str, object]:
    return {
        "fitted_remote_nodes": _mean_remote(problem, placement, problem.load),
        "max_over_mean": cost(problem, placement, held_out).max_over_mean,
        "other_domain_remote_nodes": _mean_remote(problem, placement, other),
        "other_domain_max_over_mean": cost(problem, placement, other).max_over_mean,
        "valid": not violations(problem, placement),
    }


def paired(problem: Problem) -> Problem:
    """The same question, as one who has co-occurrence counts but no trace would ask it."""
    trace = problem.load.trace
    assert trace is not None
    chosen_LTE = (trace.experts_LTK[..., None] == np.arange(problem.model.experts)).any(axis=2)
    chosen_LTE = chosen_LTE.astype(np.int64)
    together_LEE = np.einsum("lte,ltf->lef", chosen_LTE, chosen_LTE, optimize=True)
    drawn = drawn_trace(together_LEE, problem.load.tokens_WLE, problem.load.layer_ids, problem.model.top_k)
    return replace(problem, load=replace(problem.load, trace=drawn))


def placed_by_engine(engine: str, problem: Problem, policies: Mapping[str, Policy]) -> dict[str, Placement]:
    """What the balancers of one engine answer, those that only compute the same faster left out."""
    names = [name for name in policies if name.startswith(engine) and not name.endswith("_vec")]
    return {name: placed_by(policies[name], problem) for name in names}


def placed_by(policy: Policy, problem: Problem) -> Placement:
    """The balancer with the groups and nodes that its engine would hand it.

    Both engines go by nodes only where the groups divide over them.
    """
    groups, nodes = problem.model.expert_groups, problem.topology.node_count
    nodes = nodes if groups % nodes == 0 else 1
    load_LE = problem.load.total_LE.astype(np.float64)
    expert_LP = policy(load_LE, problem.slots, groups, nodes, problem.gpus)
    return Placement(expert_LP, problem.model.placed_layer_ids, problem.gpus)


def _mean_remote(problem: Problem, placement: Placement, load: LoadProfile) -> float:
    return float(np.nanmean(remote_places_L(problem, placement, load)))
