"""SGLang's judge: backend and kernels by weights, GPU and phase; roles, sizes, memory, and refusals."""

import os
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from planner.base import BadInput
from planner.engines import Verdict, find_engine, judge_launch, paired_engines
from planner.engines.sglang.backend import backend_of
from planner.engines.sglang.kernels import KERNELS
from planner.model import ModelSpec, find_model
from planner.problem import Problem
from planner.topology import read_topology
from tests.planner.engines.examples import TINY, machine, question, random_placement

ENGINE = find_engine("sglang")
TOKENS = {"decode": 128, "prefill": 4096}
ROUTED, MARLIN = "flashinfer_trtllm_routed", "marlin"


def asked(model: str | ModelSpec, preset: str, phase: str = "decode", tokens: int = 0) -> Problem:
    """A question about a catalogue model, with the fewest redundant experts."""
    spec = find_model(model) if isinstance(model, str) else model
    topology = read_topology(preset)
    redundant = -spec.experts % topology.gpu_count
    return question(spec, topology, redundant, phase, tokens or TOKENS[phase])


def emitted(problem: Problem, role: str = "mixed", version: str | None = None) -> list[str]:
    """The words of node 0."""
    placement = ENGINE.default_placement(problem.model, problem.gpus, problem.redundant)
    return list(ENGINE.emit(placement, problem, "m", version, role).commands[0].words)


def after(words: list[str], flag: str) -> str | None:
    return words[words.index(flag) + 1] if flag in words else None


def rule(verdict: Verdict, name: str) -> str:
    return " ".join(finding.text for finding in verdict.findings if finding.rule == name)


def test_a_decode_plan_is_served_with_prompts_in_normal_mode() -> None:
    """Its buffer holds 128 tokens, chunks of prompts have thousands: they may not go through it."""
    problem = asked("deepseek-v3", "hgx-h100:2")
    words = emitted(problem)
    assert after(words, "--deepep-mode") == "auto"
    assert after(words, "--max-running-requests") == str(128 * 16)
    assert after(words, "--cuda-graph-max-bs-decode") == "128"
    assert after(words, "--chunked-prefill-size") == str(4096 * 16)
    assert "--disable-prefill-cuda-graph" in words
    assert "planned for decode; prompts run" in rule(judge_launch("sglang", problem), "role")


def test_where_normal_mode_cannot_run_prompts_fit_the_buffer() -> None:
    """Trays of four GPUs: one server takes both through low latency, in chunks that its buffer holds."""
    problem = asked("deepseek-v3", "gb200-nvl72:4")
    placement = ENGINE.default_placement(problem.model, 16, 0)
    (command, *_) = ENGINE.emit(placement, problem, "m").commands
    words, buffer = list(command.words), dict(command.environment)
    assert after(words, "--deepep-mode") == "low_latency"
    assert after(words, "--chunked-prefill-size") == str(256 * 16)
    assert buffer == {"SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK": "256"}


def test_normal_mode_over_trays_of_four_is_replaced_with_the_reason() -> None:
    """DeepEP takes eight ranks in a row for one node; the solver prices what is launched."""
    problem = asked("deepseek-v3", "gb200-nvl72:4", "prefill")
    assert after(emitted(problem), "--moe-a2a-backend") == "none"
    assert "GPUs 0 and 4 are on two" in rule(judge_launch("sglang", problem), "all-to-all")
    assert ENGINE.transport("prefill", problem.topology, problem.model) == "allgather"
    assert ENGINE.replica_rule("prefill", problem.topology, problem.model) == "row-index"


@pytest.mark.parametrize(
    ("model", "preset", "phase", "transport", "runner"),
    [
        ("qwen3-30b-a3b", "hgx-h100", "decode", "slot", "deep_gemm"),
        ("qwen3-30b-a3b", "hgx-b200", "prefill", "rank", "deep_gemm"),
        ("deepseek-v3", "hgx-h100:2", "prefill", "node", None),
        ("qwen2-57b-a14b", "hgx-h100", "decode", "slot", "deep_gemm"),
        ("gpt-oss-120b", "hgx-h100", "decode", "allgather", MARLIN),
        ("gpt-oss-20b", "hgx-b200", "prefill", "allgather", MARLIN),
        ("kimi-k2.5", "hgx-h200", "decode", "allgather", MARLIN),
        ("nemotron-3-nano", "hgx-h100", "decode", "allgather", None),
        ("nemotron-3-nano", "hgx-b200", "decode", "allgather", ROUTED),
        ("nemotron-3-super", "hgx-b200", "prefill", "allgather", "flashinfer_cutlass"),
        ("minimax-m3", "hgx-b200", "decode", "allgather", None),
        ("deepseek-v4-flash", "hgx-h100", "decode", "slot", "humming"),
        ("deepseek-v4-flash", "hgx-b200", "decode", "slot", None),
        ("qwen3-30b-a3b", "hgx-a100", "decode", "allgather", None),
    ],
)
def test_kernels_and_transport_by_model_and_gpu(
    model: str, preset: str, phase: str, transport: str, runner: str | None
) -> None:
    """DeepEP with a runner that takes its batches, else none with one that keeps the map; and the plan is
    priced as it is launched.
    """
    problem = asked(model, preset, phase)
    words, priced = emitted(problem), ENGINE.transport(phase, problem.topology, problem.model)
    assert priced == transport
    assert after(words, "--moe-runner-backend") == runner
    gathers = transport == "allgather"
    assert after(words, "--moe-a2a-backend") == ("none" if gathers else "deepep")
    assert after(words, "--ep-dispatch-algorithm") == ("dynamic" if gathers else "static")
    chosen = ENGINE.replica_rule(phase, problem.topology, problem.model)
    assert chosen == ("row-index" if gathers else "nearest-static")


@pytest.mark.parametrize("weights", [key for key in KERNELS if key[0] != "bf16"])
@pytest.mark.parametrize("preset", ["hgx-h100", "hgx-b200"])
def test_every_known_quantisation_has_kernels_or_a_reason(weights: tuple[str, str], preset: str) -> None:
    """On both generations and for both phases; NVFP4 goes through DeepEP in decode on SM100 alone."""
    dtype, method = weights
    model, topology = replace(TINY, weight_dtype=dtype, quant_method=method), read_topology(preset)
    for phase in TOKENS:
        backend = backend_of(phase, topology, model)
        assert not backend.unknown
        assert backend.deep or len(backend.why) > 20
        if dtype == "nvfp4":
            assert backend.deep == (phase == "decode" and preset == "hgx-b200")


def test_weights_that_nobody_has_looked_at_are_refused() -> None:
    """No kernel is guessed."""
    model = replace(TINY, weight_dtype="nvfp4", quant_method="compressed-tensors")
    (refused,) = judge_launch("sglang", asked(model, "hgx-b200")).refused
    assert refused.rule == "weights"
    assert "nvfp4 experts of quant_method 'compressed-tensors'" in refused.text


def test_an_unknown_gpu_is_said_and_an_old_one_refused() -> None:
    """Kernels are chosen as for SM90 where the GPU is not known; SGLang itself refuses a V100."""
    made = question(TINY, machine(8), 0)
    assert "compute capability of test-gpu is not known" in rule(judge_launch("sglang", made), "gpu")
    emission = ENGINE.emit(random_placement(TINY, 8, 0), made, "m")
    assert any(note.startswith("WARNING: the compute capability") for note in emission.notes)
    (refused,) = judge_launch("sglang", asked(TINY, "dgx-1v")).refused
    assert refused.text == "SGLang needs SM75 or newer; V100-SXM2-32GB is SM70"


def test_halves_of_a_pair_have_their_role_and_one_page_size() -> None:
    """A decode server has no chunks, a prefill server no graphs; pages agree whatever the GPUs are."""
    decode = emitted(asked("deepseek-v3", "hgx-b200:2"), "decode")
    prefill = emitted(asked("deepseek-v3", "hgx-h100:2", "prefill"), "prefill")
    assert (after(decode, "--disaggregation-mode"), after(decode, "--deepep-mode")) == (
        "decode",
        "low_latency",
    )
    assert "--chunked-prefill-size" not in decode
    assert (after(prefill, "--disaggregation-mode"), after(prefill, "--deepep-mode")) == ("prefill", "normal")
    assert after(prefill, "--disaggregation-bootstrap-port") == "8998"
    assert "--max-running-requests" not in prefill
    assert after(decode, "--page-size") == after(prefill, "--page-size") == "64"


def test_a_plan_for_the_other_half_is_refused() -> None:
    """By the judge as by emit."""
    problem = asked("deepseek-v3", "hgx-h200")
    for ask in (lambda: judge_launch("sglang", problem, role="prefill"), lambda: emitted(problem, "prefill")):
        with pytest.raises(BadInput, match="--role prefill: the plan is for decode"):
            ask()


def test_tokens_that_fill_no_page_are_refused() -> None:
    """SGLang asserts whole pages; what is cut off a larger chunk is said."""
    (refused,) = judge_launch("sglang", asked("deepseek-v3", "hgx-h200", "prefill", 63)).refused
    assert refused.rule == "chunk"
    rounded = judge_launch("sglang", asked("deepseek-v3", "hgx-h200", "prefill", 4100))
    assert "4096 of the plan's 4100 a rank" in rule(rounded, "chunk")


def test_the_fraction_of_memory_is_what_a_rank_leaves() -> None:
    """Between nothing and all; steps that leave nothing are refused, too large weights are warned of."""
    share = after(emitted(asked("deepseek-v3", "hgx-h100:2", "prefill")), "--mem-fraction-static")
    assert share is not None
    assert 0.5 < float(share) < 0.9
    (refused,) = judge_launch("sglang", asked("gpt-oss-120b", "hgx-h100:2", "prefill", 65536)).refused
    assert refused.rule == "memory"
    tight = judge_launch("sglang", asked("qwen3-235b-a22b", "hgx-h100"))
    assert "the weights alone take" in rule(tight, "weights-fit")


def test_gpt_oss_is_served_without_an_all_to_all_and_refused_for_the_older_release() -> None:
    """Width 2880 has no kernel and its forward no branch; before 0.5.23 a map is not served rightly so."""
    problem = asked("gpt-oss-120b", "hgx-h100")
    assert ENGINE.judge(problem).violations == []
    (refused,) = judge_launch("sglang", problem, "0.5.21").refused
    assert "0.5.21 is not known to serve a map rightly without an all-to-all: use 0.5.23" in refused.text


def test_a_width_that_the_ranks_cannot_share_is_refused() -> None:
    """72 GPUs and 8 experts without a map: nine ranks share an expert, whose width is no multiple."""
    (refused,) = judge_launch("sglang", asked("mixtral", "gb200-nvl72")).refused
    assert "into 9 for 72 GPUs, and its width 14336 does not divide" in refused.text
    assert judge_launch("sglang", asked("mixtral", "hgx-h100:2")).refused == ()


def test_every_finding_names_its_source() -> None:
    """And what is answered by flags is in the launch."""
    for model in ("deepseek-v3", "gpt-oss-120b", "mixtral"):
        problem = asked(model, "hgx-h200")
        placement = ENGINE.default_placement(problem.model, problem.gpus, problem.redundant)
        (command,) = ENGINE.emit(placement, problem, "m").commands
        said = [*command.words, *(f"{name}={value}" for name, value in command.environment)]
        for finding in judge_launch("sglang", problem).findings:
            assert finding.source
            assert finding.rule == "map" or set(finding.flags) <= set(said), finding


def router(tmp_path: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    halves = (asked("deepseek-v3", "hgx-h100:2", "prefill"), asked("deepseek-v3", "hgx-h100:2"))
    script, stand_in = tmp_path / "router.sh", tmp_path / "python3"
    script.write_text(paired_engines()["sglang"].router_text(*halves))
    stand_in.write_text('#!/bin/bash\necho "$@"\n')
    stand_in.chmod(stand_in.stat().st_mode | stat.S_IXUSR)
    path = {"PATH": f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin"}
    return subprocess.run(
        ["bash", str(script), "--log-level", "info"],
        env={**path, **environment}, capture_output=True, text=True, timeout=20, check=False,
    )  # fmt: skip


def test_the_router_reaches_both_heads(tmp_path: Path) -> None:
    """Node 0 of each half, the prefill server's bootstrap port, and what is added to the script."""
    told = router(tmp_path, PREFILL_HEAD="p.example", DECODE_HEAD="d.example").stdout.split()
    assert told[:3] == ["-m", "sglang_router.launch_router", "--pd-disaggregation"]
    assert told[3:8] == ["--prefill", "http://p.example:30000", "8998", "--decode", "http://d.example:30000"]
    assert told[-2:] == ["--log-level", "info"]


def test_the_router_says_which_head_it_needs(tmp_path: Path) -> None:
    """No host is guessed."""
    stopped = router(tmp_path, PREFILL_HEAD="p.example")
    assert stopped.returncode != 0
    assert "DECODE_HEAD: set it to the host name or address of node 0 of the decode server" in stopped.stderr


def test_a_pair_whose_caches_differ_is_refused() -> None:
    """Sparse attention keeps fp8 on SM100 and 16 bits on SM90."""
    halves = asked("deepseek-v3.2", "hgx-h200", "prefill"), asked("deepseek-v3.2", "hgx-b200")
    with pytest.raises(BadInput, match="plan both halves for GPUs of one kind"):
        paired_engines()["sglang"].router_text(*halves)
