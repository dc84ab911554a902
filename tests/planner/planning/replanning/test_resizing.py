"""`solve --without`, and `--from` a plan on other GPUs: from the command line to the file and back."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from planner.cli import main

MODEL = ("--model", "mixtral", "--method", "greedy")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def fault(*arguments: str | Path) -> str:
    result = run("solve", *MODEL, *arguments)
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.strip().splitlines()
    return line


def solved(*arguments: str | Path) -> dict[str, Any]:
    result = run("solve", *MODEL, "--json", *arguments)
    assert result.exit_code == 0, result.output
    value: dict[str, Any] = json.loads(result.stdout)
    return value


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight GPUs on two nodes, two slots each: R = 8."""
    path = tmp_path_factory.mktemp("plans") / "old.json"
    asked = ("--topology", "hgx-h100:2x4", "--redundant", "8")
    assert run("solve", *MODEL, *asked, "-o", path).exit_code == 0
    return path


def test_a_machine_without_gpus(tmp_path: Path) -> None:
    """Seven GPUs, three and four a node; the note says which rank is which GPU, and the plan is whole."""
    path = tmp_path / "plan.json"
    result = run("solve", *MODEL, "--topology", "hgx-h100:2x4", "--without", "3", "-o", path)
    assert result.exit_code == 0, result.output
    value = json.loads(path.read_text())
    assert value["gpus"] == 7
    assert value["provenance"]["without"] == [3]
    assert any("ranks close up: 0-2 = GPU 0-2, 3-6 = GPU 4-7" in note for note in value["notes"])
    assert run("check", path).exit_code == 0


def slots_of(value: dict[str, Any], gpus: int) -> dict[str, list[list[int]]]:
    size = value["slots_per_gpu"]
    return {
        layer: [row[gpu * size : (gpu + 1) * size] for gpu in range(gpus)]
        for layer, row in value["placement"].items()
    }


@pytest.mark.parametrize(
    ("flags", "how", "gpus"),
    [
        (("--without", "3"), "lost", 7),
        (("--without", "node1"), "lost", 4),
        (("--without", "0,5-6"), "lost", 5),
        (("--ep", "4"), "let go", 4),
        (("--topology", "hgx-h100:3x4"), "taken in", 12),
        (("--ep", "4", "--engine", "vllm"), "let go", 4),
        (("--topology", "hgx-h100:3x4", "--engine", "sglang"), "taken in", 12),
    ],
)
def test_moves_lead_from_one_size_to_the_other(
    previous: Path, flags: tuple[str, ...], how: str, gpus: int
) -> None:
    """The file's transfers and reads, applied to the old file's slots, give the new file's rows on every GPU
    that serves afterwards; slots a GPU are the same.
    """
    value, old = solved("--from", previous, *flags), json.loads(previous.read_text())
    moves, resize = value["moves"], value["moves"]["resize"]
    assert (value["gpus"], value["slots_per_gpu"], resize["how"]) == (gpus, old["slots_per_gpu"], how)
    held = slots_of(old, 8)
    for rows in held.values():
        rows += [[-1, -1] for _ in range(resize["gpus"] - 8)]
    gone = resize["changed"] if how == "lost" else []
    for _, layer, expert, source, target, slot in moves["transfers"]:
        assert source not in gone
        assert expert in slots_of(old, 8)[str(layer)][source]
        held[str(layer)][target][slot - 2 * target] = expert
    for layer, expert, target, slot in moves["reads"]:
        left = [gpu for gpu in range(8) if gpu not in gone]
        assert not any(expert in slots_of(old, 8)[str(layer)][gpu] for gpu in left)
        held[str(layer)][target][slot - 2 * target] = expert
    found = {layer: [rows[gpu] for gpu in resize["gpu_of_rank"]] for layer, rows in held.items()}
    assert found == slots_of(value, gpus)
    assert moves["needed"] <= moves["moved_slots"] == len(moves["transfers"]) + len(moves["reads"])


def test_few_moves_are_those_that_are_needed(previous: Path) -> None:
    """With node 1 a copy of nearly every second expert is gone: as many moves, and no plan with one less."""
    lost = ("--from", previous, "--without", "node1", "--max-moves")
    least = solved(*lost[:-1])["moves"]["needed"]
    assert least > 0
    moves = solved(*lost, str(least))["moves"]
    assert (moves["needed"], moves["moved_slots"]) == (least, least)
    assert f"8 GPUs to 4 (GPUs 4-7 lost), and {least} slots must get an expert" in fault(
        *lost, str(least - 1)
    )


def test_more_moves_are_never_slower(previous: Path) -> None:
    """On fitted load."""
    least = solved("--from", previous, "--without", "3")["moves"]["needed"]
    limits = [least, least + 20, least + 100]
    seconds = [
        solved("--from", previous, "--without", "3", "--max-moves", str(most))["predicted"]["fitted"][
            "total_seconds"
        ]
        for most in limits
    ]
    assert all(after <= before * (1 + 1e-9) for before, after in pairwise(seconds))


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (
            ("--without", "1-7"),
            "2 slots a GPU hold too few experts on 1 GPUs (2 slots for 8); it takes 4 GPUs",
        ),
        (("--without", "9"), "'9' is no GPU or node of hgx-h100:2x4"),
        (("--without", "0-7"), "all 8 GPUs are lost"),
        (("--without", "1", "--redundant", "13"), "use --redundant 6"),
        (("--ep", "4", "--engine", "sglang"), "SGLang lets no ranks go while it serves"),
        (("--ep", "4", "--engine", "lmdeploy"), "LMDeploy lets no ranks go while it serves"),
        (("--topology", "hgx-h100:4x2"), "its 8 GPUs are on nodes of 4+4, the machine asked for has 2+2+2+2"),
        (("--topology", "hgx-h100:3x4", "--without", "1"), "it is for 8 GPUs; --without takes some of 12"),
    ],
)
def test_what_cannot_be(previous: Path, flags: tuple[str, ...], said: str) -> None:
    """One line with what would."""
    assert said in fault("--from", previous, *flags)


def test_the_machine_of_the_plan_is_the_default(previous: Path) -> None:
    """And how the engine is asked for the new size is a note."""
    value = solved("--from", previous, "--ep", "4", "--engine", "vllm")
    assert any(
        'vLLM takes this size by POST /scale_elastic_ep {"new_data_parallel_size": 4}' in note
        and "--elastic-ep-max-dp-size 8" in note
        for note in value["notes"]
    )


def test_a_plan_of_what_is_left_is_re_planned_there(previous: Path, tmp_path: Path) -> None:
    """The second plan without the same GPU starts from the first: no change of size."""
    first = tmp_path / "first.json"
    asked = ("--topology", "hgx-h100:2x4", "--without", "3", "--redundant", "6")
    assert run("solve", *MODEL, *asked, "-o", first).exit_code == 0
    moves = solved(*asked[:4], "--from", first, "--max-moves", "0")["moves"]
    assert (moves["moved_slots"], moves["resize"]) == (0, None)
