"""`emit --launcher`, `check --live` and `capacity` as a person and a script meet them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from planner.cli import main
from tests.places import ROOT


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan for two nodes of two GPUs that SGLang serves by its map."""
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    shape = ["--topology", "hgx-h100:2x2", "--redundant", "4", "--method", "linear", "--engine", "sglang"]
    result = run("solve", "--model", "deepseek-v2-lite", *shape, "-o", path)
    assert result.exit_code == 0, result.output
    return path


@pytest.mark.parametrize(
    ("launcher", "first"),
    [
        (None, "launch.sh"),
        ("slurm", "job.sbatch"),
        ("dynamo", "dynamographdeployment.yaml"),
        ("kubernetes", "leaderworkerset.yaml"),
        ("llm-d", "llm-d.yaml"),
    ],
)
def test_emit_writes_the_launchers_file(launcher: str | None, first: str, plan: Path, tmp_path: Path) -> None:
    """Beside the engine's own and the plan; JSON names them all."""
    flags = ["--launcher", launcher, "--image", "example/engine:1"] if launcher else []
    flags += ["--engine-version", "0.5.21"] if launcher == "dynamo" else []  # what it pins
    result = run("emit", plan, "--engine", "sglang", "-o", tmp_path / "out", *flags, "--json")
    assert result.exit_code == 0, result.output
    names = {Path(name).name for name in json.loads(result.stdout)["files"]}
    assert {first, "launch.sh", "expert_location.json", "plan.json"} <= names
    assert names == {path.name for path in (tmp_path / "out").iterdir()}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--launcher", "lsf"], "launcher 'lsf' is unknown"),
        (["--launcher", "kubernetes"], "--launcher kubernetes needs --image"),
        (["--launcher", "slurm", "--hosts", "a,b,c"], "--hosts: 3 distinct names; give the plan's 2 hosts"),
    ],
)
def test_a_launcher_that_cannot_start_it_writes_nothing(
    flags: list[str], message: str, plan: Path, tmp_path: Path
) -> None:
    """One line, exit code 2, no folder."""
    result = run("emit", plan, "--engine", "sglang", "-o", tmp_path / "out", *flags)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (tmp_path / "out").exists()


def live(plan: Path, placed: list[tuple[int, int]], *flags: str) -> list[subprocess.CompletedProcess[str]]:
    """The check as torchrun's environment starts it: (rank, number on its host) for each process, all on this
    machine.
    """
    command = [sys.executable, "-m", "planner", "check", "--live", str(plan), "--timeout", "30", *flags]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "CUDA"))}
    group = {**clean, "WORLD_SIZE": str(len(placed)), "TORCHELASTIC_RUN_ID": "none"}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    started = []
    for rank, local in placed:
        told = {**group, "RANK": str(rank), "LOCAL_RANK": str(local)}
        started.append(subprocess.Popen(command, cwd=ROOT, env=told, **pipes))
    done = []
    for process in started:
        output, errors = process.communicate(timeout=60)
        done.append(subprocess.CompletedProcess(command, process.returncode, output, errors))
    return done


def test_live_passes_on_one_node_and_rank_0_alone_speaks(plan: Path, tmp_path: Path) -> None:
    """Two ranks of a one-node plan; what it printed is accepted as the record of the next start."""
    one = tmp_path / "plan.json"
    shape = ["--topology", "hgx-h100:1x2", "--redundant", "0", "--method", "linear"]
    run("solve", "--model", "deepseek-v2-lite", *shape, "-o", one)
    first, second = live(one, [(0, 0), (1, 1)], "--json")
    assert (first.returncode, second.returncode, second.stdout) == (0, 0, ""), first.stderr + second.stderr
    assert [seat["local"] for seat in json.loads(first.stdout)["seats"]] == [0, 1]
    (tmp_path / "seats.json").write_text(first.stdout)
    again = live(one, [(0, 0), (1, 1)], "--seats", str(tmp_path / "seats.json"))
    assert [done.returncode for done in again] == [0, 0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan.json", "seats.json"]


def test_live_refuses_two_nodes_on_one_host(plan: Path) -> None:
    """Exit code 2 and every mismatch; here all four ranks are on this machine."""
    first, *others = live(plan, [(0, 0), (1, 1), (2, 0), (3, 1)])
    assert first.returncode == 2
    assert "ranks 0 and 2 belong on different nodes" in first.stdout
    assert [done.returncode for done in others] == [0, 0, 0]


def test_live_without_a_launcher_says_how_to_start_it(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no check of one process."""
    for name in list(os.environ):
        if name.startswith(("SLURM", "OMPI", "PMI")) or name in {"RANK", "WORLD_SIZE", "LOCAL_RANK"}:
            monkeypatch.delenv(name)
    result = run("check", "--live", plan)
    assert result.exit_code == 2
    assert "srun -n 4 moeplan check --live" in result.stderr


def test_capacity_prints_tables_and_json() -> None:
    """The shipped Mixtral load: what a factor of 1.25 drops, and a factor for the target."""
    flags = ["capacity", "--model", "mixtral", "--ep", "8", "--target", "0.1%"]
    text = run(*flags)
    assert text.exit_code == 0, text.output
    assert "Megatron-Core" in text.stdout
    found = json.loads(run(*flags, "--json").stdout)
    for engine in found["engines"]:
        assert engine["chosen"]["worst_layer_dropped"] <= 0.001
        assert engine["factors"][0]["dropped"] > engine["factors"][1]["dropped"] > 0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--ep", "3"], "--ep 3: these engines place 8 experts"),
        (["--ep", "8", "--target", "x"], "not a share"),
    ],
)
def test_capacity_refuses_in_one_line(flags: list[str], message: str) -> None:
    """Exit code 2."""
    result = run("capacity", "--model", "mixtral", *flags)
    assert result.exit_code == 2
    assert message in result.stderr


def test_emit_writes_both_halves_of_a_pair_for_one_namespace(plan: Path, tmp_path: Path) -> None:
    """Each with a name and hosts of its own; the first half's hosts are given first."""
    shape = ["--topology", "hgx-h100:1x8", "--redundant", "0", "--method", "linear", "--engine", "sglang"]
    prefill, out = tmp_path / "prefill.json", tmp_path / "out"
    made = run("solve", "--model", "deepseek-v2-lite", *shape, "--phase", "prefill", "-o", prefill)
    assert made.exit_code == 0, made.output
    flags = ["--launcher", "kubernetes", "--image", "example/engine:1", "--hosts", "c,a,b"]
    result = run("emit", plan, prefill, "--engine", "sglang", *flags, "-o", out)
    assert result.exit_code == 0, result.output
    for role, hosts in (("prefill", ["c"]), ("decode", ["a", "b"])):
        text = (out / role / "leaderworkerset.yaml").read_text()
        assert f"name: moeplan-sglang-{role}\n" in text
        assert [host for host in "abc" if f"- {host}\n" in text] == hosts
