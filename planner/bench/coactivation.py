"""Co-activation: other nodes that a token reaches, on sequences of real traces that no plan was fitted to, ours beside the engines' balancers."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from planner.bench.frame import Peers, Policy, Table
from planner.bench.traces import ABSENT, DOMAINS, traced_problem, traces_found
from planner.cost import cost, remote_places_L
from planner.load import LoadProfile, drawn_trace
from planner.placement import Placement
from planner.problem import Problem, violations
from planner.solvers import Progress, find_candidates, find_method, in_expectation

TITLE = "Co-activation: DeepSeek-V2-Lite, 4 nodes x 2 GPUs; other nodes a token reaches, held-out sequences, mean over 26 layers"
MACHINE = "hgx-h100:4x2"
ENGINES = {
    "vLLM": "hashed",
    "SGLang": "nearest-static",
}  # peers by how their names begin, and the replica rule that their engine follows
NOTES = (
    "of_own_eplb: against the engine's own balancer under the same rule; of_vllm_eplb: against vLLM's balancer under vLLM's rule. Same histogram for all.",
    "other_domain: the same placement judged on all of the other trace's held-out sequences.",
    "affinity-1 weighs traffic more, affinity-2 (what --method affinity answers) balance; 'from pairs' sees co-occurrence counts instead of the trace.",
)


def run(peers: Peers, repeats: int, progress: Progress | None) -> Table:
    """R = 0 and 16, both domains; a search is deterministic, so it runs once."""
    del repeats
    if not traces_found():
        return Table(TITLE, (), (ABSENT,))
    rows: list[dict[str, object]] = []
    cases = [(domain, redundant) for domain in DOMAINS for redundant in (0, 16)]
    for number, (domain, redundant) in enumerate(cases):
        if progress:
            progress(number / len(cases), f"{domain}, R = {redundant}")
        rows += _rows(domain, redundant, peers.policies)
    return Table(
        TITLE,
        tuple(rows),
        NOTES if peers.policies else (*NOTES, "no wheel was given: nothing to compare with"),
    )


def _rows(domain: str, redundant: int, policies: Mapping[str, Policy]) -> Iterator[dict[str, object]]:
    other = next(name for name in DOMAINS if name != domain)
    _, other_load = traced_problem(other, MACHINE, redundant, "even", "node")
    vllm: float | None = None
    for engine, rule in ENGINES.items():
        problem, held_out = traced_problem(domain, MACHINE, redundant, rule, "node")
        found = {
            name: placed_by(policy, problem)
            for name, policy in policies.items()
            if name.startswith(engine) and not name.endswith("_vec")
        }
        found |= {
            f"affinity-{number}": placement
            for number, placement in enumerate(find_candidates("affinity")(in_expectation(problem)), start=1)
        }
        if engine == "SGLang":  # under one rule is enough to see
            found["affinity from pairs"] = find_method("affinity")(in_expectation(paired(problem)))
        own: float | None = None
        for name, placement in found.items():
            remote = _mean_remote(problem, placement, held_out)
            own = remote if own is None and not name.startswith("affinity") else own
            vllm = remote if vllm is None and name.startswith("vLLM") else vllm
            yield {
                "instance": f"{domain}, R = {redundant}, {rule}",
                "method": name,
                "remote_nodes_per_token": remote,
                "of_own_eplb": remote / own if own else None,
                "of_vllm_eplb": remote / vllm if vllm else None,
                "fitted_remote_nodes": _mean_remote(problem, placement, problem.load),
                "max_over_mean": cost(problem, placement, held_out).max_over_mean,
                "other_domain_remote_nodes": _mean_remote(problem, placement, other_load),
                "other_domain_max_over_mean": cost(problem, placement, other_load).max_over_mean,
                "valid": not violations(problem, placement),
            }


def paired(problem: Problem) -> Problem:
    """The same question, as one who has co-occurrence counts but no trace would ask it."""
    trace = problem.load.trace
    assert trace is not None
    chosen_LTE = (
        (trace.experts_LTK[..., None] == np.arange(problem.model.experts)).any(axis=2).astype(np.int64)
    )
    together_LEE = np.einsum("lte,ltf->lef", chosen_LTE, chosen_LTE, optimize=True)
    drawn = drawn_trace(together_LEE, problem.load.tokens_WLE, problem.load.layer_ids, problem.model.top_k)
    return replace(problem, load=replace(problem.load, trace=drawn))


def placed_by(policy: Policy, problem: Problem) -> Placement:
    """The balancer with the groups and nodes that its engine would hand it: both engines go by nodes only where the groups divide over them."""
    groups, nodes = problem.model.expert_groups, problem.topology.node_count
    nodes = nodes if groups % nodes == 0 else 1
    return Placement(
        policy(problem.load.total_LE.astype(np.float64), problem.slots, groups, nodes, problem.gpus),
        problem.model.placed_layer_ids,
        problem.gpus,
    )


def _mean_remote(problem: Problem, placement: Placement, load: LoadProfile) -> float:
    return float(np.nanmean(remote_places_L(problem, placement, load)))
