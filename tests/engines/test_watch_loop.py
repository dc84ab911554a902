"""`watch` in a closed loop with vLLM 0.33.0's own balancer: load shifts are followed, faults change nothing.

Runs where MOEPLAN_VLLM_PYTHON names an interpreter that has vLLM; `vllm_watch_oracle.py` is what it runs.
Four processes of it move weights; no GPU serves here.
"""

import os
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import pytest

from planner.cost import cost
from planner.plan import read_plan
from tests.engines.watch_faults import FAULTS
from tests.engines.watch_loop import DOMAINS, RECORDED, Serving, oracle, posed, seconds

PYTHON = os.environ.get("MOEPLAN_VLLM_PYTHON", "")
pytestmark = [
    pytest.mark.skipif(not PYTHON, reason="MOEPLAN_VLLM_PYTHON names no interpreter with vLLM 0.33.0"),
    pytest.mark.skipif(not RECORDED.exists(), reason="third-party data and not here: shared/data"),
]
SHIFTS = 20
STEADY = 3  # windows of a domain after each shift


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """One vLLM for both tests: it takes a minute to start."""
    found = Serving(PYTHON, tmp_path_factory.mktemp("loop"))
    yield found
    found.close()


def walk(count: int) -> list[str]:
    """Domains in turn, each another than the one before."""
    draw, found = np.random.default_rng(0), [DOMAINS[0]]
    while len(found) <= count:
        found += [str(domain) for domain in draw.permutation(DOMAINS) if domain != found[-1]][:1]
    return found


def test_twenty_shifts_are_followed(serving: Serving, tell: Callable[[str], None]) -> None:
    """The window that shows a shift is followed by a new map at the next rearrangement, on every rank, with
    the weights; all shifts together have at least 90 % of what the best plan would win, each with at most
    10 % of the slots moved.
    """
    domains = walk(SHIFTS)
    in_force = serving.serve(domains[0])["rows"]
    serving.round()
    gained = possible = 0.0
    shares, late, missed = [], 0, 0
    for _, domain in pairwise(domains):
        before = in_force
        serving.serve(domain)
        found = serving.round()
        followed = serving.serve(domain)
        assert (followed["same"], followed["follow"]) == (True, True)
        best = cost(posed(domain), oracle(domain)).total_seconds
        was, now = seconds(before, domain), seconds(followed["rows"], domain)
        gained, possible = gained + was - now, possible + was - best
        if found.handed_over:
            assert found.look is not None
            assert found.look.plan.moves is not None
            shares.append(found.look.plan.moves.share)
            late += followed["rows"] == before
        else:
            missed += 1
        for _ in range(STEADY - 1):
            serving.round()
            in_force = serving.serve(domain)["rows"]
        serving.round()
        serving.whole()
        assert in_force == read_plan(serving.plan_file).placement.expert_LP.tolist()
    tell(
        f"watch and vLLM's balancer, {SHIFTS} shifts: {gained / possible:.1%} of the best plan's gain by the "
        f"next rearrangement, at most {max(shares):.1%} of slots moved, {missed} shifts not worth a swap, "
        f"{late} late"
    )
    assert gained / possible >= 0.9
    assert max(shares) <= 0.1
    assert late == 0


def test_a_hundred_faults_leave_no_half_map(serving: Serving, tell: Callable[[str], None]) -> None:
    """Whatever is torn, full, put back or killed, at every rearrangement a whole map is in force on every
    rank, every file is whole, and watch goes on: a shift after all of them is followed as ever.
    """
    draw = np.random.default_rng(1)
    order = draw.permutation([place for place, (_, times) in enumerate(FAULTS) for _ in range(times)])
    domains, swaps = walk(len(order)), 0
    in_force = serving.checked(domains[0])
    for place, domain in zip(order.tolist(), domains[1:], strict=True):
        before = in_force
        serving.checked(domain)
        FAULTS[place][0](serving, draw)
        serving.whole()
        in_force = serving.checked(domain)
        serving.whole()
        swaps += in_force != before
    for _ in range(4):  # what the last fault left open comes to its end
        serving.round()
        in_force = serving.checked(domains[-1])
    other = "tulu" if domains[-1] != "tulu" else "github"
    serving.checked(other)
    assert serving.round().handed_over
    assert serving.checked(other) != in_force
    tell(
        f"watch and vLLM's balancer, {len(order)} faults: 0 crashes, 0 half maps; "
        f"the map changed {swaps} times"
    )
    assert swaps > 5  # a load that shifts every other window is soon taken for one load
