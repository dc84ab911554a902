"""Public bug reports of engines and balancers as inputs: each is answered as a planner must. A test is named after the report's number in our list.

Inputs are typed again by us, as small as they show the fault; most tests go through the command line, as a person would.
"""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from planner.base import write_json
from planner.cli import main
from planner.load import read_load
from planner.model import find_model
from planner.placement import Placement
from planner.replica import Situation
from planner.replica.registry import RULES
from planner.topology import compare, planned_seats
from probes.machine.nvlink_domains import fabric_key
from probes.nvml.decode import decode_health
from probes.record.file import write_record
from tests.planner.engines.examples import machine
from tests.planner.small import small_model
from tests.probes.records import record

METHODS = ("linear", "round-robin", "greedy", "refine", "cpsat", "auto")
FOUR_GPUS = ("--topology", "hgx-h100:1x4")
Made = Callable[..., Path]


def run(*arguments: str | Path | int) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def told(*arguments: str | Path | int) -> Any:
    """What `--json` prints."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def solved(path: Path, *arguments: str | Path | int) -> Path:
    """A plan file; by the quickest method where the arguments name none."""
    result = run("solve", "--method", "linear", *arguments, "-o", path)
    assert result.exit_code == 0, result.output
    return path


def refusal(*arguments: str | Path | int) -> str:
    """The one line on stderr of an exit 2."""
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.strip().splitlines()
    return line


@pytest.fixture
def model(tmp_path: Path) -> Made:
    """`model(experts=8)`: the config.json of a DeepSeek-V3 of one layer of experts, unless its keys say otherwise."""

    def make(experts: int, **keys: Any) -> Path:
        config = {
            "model_type": "deepseek_v3", "num_hidden_layers": 1, "first_k_dense_replace": 0, "n_routed_experts": experts, "num_experts_per_tok": 1,
            "hidden_size": 2048, "moe_intermediate_size": 512, "n_shared_experts": 1, "torch_dtype": "bfloat16",
        }  # fmt: skip
        path = tmp_path / f"model{experts}.json"
        path.write_text(json.dumps({**config, **keys}))
        return path

    return make


@pytest.fixture
def save(tmp_path: Path) -> Made:
    """`save(name, value)`: a text as it is, anything else as JSON, which here may hold NaN and Infinity as a program writes them."""

    def write(name: str, value: Any) -> Path:
        (tmp_path / name).write_text(value if isinstance(value, str) else json.dumps(value))
        return tmp_path / name

    return write


@pytest.mark.parametrize("method", METHODS)
def test_c01_no_expert_is_twice_on_a_gpu(method: str, model: Made, save: Made) -> None:
    """8 experts in 12 slots on an even load, where a published balancer doubles an expert on every GPU; max/mean 1 is there to be had."""
    asked = ("--model", model(8), "--load", save("load.json", [[5] * 8]), "--redundant", 4)
    plan = told("solve", *asked, *FOUR_GPUS, "--method", method)
    rows_GS = np.reshape(plan["placement"]["0"], (4, 3))
    assert [len(set(row)) for row in rows_GS.tolist()] == [3] * 4
    if method in ("greedy", "refine", "cpsat", "auto"):
        assert plan["predicted"]["fitted"]["max_over_mean"] == pytest.approx(1.0)


@pytest.mark.parametrize("method", ["greedy", "refine", "cpsat", "auto"])
def test_c02_no_more_replicas_than_gpus(method: str, model: Made, save: Made) -> None:
    """The hot expert gets one replica a GPU and not a fifth; the spare slot goes to another expert: 251 over 250.75, not 1.595."""
    asked = ("--model", model(4), "--load", save("load.json", [[1000, 1, 1, 1]]), "--redundant", 4)
    plan = told("solve", *asked, *FOUR_GPUS, "--method", method)
    assert plan["placement"]["0"].count(0) == 4
    assert plan["predicted"]["fitted"]["max_over_mean"] == pytest.approx(251 / 250.75)


def test_c03_a_layer_without_signal_is_spread_evenly(model: Made, save: Made) -> None:
    """Each expert twice, with a note. The load's report has no figures for the layer; a plan's are those of an even load there, never 0 / 0."""
    asked = (
        "--model",
        model(8, num_hidden_layers=2),
        "--load",
        save("load.json", [[0] * 8, [8, 7, 6, 5, 4, 3, 2, 1]]),
    )
    plan = told("solve", *asked, "--redundant", 8, *FOUR_GPUS, "--method", "greedy")
    assert np.bincount(plan["placement"]["0"]).tolist() == [2] * 8
    assert "layer 0: no assignments; treated as evenly loaded" in plan["notes"]
    assert np.isfinite(plan["predicted"]["fitted"]["max_over_mean"])
    shown = told("load", "show", asked[3], "--model", asked[1])
    assert [layer["max_over_mean"] for layer in shown["layers"]] == [None, pytest.approx(8 / 4.5)]


@pytest.mark.parametrize(("cell", "word"), [(float("inf"), "inf"), (float("nan"), "nan")])
def test_c04_counts_that_are_no_numbers_are_refused(cell: float, word: str, model: Made, save: Made) -> None:
    """File, layer, expert and value, before anything is solved; a balancer that takes them loses experts from its map."""
    path = save("load.json", [[5, 4, cell, 3, 2, 1, 1, 1]])
    line = refusal("solve", "--model", model(8), "--load", path, "--redundant", 4, *FOUR_GPUS)
    assert f"{path}: window 0, layer 0, expert 2: the count is {word}" in line


def test_c05_a_wrapped_counter_is_named(model: Made, save: Made) -> None:
    """The hottest expert's int32 count has become negative: its cell and the likely cause."""
    line = refusal(
        "solve",
        "--model",
        model(8),
        "--load",
        save("load.json", [[-(2**31), 5, 4, 3, 2, 1, 1, 1]]),
        "--redundant",
        4,
        *FOUR_GPUS,
    )
    assert "layer 0, expert 0: the count is -2147483648" in line
    assert "int32 counter that wrapped" in line


def test_c05_large_counts_are_exact(model: Made, save: Made) -> None:
    """Past int32, and past what float32 holds: 16777217 is more than 16777216."""
    large = told("load", "show", save("large.json", [[2**31, 2**32, 5, 4, 3, 2, 1, 1]]), "--model", model(8))
    assert large["counts_sum_per_layer"] == [2**31 + 2**32 + 16]
    close = told(
        "load", "show", save("close.json", [[2**24, 2**24 + 1, 5, 4, 3, 2, 1, 1]]), "--model", model(8)
    )
    assert close["layers"][0]["hottest_expert"] == 1


@pytest.mark.parametrize(
    ("experts", "machines", "redundant", "sizes"),
    [
        (256, "1x3", "2, 5, 8", "1, 2, 4, 8, 16, 32, 64, 128, 256"), (160, "3x4", "8, 20, 32", "1, 2, 4, 5, 8, 10, 16, 20"),
        (384, "9x4", "12, 48, 84", "1, 2, 3, 4, 6, 8, 12, 16, 24, 32"), (128, "3x8", "16, 40, 64", "1, 2, 4, 8, 16, 32, 64, 128"),
    ],
)  # fmt: skip
def test_c06_slots_that_do_not_divide(
    experts: int, machines: str, redundant: str, sizes: str, model: Made
) -> None:
    """The broken rule, the nearest amounts of redundancy and the EP sizes that would do."""
    line = refusal("solve", "--model", model(experts), "--topology", f"hgx-h100:{machines}", "--redundant", 0)
    assert "slots do not divide over" in line
    assert f"use --redundant {redundant} or --ep {sizes}" in line


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (288, "layer 0: 288 slots, expected 290"),
        (290, "290 slots do not divide over 36 GPUs; use --redundant 32, 68"),
    ],
)
def test_c07_a_slot_count_is_never_floored(cells: int, said: str, model: Made, save: Made) -> None:
    """290 slots on 36 ranks: asked for it is refused; a map that says 290 and holds 36 * 8 is, and so is one that holds 290."""
    assert "290 slots do not divide over 36 GPUs" in refusal(
        "solve", "--model", model(256), "--topology", "hgx-h100:9x4", "--redundant", 34
    )
    row = [slot % 256 for slot in range(cells)]
    path = save(
        "map.yaml", f"num_slots: 290\nlayer_updates_per_iter: 0\ninitial_global_assignments: {{0: {row}}}\n"
    )
    result = run("check", path, "--model", model(256), "--ep", 36)
    assert result.exit_code == 2
    assert said in result.stderr


def test_c07_every_emitted_row_has_num_slots_cells(model: Made, tmp_path: Path) -> None:
    """Held against the file's own number, by a reader that is not ours."""
    plan = solved(
        tmp_path / "plan.json", "--model", model(256), "--topology", "hgx-h100:9x4", "--redundant", 32
    )
    assert run("emit", plan, "--engine", "trtllm", "-o", tmp_path).exit_code == 0
    text = (tmp_path / "moe_load_balancer.yaml").read_text()
    assert "num_slots: 288\n" in text
    assert [row.count(",") + 1 for row in re.findall(r"^  \d+: \[(.*)\]$", text, re.MULTILINE)] == [288]


def test_c08_the_ep_size_is_explicit(model: Made, tmp_path: Path) -> None:
    """An --ep-size that is left out is 1 in SGLang, whatever --tp-size says, and its balancer then fails on two nodes."""
    plan = solved(
        tmp_path / "plan.json",
        "--model",
        model(256),
        "--topology",
        "hgx-h100:2",
        "--redundant",
        16,
        "--engine",
        "sglang",
    )
    launch = " ".join(
        told("emit", plan, "--engine", "sglang", "-o", tmp_path)["launch"].replace("\\\n", " ").split()
    )
    assert launch.count("--tp-size 16 --nnodes 2") == launch.count("--ep-size 16") == 2


def test_c08_nodes_need_not_be_equal(model: Made, tmp_path: Path) -> None:
    """18 GPUs on four nodes: planned on the nodes as they are, and refused only for an engine that starts as many ranks on each."""
    write_json(tmp_path / "machine.json", machine(5, 5, 4, 4).to_dict())
    plan = tmp_path / "plan.json"
    value = told(
        "solve",
        "--model",
        model(144),
        "--topology",
        tmp_path / "machine.json",
        "--redundant",
        0,
        "--method",
        "greedy",
        "-o",
        plan,
    )
    assert (value["gpus"], value["slots_per_gpu"]) == (18, 8)
    assert run("check", plan).exit_code == 0
    assert "the nodes hold 5, 5, 4, 4 GPUs" in refusal(
        "emit", plan, "--engine", "sglang", "-o", tmp_path / "out"
    )


V3_LIKE = {"num_hidden_layers": 61, "first_k_dense_replace": 3, "num_nextn_predict_layers": 1}


def planned(model: Made, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """A plan for 58 MoE layers after three dense ones and a draft layer, each loaded in its own way; the load says nothing of the draft layer."""
    counts_LE = np.random.default_rng(0).permuted(np.tile(np.arange(1, 17) * 100, (58, 1)), axis=1)
    np.savez(tmp_path / "load.npz", counts=counts_LE)
    asked = (
        "--model",
        model(16, **V3_LIKE),
        "--load",
        tmp_path / "load.npz",
        "--redundant",
        4,
        "--engine",
        "sglang",
        "--method",
        "greedy",
    )
    return tmp_path / "plan.json", told("solve", *asked, *FOUR_GPUS, "-o", tmp_path / "plan.json")


def test_c11_a_draft_layer_gets_a_row(model: Made, tmp_path: Path) -> None:
    """58 rows of load for 59 layers: said, and the draft layer has a row of the same length in plan and map; a map without it is refused."""
    path, plan = planned(model, tmp_path)
    assert any(note.startswith("no load for layer 61, a draft layer") for note in plan["notes"])
    assert len(plan["placement"]["61"]) == 20
    assert run("emit", path, "--engine", "trtllm", "-o", tmp_path).exit_code == 0
    text = (tmp_path / "moe_load_balancer.yaml").read_text()
    assert f"\n  61: {plan['placement']['61']}\n" in text
    (tmp_path / "short.yaml").write_text(re.sub(r"(?m)^  61: .*\n", "", text))
    result = run("check", tmp_path / "short.yaml", "--model", model(16, **V3_LIKE), "--ep", 4)
    assert result.exit_code == 2
    assert "layer 61" in result.stderr


def test_c11_a_draft_layer_without_load_has_its_engines_default_row(model: Made, tmp_path: Path) -> None:
    """What SGLang serves it from whatever a map says; and a warning that the load is missing. A load that holds the layer places it."""
    path, plan = planned(model, tmp_path)
    assert plan["placement"]["61"] == [*range(16), *range(4)]
    assert not any(
        "default placement, not in the plan's" in note
        for note in told("emit", path, "--engine", "sglang", "-o", tmp_path / "out")["notes"]
    )
    known = {"layer_ids": list(range(3, 62)), "counts": [[100] * 8 + [300] * 8] * 59}
    (tmp_path / "known.json").write_text(json.dumps(known))
    asked = (
        "--model",
        model(16, **V3_LIKE),
        "--load",
        tmp_path / "known.json",
        "--redundant",
        4,
        "--engine",
        "sglang",
        "--method",
        "greedy",
    )
    found = told("solve", *asked, *FOUR_GPUS)
    assert found["placement"]["61"] == found["placement"]["60"] != plan["placement"]["61"]


def v4_plan(model: Made, tmp_path: Path, nodes: int, redundant: int) -> Path:
    """256 experts and a draft layer that SGLang builds without redundant slots."""
    path = model(256, model_type="deepseek_v4", num_nextn_predict_layers=1)
    return solved(
        tmp_path / "plan.json", "--model", path, "--topology", f"hgx-h100:{nodes}", "--redundant", redundant
    )


def test_c11_a_draft_layer_that_cannot_take_the_redundancy_is_refused(model: Made, tmp_path: Path) -> None:
    """288 slots divide over 72 ranks, the draft layer's 256 do not: refused by emit and check, unless MTP is said to stay off; other engines take it."""
    plan = v4_plan(model, tmp_path, 9, 32)
    line = refusal("emit", plan, "--engine", "sglang", "-o", tmp_path / "out")
    assert (
        "draft layer 1: SGLang gives it 256 slots, none of them redundant, and they do not divide over 72 ranks"
        in line
    )
    assert not (tmp_path / "out").exists()
    assert "draft layer 1" in run("check", plan, "--engine", "sglang").stderr
    notes = told("emit", plan, "--engine", "sglang", "--no-draft", "-o", tmp_path / "out")["notes"]
    assert not any("draft layer" in note for note in notes)
    told("emit", plan, "--engine", "trtllm", "-o", tmp_path / "trt")
    assert "\n  1: [" in (tmp_path / "trt/moe_load_balancer.yaml").read_text()
    assert "--no-draft is for --engine sglang" in refusal(
        "emit", plan, "--engine", "trtllm", "--no-draft", "-o", tmp_path / "other"
    )


def test_c11_a_draft_layer_that_divides_is_pointed_out(model: Made, tmp_path: Path) -> None:
    """On 16 ranks its 256 slots divide: served, without replicas, and a warning says so."""
    notes = told("emit", v4_plan(model, tmp_path, 2, 16), "--engine", "sglang", "-o", tmp_path / "out")[
        "notes"
    ]
    assert any(
        note.startswith("WARNING: draft layer 1: SGLang gives it 256 slots")
        and "rank r holds its experts from r * 16 on" in note
        for note in notes
    )


def test_c11_hash_routed_layers_are_planned(tmp_path: Path) -> None:
    """The first layers of DeepSeek-V4 choose experts by the token's id, and hold them as the others do: a recorder that leaves them out is noticed."""
    shown = told("model", "show", "deepseek-ai/DeepSeek-V4-Flash")
    assert (shown["moe_layer_ids"], shown["draft_layer_ids"]) == (list(range(43)), [43])
    np.savez(tmp_path / "load.npz", counts=np.repeat([0, 6], [3, 40])[:, None] * np.ones(256, dtype=np.int64))
    warnings = told("load", "show", tmp_path / "load.npz", "--model", shown["name"])["warnings"]
    assert [f"layer {layer}: no assignments; treated as evenly loaded" in warnings for layer in range(4)] == [
        True,
        True,
        True,
        False,
    ]
    assert (
        "no load for layer 43, a draft layer; given the mean share of the measured layers 3-42, a plan has the engine's default row there"
        in warnings
    )


def test_c12_every_engine_gets_its_own_layer_numbers(model: Made, tmp_path: Path) -> None:
    """One plan to five formats, and the rows of layers 3, 30 and 60 read back by each format's own numbering."""
    path, plan = planned(model, tmp_path)
    for engine in ("sglang", "trtllm", "vllm_ascend"):
        assert run("emit", path, "--engine", engine, "-o", tmp_path / engine).exit_code == 0
    assert run("emit", path, "--engine", "vllm", "--plugin", "-o", tmp_path / "vllm").exit_code == 0
    assert run("convert", path, "--to", "eplb", "-o", tmp_path / "eplb.json").exit_code == 0
    sglang = json.loads((tmp_path / "sglang/expert_location.json").read_text())["physical_to_logical_map"]
    trtllm = dict(
        re.findall(r"(?m)^  (\d+): (\[.*\])$", (tmp_path / "trtllm/moe_load_balancer.yaml").read_text())
    )
    ascend = json.loads((tmp_path / "vllm_ascend/expert_map.json").read_text())["layer_list"]
    vllm = json.loads((tmp_path / "vllm/vllm_plugin/moeplan_vllm_plan/plan_map.json").read_text())["moe"]
    eplb = json.loads((tmp_path / "eplb.json").read_text())["physical_to_logical_map"]
    assert (len(sglang), len(trtllm), len(ascend), len(vllm), len(eplb)) == (61, 59, 58, 58, 59)
    for layer in (3, 30, 60):
        row = plan["placement"][str(layer)]
        devices = ascend[layer - 3]["device_list"]
        assert sglang[layer] == json.loads(trtllm[str(layer)]) == vllm[layer - 3] == eplb[layer - 3] == row
        assert [expert for device in devices for expert in device["device_expert"]] == row


def test_c12_a_map_of_moe_layers_alone_is_refused(model: Made, save: Made) -> None:
    """SGLang would take 58 rows and give each layer the row of the third after it."""
    path = save("map.json", {"physical_to_logical_map": [[0, 1, 2, 3]] * 58})
    result = run("check", path, "--model", model(4, **V3_LIKE), "--ep", 4)
    assert result.exit_code == 2
    assert "58 rows, and model4 has 61 decoder layers" in result.stderr


BAD_ROWS = [
    ([0, 1, 2, 2, 0, 1, 2, 0], "coverage", "layer 0: expert 3 has no slot"), ([0, 1, 2, 3, 0, 1, 2, -1], "range", "layer 0, slot 7: expert id -1"),
    ([0, 1, 2, 3, 0, 1, 2, 4], "range", "layer 0, slot 7: expert id 4"), ([0.0, 1, 2, 3, 0, 1, 2, 3], "integer", "layer 0, slot 0: 0.0 is not a whole number"),
    ([0, 0, 1, 2, 3, 1, 2, 3], "distinct", "layer 0: GPU 0 holds expert 0 twice"), ([0, 1, 2, 3, 0, 1, 2], "divides", "7 slots do not divide over 4 GPUs"),
]  # fmt: skip
FORMATS: dict[str, Callable[[list[Any]], Any]] = {
    "sglang": lambda row: {"physical_to_logical_map": [row]},
    "eplb": lambda row: {"physical_to_logical_map": [row], "layer_ids": [0]},
    "trtllm": lambda row: "num_slots: " + f"{len(row)}\ninitial_global_assignments: {{0: {row}}}\n",
}


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(("row", "rule", "text"), BAD_ROWS)
def test_c13_bad_ids_are_found_in_every_format(
    kind: str, row: list[Any], rule: str, text: str, model: Made, save: Made
) -> None:
    """Ids that an engine takes for another expert, or fails on within its dispatch: the rule, and the layer and slot."""
    path = save("map.yaml" if kind == "trtllm" else "map.json", FORMATS[kind](row))
    result = run("check", path, "--model", model(4), "--ep", 4, "--engine", kind, "--json")
    assert result.exit_code == 2
    found = [violation for violation in json.loads(result.stdout)["violations"] if violation["rule"] == rule]
    assert text in found[0]["text"]


def test_c15_replicas_serve_what_the_engine_gives_them() -> None:
    """Replicas of expert 0 on GPUs 0, 4 and 7 of two nodes serve 4 : 3 : 1 ranks under SGLang, and a third each only where a rule splits evenly."""
    row = [0, 1, 2, 3, 4, 5, 6, 7, 0, 8, 9, 10, 11, 12, 0, 13]
    placement, situation = (
        Placement(np.array([row]), (0,), 8),
        Situation(small_model(14), np.repeat([0, 1], 4)),
    )

    def ranks_served(rule: str) -> Any:
        (share_SP,) = RULES[rule](placement, situation)
        return pytest.approx(np.broadcast_to(share_SP, (8, 16)).sum(axis=0)[[0, 8, 14]].tolist())

    assert ranks_served("nearest-static") == [4, 3, 1]
    assert ranks_served("even") == [8 / 3] * 3


def test_c15_a_plan_is_judged_under_its_engines_rule(model: Made, tmp_path: Path) -> None:
    """The same placement has another balance under SGLang's rule than under the even split."""
    path, _ = planned(model, tmp_path)
    found = told("evaluate", path, "--all-engines")["engines"]
    assert found["sglang"]["replica_rule"] == "nearest-static"
    assert found["sglang"]["max_over_mean"] != pytest.approx(found["trtllm"]["max_over_mean"])


def test_c17_replicas_are_priced_in_memory(tmp_path: Path) -> None:
    """One expert of DeepSeek-R1 is 3 * 7168 * 2048 bytes of FP8 and a scale for 128 x 128 of them; a slot holds one of each of 59 layers, draft included."""
    weights = 3 * 7168 * 2048
    asked = (
        "solve",
        "--model",
        "deepseek-v3",
        "--topology",
        "hgx-h200:2",
        "--redundant",
        16,
        "--method",
        "linear",
    )
    memory = told(*asked)["memory"]
    assert memory["expert_bytes"] == weights + weights // 128**2 * 4
    assert memory["slot_bytes"] == memory["replica_bytes"] == 59 * memory["expert_bytes"]
    assert 58 * weights == 2_554_331_136
    assert re.search(
        r"memory a GPU: 41\.\d+ GB experts \+ 2\.6\d* GB replicas, \d+\.?\d* GB left", run(*asked).stdout
    )
    line = refusal(*asked, "--kv-floor", "120 GB")
    assert "less than the floor of 120.0 GB" in line


def test_c17_buffers_and_the_kv_cache_are_priced_too() -> None:
    """DeepEP's low-latency buffer grows with the slots, the engine that moves weights holds a layer's slots twice; a floor that these break is refused."""
    asked = ("solve", "--model", "deepseek-v3", "--topology", "hgx-h200:2", "--method", "linear")
    sglang, vllm = (
        told(*asked, "--redundant", 32, "--engine", engine)["memory"] for engine in ("sglang", "vllm")
    )
    message = 2 * 7168 + 56 * 4  # of one token to one slot, in combine, which is the larger
    signals = 288 * 4
    assert sglang["all_to_all_bytes"] == pytest.approx(4 * 288 * 128 * message + 2 * signals, abs=1000)
    assert (sglang["transfer_bytes"], vllm["transfer_bytes"]) == (0, 18 * vllm["expert_bytes"])
    assert vllm["all_to_all_bytes"] == sglang["all_to_all_bytes"] + 2**30
    used = sum(
        sglang[f"{name}_bytes"]
        for name in ("expert_weights", "replica", "other_weights", "all_to_all", "transfer")
    )
    assert sglang["kv_left_bytes"] == pytest.approx(141e9 - used)
    assert sglang["basis"]["other_weights_bytes"].startswith("assumed")
    line = refusal(*asked, "--redundant", 32, "--engine", "sglang", "--kv-floor", "72 GB")
    assert "keeps 71.7 GB for the KV cache" in line
    assert line.endswith("less than the floor of 72.0 GB: --redundant 16 would fit")
    assert (
        told(*asked, "--redundant", 16, "--engine", "sglang", "--kv-floor", "72 GB")["memory"][
            "kv_left_bytes"
        ]
        > 72e9
    )


def test_c18_parts_of_ranks_add_up(model: Made, save: Made) -> None:
    """Two ranks' CSVs, one without an expert of the other: absent is 0, and the sum is over both."""
    head = "layer_id,expert_id,count\n"
    first = save("rank0.csv", f"{head}3,0,24990\n3,18,39249\n3,29,13378\n3,34,13874\n3,43,22360\n")
    second = save("rank1.csv", f"{head}3,18,33056\n3,29,14053\n3,34,14732\n3,43,20474\n")
    path = model(64, num_hidden_layers=4, first_k_dense_replace=3)
    (total_E,) = read_load([first, second], find_model(str(path))).total_LE
    assert {expert: int(total_E[expert]) for expert in np.flatnonzero(total_E)} == {
        0: 24990,
        18: 72305,
        29: 27431,
        34: 28606,
        43: 42834,
    }
    shown = told("load", "show", first, second, "--model", path)
    assert shown["counts_sum_per_layer"] == [196166]
    assert shown["layers"][0]["hottest_expert"] == 18


def test_c18_counts_of_slots_need_their_map(model: Made, save: Made) -> None:
    """Six slots are no model of six experts: refused without the map, and summed by expert with it."""
    load, path = save("load.json", [[10, 20, 30, 40, 5, 6]]), model(4)
    assert "give it with --map" in refusal("load", "show", load, "--model", path)
    slots = save("map.json", {"physical_to_logical_map": [[0, 1, 2, 3, 0, 1]]})
    layer = told("load", "show", load, "--model", path, "--map", slots)["layers"][0]
    assert (layer["total"], layer["hottest_expert"]) == (111, 3)
    assert layer["max_over_mean"] == pytest.approx(40 / np.mean([15, 26, 30, 40]))


@pytest.mark.parametrize("suffix", ["json", "pt"])
def test_c18_the_same_counts_from_every_rank_are_asked_about(
    suffix: str, model: Made, save: Made, tmp_path: Path
) -> None:
    """Ranks of one tensor-parallel group count the same tokens, others agree by chance: no sum without an answer, wherever a load is read."""
    torch = pytest.importorskip("torch")
    counts = [[10, 20, 30, 40]]
    paths = (
        [save(f"rank{rank}.json", counts) for rank in range(4)]
        if suffix == "json"
        else [tmp_path / f"rank{rank}.pt" for rank in range(4)]
    )
    for path in paths if suffix == "pt" else ():
        torch.save(torch.tensor(counts), path)
    asked: list[str | Path] = ["load", "show", *paths, "--model", model(4)]
    line = refusal(*asked)
    assert str(paths[0]) in line
    assert "say --ranks same (one counter) or --ranks sum (two recordings)" in line
    assert told(*asked, "--ranks", "same")["counts_sum_per_layer"] == [100]
    assert told(*asked, "--ranks", "sum")["counts_sum_per_layer"] == [400]
    loads: list[str | Path] = [word for path in paths for word in ("--load", path)]
    solve: list[str | Path] = [
        "solve",
        "--model",
        model(4),
        *loads,
        "--redundant",
        "0",
        *FOUR_GPUS,
        "--method",
        "linear",
    ]
    assert "identical counts" in refusal(*solve)
    told(*solve, "--ranks", "same", "-o", tmp_path / "plan.json")
    assert "identical counts" in refusal("evaluate", tmp_path / "plan.json", *loads)
    notes = told("evaluate", tmp_path / "plan.json", *loads, "--ranks", "same")["notes"]
    assert sum("one counter, as --ranks same says; left out" in note for note in notes) == 3


def topo(labels: list[list[str]], numa: list[int]) -> str:
    """`nvidia-smi topo -m` with tabs, as it prints them."""
    gpus = range(len(labels))
    head = "\t" + "\t".join(f"GPU{gpu}" for gpu in gpus) + "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID"
    rows = [
        "\t".join(
            [f"GPU{i}", *(" X " if i == j else labels[i][j] for j in gpus), "0-23", str(numa[i]), "", "N/A"]
        )
        for i in gpus
    ]
    return "\n".join([head, *rows]) + "\n"


PAIRS = [
    ["NV4" if i // 2 == j // 2 else "NODE" if i // 4 == j // 4 else "SYS" for j in range(6)] for i in range(6)
]
TRAY = """\
        GPU0    GPU1    GPU2    GPU3    CPU Affinity    NUMA Affinity   GPU NUMA ID
GPU0     X      NV18    NV18    NV18    0-71    0               N/A
GPU1    NV18     X      NV18    NV18    0-71    0               N/A
GPU2    NV18    NV18     X      NV18    72-143  1               N/A
GPU3    NV18    NV18    NV18     X      72-143  1               N/A
"""


@pytest.mark.parametrize(
    ("text", "gpu", "domains"),
    [
        (topo([["PHB"] * 3] * 3, [0] * 3), "A100-PCIE-80GB", [[0], [1], [2]]),
        (topo(PAIRS, [0, 0, 0, 0, 1, 1]), "A100-PCIE-80GB", [[0, 1], [2, 3], [4, 5]]),
        (TRAY, "GB200", [[0, 1, 2, 3]]),
    ],
    ids=["PHB only", "pairs", "tray"],
)
def test_c20_domains_are_what_nvlink_joins(text: str, gpu: str, domains: list[list[int]], save: Made) -> None:
    """Not the node, not the socket: components of NVLink, from tabs or spaces, without a legend. A rack's size is asked for, not guessed."""
    found = told("import", save("topo.txt", text), "--gpu", gpu)
    assert (found["nvlink_domains"], found["nics"]) == (domains, 0)
    assert any("--nvlink-domain-nodes" in line for line in found["unknown"]) == (gpu == "GB200")


def test_c20_an_unknown_link_word_is_an_error(save: Made) -> None:
    """With the line, and the words that are known."""
    assert "topo.txt: line 2: 'FOO' in row GPU0 is no link word" in refusal(
        "import", save("topo.txt", topo([["FOO"] * 3] * 3, [0] * 3))
    )


def test_c20_glued_columns_are_not_guessed(save: Made) -> None:
    """The NUMA node that ran into the CPU list is left out and said; NICs beside GPUs are kept."""
    rows = "GPU0\t X \tNV18\tPXB\tNODE\t0-55,112-16N/A\nGPU1\tNV18\t X \tNODE\tPXB\t0-55,112-16N/A\nNIC0\tPXB\tNODE\t X \tNODE\nNIC1\tNODE\tPXB\tNODE\t X \n"
    found = told(
        "import",
        save("topo.txt", f"\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\n{rows}"),
        "--gpu",
        "H100-SXM",
        "--nic",
        "400G",
    )
    assert found["affinity"] == {"0": ["NIC0"], "1": ["NIC1"]}
    assert any("run into each other" in warning for warning in found["warnings"])


@pytest.mark.parametrize(
    ("engine", "backend"),
    [("sglang", "--moe-a2a-backend none"), ("vllm", "--all2all-backend allgather_reducescatter")],
)
def test_c20_deepep_normal_mode_is_not_used_over_pcie_pairs(
    engine: str, backend: str, save: Made, model: Made, tmp_path: Path
) -> None:
    """EP 4 over two NVLink pairs, which its kernels take for NVLink peers: the launch uses another backend, names the pair, and is judged with it."""
    pairs = [row[:4] for row in PAIRS[:4]]
    cluster = tmp_path / "cluster.json"
    assert (
        run(
            "import", save("topo.txt", topo(pairs, [0] * 4)), "--gpu", "A100-PCIE-80GB", "-o", cluster
        ).exit_code
        == 0
    )
    plan = solved(
        tmp_path / "plan.json",
        "--model",
        model(8),
        "--topology",
        cluster,
        "--redundant",
        0,
        "--phase",
        "prefill",
        "--engine",
        engine,
    )
    emitted = told("emit", plan, "--engine", engine, "-o", tmp_path / "out")
    assert any(f"GPUs 0 and 2 have none: the launch uses {backend}" in note for note in emitted["notes"])
    assert backend in " ".join(emitted["launch"].split("set -euo")[1].replace("\\\n", " ").split())
    assert "deepep" not in emitted["launch"].split("set -euo")[1]
    assert json.loads(plan.read_text())["workload"]["transport"] == "allgather"
    assert not any("the plan was judged under" in note for note in emitted["notes"])


def merged_domains(tmp_path: Path, hosts: int, gpus: int, fabric: str | None) -> list[list[int]]:
    """NVLink domains of hosts whose probe files are merged."""
    paths = []
    for number in range(hosts):
        found = record(number, gpus=gpus)
        host = replace(found.host, gpus=tuple(replace(gpu, fabric=fabric) for gpu in found.host.gpus))
        paths.append(write_record(replace(found, host=host), tmp_path))
    domains: list[list[int]] = told("probe", "--merge", *paths)["nvlink_domains"]
    return domains


def test_c21_one_fabric_is_one_domain(tmp_path: Path) -> None:
    """Eight hosts of four GPUs with one fabric UUID and clique: 32 GPUs that reach each other over NVLink."""
    key, fault = fabric_key(bytes.fromhex("3143b15bc2cd192b28cc9b5473fb5b93"), 0x7FFE, 3, 0)
    assert fault is None
    assert merged_domains(tmp_path, 8, 4, key) == [list(range(32))]


def test_c21_zeros_are_no_fabric(tmp_path: Path) -> None:
    """Two H200 hosts say 'completed', UUID 0, clique 0: two domains of eight."""
    key, _ = fabric_key(bytes(16), 0, 3, 0)
    assert merged_domains(tmp_path, 2, 8, key) == [list(range(8)), list(range(8, 16))]


def test_c21_a_health_mask_is_decoded_by_field() -> None:
    """0xaa says 'no' four times, which is healthy; 1 in the lowest field is degraded bandwidth."""
    assert decode_health(0xAA) == ()
    assert decode_health(0xA9) == ("NVLink bandwidth is degraded",)


HOSTS = ("node7", "node66", "node8", "node70")  # a launcher that sorts by name starts node66 first


def test_c22_the_launch_pins_the_hosts(model: Made, tmp_path: Path) -> None:
    """The job says which host is which node, and hands Slurm that order as a file."""
    write_json(tmp_path / "machine.json", machine(2, 2, 2, 2).to_dict())
    plan = solved(
        tmp_path / "plan.json",
        "--model",
        model(16),
        "--topology",
        tmp_path / "machine.json",
        "--redundant",
        0,
    )
    assert (
        run(
            "emit",
            plan,
            "--engine",
            "sglang",
            "--launcher",
            "slurm",
            "--hosts",
            ",".join(HOSTS),
            "-o",
            tmp_path / "out",
        ).exit_code
        == 0
    )
    job = (tmp_path / "out/job.sbatch").read_text()
    assert "HOSTS=(node7 node66 node8 node70)" in job
    assert job.count("--distribution=arbitrary") == job.count("SLURM_HOSTFILE=") == 2
    launch = (tmp_path / "out/launch.sh").read_text()
    assert all(f"node {node} of the plan is {host}\n" in launch for node, host in enumerate(HOSTS))


def test_c22_ranks_on_sorted_hosts_are_caught() -> None:
    """The check before serving names the first rank that is elsewhere, and both hosts."""
    topology = machine(2, 2, 2, 2)
    seen = [
        replace(seat, node=None, uuid=f"GPU-{seat.rank}")
        for seat in planned_seats(topology, tuple(sorted(HOSTS)))
    ]
    assert (
        compare(planned_seats(topology, HOSTS), seen).mismatches[0]
        == "rank 0 runs on host node66, the plan has it on node7"
    )


IGNORED = [
    ("sglang", "mixtral", "SGLang 0.5.23 does not read a map for mixtral"), ("sglang", "olmoe", "SGLang 0.5.23 does not read a map for olmoe"),
    ("trtllm", "olmoe", "TensorRT-LLM 1.2.1 ignores a map for olmoe in silence"),
]  # fmt: skip


@pytest.mark.parametrize(("engine", "name", "said"), IGNORED)
def test_c24_an_engine_that_would_ignore_the_map_gets_nothing(
    engine: str, name: str, said: str, tmp_path: Path
) -> None:
    """Exit 2 and no file; flags alone where they are asked for, with the same words, and no map that the launch or a person could take for served."""
    plan = solved(
        tmp_path / "plan.json", "--model", name, *FOUR_GPUS, "--redundant", 4 if name == "mixtral" else 0
    )
    assert said in refusal("emit", plan, "--engine", engine, "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    emitted = told("emit", plan, "--engine", engine, "--flags-only", "-o", tmp_path / "out")
    assert emitted["notes"][0].startswith(f"WARNING: {said}")
    assert not {"expert_location.json", "moe_load_balancer.yaml"} & {
        path.name for path in (tmp_path / "out").iterdir()
    }
    assert "--init-expert-location" not in emitted["launch"]


def test_c20_three_gpus_without_nvlink_and_nic_are_warned_of(save: Made, model: Made, tmp_path: Path) -> None:
    """`PHB` everywhere: in decode DeepEP's kernels have a way only where PCIe peer access is on, which the paste does not tell."""
    cluster, plan = tmp_path / "cluster.json", tmp_path / "plan.json"
    assert (
        run(
            "import",
            save("topo.txt", topo([["PHB"] * 3] * 3, [0] * 3)),
            "--gpu",
            "A100-PCIE-80GB",
            "-o",
            cluster,
        ).exit_code
        == 0
    )
    solved(plan, "--model", model(8), "--topology", cluster, "--redundant", 1, "--engine", "sglang")
    notes = told("emit", plan, "--engine", "sglang", "-o", tmp_path / "out")["notes"]
    assert any(
        note.startswith("WARNING: DeepEP's low latency mode")
        and "GPUs 0 and 1 have no NVLink, their node lists no NIC" in note
        for note in notes
    )


def test_c24_vllm_gets_its_flags_and_is_said_not_to_read_a_map(tmp_path: Path) -> None:
    """0.33.0 has no map input at all: R and flags, nothing to misread, and the word that the placement is not used. The plugin carries it."""
    plan = solved(tmp_path / "plan.json", "--model", "mixtral", *FOUR_GPUS, "--redundant", 4)
    emitted = told("emit", plan, "--engine", "vllm", "-o", tmp_path / "out")
    assert emitted["notes"][0].startswith(
        "WARNING: vLLM 0.33.0 does not read a map: the plan's placement is not used"
    )
    assert '"num_redundant_experts":4' in emitted["launch"]
    assert sorted(Path(file).name for file in emitted["files"]) == [
        "launch.sh",
        "moeplan-emission.json",
        "plan.json",
    ]
    assert any(
        file.endswith("plan_map.json")
        for file in told("emit", plan, "--engine", "vllm", "--plugin", "-o", tmp_path / "out")["files"]
    )


def test_c26_rows_with_other_totals_are_flagged(model: Made, save: Made) -> None:
    """Layers measured together count tokens * top_k each: 2 % more in one is padding, warm-up or a missing rank."""
    even, padded = [[100] * 4] * 3, [[100] * 4, [102] * 4, [100] * 4]
    path = model(4, num_hidden_layers=3)
    assert told("load", "show", save("even.json", even), "--model", path)["warnings"] == []
    (warning,) = told("load", "show", save("padded.json", padded), "--model", path)["warnings"]
    assert warning.startswith("layer 1: totals differ from the median over layers by up to 2.0%")


def test_c26_totals_that_no_whole_number_of_tokens_gives_are_flagged(model: Made, save: Made) -> None:
    """Every token is counted top_k times in a layer: 401 assignments at top 2 are a token counted in part, whichever file holds them."""
    path = model(4, num_hidden_layers=2, num_experts_per_tok=2)
    assert (
        told("load", "show", save("even.json", [[100] * 4, [99, 101, 100, 100]]), "--model", path)["warnings"]
        == []
    )
    (warning,) = told(
        "load",
        "show",
        save("odd.csv", "layer,e0,e1,e2,e3\n0,100,100,100,100\n1,101,100,100,100\n"),
        "--model",
        path,
    )["warnings"]
    assert (
        "window 0, layer 1: 401 assignments are no multiple of the 2 that each token has; tokens are counted in part"
        in warning
    )


def test_c28_cpsat_gives_the_same_bytes_twice(model: Made, save: Made, tmp_path: Path) -> None:
    """A deterministic budget and one worker; a limit in seconds is another flag and says that plans may differ."""
    asked = (
        "--model",
        model(12),
        "--load",
        save("load.json", [list(range(30, 6, -2))]),
        "--redundant",
        4,
        *FOUR_GPUS,
        "--method",
        "cpsat",
    )
    first, second = (solved(tmp_path / name, *asked) for name in ("first", "second"))
    assert first.read_bytes() == second.read_bytes()
    assert "plans may then differ" in " ".join(run("solve", "--help").stdout.split())


def test_c28_a_false_infeasible_is_overruled(
    model: Made, save: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The greedy start is a witness: the plan stands, with the bound that needs no solver."""
    from ortools.sat.python import cp_model

    asked: list[object] = []

    def denied(_solver: object, question: object) -> int:
        asked.append(question)
        return int(cp_model.INFEASIBLE)

    monkeypatch.setattr(cp_model.CpSolver, "solve", denied)
    plan = told(
        "solve",
        "--model",
        model(8),
        "--load",
        save("load.json", [[97, 89, 53, 31, 17, 11, 7, 3]]),
        "--redundant",
        4,
        *FOUR_GPUS,
        "--method",
        "cpsat",
    )
    assert asked
    assert sorted(set(plan["placement"]["0"])) == list(range(8))
    assert plan["predicted"]["fitted"]["max_over_mean"] < 1.1
    assert plan["bound"]["max_over_mean"][0] <= plan["predicted"]["fitted"]["max_over_mean"]
