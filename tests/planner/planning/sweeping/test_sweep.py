"""The sweep: its rows are what `solve` would say, the same for any number of processes, each layout once."""

from dataclasses import replace

import numpy as np
import pytest

from planner.base import BadInput
from planner.cost import Cost, cost, ledger, sliced_cost, whole_step
from planner.engines import judge_launch
from planner.model import find_model
from planner.plan import Plan
from planner.planning import PlanRequest, Sweep, SweepRequest, SweepRow, answer, best_plan, sweep
from planner.planning.groups import with_nics_at
from planner.report.sweep import sweep_value
from planner.topology import read_topology
from tests.strategies import cluster

MACHINE = "hgx-h100:2x2"
ASKED = SweepRequest(
    PlanRequest("mixtral", workers=1),
    (MACHINE,),
    redundant=("fewest", "auto", 8),
    engines=(None, "sglang"),
    phases=("decode", "prefill"),
    tokens_per_rank=(16,),
    experts=("ep",),
)


@pytest.fixture(scope="module")
def found() -> Sweep:
    return sweep(ASKED)


def rows_of(found: Sweep) -> list[SweepRow]:
    return [one.row for rows in found.phases.values() for one in rows]


def solved(row: SweepRow) -> Plan:
    """The plan of the same question."""
    assert row.figures is not None
    point = row.point
    return answer(
        PlanRequest(
            "mixtral",
            topology=point.machine,
            ep=point.ep,
            redundant=row.figures.redundant,
            engine=point.engine,
            method="refine",
            phase=point.phase,
            tokens_per_rank=point.tokens_per_rank,
            transport=point.transport,
            workers=1,
        )
    )


def judged(plan: Plan, engine: str | None) -> Cost:
    """SGLang reads no map for Mixtral: what it serves is its default placement."""
    held_out = plan.baselines[0].held_out if engine == "sglang" else plan.held_out
    assert held_out is not None
    return held_out


def test_every_row_is_what_solve_says_of_the_same_question(found: Sweep) -> None:
    """Seconds, balance, memory, and the tokens that follow."""
    fitting = [row for row in rows_of(found) if row.figures is not None]
    assert len({row.point.ep for row in fitting}) > 1
    for row in fitting:
        figures, plan = row.figures, solved(row)
        assert figures is not None
        priced = judged(plan, row.point.engine)
        assert figures.step == whole_step(plan.problem, priced, row.point.engine)
        assert figures.max_over_mean == priced.max_over_mean
        assert figures.memory_left_bytes == ledger(plan.problem, row.point.engine).kv_left_bytes
        tokens = plan.problem.workload.tokens_per_rank
        assert figures.tokens_per_s_per_gpu == pytest.approx(tokens / figures.step.total_seconds)
        for service in figures.services:
            if service.engine == row.point.engine:
                refused = judge_launch(service.engine, plan.problem).refused
                assert service.serves == (not refused)


def test_what_does_not_fit_is_what_solve_refuses(found: Sweep) -> None:
    """With its words."""
    refused = [row for row in rows_of(found) if row.figures is None]
    assert refused
    for row in refused:
        asked = PlanRequest("mixtral", topology=MACHINE, ep=row.point.ep, redundant=0, workers=1)
        if row.point.redundant == "fewest":
            asked = replace(asked, tokens_per_rank=row.point.tokens_per_rank)
            with pytest.raises(BadInput) as said:
                answer(replace(asked, phase=row.point.phase, engine=row.point.engine))
            assert str(said.value) == row.why_not


def test_no_layout_stands_twice(found: Sweep) -> None:
    """`auto` and `fewest` often come to the same R."""
    fitting = [(row.point, row.figures.redundant) for row in rows_of(found) if row.figures]
    keys = [(replace(point, redundant=0), redundant) for point, redundant in fitting]
    assert len(keys) == len(set(keys))


def test_nics_at_half_are_the_same_placement_on_another_machine(found: Sweep) -> None:
    wide = [row for row in rows_of(found) if row.figures and row.point.ep == 4 and row.point.engine is None]
    assert wide
    for row in wide[:2]:
        assert row.figures is not None
        plan = solved(row)
        halved = replace(plan.problem, topology=with_nics_at(plan.problem.topology, 0.5))
        priced = cost(halved, plan.placement, plan.held_out_load)
        assert row.figures.nics_halved is not None
        assert row.figures.nics_halved == whole_step(halved, priced, None).tokens_per_s_per_gpu
        assert row.figures.nics_halved <= row.figures.tokens_per_s_per_gpu
    narrow = [row for row in rows_of(found) if row.figures and row.point.ep <= 2]
    assert narrow
    assert all(row.figures is not None and row.figures.nics_halved is None for row in narrow)


def test_any_number_of_processes_gives_the_same_rows() -> None:
    asked = replace(ASKED, engines=(None,), phases=("decode",))
    values = [
        sweep_value(sweep(replace(asked, base=replace(asked.base, workers=workers)))) for workers in (1, 2, 3)
    ]
    assert values[0] == values[1] == values[2]


def test_the_slowest_group_counts_where_groups_differ() -> None:
    """Requests are dealt to groups alike: the machine with a slow GPU is as fast as the group that has it."""
    topology = cluster(2, 2).with_speeds({3: 0.25})
    asked = SweepRequest(
        PlanRequest("olmoe", workers=1), (topology,), ep=(2,), redundant=("fewest",), experts=("ep",)
    )
    row = rows_of(sweep(asked))[0]
    own = answer(
        PlanRequest("olmoe", replace(topology, nodes=topology.nodes[1:]), redundant=0, method="refine")
    )
    assert row.figures is not None
    assert row.figures.step == whole_step(own.problem, own.fitted, None)


def test_survives_counts_losses_that_leave_every_expert() -> None:
    """As many as the experts with fewest replicas have to spare."""
    base = PlanRequest("mixtral", workers=1, context=256)
    asked = SweepRequest(
        base, (read_topology("hgx-h200:1x4"),), ep=(4,), redundant=(0, 8, 24), experts=("ep",)
    )
    survives = {row.figures.redundant: row.figures.survives for row in rows_of(sweep(asked)) if row.figures}
    assert survives[0] == 0
    assert survives[24] == 3


def test_the_plan_of_the_answer_is_of_the_first_row(found: Sweep) -> None:
    row = found.answers["decode"]
    assert row.figures is not None
    plan = best_plan(ASKED, found)
    assert plan is not None
    assert plan.problem.gpus == row.point.ep
    assert plan.problem.redundant == row.figures.redundant
    assert plan.origin.engine == row.point.engine
    assert plan.problem.workload.tokens_per_rank == row.figures.tokens_per_rank
    assert np.isfinite(plan.fitted.total_seconds)


def test_an_ep_size_that_divides_no_machine_is_refused_with_those_that_do() -> None:
    with pytest.raises(BadInput, match=r"--ep 3: .*1, 2, 4"):
        sweep(replace(ASKED, ep=(2, 3)))


def test_a_budget_places_the_best_rows_by_the_whole_portfolio() -> None:
    """Three of a phase at most; their figures are those of `solve` with the same method, and rank anew."""
    base = replace(ASKED.base, budget_seconds=120.0)
    found_again = sweep(replace(ASKED, base=base, engines=(None,), phases=("decode",), redundant=(0, 8)))
    methods = [one.row.figures.method for one in found_again.phases["decode"] if one.row.figures]
    assert methods.count("auto") == 3
    first = found_again.phases["decode"][0].row
    assert first.figures is not None
    if first.figures.method == "auto":
        point = first.point
        asked = PlanRequest(
            "mixtral", MACHINE, ep=point.ep, redundant=first.figures.redundant, tokens_per_rank=16
        )
        held_out = answer(replace(asked, workers=1)).held_out
        assert held_out is not None
        assert first.figures.max_over_mean == held_out.max_over_mean


def test_rows_without_ep_hold_the_bytes_of_ep_and_are_priced_by_their_own_law() -> None:
    """The ledger of EP with R = 0 and transport `allgather`; attention on each GPU alone, and on all."""
    base = PlanRequest("mixtral", workers=1, context=256)
    asked = SweepRequest(
        base, (read_topology("hgx-h200:1x4"),), ep=(4,), redundant=(0,), tokens_per_rank=(16,)
    )
    found = sweep(asked)
    sliced = [row for row in rows_of(found) if row.point.sliced]
    assert [row.point.layout for row in sliced] == ["TP4", "TP4"]
    assert {row.point.attention_tp for row in sliced} == {1, 4}
    for row in sliced:
        figures, shared = row.figures, row.point.attention_tp
        assert figures is not None
        request = PlanRequest("mixtral", "hgx-h200:1x4", context=256, redundant=0, method="refine")
        request = replace(request, tokens_per_rank=16, transport="allgather", attention_tp=shared)
        plan = answer(replace(request, workers=1))
        problem, priced = plan.problem, sliced_cost(plan.problem, plan.held_out_load)
        assert figures.memory_left_bytes == ledger(problem, None).kv_left_bytes
        assert figures.requests == ledger(problem, None).requests
        assert figures.step == whole_step(problem, priced, None, sliced=True)
        assert figures.survives == 0
        assert figures.max_over_mean == 1
        serving = {service.engine: service.launch for service in figures.services if service.serves}
        assert serving["sglang"] == ("--tp-size 4" if shared == 4 else "--tp-size 4 --attn-dp-size 4")
        assert set(serving) == {"sglang", "trtllm", "vllm"}


def test_experts_that_do_not_divide_into_slices_do_not_fit() -> None:
    """Mixtral's are 14,336 wide: 7 x 2,048."""
    model = replace(find_model("mixtral"), expert_intermediate=14335)
    base = PlanRequest(model, workers=1, context=256)
    found = sweep(SweepRequest(base, (read_topology("hgx-h200:1x4"),), ep=(4,), experts=("tp",)))
    assert {row.why_not for row in rows_of(found)} == {
        "experts 14,335 wide do not divide into 4 equal slices"
    }


def test_experts_that_do_not_divide_over_the_gpus_are_swept_too() -> None:
    """Sixty over eight: whole ones need four redundant ones, slices none."""
    base = PlanRequest("qwen1.5-moe-a2.7b", workers=1, context=256)
    found = sweep(SweepRequest(base, (read_topology("hgx-h100:1"),), ep=(8,), redundant=("fewest",)))
    rows = {row.point.layout: row.figures for row in rows_of(found)}
    assert set(rows) == {"EP8", "TP8"}
    assert all(figures is not None for figures in rows.values())
