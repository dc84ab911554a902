"""The small and tight instances: every one proven, and nobody below the proof."""

from planner.bench.frame import Peers
from planner.bench.tight import run, tight_problems


def test_every_instance_is_proven_and_auto_reaches_it() -> None:
    """Zero above the optimum on all 24, which is proven; the faster methods are not below it."""
    table = run(Peers(), 1, None)
    rows = {str(row["method"]): row for row in table.rows}
    assert table.notes[0] == "the optimum is proven for all 24"
    assert (rows["auto"]["optimal_count"], rows["auto"]["valid_count"]) == (24, 24)
    assert all(float(str(row["mean_gap_share"])) >= -1e-9 for row in table.rows)


def test_instances_are_those_described() -> None:
    """5 to 8 experts on 2 to 4 GPUs, always with a slot to spare, and the same each time."""
    problems = tight_problems()
    assert len(problems) == 24
    assert {problem.model.experts for problem in problems} == {5, 6, 7, 8}
    assert {problem.gpus for problem in problems} == {2, 3, 4}
    assert min(problem.redundant for problem in problems) > 0
    assert all(
        (one.load.total_LE == other.load.total_LE).all()
        for one, other in zip(problems, tight_problems(), strict=True)
    )
