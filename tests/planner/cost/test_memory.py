"""The ledger of a GPU's memory: what is exact, read or assumed, and what a request takes."""

from dataclasses import replace
from typing import Any

import pytest

from planner.cost import ledger
from planner.cost.memory.buffers import low_latency_bytes
from planner.model import find_model
from planner.problem import Problem, Workload
from tests.planner.engines.examples import TINY, machine, question


def sizes(problem: Problem, engine: str | None) -> dict[str, float]:
    return {line.name: line.size_bytes for line in ledger(problem, engine).lines}


def test_lines_and_what_is_left_are_the_whole_memory() -> None:
    """Nothing is counted twice, and each line says what it rests on."""
    problem = question(TINY, machine(8), 8)
    found = ledger(problem, "sglang")
    assert sum(line.size_bytes for line in found.lines) + found.kv_left_bytes == pytest.approx(
        found.memory_bytes
    )
    assert {line.basis.split(":")[0] for line in found.lines} == {"exact", "read", "assumed"}
    assert found.lines[0].size_bytes + found.lines[1].size_bytes == pytest.approx(
        problem.slots_per_gpu * problem.slot_bytes
    )


def test_the_low_latency_buffer_of_a_step_by_hand() -> None:
    """2 slots, 1 token of 128 elements: combine is 260 bytes a message, dispatch 272; two sends of 520, two
    receives of 544, two signals of 128, one block.
    """
    assert low_latency_bytes(1, 128, 2) == 2 * (520 + 544 + 128) // 128 * 128 + 128


@pytest.mark.parametrize(
    ("transport", "engine", "size_bytes"),
    [
        ("rank", "vllm", 2**30),
        ("node", "vllm", 2**31),
        ("allgather", "sglang", 2 * 8 * 128 * 2048 * 2),
        ("slot", None, low_latency_bytes(128, 2048, 72)),
    ],
)
def test_each_transport_has_its_buffers(transport: str, engine: str, size_bytes: float) -> None:
    """Message by message, one buffer a network, or every rank's tokens."""
    problem = question(TINY, machine(8), 8)
    assert (
        sizes(replace(problem, workload=replace(problem.workload, transport=transport)), engine)["all_to_all"]
        == size_bytes
    )


def test_sglang_sizes_its_buffer_for_128_tokens_at_least() -> None:
    """A smaller step does not shrink it, a larger one grows it."""
    small, large = (
        sizes(question(TINY, machine(8), 8, tokens_per_rank=tokens), "sglang")["all_to_all"]
        for tokens in (8, 256)
    )
    assert (small, large) == (low_latency_bytes(128, 2048, 72), low_latency_bytes(256, 2048, 72))


@pytest.mark.parametrize(("width", "sent"), [(2048, 2048), (2880, 3072), (3584, 4096)])
def test_vllm_pads_tokens_to_the_next_kernel(width: int, sent: int) -> None:
    """Its buffer holds what it sends, and no NVLink buffer lies beside it: its launches say so."""
    problem = question(replace(TINY, dispatch_width=width), machine(8), 8)
    assert sizes(problem, "vllm")["all_to_all"] == low_latency_bytes(128, sent, 72)


def test_the_body_is_exact_where_the_model_has_one() -> None:
    """DeepSeek-V3: 187 million weights of attention a layer in fp8, embeddings of 129,280 x 7,168 in bf16."""
    model = find_model("deepseek-v3")
    found = {line.name: line for line in ledger(question(model, machine(8, 8), 0), "vllm").lines}
    assert found["attention"].size_bytes == pytest.approx(62 * 187.1e6, rel=1e-3)
    assert found["embedding"].size_bytes == found["head"].size_bytes == 129280 * 7168 * 2
    assert found["shared"].size_bytes == pytest.approx(59 * 3 * 7168 * 2048, rel=1e-3)
    assert found["attention"].basis.startswith("exact: ")


def test_sglang_divides_the_head_over_its_ranks() -> None:
    """Launches do not ask for --enable-dp-lm-head."""
    problem = question(find_model("deepseek-v3"), machine(8, 8), 0)
    assert sizes(problem, "sglang")["head"] == sizes(problem, "vllm")["head"] / 16


def test_the_rest_of_a_model_without_a_body_is_by_rule_of_thumb() -> None:
    """Near to what the body says, and called assumed."""
    model = find_model("deepseek-v3")
    known = ledger(question(model, machine(8, 8), 0), None)
    thumb = ledger(question(replace(model, body=None), machine(8, 8), 0), None)
    other = next(line for line in thumb.lines if line.name == "other_weights")
    assert other.basis.startswith("assumed")
    assert thumb.weights_bytes == pytest.approx(known.weights_bytes, rel=0.1)
    assert thumb.kv_basis.startswith("assumed")
    assert thumb.kv_token_bytes > known.kv_token_bytes  # heads by eight; MLA keeps less


def with_workload(problem: Problem, **changes: Any) -> Problem:
    return replace(problem, workload=replace(problem.workload, **changes))


def test_the_planned_batch_at_full_context_is_what_is_needed() -> None:
    """Mixtral: 128 KiB a token; 100 requests of 3,000 tokens on each GPU."""
    problem = question(find_model("mixtral"), machine(8), 0, tokens_per_rank=100)
    problem = with_workload(problem, prompt_tokens=2000, output_tokens=1000)
    found = ledger(problem, None)
    assert found.kv_token_bytes == 32 * 2 * 8 * 128 * 2
    assert found.request_bytes == 3000 * found.kv_token_bytes
    assert found.needed_bytes == 100 * found.request_bytes
    assert found.requests == int(found.kv_left_bytes / found.request_bytes)


@pytest.mark.parametrize(("prompt", "prompts"), [(4096, 1), (1000, 5), (100_000, 1)])
def test_a_prefill_step_holds_the_prompts_of_its_chunk(prompt: int, prompts: int) -> None:
    """One at least, also where it is longer than a chunk."""
    problem = question(find_model("mixtral"), machine(8), 0, "prefill", tokens_per_rank=4096)
    assert ledger(with_workload(problem, prompt_tokens=prompt), None).planned_requests == prompts


def test_a_floor_takes_the_place_of_the_planned_batch() -> None:
    problem = replace(question(find_model("mixtral"), machine(8), 0), kv_floor_bytes=3e9)
    assert ledger(problem, None).needed_bytes == 3e9


def test_gpus_that_share_attention_hold_more_requests_of_heads_and_no_more_of_latents() -> None:
    """Mixtral's 8 heads of keys divide over 4 GPUs; DeepSeek's latent is whole on each."""
    for name, share in (("mixtral", 4), ("deepseek-v3", 1)):
        problem = question(find_model(name), machine(8), 0)
        alone, shared = ledger(problem, None), ledger(with_workload(problem, attention_tp=4), None)
        assert alone.request_bytes == share * shared.request_bytes
        assert shared.planned_requests == 4 * alone.planned_requests
        assert (
            sizes(with_workload(problem, attention_tp=4), None)["attention"]
            < sizes(problem, None)["attention"]
        )


@pytest.mark.parametrize(
    ("engine", "basis"),
    [
        ("sglang", "read: SGLang 0.5.23"),
        ("tokenspeed", "assumed: as SGLang"),
        ("vllm", "read: vLLM 0.33.0, gpu_memory_utilization is 0.92"),
        ("trtllm", "free_gpu_memory_fraction is 0.9"),
        (None, "assumed: 10%"),
    ],
)
def test_an_engine_keeps_memory_for_itself(engine: str | None, basis: str) -> None:
    """And says by which rule."""
    line = next(
        line for line in ledger(question(TINY, machine(8), 8), engine).lines if line.name == "reserve"
    )
    assert basis in line.basis
    assert line.size_bytes > 1e9


def test_sglang_keeps_what_its_own_rule_says() -> None:
    """4,096 tokens of a chunk, 128 of graphs over 8 ranks: 6 GiB + 0.5 + 1 GiB + 128 x 26 MiB; the other
    phase's buffer of 1 GiB; and a thousandth for the digits of the fraction.
    """
    problem = question(TINY, machine(8), 8)
    gib = 1 << 30
    expected = 6 * gib + gib / 2 + gib + 128 * 26 * (1 << 20)
    expected = max(expected, 10 * gib) + gib + 0.001 * problem.topology.gpus[0].model.memory_bytes
    assert sizes(problem, "sglang")["reserve"] == pytest.approx(expected)


def test_workload_defaults() -> None:
    """2,048 tokens, and nobody said so."""
    assert (Workload().context_tokens, Workload().context_given) == (2048, False)
