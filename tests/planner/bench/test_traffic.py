"""The studies of traffic, co-activation and layer time: their figures are those of the placements.

Where there is no data they give a reason.
"""

from pathlib import Path

import numpy as np
import pytest

from planner.bench import coactivation, layer_time, traces, traffic
from planner.bench.frame import Instance, Peers, synthetic_problem
from planner.cost import cost
from planner.report.bench import bench_tables
from planner.solvers import find_method

TINY = Instance("2x16 -> 24 / 4 GPUs, 2 nodes", 2, 16, 6, "hgx-h100:2x2")


def test_no_placement_crosses_less_than_the_bound() -> None:
    """And the method that looks for it gets there: each layer's hottest experts have a copy on both nodes."""
    problem = synthetic_problem(TINY, replica_rule="nearest")
    least_L = traffic.least_crossing_L(problem)
    for name in ("greedy", "refine", "affinity"):
        assert (cost(problem, find_method(name)(problem)).cross_node_L >= least_L - 1e-12).all()
    assert cost(problem, find_method("affinity")(problem)).cross_node_L == pytest.approx(least_L)
    assert least_L == pytest.approx(np.sort(problem.shares_LE, axis=1)[:, :8].sum(axis=1) / 2)


def test_peers_are_judged_under_both_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row for even split and one for the same node first; the same keys everywhere."""
    monkeypatch.setattr(traffic, "INSTANCES", (TINY,))
    greedy_LP = find_method("greedy")(synthetic_problem(TINY)).expert_LP
    table = traffic.run(Peers({"vLLM 0.33 default": lambda *_: greedy_LP}), 1, None)
    assert [row["method"] for row in table.rows][:2] == [
        "vLLM 0.33 default, even",
        "vLLM 0.33 default, nearest",
    ]
    assert table.rows[0]["cross_node_share"] == pytest.approx(0.5)
    assert all(row["valid"] for row in table.rows)
    assert len({tuple(row) for row in table.rows}) == 1
    bench_tables({"traffic": table})


@pytest.mark.parametrize("study", [coactivation, layer_time])
def test_without_the_traces_the_reason_is_given(
    study: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No rows, and a note that names what is missing."""
    monkeypatch.setattr(traces, "FOLDER", tmp_path)
    table = study.run(Peers(), 1, None)  # type: ignore[attr-defined]
    assert table.rows == ()
    assert "DeepSeek-V2-Lite routing traces" in table.notes[0]
