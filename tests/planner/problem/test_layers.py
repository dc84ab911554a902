"""Some layers of a problem as a problem of their own."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner.cost import cost
from planner.load import LoadProfile, Trace
from planner.problem import Problem, Workload, blocks_of, layers_of
from planner.solvers import find_method
from tests.planner.small import small_model, two_nodes


def traced(transport: str = "node", rule: str = "nearest") -> Problem:
    """Two decoder layers of three that hold experts, and a draft layer.

    Two sequences of 8 tokens, top-2 of 6 experts.
    """
    model = small_model(6, 2, 3, moe_layer_ids=(0, 2), draft_layer_ids=(3,))
    draw = np.random.default_rng(5)
    ids_LTK = np.array([[draw.permutation(6)[:2] for _ in range(16)] for _ in range(3)], dtype=np.int32)
    counts_WLE = np.array(
        [
            [np.bincount(ids_TK[tokens].ravel(), minlength=6) for ids_TK in ids_LTK]
            for tokens in (slice(8), slice(8, 16))
        ]
    )
    load = LoadProfile(
        counts_WLE.astype(np.int64),
        (0, 2, 3),
        "made up for tests",
        trace=Trace(ids_LTK, (8, 8)),
        unmeasured_layer_ids=(2,),
    )
    return Problem(two_nodes(), model, load, Workload(transport=transport), 2, rule)


def test_a_part_keeps_ids_loads_and_trace() -> None:
    """Rows 1 and 2: the second decoder layer and the draft layer, under their own ids."""
    problem = traced()
    part = layers_of(problem, [1, 2])
    assert (part.model.moe_layer_ids, part.model.draft_layer_ids, part.model.layers) == ((2,), (3,), 3)
    assert part.load.tokens_WLE.tolist() == problem.load.tokens_WLE[:, 1:].tolist()
    assert part.load.trace is not None
    assert problem.load.trace is not None
    assert part.load.trace.experts_LTK.tolist() == problem.load.trace.experts_LTK[1:].tolist()
    assert part.load.unmeasured_layer_ids == (2,)
    assert (part.slots_per_gpu, part.replica_rule, part.workload) == (
        problem.slots_per_gpu,
        problem.replica_rule,
        problem.workload,
    )


def test_all_layers_are_the_problem_itself() -> None:
    """Nothing is copied where there is one block."""
    problem = traced()
    assert layers_of(problem, range(3)) is problem


def test_layers_cost_apart_what_they_cost_together() -> None:
    """To the last bit, under rules, transports and traces: the score of a block is the score of its rows."""
    for transport in ("slot", "rank", "node", "allgather"):
        for rule in ("even", "nearest", "hashed", "round-robin", "nearest-dynamic"):
            problem = traced(transport, rule)
            placement = find_method("greedy")(problem)
            together_L = cost(problem, placement).layer_seconds_L
            for rows in ([0], [1, 2]):
                part = layers_of(problem, rows)
                assert (
                    cost(part, find_method("greedy")(part)).layer_seconds_L.tolist()
                    == together_L[rows].tolist()
                ), (transport, rule)


@given(decoder=st.integers(1, 70), drafts=st.integers(0, 2), count=st.integers(1, 100))
def test_blocks_are_all_rows_in_order(decoder: int, drafts: int, count: int) -> None:
    """Each row once, a decoder layer in every block, and sizes that differ by one but for draft layers."""
    model = small_model(4, 1, decoder, draft_layer_ids=tuple(range(decoder, decoder + drafts)))
    counts_WLE = np.ones((1, decoder + drafts, 4), dtype=np.int64)
    problem = Problem(
        two_nodes(),
        model,
        LoadProfile(counts_WLE, model.placed_layer_ids, "made up for tests"),
        Workload(),
        2,
    )
    blocks = blocks_of(problem, count)
    assert [row for rows in blocks for row in rows] == list(range(decoder + drafts))
    assert len(blocks) == min(count, decoder)
    sizes = [len(range(rows.start, min(rows.stop, decoder))) for rows in blocks]
    assert min(sizes) >= 1
    assert max(sizes) - min(sizes) <= 1
