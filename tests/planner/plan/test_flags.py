"""Flags of `solve` and `evaluate` that say what a plan is for: objective, domains, speeds, re-splitting."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from planner.cli import main

SOLVE = [
    "solve",
    "--model",
    "olmoe",
    "--topology",
    "hgx-h100:2",
    "--redundant",
    "16",
]  # too large for CP-SAT, which takes seconds
LAYERS, EXPERTS = 16, 64


@pytest.fixture
def domains(tmp_path: Path) -> list[str]:
    """Two load files of three windows each, with unlike hot experts, as `--load` flags."""
    rng = np.random.default_rng(0)
    flags = []
    for name in ("chat", "code"):
        counts_WLE = rng.poisson(1000 * rng.lognormal(0, 1, (LAYERS, EXPERTS)), (3, LAYERS, EXPERTS))
        np.savez(tmp_path / f"{name}.npz", counts=counts_WLE)
        flags += ["--load", str(tmp_path / f"{name}.npz")]
    return flags


def run(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


def refusal(*words: str) -> str:
    """The one line of a refusal."""
    result = run(*words)
    assert result.exit_code == 2
    lines = result.output.strip().splitlines()
    assert len(lines) == 1
    return lines[0]


def value(*words: str) -> dict[str, Any]:
    result = run(*words, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_objective_and_domains_are_in_the_plan(domains: list[str], tmp_path: Path) -> None:
    """Shown, written, and what `evaluate` reads back."""
    plan_file = str(tmp_path / "plan.json")
    result = run(*SOLVE, *domains, "--robust", "--objective", "risk:1", "--details", "-o", plan_file)
    assert result.exit_code == 0, result.output
    assert "objective (worst of 2 domains, mean + 1 standard deviations of windows)" in result.output
    assert "Domains apart" in result.output
    plan = json.loads(Path(plan_file).read_text(encoding="utf-8"))
    assert plan["objective"] == {"kind": "risk", "z": 1.0, "robust": True}
    assert [entry["name"] for entry in plan["predicted"]["domains"]] == ["chat", "code"]
    assert plan["predicted"]["held_out_objective_seconds"] > 0
    assert run("check", plan_file).exit_code == 0
    assert value("evaluate", plan_file)["total_seconds"] == pytest.approx(
        plan["predicted"]["fitted"]["total_seconds"]
    )


def test_robust_beats_a_plan_of_the_sum_on_its_worst_domain(domains: list[str]) -> None:
    """On windows that neither was fitted to."""
    worst = {}
    for flags in (["--method", "refine"], ["--robust"]):
        found = value(*SOLVE, *domains, *flags)
        worst[flags[0]] = max(entry["held_out"]["max_over_mean"] for entry in found["predicted"]["domains"])
    assert worst["--robust"] < 1.1
    assert worst["--method"] > worst["--robust"] + 0.1


def test_one_window_says_that_nothing_is_held_out(tmp_path: Path) -> None:
    """Figures on unseen load need two."""
    np.savez(tmp_path / "one.npz", counts=np.ones((LAYERS, EXPERTS), dtype=np.int64))
    result = run(*SOLVE, "--load", str(tmp_path / "one.npz"), "--objective", "worst", "--details")
    assert "none held out: figures on unseen load need at least two windows" in " ".join(
        result.output.split()
    )
    assert "one was fitted, so it is that window's time" in " ".join(result.output.split())


def test_a_layer_missing_in_a_trace_is_told(tmp_path: Path) -> None:
    """It gets the mean share of the others, and the plan says so."""
    ids_LTK = np.tile(np.arange(8 * 40).reshape(1, 40, 8) % EXPERTS, (LAYERS - 1, 1, 1))
    np.savez(tmp_path / "trace.npz", topk_ids=ids_LTK, seq_lens=[20, 20], layers=np.arange(1, LAYERS))
    result = run(*SOLVE, "--load", str(tmp_path / "trace.npz"), "--method", "greedy", "--details")
    assert result.exit_code == 0, result.output
    assert "layer 0: not measured" in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--robust"], "give --load once for each"),
        (["--objective", "best"], "mean, worst or risk:Z"),
        (["--gpu-speed", "16=0.5"], "its GPUs are 0 to 15"),
        (["--gpu-speed", "0=0"], "GPU 0 has the speed 0.0"),
        (["--resplittable", "--redundant", "0"], "the smallest that divides is --redundant 16"),
    ],
)
def test_a_contradiction_is_one_line(flags: list[str], words: str) -> None:
    """What it is, and what would do."""
    assert words in refusal(*SOLVE, *flags)


def test_resplittable_chooses_enough_replicas_by_itself() -> None:
    """Without --redundant the fewest are those that can join the GPUs."""
    found = value(
        "solve", "--model", "olmoe", "--topology", "hgx-h100:1x4", "--resplittable", "--method", "refine"
    )
    assert found["redundant"] >= 4
    assert found["resplittable"] is True


def test_best_split_judges_on_unseen_load(domains: list[str], tmp_path: Path) -> None:
    """On the plan's held-out load, or on that given; refused beside flags about other machines or engines,
    and where there is no unseen load.
    """
    plan_file = str(tmp_path / "plan.json")
    run(*SOLVE, *domains, "--method", "refine", "--resplittable", "-o", plan_file)
    own, given = (
        value("evaluate", plan_file, "--best-split"),
        value("evaluate", plan_file, "--best-split", *domains),
    )
    assert (own["windows"], given["windows"]) == (1, 6)
    for found in (own, given):
        assert (
            1
            <= found["resplit_max_over_mean"]
            <= min(found["static_max_over_mean"], found["even_max_over_mean"]) + 1e-9
        )
        assert set(found["islands_L"]) == {1}
    assert "all layers are joined" in run("evaluate", plan_file, "--best-split").output
    assert "leave out --engine, --gpu-speed" in refusal(
        "evaluate", plan_file, "--best-split", "--engine", "vllm", "--gpu-speed", "0=1"
    )
    run(*SOLVE, "--method", "linear", "-o", plan_file)
    assert "the plan holds none; give --load" in refusal("evaluate", plan_file, "--best-split")


def test_evaluate_takes_speeds(tmp_path: Path) -> None:
    """The same placement on a machine with a slow GPU takes longer."""
    plan_file = str(tmp_path / "plan.json")
    run(*SOLVE, "--method", "greedy", "-o", plan_file)
    slow = value("evaluate", plan_file, "--gpu-speed", "2=0.5")
    assert slow["compute_seconds"] > value("evaluate", plan_file)["compute_seconds"]


@pytest.mark.parametrize("key", ["objective", "resplittable"])
@pytest.mark.parametrize(
    "wrong", [None, 1, "mean", [], {"kind": "median"}, {"z": "x"}, {"robust": 1}, {"other": 1}]
)
def test_a_plan_file_with_a_wrong_objective_is_refused(key: str, wrong: object, tmp_path: Path) -> None:
    """One line; a file without these keys is an older one, and is read."""
    plan_file = tmp_path / "plan.json"
    run(
        "solve",
        "--model",
        "mixtral",
        "--topology",
        "hgx-h100:1x2",
        "--context",
        "1024",
        "--redundant",
        "0",
        "--method",
        "linear",
        "-o",
        str(plan_file),
    )
    plan = json.loads(plan_file.read_text(encoding="utf-8"))
    plan_file.write_text(json.dumps({**plan, key: wrong}), encoding="utf-8")
    assert "plan.json" in refusal("evaluate", str(plan_file)) or "objective" in refusal(
        "evaluate", str(plan_file)
    )
    older = {name: entry for name, entry in plan.items() if name != key}
    plan_file.write_text(json.dumps(older), encoding="utf-8")
    assert run("evaluate", str(plan_file)).exit_code == 0
