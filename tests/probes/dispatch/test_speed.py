"""Which runs say anything of the plan's speed, and how far off the law is taken to be there."""

from dataclasses import replace

import pytest

from planner.base import BadInput
from planner.load import uniform_load
from planner.model import find_model
from planner.problem import Problem, Workload
from planner.topology import read_topology
from probes.dispatch.run import Found
from probes.dispatch.seen import PHASES
from probes.dispatch.speed import judged_phases, law_error
from probes.dispatch.timed import EXCHANGES
from probes.dispatch.verdict.tolerance import EMULATED, EMULATED_ON_THE_WAY, UNKNOWN, check_tolerance
from tests.probes.dispatch.verdict.runs import make_topology
from tests.probes.dispatch_jobs import make_job

SHAPED, PRESET = make_topology(2, 1), read_topology("hgx-h100:2x1")


def found(device: str = "cpu", hosts: tuple[str, ...] = ("a", "b"), *notes: str) -> Found:
    return Found(replace(make_job(), device=device), [], hosts, 0, notes)


def test_processes_of_one_machine_say_nothing_of_links() -> None:
    """Nor does a CPU over links that nobody has measured."""
    for run, topology in ((found(hosts=("a", "a")), SHAPED), (found(), PRESET)):
        judged = judged_phases(run, topology, emulated=False)
        assert judged.phases == ()
        assert judged.why.startswith("ran on the CPU")


def test_the_exchanges_are_judged_over_links_that_were_shaped_or_measured() -> None:
    assert judged_phases(found(hosts=("a", "a")), SHAPED, emulated=True).phases == EXCHANGES
    assert judged_phases(found(), SHAPED, emulated=False).phases == EXCHANGES


def test_gpus_are_judged_where_the_plan_has_them() -> None:
    """Expert compute too; of ranks that are not on the plan's hosts nothing, and the note says why."""
    assert judged_phases(found("cuda"), PRESET, emulated=False).phases == PHASES
    elsewhere = judged_phases(
        found("cuda", ("a", "a"), "the plan's 2 nodes were all here"), PRESET, emulated=False
    )
    assert elsewhere.phases == ()
    assert elsewhere.why == "the plan's 2 nodes were all here"


def test_the_law_is_as_wrong_as_its_constants_were_on_what_they_had_not_seen() -> None:
    """An H100's, 2.5 times the mean error that the file states; another chip's are not judged."""
    model = find_model("mixtral")
    problem = Problem(
        read_topology("hgx-h100:1"),
        model,
        uniform_load(model),
        Workload(128, "decode", "bf16", "bf16", "slot"),
        2,
    )
    error = law_error(problem, "dispatch", "cuda")
    assert error.share == pytest.approx(2.5 * 0.1092)
    assert error.reason.startswith("2.5 times its mean error of 10.9%, of constants fitted to H100")
    assert law_error(problem, "dispatch", "cpu").share == EMULATED
    by_node = replace(problem, workload=replace(problem.workload, transport="node"))
    assert law_error(by_node, "dispatch", "cpu").share == EMULATED
    assert law_error(by_node, "combine", "cpu").share == EMULATED_ON_THE_WAY
    other = replace(problem, topology=read_topology("hgx-h20:1"))
    assert law_error(other, "combine", "cuda").share == UNKNOWN


def test_a_tolerance_is_a_share() -> None:
    for asked in (0.0, -1.0, 12.0, float("nan")):
        with pytest.raises(BadInput, match="--tolerance"):
            check_tolerance(asked)
    check_tolerance(None)
    check_tolerance(0.1)
