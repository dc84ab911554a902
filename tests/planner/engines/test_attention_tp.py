"""Attention over several GPUs: what launches say of it, and which engines refuse it, by which rule."""

from dataclasses import replace

import pytest

from planner.base import BadInput
from planner.engines import NodeCommand, engine_names, find_engine, judge_launch
from planner.engines.common.attention import group_sizes, undivided_heads
from planner.engines.common.sizes import Sizes
from planner.engines.sglang.memory import room
from planner.model import Attention, ModelSpec, find_model
from planner.problem import Problem
from planner.topology import read_topology
from tests.planner.engines.examples import question

DEEPSEEK = find_model("deepseek-v3")
TOKENS = {"decode": 128, "prefill": 4096}


def asked(engine: str, shared: int, phase: str = "decode", text: str = "hgx-h200:2") -> Problem:
    topology = read_topology(text)
    problem = question(DEEPSEEK, topology, 0, phase, TOKENS[phase])
    transport = find_engine(engine).transport(phase, topology, DEEPSEEK)
    workload = replace(problem.workload, transport=transport, attention_tp=shared)
    rule = find_engine(engine).replica_rule(phase, topology, DEEPSEEK)
    return replace(problem, workload=workload, replica_rule=rule)


def commands(engine: str, problem: Problem, version: str | None = None) -> tuple[NodeCommand, ...]:
    module = find_engine(engine)
    placement = module.default_placement(problem.model, problem.gpus, problem.redundant)
    return module.emit(placement, problem, "MODEL", version).commands


def test_sglang_deals_requests_to_groups_and_counts_them_for_a_group() -> None:
    """Totals over all ranks stay; a graph is as large as a group's batch; the buffer holds a GPU's share."""
    alone, shared = (commands("sglang", asked("sglang", count))[0] for count in (1, 4))
    assert shared.value("--tp-size") == shared.value("--ep-size") == "16"
    assert (alone.value("--attn-dp-size"), shared.value("--attn-dp-size")) == ("16", "4")
    for flag in ("--max-running-requests", "--chunked-prefill-size"):
        assert shared.value(flag) == alone.value(flag)
    assert (alone.value("--cuda-graph-max-bs-decode"), shared.value("--cuda-graph-max-bs-decode")) == (
        "128",
        "512",
    )
    assert dict(shared.environment)["SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK"] == "128"
    assert shared.environment == alone.environment


def test_sglang_with_one_group_is_tensor_parallel_attention() -> None:
    """Then nothing is said of data parallelism, in either release."""
    for version in ("0.5.21", "0.5.23"):
        words = commands("sglang", asked("sglang", 16), version)[0].words
        assert not {"--attn-dp-size", "--dp-size", "--enable-dp-attention"} & set(words)


def test_an_older_sglang_is_told_in_its_own_words() -> None:
    command = commands("sglang", asked("sglang", 2), "0.5.21")[0]
    assert command.value("--dp-size") == "8"
    assert "--enable-dp-attention" in command.words


def test_sglang_leaves_room_for_the_tokens_that_a_group_shares() -> None:
    sizes = Sizes(128, 4096, 128)
    alone, shared = (room(asked("sglang", count), sizes, "auto").fraction for count in (1, 8))
    assert shared < alone


def test_a_request_over_two_nodes_is_warned_of() -> None:
    warned = [one.rule for one in judge_launch("sglang", asked("sglang", 16)).findings]
    assert "attention-nodes" in warned
    near = judge_launch("sglang", asked("sglang", 8)).findings
    assert "attention-nodes" not in [one.rule for one in near]


def test_vllm_has_a_data_parallel_rank_for_a_group_and_its_first_rank_on_each_node() -> None:
    """EP rank = data-parallel rank x GPUs of a group + place in it, so plan rank r stays EP rank r."""
    first, second = commands("vllm", asked("vllm", 4))
    assert first.value("--tensor-parallel-size") == "4"
    assert first.value("--data-parallel-size") == "4"
    assert first.value("--data-parallel-size-local") == second.value("--data-parallel-size-local") == "2"
    assert second.value("--data-parallel-start-rank") == "2"
    assert first.value("--max-num-seqs") == first.value("--max-num-batched-tokens") == "512"


@pytest.mark.parametrize(
    ("text", "shared", "words"),
    [
        ("hgx-h200:2", 16, "uses no all-to-all where all 16 GPUs share a request"),
        ("gb200-nvl72:4", 8, "nodes of 4 GPUs do not divide into 8"),
    ],
)
def test_vllm_refuses_what_it_would_not_serve(text: str, shared: int, words: str) -> None:
    refused = judge_launch("vllm", asked("vllm", shared, text=text)).refused
    assert words in " ".join(one.text for one in refused)


def test_vllm_refuses_a_model_whose_tokens_each_gpu_would_send() -> None:
    problem = asked("vllm", 2)
    model = replace(DEEPSEEK, architecture="glm4_moe")
    refused = judge_launch("vllm", replace(problem, model=model)).refused
    assert "deals them out for other models, not glm4_moe" in " ".join(one.text for one in refused)


@pytest.mark.parametrize("engine", sorted(set(engine_names()) - {"sglang", "vllm"}))
def test_engines_whose_launch_knows_one_gpu_a_request_refuse_more(engine: str) -> None:
    """By the judge, and so by emit; the same question with one GPU a request has no such refusal."""
    rules = [one.rule for one in judge_launch(engine, asked(engine, 2)).refused]
    assert "attention-tp" in rules
    assert "attention-tp" not in [one.rule for one in judge_launch(engine, asked(engine, 1)).refused]
    with pytest.raises(BadInput, match="attention"):
        commands(engine, asked(engine, 2))


def with_heads(heads: int, kv_heads: int, kind: str = "grouped") -> ModelSpec:
    assert DEEPSEEK.body is not None
    attention = Attention(kind, 1, heads, 128, 128, kv_heads=kv_heads)
    return replace(DEEPSEEK, body=replace(DEEPSEEK.body, attention=(attention,), draft_attention=()))


@pytest.mark.parametrize(
    ("heads", "kv_heads", "shared", "divide"),
    [
        (32, 8, 8, True),
        (32, 4, 8, True),
        (32, 4, 16, True),
        (28, 4, 8, False),
        (24, 6, 4, False),
        (32, 8, 1, True),
    ],
)
def test_heads_divide_or_are_copied(heads: int, kv_heads: int, shared: int, divide: bool) -> None:
    """Whole query heads a GPU; fewer heads of keys and values than GPUs are copied."""
    assert (undivided_heads(with_heads(heads, kv_heads), shared) == []) == divide


def test_groups_are_on_one_node_where_every_node_divides() -> None:
    assert group_sizes((8, 8), 4) == []
    assert group_sizes((8, 6), 4)
