"""Mistakes that people make, each answered by one line that says what to do, exit 2, and nothing written."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from planner.cli import main
from planner.cli.what_it_is import what_is

PASTE = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV18\t0-31\nGPU1\tNV18\t X \t0-31\n"
CONFIG = {
    "model_type": "mixtral", "num_hidden_layers": 2, "num_local_experts": 8, "num_experts_per_tok": 2,
    "hidden_size": 64, "intermediate_size": 128, "torch_dtype": "bfloat16",
}  # fmt: skip


def run(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file or folder of every kind that people have, each made by the command that makes it."""
    folder = tmp_path_factory.mktemp("kinds")
    (folder / "hostA.txt").write_text(PASTE)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    rows = [f"{layer},{expert},{100 + expert}" for layer in range(32) for expert in range(8)]
    (folder / "load.csv").write_text("\n".join(["layer,expert,count", *rows]))
    np.savez(folder / "load.npz", counts=np.full((32, 8), 100))
    np.savez(folder / "r1.npz", counts=np.full((58, 256), 800), model=np.array("deepseek-ai/DeepSeek-R1"))
    plan, machine = str(folder / "plan.json"), str(folder / "machine.json")
    small = ("--model", "mixtral", "--topology", "hgx-h100:1x4", "--redundant", "4", "--method", "greedy")
    for words in (
        ("solve", *small, "-o", plan),
        ("import", str(folder / "hostA.txt"), "--gpu", "H100-SXM", "-o", machine),
        ("emit", plan, "--engine", "trtllm", "-o", str(folder / "out")),
    ):
        result = run(*words)
        assert result.exit_code == 0, result.output
    return folder


MIXTRAL = "solve --model mixtral"
# (the command, with files by name; what its one line must say)
MISTAKES = [
    # a file in the wrong place
    (f"{MIXTRAL} --topology hostA.txt", "moeplan import hostA.txt -o machine.json"),
    (f"{MIXTRAL} --topology plan.json", "--topology plan.json: this is a plan, not a topology"),
    (f"{MIXTRAL} --topology load.csv", "this is a load, not a topology; --load load.csv takes it"),
    (f"{MIXTRAL} --topology config.json", "this is a model's config.json, not a topology"),
    (f"{MIXTRAL} --topology out/moe_load_balancer.yaml", "this is a map (TensorRT-LLM"),
    (f"{MIXTRAL} --topology=plan.json", "this is a plan, not a topology"),
    (f"{MIXTRAL} --load plan.json", "--load plan.json: this is a plan, not a load; moeplan evaluate"),
    (f"{MIXTRAL} --load hostA.txt", "moeplan import hostA.txt"),
    (f"{MIXTRAL} --load machine.json", "this is a topology, not a load; --topology machine.json takes it"),
    (f"{MIXTRAL} --load out/moe_load_balancer.yaml", "moeplan check out/moe_load_balancer.yaml"),
    (f"{MIXTRAL} --load config.json", "--model config.json takes it"),
    ("solve --model plan.json", "--model plan.json: this is a plan"),
    ("solve --model load.npz", "this is a load, not a model's config.json"),
    ("solve --model machine.json", "--topology machine.json takes it"),
    (f"{MIXTRAL} --topology hgx-h100:1x4 --from load.csv", "this is a load, not a plan or an engine's map"),
    ("check hostA.txt", "this is what a tool printed about a machine (topo-m)"),
    ("check load.csv", "this is a load, not a plan or an engine's map"),
    ("check machine.json", "this is a topology"),
    ("emit load.csv --engine trtllm -o new", "this is a load, not a plan"),
    ("emit out --engine trtllm -o new", "its plan is out/plan.json"),
    ("emit out/moe_load_balancer.yaml --engine trtllm -o new", "moeplan convert"),
    ("evaluate machine.json", "this is a topology, not a plan"),
    ("evaluate plan.json --load plan.json", "this is a plan, not a load"),
    ("evaluate plan.json --topology hostA.txt", "moeplan import hostA.txt"),
    ("validate load.npz", "this is a load, not a plan"),
    ("import plan.json", "this is a plan, not what a tool printed"),
    ("import load.csv", "--load load.csv takes it"),
    ("topology show hostA.txt", "moeplan import hostA.txt"),
    ("topology check plan.json", "this is a plan, not a topology"),
    ("load show plan.json --model mixtral", "this is a plan, not a load"),
    ("model show machine.json", "this is a topology"),
    ("convert load.csv --to trtllm -o new.yaml", "this is a load, not a plan or an engine's map"),
    ("probe --merge plan.json", "this is a plan, not a probe's record"),
    # a load of another model
    ("load show load.csv --model dbrx", "each of its 32 layers has the experts 0..7"),
    ("load show load.npz --model olmoe", "8 experts a layer, but allenai/OLMoE-1B-7B-0924 has 64"),
    ("solve --model deepseek-v3 --load r1.npz", "recorded on deepseek-ai/DeepSeek-R1"),
    # a name that is none
    ("solve --model Qwen3-Next-80B-A3B", "give the path of its config.json"),
    ("solve --model Qwen3-30B-A3B-GGUF", "stored as gguf"),
    (f"{MIXTRAL} --topology hgx-h10", "did you mean 'hgx-h100'"),
    (f"{MIXTRAL} --engine sgland", "did you mean 'sglang'?"),
    (f"{MIXTRAL} --method refin", "did you mean 'refine'?"),
    (f"{MIXTRAL} --transport pigeon", "slot, rank, node, allgather"),
    (f"{MIXTRAL} --replica-rule row-index --transport node", "use --transport allgather, or leave it out"),
    ("solve --model deepseek-v2-lite --engine tokenspeed --transport slot", "without an all-to-all"),
    ("slove --model mixtral", "Did you mean 'solve'"),
    (f"{MIXTRAL} --redundnat 8", "--redundant"),
    # a number that cannot be
    (f"{MIXTRAL} --redundant 3", "use --redundant 0, 8 or 16"),
    (f"{MIXTRAL} --redundant 3 --topology hgx-h100:1x4", "use --redundant 0, 4 or 8"),
    (f"{MIXTRAL} --redundant many", "give a whole number, or auto"),
    (f"{MIXTRAL} --ep 12 --topology hgx-h100:2", "whole nodes for EP sizes 8, 16"),
    (f"{MIXTRAL} --tokens-per-rank 0", "at least 1"),
    (f"{MIXTRAL} --kv-floor 20", "write it like '80 GB'"),
    (f"{MIXTRAL} --survive 9 --redundant 0", "at most --survive 7"),
    (f"{MIXTRAL} --objective best", "mean, worst or risk:Z"),
    (f"{MIXTRAL} --held-out 1.5", "at least 0 and less than 1"),
    (f"{MIXTRAL} --gpu-speed 0.9", "3=0.9,7=0.85"),
    (f"{MIXTRAL} --max-moves 20", "--from PLAN"),
    ("topology show hgx-h100:0", "after the colon come 1 to"),
    ("capacity --model mixtral --ep 7", "use one of 1, 2, 4, 8"),
    ("evaluate plan.json --topology hgx-h100:1x3", "--ep 4"),
    ("evaluate plan.json --tokens-per-rank 0", "at least 1"),
    ("evaluate plan.json --all-engines --engine vllm", "give one of them"),
    ("emit plan.json --engine sglang --engine-version 9 -o new", "known releases are"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "words"), MISTAKES, ids=[command for command, _ in MISTAKES])
def test_a_mistake_gets_one_line_that_says_what_to_do(
    command: str, words: str, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 2; the line on stderr; stdout empty; no file or folder more than before."""
    monkeypatch.chdir(files)
    before = sorted(files.iterdir())
    result = run(*command.split())
    assert result.exit_code == 2, result.output
    lines = [
        line for line in result.stderr.strip().splitlines() if not line.startswith(("Usage", "Try", "\n"))
    ]
    assert len([line for line in lines if line]) == 1, result.stderr
    assert words in lines[-1]
    assert result.stdout == ""
    assert sorted(files.iterdir()) == before


def test_there_are_forty_of_them() -> None:
    """Distinct ones."""
    assert len({command for command, _ in MISTAKES}) == len(MISTAKES) >= 40


def test_the_numbers_that_are_suggested_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each R and each EP size that a refusal names, on machines of several shapes."""
    monkeypatch.chdir(tmp_path)
    taken = 0
    for machine in ("hgx-h100", "hgx-h100:1x4", "hgx-h200:2", "hgx-h200:3x4"):
        asked = ["solve", "--model", "dbrx", "--topology", machine, "--method", "linear"]
        line = run(*asked, "--redundant", "5").stderr
        for flag, value in _suggested(line):
            again = ["--redundant", value] if flag == "--redundant" else ["--redundant", "5", flag, value]
            result = run(*asked, *again)
            assert "do not divide" not in result.stderr, (line, flag, value)
            assert "whole nodes" not in result.stderr, (line, flag, value)
            taken += 1
    assert taken >= 12


def _suggested(line: str) -> Iterator[tuple[str, str]]:
    for flag in ("--redundant", "--ep"):
        match = re.search(rf"{flag} ((?:\d+(?:, | or )?)+)", line)
        for value in re.findall(r"\d+", match[1]) if match else ():
            yield flag, value


KINDS = {
    "hostA.txt": "text", "config.json": "model", "load.csv": "load", "load.npz": "load", "plan.json": "plan",
    "machine.json": "topology", "out": "emission", "out/moe_load_balancer.yaml": "map",
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_is_known_by_its_content(name: str, files: Path, tmp_path: Path) -> None:
    """Under its own name, and under one that says nothing."""
    found = what_is(files / name)
    assert found is not None
    assert found.kind == KINDS[name]
    if (files / name).is_file():
        copy = tmp_path / f"something{(files / name).suffix}"
        copy.write_bytes((files / name).read_bytes())
        again = what_is(copy)
        assert again is not None
        assert again.kind == KINDS[name]


@pytest.mark.parametrize("content", [b"", b"\x00\xff" * 40, b"{", b"[[1, 2]]", b"hello\n", b"a: b: c"])
def test_what_nobody_knows_is_not_named(content: bytes, tmp_path: Path) -> None:
    """Whatever its suffix says; nothing raises."""
    for suffix in (".json", ".yaml", ".csv", ".npz", ".txt", ""):
        path = tmp_path / f"file{suffix}"
        path.write_bytes(content)
        assert what_is(path) is None
    assert what_is(tmp_path / "absent") is None


def test_a_file_of_the_right_kind_keeps_its_own_fault(files: Path, tmp_path: Path) -> None:
    """A plan with a broken row is a plan: the line names the row."""
    value = json.loads((files / "plan.json").read_text())
    value["placement"].pop("7")
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(value))
    result = run("evaluate", str(path))
    assert result.exit_code == 2
    assert "missing ['7']" in result.stderr
