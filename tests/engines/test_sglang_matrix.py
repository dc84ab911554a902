"""Every launch and map of the matrix, and our table of replica choices, judged by SGLang 0.5.23 itself.

Its own parser, validators and loader judge; its own table is compared with ours.

Runs where MOEPLAN_SGLANG_PYTHON names an interpreter that has SGLang (the CPU is enough); `sglang_oracle.py`
is what it runs.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.engines import find_engine
from planner.engines.common import deepep
from planner.engines.sglang.models import READS_MAP, WITHOUT_REDUNDANCY
from planner.replica import CHOICES
from planner.replica.static import static_table
from tests.engines.configs import CONFIGS, IGNORING
from tests.engines.matrix import Combination, asked, combinations, flags, spec

ENGINE = find_engine("sglang")
PYTHON = os.environ.get("MOEPLAN_SGLANG_PYTHON", "")
pytestmark = pytest.mark.skipif(
    not PYTHON, reason="MOEPLAN_SGLANG_PYTHON names no interpreter with SGLang 0.5.23"
)

FORCED = (
    *("--tp-size", "8", "--ep-size", "8", "--moe-a2a-backend", "deepep"),
    *("--deepep-mode", "normal", "--ep-dispatch-algorithm", "static"),
)
TOKENS_TK = [
    [token % 8, 8 + token % 8, 16 + token % 8, 24 + token % 8] for token in range(16)
]  # ids that every model of the matrix has
Answers = dict[str, list[tuple[Combination, list[dict[str, Any]]]]]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """By model: each combination that `emit` writes, and SGLang's answer for each of its nodes.

    One process for all: imports are most of its time.
    """
    order: list[tuple[str, Combination]] = []
    cases: list[list[str]] = []
    for name, config in CONFIGS.items():
        folder = tmp_path_factory.mktemp(name)
        (folder / "config.json").write_text(json.dumps(config))
        for number, combination in enumerate(combinations(name)):
            emission = combination.emitted("sglang")
            if emission is not None:
                nodes = range(combination.problem.topology.node_count)
                words = [flags(emission, folder / str(number), "python3", node) for node in nodes]
                cases += [[str(folder), *node_words[4:]] for node_words in words]
                order.append((name, combination))
    each = iter(asked(PYTHON, "sglang_oracle.py", {"cases": cases, "experts": TOKENS_TK}))
    found: Answers = {name: [] for name in CONFIGS}
    for name, combination in order:
        found[name].append(
            (combination, [next(each) for _ in range(combination.problem.topology.node_count)])
        )
    assert next(each, None) is None
    return found


@pytest.mark.parametrize("name", CONFIGS)
def test_every_launch_means_the_plan(name: str, answers: Answers, tell: Callable[[str], None]) -> None:
    """No node's flags are refused, and they resolve to the plan's ranks, nodes, replicas, phase and fixed
    dispatch; to no replicas where no map is read.
    """
    refused = [
        f"{combination}: {answer['error']}"
        for combination, nodes in answers[name]
        for answer in nodes
        if "error" in answer
    ]
    launches = sum(len(nodes) for _, nodes in answers[name])
    tell(f"SGLang {name}: {len(answers[name])} combinations, {launches} launches, {len(refused)} refused")
    assert not refused
    assert len(answers[name]) == (12 if name in WITHOUT_REDUNDANCY else 36)
    for combination, nodes in answers[name]:
        problem = combination.problem
        read: dict[str, Any] = {
            "ep_size": problem.gpus,
            "attn_dp_size": problem.gpus,
            "ep_num_redundant_experts": problem.redundant,
        }
        read["disable_shared_experts_fusion"] = True
        if ENGINE.transport(problem.workload.phase, problem.topology, problem.model) != "allgather":
            read |= {"moe_a2a_backend": "deepep", "ep_dispatch_algorithm": "static"}
            mode = {"decode": "low_latency", "prefill": "normal"}[problem.workload.phase]
            both = deepep.serves("prefill", problem.topology)
            read["deepep_mode"] = "auto" if both else mode
        else:
            read |= {"moe_a2a_backend": "none", "ep_dispatch_algorithm": "dynamic"}
        not_read = {"ep_size": problem.gpus, "moe_a2a_backend": "none", "ep_num_redundant_experts": 0}
        meant = {
            "tp_size": problem.gpus,
            "nnodes": problem.topology.node_count,
            "enable_eplb": False,
            **(not_read if name in IGNORING else read),
        }
        for answer in nodes:
            assert {field: answer["resolved"][field] for field in meant} == meant, str(combination)


@pytest.mark.parametrize("name", [name for name in CONFIGS if name not in IGNORING])
def test_every_map_is_loaded_and_every_choice_is_ours(
    name: str, answers: Answers, tell: Callable[[str], None]
) -> None:
    """SGLang's loader takes each map, with a row for each decoder layer, and sends every rank, MoE layer and
    expert to the slot that we say.

    Where the launch does without an all-to-all (dynamic dispatch) it is every rank, MoE layer and entry of
    the asked tokens.
    """
    model, compared, gathered, wrong = spec(name), 0, 0, []
    for combination, nodes in answers[name]:
        answer, topology = nodes[-1], combination.problem.topology
        assert answer.get("shape") == [model.layers, combination.placement.slots], f"{combination}: {answer}"
        if "chosen" in answer:
            engine_GLTK = np.array(answer["chosen"])[:, list(model.moe_layer_ids)]
            rows_LP = combination.placement.expert_LP[: len(model.moe_layer_ids)]
            ours_LTK = np.array(
                [
                    CHOICES["row-index"](np.array(TOKENS_TK), expert_P, 0, topology.gpu_count)
                    for expert_P in rows_LP
                ]
            )
            gathered += engine_GLTK.size
            wrong += [f"{combination}: dynamic"] if (engine_GLTK != ours_LTK).any() else []
            continue
        engine_GLE = np.array(answer["table"])[:, list(model.moe_layer_ids)]
        ours_GLE = static_table(combination.placement, model, topology.node_G)[:, : len(model.moe_layer_ids)]
        assert (
            engine_GLE.shape
            == ours_GLE.shape
            == (topology.gpu_count, len(model.moe_layer_ids), model.experts)
        )
        compared += engine_GLE.size
        wrong += (
            [f"{combination}: {(engine_GLE != ours_GLE).sum()} of {engine_GLE.size}"]
            if (engine_GLE != ours_GLE).any()
            else []
        )
    entries = f"{compared} entries of its static tables and {gathered} dynamic choices compared"
    tell(
        f"SGLang {name}: {len(answers[name])} maps loaded, {entries}, combinations that differ: {len(wrong)}"
    )
    assert not wrong


def test_what_the_engine_refuses_and_ignores(tmp_path: Path) -> None:
    """A wrong launch is refused, so a launch that is not refused says something; a map forced on a model that
    is said to ignore it is not read.
    """
    extra, cases = tmp_path / "extra.json", []
    extra.write_text(json.dumps({"physical_to_logical_map": [[0]], "moeplan": 1}))
    for name in ("qwen3_moe", *IGNORING):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(CONFIGS[name]))
        rows = [[slot % spec(name).experts for slot in range(spec(name).experts)]] * spec(name).layers
        (tmp_path / name / "map.json").write_text(json.dumps({"physical_to_logical_map": rows}))
        cases.append(
            [str(tmp_path / name), *FORCED, "--init-expert-location", str(tmp_path / name / "map.json")]
        )
    first = cases[0]
    wrong = [
        [*first, "--init-expert-location", str(extra)],
        [*first, "--ep-num-redundant-experts", "3"],
        [*first, "--moe-a2a-backend", "none"],
    ]
    read, *ignored = asked(PYTHON, "sglang_oracle.py", {"cases": cases, "experts": []})
    assert read["map_read"] is True
    assert [answer["map_read"] for answer in ignored] == [False] * len(IGNORING)
    key, slots, backend = (
        answer.get("error", "")
        for answer in asked(PYTHON, "sglang_oracle.py", {"cases": wrong, "experts": []})
    )
    assert "unexpected keyword argument 'moeplan'" in key
    assert "AssertionError" in slots
    assert "static" in backend


def test_the_matrix_is_the_one_described() -> None:
    """Models that SGLang reads a map for and models that it ignores one for, and one that takes no replicas;
    36 combinations of each.
    """
    assert {name for name in CONFIGS if name not in READS_MAP} == set(IGNORING)
    assert WITHOUT_REDUNDANCY & set(CONFIGS) == {"longcat_flash"}
    assert {name: len(list(combinations(name))) for name in CONFIGS} == dict.fromkeys(CONFIGS, 36)
