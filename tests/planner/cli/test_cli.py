"""The command line as a person and a script meet it: exit codes, one-line faults, whole files or none."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from planner.cli import main

SMALL = ["--topology", "hgx-h100:2x2", "--redundant", "4", "--method", "greedy"]


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def solved(path: Path, *flags: str) -> Path:
    result = run("solve", "--model", "mixtral", *(flags or SMALL), "-o", str(path))
    assert result.exit_code == 0, result.output
    return path


def fault(result: Result) -> str:
    """The one line that a fault prints."""
    assert result.exit_code == 2, result.output
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert result.stdout == ""
    return lines[0]


def test_solve_needs_no_flag_but_the_model(tmp_path: Path) -> None:
    """The promise of the first line of the README; the file has the keys that others rely on."""
    value = json.loads(solved(tmp_path / "plan.json", "--seed", "0").read_text())
    assert value["schema"] == "moeplan/plan/1"
    assert value["model"]["name"] == "mistralai/Mixtral-8x7B-v0.1"
    assert list(value["placement"]) == [str(layer) for layer in range(32)]
    assert all(len(row) == value["gpus"] * value["slots_per_gpu"] for row in value["placement"].values())
    assert {"bound", "predicted", "provenance"} <= set(value)


def test_the_same_question_gives_the_same_bytes(tmp_path: Path) -> None:
    """No clock, no path and no unordered set gets into a plan."""
    first, second = solved(tmp_path / "a.json"), solved(tmp_path / "b.json")
    assert first.read_bytes() == second.read_bytes()


def test_json_output_is_the_plan_file(tmp_path: Path) -> None:
    """`--json` prints the same value that `-o` writes."""
    result = run("solve", "--model", "mixtral", *SMALL, "-o", tmp_path / "plan.json", "--json")
    assert json.loads(result.stdout) == json.loads((tmp_path / "plan.json").read_text())


def test_solve_reports_what_a_person_decides_by() -> None:
    """Balance fitted and held-out, the phases, the bottleneck, the bound, memory, and doing nothing."""
    result = run("solve", "--model", "mixtral", *SMALL, "--details")
    words = (
        *("held-out", "dispatch", "compute", "combine", "bottleneck", "cross-node", "bound"),
        *("memory a GPU", "same R", "R = 0", "mean share of the measured"),
    )
    for word in words:
        assert word in " ".join(result.stdout.split()), word


@pytest.mark.parametrize(
    ("engine", "name"), [("trtllm", "moe_load_balancer.yaml"), ("vllm_ascend", "expert_map.json")]
)
def test_emit_then_check(engine: str, name: str, tmp_path: Path) -> None:
    """What is emitted passes our own check, with the plan beside it and with the facts given; a spoilt cell
    fails both.
    """
    result = run("emit", solved(tmp_path / "plan.json"), "--engine", engine, "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out" / "plan.json").read_bytes() == (tmp_path / "plan.json").read_bytes()
    path = tmp_path / "out" / name
    assert run("check", path).exit_code == 0
    assert run("check", path, "--model", "mixtral", "--ep", "4").exit_code == 0
    path.write_text(path.read_text().replace("[0, ", "[9, "))
    assert run("check", path).exit_code == 2
    assert run("check", path, "--model", "mixtral", "--ep", "4").exit_code == 2


def test_convert_writes_another_engines_map(tmp_path: Path) -> None:
    """A plan becomes a map of TensorRT-LLM and that one a map of vllm-ascend; each passes the check of the
    engine that loads it.
    """
    plan = solved(tmp_path / "plan.json")
    assert run("convert", plan, "--to", "trtllm", "-o", tmp_path / "map.yaml").exit_code == 0
    words = ("--to", "vllm_ascend", "--model", "mixtral", "--ep", "4", "-o", tmp_path / "map.json", "--json")
    result = run("convert", tmp_path / "map.yaml", "--from", "trtllm", *words)
    assert json.loads(result.stdout)["file"] == str(tmp_path / "map.json")
    known = ("--model", "mixtral", "--ep", "4", "--engine", "vllm_ascend")
    assert run("check", tmp_path / "map.json", *known).exit_code == 0


def test_evaluate_gives_the_figures_others_read(tmp_path: Path) -> None:
    """On an even load an even placement has max/mean 1, and on two equal nodes half of the even split
    crosses.
    """
    plan = solved(tmp_path / "plan.json", "--topology", "hgx-h100:2x4", "--redundant", "0")
    np.savez(tmp_path / "even.npz", counts=np.full((32, 8), 1000))
    result = run("evaluate", plan, "--load", tmp_path / "even.npz", "--topology", "hgx-h100:2x4", "--json")
    value = json.loads(result.stdout)
    assert [layer["max_over_mean"] for layer in value["layers"]] == pytest.approx([1.0] * 32)
    assert value["cross_node_share"] == pytest.approx(0.5)
    assert value["total_seconds"] > 0


def test_evaluate_under_every_engine(tmp_path: Path) -> None:
    """One row and one JSON entry each; together with one engine it is refused."""
    plan = solved(tmp_path / "plan.json")
    found = json.loads(run("evaluate", plan, "--all-engines", "--json").stdout)["engines"]
    rules = {found[name]["replica_rule"] for name in ("sglang", "trtllm", "vllm")}
    assert rules == {"nearest-static", "round-robin", "hashed"}
    assert all(name in run("evaluate", plan, "--all-engines").stdout for name in found)
    assert "give one of them" in fault(run("evaluate", plan, "--all-engines", "--engine", "vllm"))


def test_evaluate_on_a_machine_of_another_size_is_refused(tmp_path: Path) -> None:
    """A plan for 4 GPUs says nothing about 3."""
    plan = solved(tmp_path / "plan.json")
    assert "--ep 4" in fault(run("evaluate", plan, "--topology", "hgx-h100:1x3"))


def test_check_finds_a_spoilt_plan(tmp_path: Path) -> None:
    """A duplicate on a GPU, a missing layer and a doctored figure are each named; exit 2."""
    plan = solved(tmp_path / "plan.json")
    assert run("check", plan).exit_code == 0

    def spoil(change: Callable[[dict[str, Any]], None]) -> Path:
        value = json.loads(plan.read_text())
        change(value)
        path = tmp_path / "spoilt.json"
        path.write_text(json.dumps(value))
        return path

    def duplicate(value: dict[str, Any]) -> None:
        row = value["placement"]["7"]
        row[1] = row[0]

    def doctor(value: dict[str, Any]) -> None:
        value["predicted"]["fitted"]["max_over_mean"] -= 0.01

    assert run("check", spoil(duplicate)).exit_code == 2
    assert run("check", spoil(lambda value: value["placement"].pop("31"))).exit_code == 2
    assert "recomputed" in run("check", spoil(doctor)).stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["solve", "--model", "mixtrall"], "Nearest names are 'mixtral'"),
        (["solve", "--model", "mixtral", "--topology", "hgx-h10"], "hgx-h100"),
        (["solve", "--model", "mixtral", "--engine", "sgland"], "sglang"),
        (["solve", "--model", "mixtral", "--method", "refin"], "refine"),
        (["solve", "--model", "mixtral", "--redundant", "3", "--topology", "hgx-h100:1x4"], "0, 4 or 8"),
        (["solve", "--model", "mixtral", "--redundant", "-1"], "--redundant"),
        (["solve", "--model", "mixtral", "--redundant", "99999999999999"], "at most"),
        (["solve", "--model", "mixtral", "--ep", "7", "--topology", "hgx-h100:2x4"], "--ep 7"),
        (["solve", "--model", "mixtral", "--ep", "0"], "--ep 0"),
        (["solve", "--model", "mixtral", "--tokens-per-rank", "0"], "at least 1"),
        (["solve", "--model", "mixtral", "--transport", "pigeon"], "slot, rank, node, allgather"),
        (["solve", "--model", "mixtral", "--kv-floor", "much"], "80 GB"),
        (["solve", "--model", "mixtral", "--held-out", "1.5"], "held-out"),
        (["solve", "--model", "mixtral", "--load", "/nowhere.csv"], "/nowhere.csv"),
        (["solve", "--model", "mixtral", "--load", "/"], "directory"),
        (["topology", "show", "hgx-h100:0"], "hgx-h100:0"),
        (["emit", "/nowhere.json", "--engine", "sglang", "-o", "x"], "/nowhere.json"),
        (["validate", "/nowhere.json"], "/nowhere.json"),
        (["validate", "x.json", "--virtual", "--emulate"], "leave out --emulate"),
        (["validate", "x.json", "--virtual", "--calibrate", "y.json"], "leave out --calibrate"),
        (["check", "/dev/null"], "/dev/null"),
    ],
)
def test_bad_input_gets_one_line_that_helps(arguments: list[str], words: str) -> None:
    """What, where, which value, what to do; exit 2; nothing on stdout."""
    assert words in fault(run(*arguments))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\x01\xff" * 50,
        b'{"schema": "moeplan/plan/1"',
        b'{"schema": "moeplan/plan/1"}',
        b"[]",
        b"[" * 100_000,
    ],
)
def test_broken_plan_files_are_refused_by_every_reader(content: bytes, tmp_path: Path) -> None:
    """Empty, binary, truncated, hollow, foreign and nested files: one line from each command that reads a
    plan.
    """
    path = tmp_path / "plan.json"
    path.write_bytes(content)
    emit = ["emit", "--engine", "sglang", "-o", str(tmp_path / "out")]
    for arguments in (["evaluate"], emit, ["validate"], ["check"]):
        assert str(path) in fault(run(*arguments, path))
    assert not (tmp_path / "out").exists()


def test_a_failed_solve_leaves_the_old_plan(tmp_path: Path) -> None:
    """Files are replaced whole or not at all."""
    plan = solved(tmp_path / "plan.json")
    before = plan.read_bytes()
    assert run("solve", "--model", "mixtral", "--redundant", "3", "-o", plan).exit_code == 2
    assert plan.read_bytes() == before
    absent = tmp_path / "absent" / "plan.json"
    assert "cannot be written" in run("solve", "--model", "mixtral", *SMALL, "-o", absent).stderr


def test_validate_compares_only_plans_of_one_question(tmp_path: Path) -> None:
    """Another model and another transport are named with both values, and a machine of more GPUs."""
    plan = solved(tmp_path / "plan.json")
    other = tmp_path / "other.json"
    assert run("solve", "--model", "olmoe-1b-7b", *SMALL, "-o", other).exit_code == 0
    assert "its model allenai/OLMoE-1B-7B-0924, the plan's mistralai/Mixtral-8x7B-v0.1" in fault(
        run("validate", plan, "--against", other)
    )
    assert run("solve", "--model", "mixtral", *SMALL[:2], "--transport", "rank", "-o", other).exit_code == 0
    assert "its transport rank, the plan's slot" in fault(run("validate", plan, "--against", other))
    machine = "hgx-h100:2"
    assert "it has 16 GPUs" in fault(run("validate", plan, "--emulate", machine))


def test_interrupt_ends_validate_with_one_line_and_no_process(tmp_path: Path) -> None:
    """Ctrl-C while ranks run: exit 130, one line, and no rank is left."""
    plan = solved(tmp_path / "plan.json")
    command = [sys.executable, "-m", "planner", "validate", str(plan), "--repeats", "2000"]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    time.sleep(6)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert (child.returncode, len(errors.strip().splitlines())) == (130, 1), errors


def test_a_full_disk_under_the_output_is_one_line() -> None:
    """`moeplan ... > file` on a full disk."""
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "planner", "model", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == "moeplan: the output cannot be written (No space left on device)\n"


def test_every_command_has_help_with_an_example() -> None:
    """An example in every --help, so that nobody has to guess the syntax."""

    def walk(command: Any, path: list[str]) -> None:
        if hasattr(command, "commands"):
            for name, child in sorted(command.commands.items()):
                walk(child, [*path, name])
            return
        result = run(*path, "--help")
        assert result.exit_code == 0
        assert "Example: moeplan " + " ".join(path) in " ".join(result.output.split())

    walk(main, [])


def test_import_to_solve_to_check(tmp_path: Path) -> None:
    """A paste becomes a machine, the machine a plan; without the GPU's name the command says which flag to
    give, and writes nothing.
    """
    paste = tmp_path / "topo.txt"
    paste.write_text("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV18\t0-31\nGPU1\tNV18\t X \t0-31\n")
    shown = json.loads(run("import", paste, "--json").stdout)
    assert (shown["gpus"], shown["nvlink_domains"], shown["nics"]) == (2, [[0, 1]], 0)
    assert shown["affinity"] == {"0": [], "1": []}
    assert shown["unknown"]
    machine = tmp_path / "machine.json"
    assert "--gpu" in run("import", paste, "-o", machine).stderr
    assert not machine.exists()
    assert run("import", paste, "--gpu", "H100-SXM", "-o", machine).exit_code == 0
    asked = ("--redundant", "2", "--method", "greedy", "--context", "512")
    solved(tmp_path / "plan.json", "--topology", str(machine), *asked)
    assert "NVLink domain" in run("topology", "show", machine).stdout
    assert run("topology", "check", machine).exit_code == 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"hello\n", "of no kind"),
        (b"\x7fELF\x00\x00", "binary"),
        (b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]><system/>', "entit"),
    ],
)
def test_import_refuses_what_it_cannot_read(content: bytes, words: str, tmp_path: Path) -> None:
    """One line, exit 2."""
    path = tmp_path / "file"
    path.write_bytes(content)
    assert words in fault(run("import", path)).lower()


def test_probe_without_a_gpu_says_what_was_tried(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And what to do instead."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))  # no NVML there
    (tmp_path / "sys").mkdir()
    line = fault(run("probe", "--sysfs-root", tmp_path / "sys"))
    for words in ("libnvidia-ml", "moeplan import", "preset"):
        assert words in line


def test_probe_takes_files_only_to_merge() -> None:
    """A paste given to probe belongs to import."""
    assert "moeplan import" in fault(run("probe", "topo.txt"))
    assert "--merge" in fault(run("probe", "--merge"))
