"""Every gate that a plan passes asks whether it fits: solve, a re-plan, emit, check and engine show."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from planner.cli import main
from planner.model import find_model
from planner.plan import read_plan

MIXTRAL = ("--model", "mixtral", "--topology", "hgx-h100:2x2", "--method", "linear")
NEW = ("prompt_tokens", "output_tokens", "attention_tp", "context_given")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """R = 8 with requests of 512 tokens."""
    path = tmp_path_factory.mktemp("plans") / "plan.json"
    assert run("solve", *MIXTRAL, "--redundant", "8", "--context", "512", "-o", path).exit_code == 0
    return path


def changed(plan: Path, folder: Path, **workload: Any) -> Path:
    value = json.loads(plan.read_text(encoding="utf-8"))
    value["workload"] |= workload
    path = folder / "changed.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def older(plan: Path, folder: Path) -> Path:
    """As releases wrote it that knew neither the model's body nor how long requests are."""
    value = json.loads(plan.read_text(encoding="utf-8"))
    value["workload"] = {key: entry for key, entry in value["workload"].items() if key not in NEW}
    del value["model"]["body"]
    path = folder / "older.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_solve_says_what_is_missing_and_what_fits_in_its_first_line(tmp_path: Path) -> None:
    """And writes nothing."""
    result = run("solve", *MIXTRAL, "--redundant", "8", "-o", tmp_path / "plan.json")
    assert result.exit_code == 2
    (line,) = result.stderr.strip().splitlines()
    assert "10.7 GB of GPU memory are missing at R = 8: the most that fits is --redundant 4. GPU 0 of" in line
    assert not (tmp_path / "plan.json").exists()


def test_a_plan_says_how_many_requests_fit(plan: Path) -> None:
    """In the report and in JSON: of all four GPUs, and of one."""
    value = json.loads(plan.read_text(encoding="utf-8"))["memory"]
    assert value["fits"]
    assert value["request_bytes"] == 512 * 32 * 2 * 8 * 128 * 2
    assert value["requests"] == int(value["kv_left_bytes"] / value["request_bytes"])
    shown = run("solve", *MIXTRAL, "--redundant", "8", "--context", "512", "--details").stdout
    assert f"fits {4 * value['requests']:,} requests of 512 tokens at once" in " ".join(shown.split())


def test_a_re_plan_of_what_does_not_fit_is_refused(plan: Path) -> None:
    result = run("solve", *MIXTRAL, "--from", plan)
    assert result.exit_code == 2
    assert "missing at R = 8" in result.stderr


def test_emit_and_check_refuse_a_plan_that_does_not_fit(plan: Path, tmp_path: Path) -> None:
    """The same plan with longer requests: no file is written."""
    longer = changed(plan, tmp_path, prompt_tokens=2000, output_tokens=2000)
    result = run("emit", longer, "--engine", "trtllm", "-o", tmp_path / "out")
    assert result.exit_code == 2
    (line,) = result.stderr.strip().splitlines()
    assert "GB of GPU memory are missing" in line
    assert not (tmp_path / "out").exists()
    for flags in ((), ("--engine", "trtllm")):
        checked = run("check", longer, *flags)
        assert checked.exit_code == 2
        assert "GB of GPU memory are missing" in checked.stderr
    assert run("check", plan).exit_code == 0


def test_an_older_plan_is_read_and_judged_by_the_catalogue(plan: Path, tmp_path: Path) -> None:
    """Its requests are of 2,048 tokens, assumed: with R = 8 there is no room for them."""
    path = older(plan, tmp_path)
    problem = read_plan(path).problem
    assert problem.model.body == find_model("mixtral").body
    assert (problem.workload.context_tokens, problem.workload.context_given) == (2048, False)
    result = run("emit", path, "--engine", "trtllm", "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert "requests of 2,048 tokens, assumed" in result.stderr


def test_engine_show_says_it() -> None:
    """Refused with exit 1 where it does not fit, and how many requests fit where it does."""
    asked = ("engine", "show", "trtllm", "--model", "mixtral", "--topology", "hgx-h100:2x2")
    fits = json.loads(run(*asked, "--json").stdout)
    (rule,) = (finding for finding in fits["findings"] if finding["rule"] == "memory-fits")
    assert "128 are planned" in rule["text"]
    refused = run(*asked, "--context", "32000")
    assert refused.exit_code == 1
    assert "GB of GPU memory are missing" in refused.stderr
