"""`--map`: a plan, any engine's map or a tensor gives slots their experts.

The command line takes dumps wherever it takes a load.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from planner.base import BadInput
from planner.cli import main
from planner.maps import read_slot_map
from tests.planner.load.dumps.files import MAP_LP, MODEL, stat, step, torch

CONFIG = {
    "model_type": "qwen3_moe",
    "num_hidden_layers": 3,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "hidden_size": 2048,
    "moe_intermediate_size": 1024,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [0],
    "torch_dtype": "bfloat16",
}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A model file with the shape of MODEL."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path / "config.json"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def sglang_map(folder: Path) -> Path:
    (folder / "map.json").write_text(json.dumps({"physical_to_logical_map": MAP_LP}))
    return folder / "map.json"


def window(folder: Path, rows: list[list[int]]) -> Path:
    torch.save(torch.tensor(rows), folder / "window.pt")
    return folder / "window.pt"


@pytest.mark.parametrize("form", ["sglang", "trtllm", "tensor", "named tensor"])
def test_every_map_gives_the_same_rows(tmp_path: Path, form: str) -> None:
    """Rows by absolute layer, whatever the file's own numbering."""
    path = tmp_path / "map.pt"
    if form == "sglang":
        path = sglang_map(tmp_path)
    elif form == "trtllm":
        path = tmp_path / "map.yaml"
        rows = f"  1: {MAP_LP[1]}\n  2: {MAP_LP[2]}\n"
        path.write_text(f"num_slots: 6\nlayer_updates_per_iter: 0\ninitial_global_assignments:\n{rows}")
    else:
        torch.save(
            torch.tensor(MAP_LP) if form == "tensor" else {"physical_to_logical_map": torch.tensor(MAP_LP)},
            path,
        )
    found = read_slot_map(path, MODEL)
    assert [found.rows[layer].tolist() for layer in (1, 2)] == MAP_LP[1:]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"physical_to_logical_map": [[0, 1, 2, 3, 0, 9]] * 3}, "expert"),
        ({"physical_to_logical_map": [[0, 1, 2, 2, 0, 1]] * 3}, "expert 3"),
        ({"physical_to_logical_map": [[0, 1, 2, 3, 0, "x"]] * 3}, "'x' is not a whole number"),
        ({"counts": [[1]]}, "not a map we know"),
    ],
    ids=["id past the last", "expert without a slot", "text", "no map"],
)
def test_a_bad_map_is_refused(tmp_path: Path, value: dict[str, Any], message: str) -> None:
    """C13: no count is given to the wrong expert, and none is lost."""
    (tmp_path / "map.json").write_text(json.dumps(value))
    with pytest.raises(BadInput, match=message):
        read_slot_map(tmp_path / "map.json", MODEL)


def test_load_show_says_what_it_read(tmp_path: Path, config: Path) -> None:
    """C18 B through the command line: the keys that others rely on, sums by layer, tokens from top_k."""
    path = window(tmp_path, [[10, 20, 30, 40, 6, 6]] * 2)
    bare = run("load", "show", path, "--model", config)
    assert (bare.exit_code, "--map" in bare.stderr) == (2, True)
    result = run("load", "show", path, "--model", config, "--map", sglang_map(tmp_path), "--json")
    assert result.exit_code == 0, result.output
    value = json.loads(result.stdout)
    assert {key: value[key] for key in ("experts", "windows", "tokens", "top_k", "counts_sum_per_layer")} == {
        "experts": 4,
        "windows": 1,
        "tokens": 56,
        "top_k": 2,
        "counts_sum_per_layer": [112, 112],
    }
    assert [row["layer_id"] for row in value["layers"]] == [1, 2]
    assert value["warnings"] == value["notes"]


def test_solve_and_evaluate_take_dumps(tmp_path: Path, config: Path) -> None:
    """A stat dump is solved for, and slots recorded under the plan are judged under that plan's own map."""
    dump = stat(tmp_path, [step([4, 2, 1, 1], [2, 2, 2, 2]), step([5, 1, 1, 1], [2, 2, 2, 2])])
    plan = tmp_path / "plan.json"
    solved = run(
        "solve",
        "--model",
        config,
        "--load",
        dump,
        "--topology",
        "hgx-h100:1x2",
        "--redundant",
        2,
        "--method",
        "greedy",
        "-o",
        plan,
    )
    assert solved.exit_code == 0, solved.output
    judged = run(
        "evaluate", plan, "--load", window(tmp_path, [[10, 20, 30, 40, 6, 6]] * 2), "--map", plan, "--json"
    )
    assert judged.exit_code == 0, judged.output
    alone = run("evaluate", plan, "--map", plan)
    assert (alone.exit_code, "no --load was given" in alone.stderr) == (2, True)
