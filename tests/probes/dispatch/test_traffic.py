"""Which tokens a run sends: a given trace first, then the rows beside the plan, else drawn; in words."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.base import BadInput
from planner.cost import cost
from planner.engines import default_placement
from planner.placement import Placement
from planner.plan import Plan, kept_file, read_plan, write_plan
from probes.dispatch.difference import difference
from probes.dispatch.job import DispatchJob
from probes.dispatch.sent import messages
from probes.dispatch.traffic import Traffic, choose_traffic, own_traffic
from probes.dispatch.validation import Contender, Settings, _job
from tests.planner.traced import MIXTRAL, SEQUENCES, TOKENS, plan_of, trace_file

HELD_OUT = SEQUENCES // 3 * TOKENS


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return plan_of(trace_file(tmp_path_factory.mktemp("trace")))


@pytest.fixture
def plan_file(plan: Plan, tmp_path: Path) -> Path:
    """The plan with the rows beside it, and its trace in trace.npz."""
    trace_file(tmp_path)
    return write_plan(plan, tmp_path / "plan.json")


def chosen(plan_file: Path, *trace_files: Path, tokens: int = 10_000) -> Traffic:
    return choose_traffic(read_plan(plan_file), plan_file, tokens, trace_files)


def rewritten(plan_file: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    """The plan with a change of its values."""
    value = json.loads(plan_file.read_text())
    change(value)
    plan_file.write_text(json.dumps(value))
    return plan_file


def test_rows_beside_the_plan_are_sent(plan_file: Path) -> None:
    """All held-out ones where the run has as many tokens, and the prediction is of them."""
    traffic = chosen(plan_file)
    assert (traffic.kind, traffic.drawn_layer_ids) == ("kept", ())
    assert traffic.text == f"{HELD_OUT} of {HELD_OUT} held out tokens of the plan's trace"
    saved = read_plan(plan_file)
    assert traffic.of(saved.problem).load.trace is not None
    as_held_out = cost(traffic.of(saved.problem), saved.placement)
    assert as_held_out.total_seconds == pytest.approx(saved.value["predicted"]["held_out"]["total_seconds"])


def test_a_run_of_few_tokens_sends_some_evenly_spread(plan_file: Path) -> None:
    """Its load, and so its prediction, is of those alone."""
    all_LTK, few_LTK = chosen(plan_file).trace_LTK, chosen(plan_file, tokens=10).trace_LTK
    assert all_LTK is not None
    assert few_LTK is not None
    assert few_LTK.tolist() == all_LTK[:, :: HELD_OUT // 10].tolist()
    assert chosen(plan_file, tokens=10).load.total_LE[0].sum() == 10 * MIXTRAL.top_k


def test_the_plans_own_trace_gives_the_part_that_was_held_out(plan_file: Path) -> None:
    """As the file has it, which may hold more than was kept."""
    given, kept = chosen(plan_file, plan_file.with_name("trace.npz")), chosen(plan_file)
    assert given.kind == "given"
    assert given.text.startswith(f"{HELD_OUT} of {HELD_OUT} held out tokens of ")
    assert given.trace_LTK is not None
    assert kept.trace_LTK is not None
    assert given.trace_LTK.tolist() == kept.trace_LTK.tolist()


def test_another_trace_is_sent_whole_and_said_so(plan_file: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = trace_file(tmp_path / "other", tokens=7)
    traffic = chosen(plan_file, other)
    total = SEQUENCES * 7
    assert (
        traffic.text
        == f"{total} of {total} tokens of {other}, all of it: {plan_file} was made from another load"
    )


def test_a_trace_of_which_nothing_was_held_out_says_so(tmp_path: Path) -> None:
    path = write_plan(plan_of(trace_file(tmp_path), held_out=0), tmp_path / "plan.json")
    assert "all fitted: nothing was held out" in chosen(path, tmp_path / "trace.npz").text
    assert "120 fitted tokens of the plan's trace" in chosen(path).text


def test_layers_that_a_trace_lacks_are_drawn_by_the_plans_load(plan_file: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = trace_file(tmp_path / "other", layers=tuple(range(30)))
    traffic = chosen(plan_file, other)
    assert traffic.drawn_layer_ids == (30, 31)
    assert traffic.text.endswith("; layers 30-31 not recorded: drawn")
    planned_LE = read_plan(plan_file).problem.load.total_LE
    assert traffic.load.total_LE[30:].tolist() == planned_LE[30:].tolist()
    assert traffic.load.total_LE[:30].tolist() != planned_LE[:30].tolist()


def test_without_a_trace_tokens_are_drawn_and_the_reason_is_said(plan_file: Path) -> None:
    """The rows are gone, an older plan kept none, or the load was counts; the load is the plan's."""
    kept_file(plan_file).unlink()
    gone = chosen(plan_file)
    assert (gone.kind, gone.trace_LTK) == ("drawn", None)
    assert f"{kept_file(plan_file)} is not there" in gone.text
    assert gone.load.total_LE.tolist() == read_plan(plan_file).problem.load.total_LE.tolist()
    older = rewritten(plan_file, lambda value: value.pop("traffic"))
    assert "no rows of its trace were kept" in chosen(older).text
    counts = rewritten(plan_file, lambda value: value["load"].update(traced=False))
    assert chosen(counts).text == "tokens drawn by the plan's load: it was not made from a trace"


def test_other_rows_beside_the_plan_end_it(plan_file: Path) -> None:
    """They are another plan's, and nobody can know what was meant."""
    kept_file(plan_file).write_bytes(b"PK")
    with pytest.raises(BadInput, match="not the rows"):
        chosen(plan_file)


def test_counts_are_no_trace(plan_file: Path, tmp_path: Path) -> None:
    counts = tmp_path / "counts.npz"
    np.savez(counts, counts=np.ones((32, 8), dtype=int))
    with pytest.raises(BadInput, match=r"counts\.npz: holds counts, not a trace"):
        chosen(plan_file, counts)


@pytest.mark.parametrize(("top_k", "highest"), [(3, 7), (2, 8)])
def test_a_trace_of_another_model_is_refused(
    top_k: int, highest: int, plan_file: Path, tmp_path: Path
) -> None:
    """With other experts a token, or an expert that the plan's model has not."""
    other = tmp_path / "other.npz"
    np.savez(other, topk_ids=np.tile(np.arange(highest + 1)[-top_k:], (32, 5, 1)), seq_lens=[5])
    with pytest.raises(BadInput, match=r"other\.npz: .*Mixtral"):
        chosen(plan_file, other)


def crossing(job: DispatchJob, side: str) -> int:
    """Messages of all rows between nodes, as the job would send them."""
    unit_G = job.unit_G.astype(np.int64)
    apart_GG = unit_G[:, None] != unit_G
    total = 0
    for row in range(len(job.layer_ids)):
        slots_GTK = np.stack([job.slots_TK(side, row, rank) for rank in range(job.gpus)])
        slots_per_gpu = job.sides[side].expert_LP.shape[1] // job.gpus
        sent_GG = messages(slots_GTK, job.gpus, slots_per_gpu, unit_G, job.transport)
        total += int(sent_GG[apart_GG].sum())
    return total


def test_a_gain_by_co_activation_is_there_when_the_rows_are_sent(plan_file: Path, tmp_path: Path) -> None:
    """Tokens choose i and i + 4 of eight even experts, which the default has on two nodes: with both on one,
    half of the messages cross. Tokens drawn by the load alone know nothing of it.
    """
    pairs_TK = np.random.default_rng(0).integers(0, 4, 2048)[:, None] + [0, 4]
    np.savez(tmp_path / "pairs.npz", topk_ids=np.tile(pairs_TK, (32, 1, 1)), seq_lens=[2048])
    asked = read_plan(plan_file).problem
    workload = replace(asked.workload, transport="node")
    problem = replace(asked, slots_per_gpu=2, workload=workload)
    together_LP = np.tile([0, 4, 1, 5, 2, 6, 3, 7], (32, 1))
    placement = Placement(together_LP, problem.model.placed_layer_ids, problem.gpus)
    sides = {"plan": placement, "default": default_placement(None, problem)}
    ratios = []
    for traffic in (chosen(plan_file, tmp_path / "pairs.npz"), own_traffic(problem.load)):
        posed = traffic.of(problem)
        contenders = {side: Contender(posed, one).at_tokens(512) for side, one in sides.items()}
        job = _job(contenders, [0, 1], Settings())
        ratios.append(crossing(job, "plan") / crossing(job, "default"))
    assert ratios[0] == pytest.approx(0.5, abs=0.03)
    assert ratios[1] == pytest.approx(1, abs=0.1)


def test_the_difference_from_the_plans_load_is_that_of_what_is_sent(plan_file: Path) -> None:
    """Drawn tokens have the load's shares up to rounding; those of a trace have the trace's."""
    saved = read_plan(plan_file)
    planned_LE = saved.problem.shares_LE[:2]
    for traffic, most in ((own_traffic(saved.problem.load), 0.01), (chosen(plan_file), 1.0)):
        asked = Contender(traffic.of(saved.problem), saved.placement).at_tokens(200)
        job = _job({"plan": asked}, [0, 1], Settings())
        found = difference(job, job.sides["plan"], planned_LE)
        row = job.layer_ids.index(found.layer_id)
        assert abs(found.sent_share - found.planned_share) < most
        assert found.planned_share == planned_LE[row, found.expert]
        shares_LE = traffic.load.shares_LE[:2]
        assert found.sent_share == pytest.approx(shares_LE[row, found.expert], abs=0.01)
