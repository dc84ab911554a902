"""What we emit for SGLang, and our table of its replica choice, judged by SGLang 0.5.23 itself.

Runs where MOEPLAN_SGLANG_PYTHON names an interpreter that has SGLang (the CPU is enough); `sglang_oracle.py`
is what it runs.
"""

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.engines import find_engine
from planner.engines.common import deepep
from planner.load import LoadProfile
from planner.model import ModelSpec
from planner.placement import Placement
from planner.replica import CHOICES, Situation
from planner.replica.registry import RULES
from planner.replica.static import static_table
from planner.solvers import find_method
from planner.topology import Topology
from tests.planner.engines.examples import TINY, machine, question, random_placement, started

PYTHON = os.environ.get("MOEPLAN_SGLANG_PYTHON", "")
pytestmark = pytest.mark.skipif(
    not PYTHON, reason="MOEPLAN_SGLANG_PYTHON names no interpreter with SGLang 0.5.23"
)

CONFIG = {  # the least that SGLang and transformers want of a DeepSeek-V3 with the shape of TINY
    "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "torch_dtype": "bfloat16",
    "vocab_size": 512, "hidden_size": 2048, "intermediate_size": 512, "moe_intermediate_size": 256,
    "num_hidden_layers": 6, "num_attention_heads": 16, "num_key_value_heads": 16, "n_shared_experts": 1,
    "n_routed_experts": 64, "num_experts_per_tok": 8, "n_group": 8, "topk_group": 4,
    "first_k_dense_replace": 3, "moe_layer_freq": 1, "q_lora_rank": 64, "kv_lora_rank": 512,
    "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128, "topk_method": "noaux_tc",
    "scoring_func": "sigmoid", "norm_topk_prob": True, "routed_scaling_factor": 2.5, "hidden_act": "silu",
    "max_position_embeddings": 2048, "rms_norm_eps": 1e-6, "rope_theta": 10000, "bos_token_id": 0,
    "eos_token_id": 1,
}  # fmt: skip
MIXTRAL_CONFIG = {
    "architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "torch_dtype": "bfloat16",
    "vocab_size": 512, "hidden_size": 1024, "intermediate_size": 512, "num_hidden_layers": 2,
    "num_attention_heads": 16, "num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2,
    "hidden_act": "silu", "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "rope_theta": 10000,
    "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip

Case = tuple[Topology, Placement, str]  # machine, placement, phase


def shape(gpus: int, nodes: int, redundant: int, hot: int | None = None, phase: str = "decode") -> Case:
    return (
        machine(*[gpus // nodes] * nodes),
        random_placement(TINY, gpus, redundant, seed=redundant + nodes, hot=hot),
        phase,
    )


def solved(nodes: int, redundant: int) -> Case:
    """A placement that `moeplan solve --method refine` would make for a skewed load under SGLang's rule."""
    topology = machine(*[8 // nodes] * nodes)
    counts_LE = (
        np.random.default_rng(nodes)
        .lognormal(5, 1, (len(TINY.placed_layer_ids), TINY.experts))
        .astype(np.int64)
    )
    even = question(TINY, topology, redundant)
    problem = replace(
        even,
        load=LoadProfile(counts_LE[None], TINY.placed_layer_ids, "made for tests"),
        replica_rule="nearest-static",
    )
    return topology, find_method("refine")(problem), "decode"


SHAPES = [
    *(shape(8, nodes, redundant) for nodes in (1, 2, 4) for redundant in (0, 8, 16, 24)),
    *(shape(8, nodes, 24, hot=5) for nodes in (1, 2, 4)),
    *(shape(16, nodes, 32, hot=3, phase=phase) for nodes, phase in ((2, "prefill"), (4, "decode"))),
    *(solved(nodes, redundant) for nodes in (1, 2, 4) for redundant in (8, 16, 24)),
]

DYNAMIC = [
    *(shape(8, nodes, redundant) for nodes in (1, 2, 4) for redundant in (0, 16)),
    *(shape(8, nodes, 24, hot=5) for nodes in (1, 2, 4)),
]
TOKENS_TK = np.array([np.random.default_rng(token).permutation(64)[:8] for token in range(1024)])


@pytest.fixture(scope="module")
def ask(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[dict[str, Any], list[list[str]]], list[dict[str, Any]]]:
    """SGLang's answers to several sets of flags for one model config."""

    def answers(config: dict[str, Any], cases: list[list[str]]) -> list[dict[str, Any]]:
        folder = tmp_path_factory.mktemp("model")
        (folder / "config.json").write_text(json.dumps(config))
        request = json.dumps(
            {"cases": [[str(folder), *flags] for flags in cases], "experts": TOKENS_TK.tolist()}
        )
        oracle = Path(__file__).with_name("sglang_oracle.py")
        run = subprocess.run(
            [PYTHON, str(oracle)], input=request, capture_output=True, text=True, timeout=240, check=False
        )
        assert run.returncode == 0, run.stderr[-2000:]
        found: list[dict[str, Any]] = json.loads(run.stdout.splitlines()[-1])
        return found

    return answers


def launched_flags(model: ModelSpec, case: Case, folder: Path) -> list[str]:
    """The flags that our launch.sh gives the server on the last node, without the model path."""
    topology, placement, phase = case
    problem = question(model, topology, placement.slots - model.experts, phase)
    emission = find_engine("sglang").emit(placement, problem, "MODEL")
    words = started(emission, folder, "python3", node_rank=topology.node_count - 1)
    assert words[:4] == ["-m", "sglang.launch_server", "--model-path", "MODEL"]
    return words[4:]


@pytest.fixture(scope="module")
def served(
    ask: Callable[..., list[dict[str, Any]]], tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    """SGLang's answer to each shape."""
    return ask(CONFIG, [launched_flags(TINY, case, tmp_path_factory.mktemp("plan")) for case in SHAPES])


@pytest.mark.parametrize("index", range(len(SHAPES)))
def test_static_table_is_the_engines(index: int, served: list[dict[str, Any]]) -> None:
    """Every rank, MoE layer and expert goes to the slot that SGLang's own table names, from the file and
    flags we emit.
    """
    (topology, placement, _), answer = SHAPES[index], served[index]
    assert answer.get("shape") == [TINY.layers, placement.slots], answer
    engine_GLE = np.array(answer["table"])[:, list(TINY.moe_layer_ids)]
    ours_GLE = static_table(placement, TINY, topology.node_G)[:, : len(TINY.moe_layer_ids)]
    assert engine_GLE.shape == (topology.gpu_count, 3, 64)
    assert (engine_GLE == ours_GLE).all(), (
        f"{(engine_GLE != ours_GLE).sum()} of {engine_GLE.size} entries differ"
    )


@pytest.mark.parametrize("index", range(len(SHAPES)))
def test_launch_flags_resolve_to_the_plan(index: int, served: list[dict[str, Any]]) -> None:
    """SGLang's own parser and checks accept the launch, and mean by it the plan's EP size, nodes, replicas
    and fixed dispatch; prompts and decode in one server, each through DeepEP's mode for it where both run.
    """
    topology, placement, phase = SHAPES[index]
    resolved = served[index]["resolved"]
    assert resolved["ep_size"] == resolved["attn_dp_size"] == topology.gpu_count
    assert resolved["nnodes"] == topology.node_count
    assert resolved["ep_num_redundant_experts"] == placement.slots - TINY.experts
    assert resolved["ep_dispatch_algorithm"] == "static"
    assert resolved["enable_eplb"] is False
    planned = {"decode": "low_latency", "prefill": "normal"}[phase]
    assert resolved["deepep_mode"] == ("auto" if deepep.serves("prefill", topology) else planned)


def dynamic_flags(case: Case, folder: Path, *, all_to_all: bool) -> list[str]:
    """The launch's flags with dynamic dispatch, or with none named and no all-to-all: the engine then takes
    dynamic by itself.
    """
    words = launched_flags(TINY, case, folder)
    if all_to_all:
        return [{"static": "dynamic"}.get(word, word) for word in words]
    left_out = {"--moe-a2a-backend", "--deepep-mode", "--ep-dispatch-algorithm"}
    return [word for before, word in zip(["", *words], words, strict=False) if not {before, word} & left_out]


@pytest.fixture(scope="module")
def dynamic(
    ask: Callable[..., list[dict[str, Any]]], tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    """SGLang's answers to each shape of DYNAMIC: with an all-to-all, then without."""
    cases = [(case, all_to_all) for all_to_all in (True, False) for case in DYNAMIC]
    return ask(
        CONFIG,
        [
            dynamic_flags(case, tmp_path_factory.mktemp("plan"), all_to_all=all_to_all)
            for case, all_to_all in cases
        ],
    )


@pytest.mark.parametrize("index", range(len(DYNAMIC)))
def test_without_an_all_to_all_every_rank_picks_by_the_row(index: int, dynamic: list[dict[str, Any]]) -> None:
    """The slots of 1024 tokens, in every MoE layer on every rank, are ours; the engine takes dynamic dispatch
    by itself.
    """
    (_, placement, _), answer = DYNAMIC[index], dynamic[len(DYNAMIC) + index]
    assert answer.get("resolved", answer)["moe_a2a_backend"] == "none"
    assert answer["resolved"]["ep_dispatch_algorithm"] == "dynamic"
    for row, layer in enumerate(TINY.moe_layer_ids):
        ours_TK = CHOICES["row-index"](TOKENS_TK, placement.expert_LP[row], 0, 8)
        for rank in range(8):
            assert answer["chosen"][rank][layer] == ours_TK.tolist()


@pytest.mark.parametrize("index", range(len(DYNAMIC)))
def test_with_an_all_to_all_dynamic_draws_where_we_say(index: int, dynamic: list[dict[str, Any]]) -> None:
    """What a rank sends an expert's 128 assignments to: the one slot with share 1, or every slot with a
    share, each about as often.
    """
    (topology, placement, _), answer = DYNAMIC[index], dynamic[index]
    shares = list(RULES["nearest-dynamic"](placement, Situation(TINY, topology.node_G)))
    for row, layer in enumerate(TINY.moe_layer_ids):
        asked_E = np.bincount(TOKENS_TK.ravel(), minlength=64)
        for rank in range(8):
            counted_P = np.bincount(np.ravel(answer["chosen"][rank][layer]), minlength=placement.slots)
            expected_P = shares[row][rank] * asked_E[placement.expert_LP[row]]
            assert ((counted_P > 0) == (expected_P > 0)).all()
            assert (np.abs(counted_P - expected_P) < 6 * np.sqrt(expected_P) + 1e-9).all()


def test_the_comparison_can_fail() -> None:
    """Another number of nodes gives another table, so an equal one says something."""
    topology, placement, _ = SHAPES[4 + 3]
    other = machine(8)
    assert (
        static_table(placement, TINY, topology.node_G) != static_table(placement, TINY, other.node_G)
    ).any()


def test_mixtral_has_no_map_in_the_engine(ask: Callable[..., list[dict[str, Any]]], tmp_path: Path) -> None:
    """Given a map, SGLang answers with no expert location for Mixtral; our launch leaves the map out and
    resolves to plain expert parallelism.
    """
    mixtral = ModelSpec("mixtral", "mixtral", 2, (0, 1), 8, 2, 1024, 512, 1024, "bf16", "made for tests")
    placement = random_placement(mixtral, 8, 8)
    flags = launched_flags(mixtral, (machine(4, 4), placement, "decode"), tmp_path)
    location = tmp_path / "expert_location.json"
    location.write_text(json.dumps({"physical_to_logical_map": placement.expert_LP.tolist()}))
    forced = [*flags, "--moe-a2a-backend", "deepep", "--deepep-mode", "normal"]
    forced += ["--init-expert-location", str(location)]
    ours, with_map = ask(MIXTRAL_CONFIG, [flags, forced])
    assert ours["resolved"]["ep_size"] == 8
    assert ours["resolved"]["moe_a2a_backend"] == "none"
    assert with_map["map_read"] is False
