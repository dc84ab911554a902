"""The page of a plan: its figures are the plan's, its names cannot act, and it needs no network."""

import base64
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from planner.cli import main
from planner.cost import cost, exchanges_L, ledger
from planner.engines import default_placement
from planner.page.plan_page import plan_page
from planner.page.tables import WORST
from planner.plan import Plan, kept_of, read_kept, read_plan, write_plan
from planner.planning import PlanRequest, answer
from planner.report.answer import Asked, plan_answer
from tests.planner.page.pages import Page, large_plan, standing
from tests.planner.traced import plan_of, trace_file

Change = Callable[[dict[str, Any]], None]
EVIL = "</title></style><script>document.title='got in'</script><img src=x onerror=alert(1)>\"'&"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("page")


@pytest.fixture(scope="module")
def plan(folder: Path) -> Plan:
    """Of a trace whose rows are kept beside it; R was chosen, and something held out."""
    made = plan_of(trace_file(folder), redundant=None, engine="trtllm")
    write_plan(made, folder / "plan.json")
    return made


@pytest.fixture(scope="module")
def file(plan: Plan, folder: Path) -> Path:
    assert plan.held_out is not None
    return folder / "plan.json"


@pytest.fixture(scope="module")
def text(file: Path) -> str:
    return plan_page(file)


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def report(file: Path, *words: str) -> Result:
    output = file.parent / "page.html"
    output.unlink(missing_ok=True)
    return CliRunner().invoke(main, ["report", str(file), "-o", str(output), *words])


def refusal(file: Path, *words: str) -> str:
    """The one line of a refusal that wrote nothing."""
    result = report(file, *words)
    assert result.exit_code == 2, result.output
    assert not (file.parent / "page.html").exists()
    (line,) = result.stderr.strip().splitlines()
    return line


def changed(file: Path, change: Change) -> Path:
    """A copy of the plan file, otherwise."""
    value = json.loads(file.read_text())
    change(value)
    copy = file.with_name("changed.json")
    copy.write_text(json.dumps(value))
    return copy


def test_every_figure_of_the_file_stands_on_the_page_as_in_the_file(file: Path, page: Page) -> None:
    value = json.loads(file.read_text())
    for where, figure in page.figures:
        assert figure == standing(value, where), where
    of = {where.partition(".")[0] for where, _ in page.figures}
    assert of == {"predicted", "bound", "memory", "redundant_curve"}


def test_the_answer_is_the_one_that_solve_prints(plan: Plan, file: Path, page: Page) -> None:
    for line in plan_answer(plan, Asked(file)):
        name, _, text = line.partition(" ")
        assert " ".join(text.split()) in " ".join(page.text.split()), name


def test_loads_of_gpus_are_those_of_the_cost_model(plan: Plan, page: Page) -> None:
    """Of the plan on both loads and of the default; rows are the layers, the worst first."""
    assert plan.held_out is not None
    assert plan.held_out_load is not None
    default = cost(plan.problem, default_placement("trtllm", plan.problem), plan.held_out_load)
    order = np.argsort(-plan.held_out.max_over_mean_L.round(12), kind="stable")
    sides = {
        "plan, held-out": plan.held_out,
        "plan, fitted": plan.fitted,
        "engine default, held-out": default,
    }
    for name, found in sides.items():
        (rows,) = (rows for caption, rows in page.tables.items() if caption.startswith(f"{name}:"))
        over_LG = (found.busy_LG / found.fair_L[:, None])[order]
        told = [[f"{value:.2f}" for value in row] for row in over_LG[: len(rows) - 1]]
        assert [row[1:] for row in rows[1:]] == told
        assert [row[0] for row in rows[1:]] == [
            str(plan.placement.layer_ids[at]) for at in order[: len(told)]
        ]


def test_traffic_is_what_the_cost_model_sends_of_the_kept_tokens(file: Path, page: Page) -> None:
    saved = read_plan(file)
    kept = kept_of(saved.value)
    assert kept is not None
    rows = read_kept(kept, file, saved.problem)
    assert rows is not None
    problem = replace(saved.problem, load=rows)
    for name, placement in {
        "this plan": saved.placement,
        "engine default": default_placement("trtllm", problem),
    }.items():
        bytes_GG = sum(
            one.bytes_GG
            for layer in exchanges_L(problem, placement, range(len(placement.layer_ids)))
            for one in layer
            if one.phase == "dispatch"
        )
        off_GG = np.array(bytes_GG) * (1 - np.eye(problem.gpus))
        (told,) = (
            rows
            for caption, rows in page.tables.items()
            if caption.startswith(f"{name}:") and "GPU to GPU" in caption
        )
        shown = np.array([[float(cell) for cell in row[1:]] for row in told[1:]])
        scale = off_GG.max() / shown.max()
        assert np.allclose(shown * scale, off_GG, rtol=0.01)
        assert scale == pytest.approx(10 ** round(np.log10(scale)), rel=0.01)


def test_memory_is_the_ledgers(file: Path, page: Page) -> None:
    saved = read_plan(file)
    found = ledger(saved.problem, "trtllm")
    assert f"room for {found.requests * saved.problem.gpus:,} requests" in page.text


def test_each_kind_of_evidence_has_its_own_look(file: Path, page: Page) -> None:
    """A link that is a preset is never shown as another kind."""
    kinds = {one.rate.evidence.kind for one in read_plan(file).problem.topology.resources}
    (rows,) = (rows for caption, rows in page.tables.items() if caption.startswith("Assumptions"))
    assert {row[2] for row in rows[1:] if row[0].endswith("rates")} == kinds
    shown = {
        str(found["class"]).split()[1]
        for found in page.named("span")
        if str(found.get("class")).startswith("kind ")
    }
    assert kinds <= shown


def test_nothing_is_asked_of_a_network(page: Page) -> None:
    """No address but anchors of the page itself, and a policy that lets nothing in but what is written."""
    addresses = [
        value
        for _, found in page.tags
        for key, value in found.items()
        if key in {"src", "href", "action", "data"}
    ]
    assert all(str(value).startswith("#") for value in addresses)
    anchors = {found["id"] for _, found in page.tags if "id" in found}
    assert {str(value)[1:] for value in addresses} <= anchors
    assert "url(" not in page.text
    assert "@import" not in page.text


def test_the_policy_names_the_script_and_the_style_by_digest(text: str) -> None:
    (policy,) = (found["content"] for found in Page(text).named("meta") if found.get("http-equiv"))
    assert str(policy).startswith("default-src 'none';")
    for tag in ("style", "script"):
        body = text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in str(policy)
    assert "unsafe" not in str(policy)
    assert "style=" not in text.replace("<style>", "")


def test_names_of_a_plan_cannot_act(file: Path, page: Page) -> None:
    """Wherever a plan file holds free text; the text itself is on the page."""

    def put_in(value: dict[str, Any]) -> None:
        value["model"]["name"] = value["topology"]["name"] = value["load"]["source"] = EVIL
        value["notes"] = [EVIL, f"WARNING: {EVIL}"]
        value["provenance"]["moeplan"] = value["provenance"]["load_source"] = EVIL
        value["predicted"]["baselines"][0]["name"] = EVIL
        value["bound"]["reason"] = [EVIL] * len(value["bound"]["reason"])
        for layer in value["predicted"]["fitted"]["layers"]:
            layer["bottleneck"] = EVIL
        value["topology"]["source"] = EVIL

    found = Page(plan_page(changed(file, put_in)))
    for tag in ("script", "style", "img", "title", "iframe"):
        assert len([1 for one in found.named(tag)]) == len(page.named(tag)), tag
    assert not [key for _, attributes in found.tags for key in attributes if key.startswith("on")]
    assert "<script>document.title='got in'</script>" in found.text


def test_one_gpu_and_no_replica(tmp_path: Path) -> None:
    """Nothing is sent, nothing is held out, nothing is replicated: the page says so."""
    made = answer(PlanRequest("olmoe", "hgx-h100:1x1", method="linear", redundant=0))
    text = Page(plan_page(write_plan(made, tmp_path / "plan.json"))).text
    assert "One GPU: nothing is sent." in text
    assert "Every expert of a layer has one slot." in text
    assert "Doing nothing wins" in text


def test_a_large_plan_stays_small(tmp_path: Path) -> None:
    """58 layers of 256 experts on 64 GPUs: the worst layers are in sight, the others folded."""
    text = plan_page(large_plan(tmp_path))
    assert len(text.encode()) < 3e6
    (rows,) = (rows for caption, rows in Page(text).tables.items() if caption.startswith("plan, fitted"))
    assert (len(rows), len(rows[0])) == (1 + WORST, 1 + 64)


def test_of_many_gpus_each_node_is_shown(tmp_path: Path) -> None:
    """By its busiest GPU, and traffic between nodes alone; of 16 nodes those with the busiest links."""
    page = Page(plan_page(large_plan(tmp_path, "hgx-h100:16x5", "olmoe")))
    (rows,) = (rows for caption, rows in page.tables.items() if caption.startswith("plan, fitted"))
    assert len(rows[0]) == 1 + 16
    assert not [caption for caption in page.tables if "GPU to GPU" in caption]
    assert "and 6 more nodes, none with a link busier than" in page.text


def test_what_is_no_plan_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("{}")
    assert "not a plan file" in refusal(path)


def test_figures_of_other_layers_are_refused(file: Path) -> None:
    def cut(value: dict[str, Any]) -> None:
        value["predicted"]["fitted"]["layers"].pop()

    def short(value: dict[str, Any]) -> None:
        value["bound"]["reason"].pop()

    def halved(value: dict[str, Any]) -> None:
        del value["redundant_curve"][0]["fitted_seconds"]

    assert "predicted.fitted has 31 layers" in refusal(changed(file, cut))
    assert "bound.reason has 31 entries for 32 layers" in refusal(changed(file, short))
    assert "redundant_curve[0] has no fitted_seconds" in refusal(changed(file, halved))


def test_a_page_is_written_whole_or_not(file: Path, text: str) -> None:
    """A folder in its place is said. The same plan gives the same bytes."""
    result = CliRunner().invoke(main, ["report", str(file), "-o", str(file.parent)])
    assert result.exit_code == 2
    assert "this is a directory" in result.stderr
    assert report(file).exit_code == 0
    assert (file.parent / "page.html").read_text() == text
