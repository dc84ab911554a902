"""`moeplan sweep` as a person meets it: the answer first, exit codes, one-line faults, the answer's plan."""

import json
from pathlib import Path

import pytest

from tests.planner.cli.test_cli import fault, run

SMALL = ("--model", "mixtral", "--topology", "hgx-h100:2x2", "--tokens-per-rank", "16", "--redundant", "0")


def test_the_first_line_is_the_answer_and_json_has_the_rows() -> None:
    """The first row of JSON is what the first line of the text says."""
    said = run("sweep", *SMALL)
    assert said.exit_code == 0, said.output
    value = json.loads(run("sweep", *SMALL, "--json").stdout)
    first = value["phases"]["decode"][0]
    one = f"{first['experts'].upper()}{first['ep']}"
    line = said.stdout.splitlines()[0]
    assert line.startswith(f"{first['groups']} x {one}" if first["groups"] > 1 else one)
    assert f"{first['tokens_per_s_per_gpu']:,.0f} tokens/s/GPU" in line
    assert value["answers"]["decode"] in " ".join(said.stdout.split())


def test_both_phases_are_ranked_apart() -> None:
    value = json.loads(run("sweep", *SMALL, "--phase", "both", "--json").stdout)
    assert list(value["phases"]) == ["decode", "prefill"]
    assert all(row["standing"] for rows in value["phases"].values() for row in rows)


def test_where_nothing_fits_the_exit_code_is_2_and_the_first_line_says_what_is_missing() -> None:
    said = run("sweep", "--model", "deepseek-v3", "--topology", "hgx-h100:1", "--redundant", "0")
    assert said.exit_code == 2
    assert said.stdout.startswith("no layout fits. Nearest is EP8: ")
    assert said.stderr.strip() == "moeplan: no layout fits in decode"


def test_where_nothing_is_fast_enough_the_answer_is_no() -> None:
    said = run("sweep", *SMALL, "--tpot", "1 us")
    assert said.exit_code == 1
    assert "no layout is within --tpot 1 us; nearest is" in said.stdout.splitlines()[0]


def test_the_plan_of_the_answer_is_written(tmp_path: Path) -> None:
    path = tmp_path / "best.json"
    said = run("sweep", *SMALL, "-o", path)
    assert said.exit_code == 0, said.output
    assert said.stdout.splitlines()[-1] == f"wrote {path}"
    first = json.loads(run("sweep", *SMALL, "--json").stdout)["phases"]["decode"][0]
    assert json.loads(path.read_text())["gpus"] == first["ep"]


def test_a_layout_without_ep_needs_no_plan_and_one_with_it_stands_beside() -> None:
    """The words of the engines, and the command for the best layout with experts to place."""
    said = " ".join(run("sweep", *SMALL, "--engine", "sglang").stdout.split())
    assert said.startswith("TP4, attention DP4: ")
    assert "; with EP (EP4, R = 0) " in said.partition("hgx-h100:2x2, 16 tokens")[0]
    assert (
        " Next: no plan needed: sglang --tp-size 4 --attn-dp-size 4. With EP: moeplan solve --model mixtral "
        in said
    )


def test_without_experts_to_place_no_plan_is_written(tmp_path: Path) -> None:
    path = tmp_path / "best.json"
    said = run("sweep", *SMALL, "--experts", "tp", "-o", path)
    assert said.exit_code == 0, said.output
    assert said.stdout.splitlines()[-1] == "wrote no plan: no row that can be run has experts to place"
    assert not path.exists()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--experts", "dp"), "--experts 'dp': give ep, tp, or both"),
        (("--experts", "tp", "--ep", "1"), "--experts tp: a group of one GPU has nothing to slice"),
        (("--ep", "4,x"), "--ep 'x': give whole numbers of at least 1"),
        (("--ep", "3"), "--ep 3: equal groups divide"),
        (("--attention-tp", "3"), "--attention-tp 3: it divides none of the EP sizes 1, 2, 4"),
        (("--redundant", "least"), "--redundant 'least': give whole numbers, fewest or auto"),
        (("--engine", "sglanf"), "sglanf"),
        (("--tokens-per-rank", "0"), "--tokens-per-rank '0'"),
        (("--tpot", "soon"), "cannot read 'soon' as a time"),
        (("--transport", "pigeon"), "pigeon"),
    ],
)
def test_a_slip_of_the_pen_is_one_line(flags: tuple[str, str], words: str) -> None:
    assert words in fault(run("sweep", *SMALL, *flags))


def test_the_next_command_is_one_that_solve_takes(tmp_path: Path) -> None:
    """The line makes the plan of the answer."""
    said = run("sweep", *SMALL, "--context", "512", "--experts", "ep")
    line = next(line for line in said.stdout.replace("\n--", " --").splitlines() if line.startswith("Next: "))
    words = line.removeprefix("Next: moeplan ").split()
    assert "--context" in words
    plan = tmp_path / "plan.json"
    made = run(*words, "--method", "refine", "-o", plan)
    assert made.exit_code == 0, made.output
    first = json.loads(run("sweep", *SMALL, "--context", "512", "--json").stdout)["phases"]["decode"][0]
    value = json.loads(plan.read_text())
    assert (value["gpus"], value["slots_per_gpu"]) == (first["ep"], first["slots_per_gpu"])
