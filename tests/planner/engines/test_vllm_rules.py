"""vLLM's judge: sizes that agree, the 32 GiB limit, EPLB by the method of the weights, trays, fallbacks."""

import json
import shlex
from dataclasses import replace

import pytest

from planner.base import BadInput
from planner.cost import ledger, low_latency_bytes
from planner.cost.memory.buffers import LOW_LATENCY_WIDTHS
from planner.engines import Verdict, find_engine, judge_launch
from planner.engines.common import deepep
from planner.engines.vllm.kernels import KERNELS
from planner.model import ModelSpec, find_model
from planner.problem import Problem
from planner.topology import read_topology
from tests.planner.engines.examples import TINY, machine, question

ENGINE = find_engine("vllm")
TOKENS = {"decode": 128, "prefill": 4096}
GATHER = "allgather_reducescatter"


def asked(
    model: str | ModelSpec, preset: str, phase: str = "decode", tokens: int = 0, redundant: int | None = None
) -> Problem:
    """A question about a catalogue model, with the fewest redundant experts unless told."""
    spec = find_model(model) if isinstance(model, str) else model
    topology = read_topology(preset)
    least = -spec.experts % topology.gpu_count
    problem = question(
        spec, topology, least if redundant is None else redundant, phase, tokens or TOKENS[phase]
    )
    moved = ENGINE.transport(phase, topology, spec)
    return replace(problem, workload=replace(problem.workload, transport=moved))


def emitted(problem: Problem, role: str = "mixed") -> tuple[list[str], dict[str, str]]:
    """The words of node 0, and its environment."""
    placement = ENGINE.default_placement(problem.model, problem.gpus, problem.redundant)
    command = ENGINE.emit(placement, problem, "m", role=role).commands[0]
    return shlex.split(" ".join(command.words)), dict(command.environment)


def after(words: list[str], flag: str) -> str | None:
    return words[words.index(flag) + 1] if flag in words else None


def rule(verdict: Verdict, name: str) -> str:
    return " ".join(finding.text for finding in verdict.findings if finding.rule == name)


@pytest.mark.parametrize("tokens", [1, 96, 128, 700])
def test_a_decode_launch_has_the_tokens_of_its_plan(tokens: int) -> None:
    """Left alone vLLM takes 256, twice the usual plan: steps, requests and buffer are what was planned, and
    what the ledger counts.
    """
    problem = asked("deepseek-v3", "hgx-h100:2", tokens=tokens, redundant=32)
    words, environment = emitted(problem)
    assert after(words, "--max-num-batched-tokens") == after(words, "--max-num-seqs") == str(tokens)
    assert environment == {"VLLM_DEEPEP_BUFFER_SIZE_MB": "0"}
    (line,) = (line for line in ledger(problem, "vllm").lines if line.name == "all_to_all")
    assert line.size_bytes == low_latency_bytes(tokens, 7168, 288)


def test_a_prefill_launch_has_the_chunk_of_its_plan() -> None:
    """Its requests stay vLLM's own number; normal mode has its NVLink buffer."""
    words, environment = emitted(asked("deepseek-v3", "hgx-h100:2", "prefill"))
    assert after(words, "--max-num-batched-tokens") == "4096"
    assert "--max-num-seqs" not in words
    assert environment == {}


def test_which_phase_was_planned_is_said() -> None:
    """One server takes both phases, with the sizes of one."""
    notes = {}
    for phase in TOKENS:
        problem = asked("deepseek-v3", "hgx-h100:2", phase)
        placement = ENGINE.default_placement(problem.model, problem.gpus, problem.redundant)
        notes[phase] = " ".join(ENGINE.emit(placement, problem, "m").notes)
    assert "planned for decode; prompts run by the same placement" in notes["decode"]
    assert "planned for prefill in steps of 4096 tokens" in notes["prefill"]


def test_a_buffer_over_32_gib_is_refused_with_the_most_that_fits() -> None:
    """DeepEP asserts it, vLLM does not ask; 2048 tokens of DeepSeek-V3 with 288 slots are the most."""
    assert ENGINE.judge(asked("deepseek-v3", "hgx-h100:2", tokens=2048, redundant=32)).violations == []
    (found,) = ENGINE.judge(asked("deepseek-v3", "hgx-h100:2", tokens=2049, redundant=32)).violations
    assert found.rule == "deepep-buffer"
    assert found.text.endswith("plan for at most --tokens-per-rank 2048")


def test_the_ledger_pads_as_vllm_does() -> None:
    """The widths that it rounds up to are those of DeepEP's kernels."""
    assert deepep.UPSTREAM.hidden == LOW_LATENCY_WIDTHS


@pytest.mark.parametrize(
    ("dtype", "method", "preset", "phase", "backend", "balanced", "kernel"),
    [
        ("bf16", "", "hgx-h100", "decode", "deepep_low_latency", True, None),
        ("fp8", "fp8", "hgx-b200", "prefill", "deepep_high_throughput", True, None),
        ("fp8", "compressed-tensors", "hgx-h100", "decode", "deepep_low_latency", True, None),
        ("fp8", "modelopt", "hgx-h100", "decode", "deepep_low_latency", False, None),
        ("fp8", "modelopt", "hgx-b200", "prefill", "deepep_high_throughput", False, None),
        ("int4", "compressed-tensors", "hgx-h100", "decode", "deepep_low_latency", False, None),
        ("int4", "compressed-tensors", "hgx-h100", "prefill", "deepep_high_throughput", True, "triton"),
        ("int4", "compressed-tensors", "hgx-a100", "decode", GATHER, True, "triton"),
        ("int4", "awq", "hgx-h100", "prefill", "deepep_high_throughput", False, None),
        ("int4", "gptq", "hgx-h100", "decode", "deepep_low_latency", False, None),
        ("nvfp4", "modelopt", "hgx-h100", "decode", GATHER, True, None),
        ("nvfp4", "modelopt", "hgx-b200", "decode", "deepep_low_latency", True, None),
        ("nvfp4", "compressed-tensors", "hgx-h100", "prefill", "deepep_high_throughput", False, None),
        ("nvfp4", "compressed-tensors", "hgx-b200", "decode", "deepep_low_latency", True, None),
        ("mxfp4", "compressed-tensors", "hgx-b200", "decode", GATHER, False, None),
        ("mxfp4", "mxfp4", "hgx-h100", "prefill", "deepep_high_throughput", False, None),
    ],
)
def test_the_balancer_is_asked_only_where_the_weights_support_it(
    dtype: str, method: str, preset: str, phase: str, backend: str, balanced: bool, kernel: str | None
) -> None:
    """Else vLLM raises NotImplementedError while it loads; redundant experts then have nobody to use them."""
    model = replace(TINY, weight_dtype=dtype, quant_method=method)
    words, _ = emitted(asked(model, preset, phase))
    assert after(words, "--all2all-backend") == backend
    assert ("--enable-eplb" in words) == balanced
    assert after(words, "--moe-backend") == kernel
    with_replicas = asked(model, preset, phase, redundant=8)
    assert [found.rule for found in ENGINE.judge(with_replicas).violations] == (
        [] if balanced else ["redundant"]
    )
    if not balanced:
        assert "use --redundant 0" in ENGINE.judge(with_replicas).violations[0].text


def test_every_row_of_the_table_was_asked_above() -> None:
    """The mxfp4 experts of DeepSeek-V4, an fp8 release, are a row of their own."""
    v4 = asked("deepseek-v4-flash", "hgx-h100", redundant=8)
    assert json.loads(after(emitted(v4)[0], "--eplb-config") or "")["num_redundant_experts"] == 8
    assert len(KERNELS) == 12


@pytest.mark.parametrize(
    ("name", "said"),
    [("dbrx", "finds no experts"), ("minimax-m1", "dropped in 0.23.0"), ("grok-1", "dropped in 0.24.0")],
)
def test_models_that_vllm_does_not_serve_are_refused(name: str, said: str) -> None:
    """Whatever the flags."""
    verdict = judge_launch("vllm", asked(name, "hgx-h100:2"))
    assert verdict.outcome == "refused"
    assert said in rule(verdict, "model")


@pytest.mark.parametrize(
    "name", ["dots.llm1", "hunyuan-a13b", "step-3.7-flash", "sgl-project/DeepSeek-V4-Flash-FP8"]
)
def test_models_of_other_classes_are_balanced_too(name: str) -> None:
    """Through transformers' class, as the language model of another, or under another name."""
    assert "--enable-eplb" in emitted(asked(find_model(name), "hgx-h100:2"))[0]


def test_without_a_balancer_experts_must_divide_over_the_gpus() -> None:
    """DeepEP asserts it, and replicas to fill up need the balancer."""
    (found,) = ENGINE.judge(asked("qwen1.5-moe-a2.7b", "hgx-h100")).violations
    assert "on a number of GPUs that divides 60" in found.text


def test_decode_over_trays_uses_their_nvlink() -> None:
    """Else the traffic between trays of one NVLink domain leaves by the NIC, and the NVLink buffers of eight
    ranks cannot be opened.
    """
    _, environment = emitted(asked("deepseek-v3", "gb200-nvl72:4"))
    assert environment == {"VLLM_DEEPEP_LOW_LATENCY_USE_MNNVL": "1", "VLLM_DEEPEP_BUFFER_SIZE_MB": "0"}
    assert "VLLM_DEEPEP_LOW_LATENCY_USE_MNNVL=1" in {
        flag
        for finding in judge_launch("vllm", asked("deepseek-v3", "gb200-nvl72:4")).findings
        for flag in finding.flags
    }


@pytest.mark.parametrize(
    ("preset", "said"), [("gb200-nvl72:4", "GPUs 0 and 4 are on two"), ("gb200-nvl72:2", "CUDA IPC")]
)
def test_prefill_over_trays_gathers_with_the_reason(preset: str, said: str) -> None:
    """DeepEP's normal mode takes eight ranks for one host; the solver prices what is launched."""
    problem = asked("deepseek-v3", preset, "prefill")
    words, environment = emitted(problem)
    assert after(words, "--all2all-backend") == GATHER
    assert environment == {}
    assert said in rule(judge_launch("vllm", problem), "all-to-all")
    assert ENGINE.transport("prefill", problem.topology, problem.model) == "allgather"
    assert ENGINE.transport("prefill", problem.topology) == "allgather"


def test_prefill_inside_one_tray_uses_deepep() -> None:
    """Four ranks on one host."""
    problem = asked("deepseek-v3", "gb200-nvl72:1", "prefill")
    assert after(emitted(problem)[0], "--all2all-backend") == "deepep_high_throughput"
    assert problem.workload.transport == "rank"


@pytest.mark.parametrize(
    ("changes", "gpus", "phase", "said"),
    [
        ({"dispatch_width": 8193}, (8,), "decode", "hidden sizes up to 8192"),
        ({"top_k": 12}, (8,), "decode", "top_k of up to 11"),
        ({}, (8, 4), "decode", "multiple of 8"),
        ({}, (8,) * 5, "prefill", "times 8 ranks, not 5"),
        ({"weight_dtype": "nvfp4"}, (8,), "decode", "no kernel for the batches"),
    ],
)
def test_where_deepep_cannot_run_tokens_are_gathered(
    changes: dict[str, object], gpus: tuple[int, ...], phase: str, said: str
) -> None:
    """The reason is told, and the plan is priced as it is launched."""
    model = replace(TINY, **changes)  # type: ignore[arg-type]
    topology = machine(*gpus)
    problem = question(model, topology, -model.experts % topology.gpu_count, phase)
    assert after(emitted(problem)[0], "--all2all-backend") == GATHER
    assert said in rule(judge_launch("vllm", problem), "all-to-all")
    assert ENGINE.transport(phase, topology, model) == "allgather"


def test_a_role_that_was_not_planned_is_refused() -> None:
    """A decode plan is no prefill server."""
    with pytest.raises(BadInput, match="the plan is for decode; make one with --phase prefill"):
        judge_launch("vllm", asked("deepseek-v3", "hgx-h100:2"), role="prefill")
