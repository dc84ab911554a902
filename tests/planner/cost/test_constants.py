"""Constants by chip: each says whose figures they are, and no error is another chip's."""

from dataclasses import replace
from io import StringIO
from typing import Any

import numpy as np
import pytest

from planner.base import data_file, read_yaml, topology_names
from planner.cost import constants_of, cost
from planner.model import BYTES_PER_WEIGHT
from planner.problem import TRANSPORTS, Problem
from planner.report.plan import plan_report
from planner.topology import chip_of, read_topology
from tests.planner.engines.examples import machine
from tests.planner.machines import two_chips
from tests.planner.small import placed, question

FILE: dict[str, Any] = dict(read_yaml(data_file("constants.yaml")))
PARTS = ("dispatch", "combine", "compute")


def asked(topology: str, transport: str = "slot", dtype: str = "fp8", gpus: int | None = None) -> Problem:
    """One layer of as many experts as the machine has GPUs."""
    found = read_topology(topology)
    found = found.select(1, gpus) if gpus else found
    problem = question([1] * found.gpu_count, found, 1, transport=transport)
    return replace(problem, model=replace(problem.model, weight_dtype=dtype))


def own(part: str, transport: str, dtype: str) -> set[str]:
    """Chips with figures of this part."""
    if part != "compute":
        return set(FILE[part]["rank" if transport == "node" else transport])
    masked = set(FILE["compute"]["masked"].get(dtype, ())) if transport == "slot" else set()
    return masked | set(FILE["compute"]["fused"].get(dtype, ()))


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("dtype", BYTES_PER_WEIGHT)
def test_an_error_is_of_the_chip_at_hand_or_unknown(transport: str, dtype: str) -> None:
    """Every preset: figures of its own come with their error, borrowed ones with none."""
    for name in topology_names():
        problem = asked(f"{name}:1", transport, dtype)
        chip = chip_of(problem.topology.models[0].name)
        constants = constants_of(problem)
        for part in PARTS:
            error = getattr(constants, part).error
            if chip in own(part, transport, dtype):
                assert f"mean error on {chip} " in error, (name, part)
                assert f"fitted to {chip}," in getattr(constants, part).source
            else:
                assert "error unknown" in error, (name, part)
                assert "%" not in error.partition("error unknown")[0]
                assert f"no figures of {chip}" in error or f"no figures of {dtype} on {chip}" in error


def test_a_gpu_that_nobody_measured_takes_its_nearest_kin() -> None:
    """H800 and a GPU of a file's own: those of the H100. A800: those of the A100, where there are any."""
    assert constants_of(asked("hgx-h800:1")).dispatch.error == (
        "no figures of H800: those of H100 used, error unknown"
    )
    assert constants_of(question()).compute.error == (
        "no figures of round-gpu: those of H100 used, error unknown"
    )
    assert "those of A100 used" in constants_of(asked("hgx-a800:1", "allgather")).dispatch.error
    assert "those of H100 used" in constants_of(asked("hgx-a800:1", "slot")).dispatch.error


def test_what_was_not_measured_is_said() -> None:
    """More nodes, more GPUs or fewer than any row has."""
    assert "on several nodes 4.7%" in constants_of(asked("hgx-h100:2")).dispatch.error
    assert "several" not in constants_of(asked("hgx-h100:1")).dispatch.error
    assert "extrapolated from 64 GPUs to 128" in constants_of(asked("hgx-h100:16")).dispatch.error
    assert (
        "not judged: growth and share of the NIC are H100's"
        in constants_of(asked("hgx-b200:2")).dispatch.error
    )
    assert "85 % of the NIC assumed" in constants_of(asked("hgx-b200:2", "node")).dispatch.error
    assert "extrapolated from 4 GPUs to 72" in constants_of(asked("gb200-nvl72")).dispatch.error
    compute = constants_of(asked("hgx-h100:1")).compute.error
    assert compute.endswith("rows of hidden size 7168 alone, 992 is not judged")
    assert "fewer than 8 GPUs" in constants_of(asked("hgx-h100:1", gpus=4)).dispatch.error


def test_two_kinds_of_gpu_compute_by_their_own_figures() -> None:
    """Beside an A100, an H100 has the seconds that it has alone; dispatch takes the slower of each figure."""
    problem = question([1] * 4, two_chips(), 1, transport="allgather")
    alone = {name: constants_of(asked(f"{name}:1", "allgather", "bf16")) for name in ("hgx-a100", "hgx-h100")}
    found = constants_of(problem)
    assert found.compute_M == tuple(one.compute for one in alone.values())
    for name in ("fixed_seconds", "seconds_per_doubling"):
        assert getattr(found.dispatch, name) == max(getattr(one.dispatch, name) for one in alone.values())
    assert found.dispatch.nvlink_efficiency == min(one.dispatch.nvlink_efficiency for one in alone.values())
    assert "A100" in found.compute.error
    assert "H100" in found.compute.error


def test_start_up_grows_with_ranks_and_slots_and_never_shrinks_below_what_was_measured() -> None:
    """By the file's own figures: 16 ranks are a doubling of 8, four start as eight do, one sends nothing."""
    dispatch, figures = constants_of(asked("hgx-h100:2")).dispatch, FILE["dispatch"]["slot"]["H100"]
    assert dispatch.start_seconds(16, 10) * 1e6 == pytest.approx(
        figures["fixed_us"] + figures["per_doubling_us"] + 10 * figures["per_slot_us"]
    )
    assert dispatch.start_seconds(4, 10) == dispatch.start_seconds(8, 10)
    assert dispatch.start_seconds(1, 10) == 0


@pytest.mark.parametrize(("transport", "rows"), [("slot", 8), ("allgather", 8), ("rank", 8 * (1 - 0.5**2))])
def test_vectors_that_enter_cost_what_they_cost(transport: str, rows: float) -> None:
    """Two GPUs with four tokens each, top-2: a GPU has eight assignments, each a vector of its own; or all
    eight tokens enter it, or the three of four that have an expert there.
    """
    problem = question([1] * 4, machine(2), 2, top_k=2, transport=transport, tokens_per_rank=4)
    more = replace(problem, workload=replace(problem.workload, tokens_per_rank=8))
    constants = constants_of(problem).compute
    seconds = [cost(one, placed([0, 1, 2, 3], one)).compute_seconds_L[0] for one in (problem, more)]
    assert seconds[1] > seconds[0]
    width, weights = problem.model.dispatch_width, 2 * problem.model.expert_bytes
    memory = weights / (problem.topology.memory_bytes_per_s_G[0] * constants.memory_efficiency)
    touched = 1 - 0.5**8  # of two slots, each chosen by every other token
    expected = constants.fixed_seconds + touched * memory + rows * width * constants.seconds_per_value
    assert seconds[0] == pytest.approx(expected)


def test_a_plan_says_the_error_of_its_own_gpus() -> None:
    """The last lines of the details: B200 and its error, and no other chip's."""
    from rich.console import Console

    from planner.plan import Origin
    from planner.planning import make_plan
    from planner.solvers import Search

    problem = asked("hgx-b200:1")
    plan = make_plan(lambda _: problem, 0, Search("linear"), Origin())
    console = Console(width=200, file=StringIO())
    with console.capture() as shown:
        console.print(plan_report(plan, details=True))
    text = shown.get()
    assert "mean error on B200 10.2%" in text
    assert "H100" not in text
    assert np.isfinite(plan.fitted.total_seconds)
