"""Co-activation: which experts tokens choose together, and how many nodes they reach for them."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from planner.cost import remote_places_L
from planner.load import Trace
from planner.page.document import paragraphs
from planner.page.html import Content, Html
from planner.page.tables import folded_table, table_of
from planner.page.told import Told
from planner.plan import kept_of

TITLE = "Co-activation"
PAIRS = 12
Floats = npt.NDArray[np.float64]


def section(told: Told) -> Content:
    rows = told.rows
    if rows is None or rows.trace is None:
        kept = kept_of(told.value)
        gone = "the rows kept beside the plan are gone" if kept else "the plan was made from counts"
        return paragraphs(
            f"Not known: {gone}. A trace (`moeplan record`, or an engine's dump of token routing) given with "
            "--load to `moeplan solve` shows it."
        )
    tokens = rows.trace.experts_LTK.shape[1]
    part = kept_of(told.value)
    head = f"Counted over {tokens:,} tokens kept beside the plan, of its {part.part if part else ''} load."
    return [paragraphs(head), _reach(told), _pairs(told, rows.trace)]


def _reach(told: Told) -> Content:
    """Other nodes that a token reaches, under the plan and the default."""
    if told.problem.topology.node_count < 2:
        return paragraphs("One node: no token leaves it.")
    rows, problem = told.rows, replace(told.problem, load=told.sent_load)
    plan_L = remote_places_L(problem, told.placement, rows)
    default_L = remote_places_L(problem, told.default, rows)
    known = [row for row in told.worst_first if np.isfinite(plan_L[row])]
    mean = f"{np.nanmean(plan_L):.3f} under the plan, {np.nanmean(default_L):.3f} under the engine's default"
    cells = [
        [
            str(told.layer_ids[row]),
            f"{plan_L[row]:.3f}",
            f"{default_L[row]:.3f}",
            f"{plan_L[row] / default_L[row]:.2f}" if default_L[row] else "-",
        ]
        for row in known
    ]
    return [
        paragraphs(f"Other nodes that a token reaches, mean over layers: {mean}."),
        folded_table(("layer", "plan", "default", "ratio"), cells, "Other nodes that a token reaches"),
    ]


def _pairs(told: Told, trace: Trace) -> Html:
    """Of the layer whose choices are furthest from independent ones."""
    experts = told.problem.model.experts
    lifts = [
        (float(excess_EE.max()), -row, excess_EE, seen_EE)
        for row in range(len(told.layer_ids))
        if trace.recorded_L[row]
        for excess_EE, seen_EE in [_excess_EE(trace.experts_LTK[row], experts)]
    ]
    _, minus_row, excess_EE, seen_EE = max(lifts, key=lambda one: one[:2])
    row, chance_E = -minus_row, np.diag(seen_EE)
    upper = np.argwhere(np.triu(np.ones_like(seen_EE), 1) > 0)
    strongest = sorted(upper.tolist(), key=lambda pair: (-excess_EE[pair[0], pair[1]], pair))[:PAIRS]
    cells = [
        [
            f"{one} and {other}",
            f"{seen_EE[one, other]:.2%}",
            f"{chance_E[one] * chance_E[other]:.2%}",
            _together(told, row, one, other),
        ]
        for one, other in strongest
    ]
    names = ("experts", "of tokens choose both", "if independent", "in this plan")
    caption = f"Layer {told.layer_ids[row]}: pairs that come together most above chance"
    return table_of(names, cells, caption, words=(0, 3))


def _excess_EE(experts_TK: npt.NDArray[np.int32], experts: int) -> tuple[Floats, Floats]:
    """Share of tokens that choose both, less what independent choices would give; and the share itself."""
    chosen_TE = np.zeros((len(experts_TK), experts), dtype=np.float32)
    np.put_along_axis(chosen_TE, experts_TK.astype(np.int64), 1.0, axis=1)
    seen_EE = (chosen_TE.T @ chosen_TE).astype(np.float64) / len(experts_TK)
    excess_EE = seen_EE - np.outer(np.diag(seen_EE), np.diag(seen_EE))
    np.fill_diagonal(excess_EE, -1.0)
    return excess_EE, seen_EE


def _together(told: Told, row: int, one: int, other: int) -> str:
    expert_P, gpu_P = told.placement.expert_LP[row], told.placement.gpu_P
    gpus = [set(gpu_P[expert_P == expert].tolist()) for expert in (one, other)]
    if gpus[0] & gpus[1]:
        return "on one GPU"
    nodes = [{int(told.problem.node_G[gpu]) for gpu in some} for some in gpus]
    return "on one node" if nodes[0] & nodes[1] else "on different nodes"
