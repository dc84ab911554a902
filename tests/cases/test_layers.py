"""C11, C12: draft layers, dense layers, and the number each engine gives a layer."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from tests.cases.asked import FOUR_GPUS, V3_LIKE, Made, refusal, run, solved, told

Planned = tuple[Path, dict[str, Any]]


def test_c11_a_draft_layer_gets_a_row(planned: Planned, model: Made, tmp_path: Path) -> None:
    """58 rows of load for 59 layers: said, and the draft layer has a row of the same length in plan and map.

    A map without it is refused.
    """
    path, plan = planned
    assert any(note.startswith("no load for layer 61, a draft layer") for note in plan["notes"])
    assert len(plan["placement"]["61"]) == 20
    assert run(f"emit {path} --engine trtllm -o {tmp_path}").exit_code == 0
    text = (tmp_path / "moe_load_balancer.yaml").read_text()
    assert f"\n  61: {plan['placement']['61']}\n" in text
    (tmp_path / "short.yaml").write_text(re.sub(r"(?m)^  61: .*\n", "", text))
    result = run(f"check {tmp_path}/short.yaml --model {model(16, **V3_LIKE)} --ep 4")
    assert result.exit_code == 2
    assert "layer 61" in result.stderr


def test_c11_a_draft_layer_without_load_has_its_engines_default_row(
    planned: Planned, model: Made, save: Made, tmp_path: Path
) -> None:
    """What SGLang serves it from whatever a map says; and a warning that the load is missing.

    A load that holds the layer places it.
    """
    path, plan = planned
    assert plan["placement"]["61"] == [*range(16), *range(4)]
    notes = told(f"emit {path} --engine sglang -o {tmp_path}/out")["notes"]
    assert not any("default placement, not in the plan's" in note for note in notes)
    load = save("known.json", {"layer_ids": list(range(3, 62)), "counts": [[100] * 8 + [300] * 8] * 59})
    question = f"--model {model(16, **V3_LIKE)} --load {load} --redundant 4 {FOUR_GPUS}"
    found = told(f"solve {question} --engine sglang --method greedy")
    assert found["placement"]["61"] == found["placement"]["60"] != plan["placement"]["61"]


def v4_plan(model: Made, tmp_path: Path, nodes: int, redundant: int) -> Path:
    """256 experts and a draft layer that SGLang builds without redundant slots."""
    path = model(256, model_type="deepseek_v4", num_nextn_predict_layers=1)
    question = f"--model {path} --topology hgx-h100:{nodes} --redundant {redundant}"
    return solved(tmp_path / "plan.json", question)


def test_c11_a_draft_layer_that_cannot_take_the_redundancy_is_refused(model: Made, tmp_path: Path) -> None:
    """288 slots divide over 72 ranks, the draft layer's 256 do not.

    Refused by emit and check, unless MTP is said to stay off.
    """
    plan = v4_plan(model, tmp_path, 9, 32)
    line = refusal(f"emit {plan} --engine sglang -o {tmp_path}/out")
    bare = "draft layer 1: SGLang gives it 256 slots, none of them redundant"
    assert f"{bare}, and they do not divide over 72 ranks" in line
    assert not (tmp_path / "out").exists()
    assert "draft layer 1" in run(f"check {plan} --engine sglang").stderr
    notes = told(f"emit {plan} --engine sglang --no-draft -o {tmp_path}/out")["notes"]
    assert not any("draft layer" in note for note in notes)
    line = refusal(f"emit {plan} --engine trtllm --no-draft -o {tmp_path}/other")
    assert "--no-draft is for --engine " in line


def test_c11_a_draft_layer_that_divides_is_pointed_out(model: Made, tmp_path: Path) -> None:
    """On 16 ranks its 256 slots divide: served, without replicas, and a warning says so."""
    plan = v4_plan(model, tmp_path, 2, 16)
    notes = told(f"emit {plan} --engine sglang -o {tmp_path}/out")["notes"]
    assert any(
        note.startswith("WARNING: draft layer 1: SGLang gives it 256 slots")
        and "rank r holds its experts from r * 16 on" in note
        for note in notes
    )


def test_c11_hash_routed_layers_are_planned(tmp_path: Path) -> None:
    """The first layers of DeepSeek-V4 choose experts by the token's id, and hold them as the others do.

    A recorder that leaves them out is noticed.
    """
    shown = told("model show deepseek-ai/DeepSeek-V4-Flash")
    assert (shown["moe_layer_ids"], shown["draft_layer_ids"]) == (list(range(43)), [43])
    counts_LE = np.repeat([0, 6], [3, 40])[:, None] * np.ones(256, dtype=np.int64)
    np.savez(tmp_path / "load.npz", counts=counts_LE)
    warnings = told(f"load show {tmp_path}/load.npz --model {shown['name']}")["warnings"]
    assert "layers 0-2: no assignments; treated as evenly loaded" in warnings
    draft = "no load for layer 43, a draft layer; given the mean share of the measured layers 3-42"
    assert f"{draft}, a plan has the engine's default row there" in warnings


def test_c12_every_engine_gets_its_own_layer_numbers(planned: Planned, tmp_path: Path) -> None:
    """One plan to five formats, and the rows of layers 3, 30 and 60 read back by each format's numbering."""
    path, plan = planned
    for engine in ("sglang", "trtllm", "vllm_ascend"):
        assert run(f"emit {path} --engine {engine} -o {tmp_path}/{engine}").exit_code == 0
    assert run(f"emit {path} --engine vllm --plugin -o {tmp_path}/vllm").exit_code == 0
    assert run(f"convert {path} --to eplb -o {tmp_path}/eplb.json").exit_code == 0

    def value(name: str) -> Any:
        return json.loads((tmp_path / name).read_text())

    sglang = value("sglang/expert_location.json")["physical_to_logical_map"]
    text = (tmp_path / "trtllm/moe_load_balancer.yaml").read_text()
    trtllm = dict(re.findall(r"(?m)^  (\d+): (\[.*\])$", text))
    ascend = value("vllm_ascend/expert_map.json")["layer_list"]
    vllm = value("vllm/vllm_plugin/moeplan_vllm_plan/plan_map.json")["moe"]
    eplb = value("eplb.json")["physical_to_logical_map"]
    assert (len(sglang), len(trtllm), len(ascend), len(vllm), len(eplb)) == (61, 59, 58, 58, 59)
    for layer in (3, 30, 60):
        row = plan["placement"][str(layer)]
        devices = ascend[layer - 3]["device_list"]
        assert sglang[layer] == json.loads(trtllm[str(layer)]) == vllm[layer - 3] == eplb[layer - 3] == row
        assert [expert for device in devices for expert in device["device_expert"]] == row


def test_c12_a_map_of_moe_layers_alone_is_refused(model: Made, save: Made) -> None:
    """SGLang would take 58 rows and give each layer the row of the third after it."""
    path = save("map.json", {"physical_to_logical_map": [[0, 1, 2, 3]] * 58})
    result = run(f"check {path} --model {model(4, **V3_LIKE)} --ep 4")
    assert result.exit_code == 2
    assert "58 rows, and model4 has 61 decoder layers" in result.stderr
