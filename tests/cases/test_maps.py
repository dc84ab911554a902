"""C13, C24: maps with bad ids, and engines that would not read a map."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cases.asked import FOUR_GPUS, Made, refusal, run, solved, told

BAD_ROWS = [
    ([0, 1, 2, 2, 0, 1, 2, 0], "coverage", "layer 0: expert 3 has no slot"),
    ([0, 1, 2, 3, 0, 1, 2, -1], "range", "layer 0, slot 7: expert id -1"),
    ([0, 1, 2, 3, 0, 1, 2, 4], "range", "layer 0, slot 7: expert id 4"),
    ([0.0, 1, 2, 3, 0, 1, 2, 3], "integer", "layer 0, slot 0: 0.0 is not a whole number"),
    ([0, 0, 1, 2, 3, 1, 2, 3], "distinct", "layer 0: GPU 0 holds expert 0 twice"),
    ([0, 1, 2, 3, 0, 1, 2], "divides", "7 slots do not divide over 4 GPUs"),
]
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
    """Ids that an engine takes for another expert, or fails on within its dispatch: rule, layer and slot."""
    path = save("map.yaml" if kind == "trtllm" else "map.json", FORMATS[kind](row))
    result = run(f"check {path} --model {model(4)} --ep 4 --engine {kind} --json")
    assert result.exit_code == 2
    found = [violation for violation in json.loads(result.stdout)["violations"] if violation["rule"] == rule]
    assert text in found[0]["text"]


IGNORED = [
    ("sglang", "mixtral", "SGLang 0.5.23 does not read a map for mixtral"),
    ("sglang", "olmoe", "SGLang 0.5.23 does not read a map for olmoe"),
    ("trtllm", "olmoe", "TensorRT-LLM 1.2.1 loads no map for olmoe"),
]


@pytest.mark.parametrize(("engine", "name", "said"), IGNORED)
def test_c24_an_engine_that_would_ignore_the_map_gets_nothing(
    engine: str, name: str, said: str, tmp_path: Path
) -> None:
    """Exit 2 and no file; flags alone where they are asked for, with the same words.

    No map that the launch or a person could take for served.
    """
    redundant, out = 4 if name == "mixtral" else 0, tmp_path / "out"
    plan = solved(
        tmp_path / "plan.json", f"--model {name} {FOUR_GPUS} --redundant {redundant} --context 1024"
    )
    assert said in refusal(f"emit {plan} --engine {engine} -o {out}")
    assert not out.exists()
    emitted = told(f"emit {plan} --engine {engine} --flags-only -o {out}")
    assert emitted["notes"][0].startswith(f"WARNING: {said}")
    maps = {"expert_location.json", "moe_load_balancer.yaml"}
    assert not maps & {path.name for path in out.iterdir()}
    assert "--init-expert-location" not in emitted["launch"]


def test_c24_vllm_gets_its_flags_and_is_said_not_to_read_a_map(tmp_path: Path) -> None:
    """0.33.0 has no map input at all: R and flags, nothing to misread.

    And the word that the placement is not used. The plugin carries it.
    """
    plan = solved(tmp_path / "plan.json", f"--model mixtral {FOUR_GPUS} --redundant 4 --context 1024")
    emitted = told(f"emit {plan} --engine vllm -o {tmp_path}/out")
    said = "WARNING: vLLM 0.33.0 does not read a map: the plan's placement is not used"
    assert emitted["notes"][0].startswith(said)
    assert '"num_redundant_experts":4' in emitted["launch"]
    names = sorted(Path(file).name for file in emitted["files"])
    assert names == ["launch.sh", "moeplan-emission.json", "plan.json", "validate.sh"]
    files = told(f"emit {plan} --engine vllm --plugin -o {tmp_path}/out")["files"]
    assert any(file.endswith("plan_map.json") for file in files)
