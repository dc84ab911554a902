"""One setting of the benchmark of skew, run in an emulated cluster."""

import pytest

from planner.solvers import find_method
from probes.emulation.namespaces import unavailable
from probes.skew.judge import by_placement, cells_of, wholes_of, winners
from probes.skew.measured import Measured
from probes.skew.run import asked, key_of, measure

METHODS = {"plan": find_method("refine"), "linear": find_method("linear")}
REASON = unavailable()


@pytest.mark.alone
@pytest.mark.skipif(REASON is not None, reason=f"no emulated cluster here: {REASON}")
def test_a_hot_rank_is_as_slow_as_its_nic() -> None:
    """Every token comes back right; no time is shorter than its bytes take; the plan wins, as predicted."""
    question = asked("4x1", "slot", METHODS, ("hot rank 3",))
    found: Measured = measure("4x1", question, repeats=2)
    cells = cells_of([found])
    assert [(one.setting, one.side) for one in cells[::2]] == [
        ("hot rank 3", "plan"),
        ("hot rank 3", "linear"),
    ]
    assert all(cell.measured > 0.9 * cell.drawn for cell in cells)
    placements = winners(wholes_of(cells), by_placement)
    assert (placements.pairs, placements.right) == (1, 1)


def test_another_question_has_another_key() -> None:
    """What was measured before is known again by its loads, placements, machine and transport."""
    keys = [
        key_of(asked(name, transport, METHODS, names))
        for name, transport, names in (
            ("4x1", "slot", ("even",)),
            ("4x1", "slot", ("even",)),
            ("4x1", "slot", ("burst",)),
            ("4x1", "rank", ("even",)),
            ("leaves", "slot", ("even",)),
        )
    ]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 4
