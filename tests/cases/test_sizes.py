"""C06, C07, C08, C17: slots, EP sizes, nodes and memory that do or do not fit."""

import re
from pathlib import Path

import pytest

from planner.base import write_json
from tests.cases.asked import Made, refusal, run, solved, told
from tests.planner.engines.examples import machine


@pytest.mark.parametrize(
    ("experts", "machines", "redundant", "sizes"),
    [
        (256, "1x3", "2, 5 or 8", "1 or 2"),
        (160, "3x4", "8, 20 or 32", "1, 2, 4 or 8"),
        (384, "9x4", "12, 48 or 84", "1, 2, 3, 4, 8, 12, 16, 24 or 32"),
        (128, "3x8", "16, 40 or 64", "1, 2, 4, 8 or 16"),
    ],
)
def test_c06_slots_that_do_not_divide(
    experts: int, machines: str, redundant: str, sizes: str, model: Made
) -> None:
    """The broken rule, the nearest amounts of redundancy and the EP sizes that the machine can do."""
    line = refusal(f"solve --model {model(experts)} --topology hgx-h100:{machines} --redundant 0")
    assert "slots do not divide over" in line
    assert f"use --redundant {redundant}, or --ep {sizes}" in line


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (288, "layer 0: 288 slots, expected 290"),
        (290, "290 slots do not divide over 36 GPUs; use --redundant 32, 68"),
    ],
)
def test_c07_a_slot_count_is_never_floored(cells: int, said: str, model: Made, save: Made) -> None:
    """290 slots on 36 ranks: asked for it is refused.

    A map that says 290 and holds 36 * 8 is, and so is one that holds 290.
    """
    line = refusal(f"solve --model {model(256)} --topology hgx-h100:9x4 --redundant 34")
    assert "290 slots do not divide over 36 GPUs" in line
    row = [slot % 256 for slot in range(cells)]
    head = "num_slots: 290\nlayer_updates_per_iter: 0\n"
    path = save("map.yaml", f"{head}initial_global_assignments: {{0: {row}}}\n")
    result = run(f"check {path} --model {model(256)} --ep 36")
    assert result.exit_code == 2
    assert said in result.stderr


def test_c07_every_emitted_row_has_num_slots_cells(model: Made, tmp_path: Path) -> None:
    """Held against the file's own number, by a reader that is not ours."""
    question = f"--model {model(256)} --topology hgx-h100:9x4 --redundant 32"
    plan = solved(tmp_path / "plan.json", question)
    assert run(f"emit {plan} --engine trtllm -o {tmp_path}").exit_code == 0
    text = (tmp_path / "moe_load_balancer.yaml").read_text()
    assert "num_slots: 288\n" in text
    assert [row.count(",") + 1 for row in re.findall(r"^  \d+: \[(.*)\]$", text, re.MULTILINE)] == [288]


def test_c08_the_ep_size_is_explicit(model: Made, tmp_path: Path) -> None:
    """An --ep-size that is left out is 1 in SGLang, whatever --tp-size says.

    Its balancer then fails on two nodes.
    """
    question = f"--model {model(256)} --topology hgx-h100:2 --redundant 16"
    plan = solved(tmp_path / "plan.json", f"{question} --engine sglang")
    text = told(f"emit {plan} --engine sglang -o {tmp_path}")["launch"]
    launch = " ".join(text.replace("\\\n", " ").split())
    assert launch.count("--tp-size 16 --nnodes 2") == launch.count("--ep-size 16") == 2


def test_c08_nodes_need_not_be_equal(model: Made, tmp_path: Path) -> None:
    """18 GPUs on four nodes: planned on the nodes as they are.

    Refused only for an engine that starts as many ranks on each.
    """
    write_json(tmp_path / "machine.json", machine(5, 5, 4, 4).to_dict())
    question = f"--model {model(144)} --topology {tmp_path}/machine.json --redundant 0"
    plan = tmp_path / "plan.json"
    value = told(f"solve {question} --method greedy -o {plan}")
    assert (value["gpus"], value["slots_per_gpu"]) == (18, 8)
    assert run(f"check {plan}").exit_code == 0
    line = refusal(f"emit {plan} --engine sglang -o {tmp_path}/out")
    assert "the nodes hold 5, 5, 4, 4 GPUs" in line


def test_c17_replicas_are_priced_in_memory(tmp_path: Path) -> None:
    """One expert of DeepSeek-R1 is 3 * 7168 * 2048 bytes of FP8 and a scale for 128 x 128 of them.

    A slot holds one of each of 59 layers, draft included.
    """
    weights = 3 * 7168 * 2048
    solve = "solve --model deepseek-v3 --topology hgx-h200:2 --redundant 16 --method linear"
    memory = told(solve)["memory"]
    assert memory["expert_bytes"] == weights + weights // 128**2 * 4
    assert memory["slot_bytes"] == memory["replica_bytes"] == 59 * memory["expert_bytes"]
    assert 58 * weights == 2_554_331_136
    shown = r"memory a GPU: 41\.\d+ GB expert weights, 2\.6\d* GB replicas, "
    assert re.search(shown, run(f"{solve} --details").stdout)
    assert "120.0 GB needed (the floor)" in refusal(f"{solve} --kv-floor '120 GB'")


def test_c17_buffers_and_the_kv_cache_are_priced_too() -> None:
    """DeepEP's low-latency buffer grows with the slots; the engine that moves weights holds a layer's slots
    twice.

    A floor that these break is refused.
    """
    solve = "solve --model deepseek-v3 --topology hgx-h200:2 --method linear"
    sglang = told(f"{solve} --redundant 32 --engine sglang")["memory"]
    vllm = told(f"{solve} --redundant 32 --engine vllm")["memory"]
    message = 2 * 7168 + 56 * 4  # of one token to one slot, in combine, which is the larger
    signals = 288 * 4
    assert sglang["all_to_all_bytes"] == pytest.approx(4 * 288 * 128 * message + 2 * signals, abs=1000)
    assert (sglang["transfer_bytes"], vllm["transfer_bytes"]) == (0, 18 * vllm["expert_bytes"])
    assert vllm["all_to_all_bytes"] == sglang["all_to_all_bytes"]
    used = sum(sglang[part] for part in sglang["basis"] if part != "request_bytes")
    assert sglang["kv_left_bytes"] == pytest.approx(141e9 - used)
    assert sglang["basis"]["attention_bytes"].startswith("exact")
    assert sglang["requests"] == int(sglang["kv_left_bytes"] / (2048 * 62 * 576 * 2))
    line = refusal(f"{solve} --redundant 32 --engine sglang --kv-floor '62 GB'")
    assert "GB of GPU memory are missing at R = 32: the most that fits is --redundant 16. GPU 0" in line
    fits = told(f"{solve} --redundant 16 --engine sglang --kv-floor '62 GB'")
    assert fits["memory"]["kv_left_bytes"] > 62e9
