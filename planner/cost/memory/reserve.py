"""What an engine keeps free of a GPU's memory: the driver, activations, graphs, and its own margin.

Sources: SGLang 0.5.23 arg_groups/memory_hook.py, which takes the totals over all ranks for what each holds,
and here is taken for one rank; vLLM 0.33.0 config/cache.py and v1/worker/gpu_worker.py; TensorRT-LLM's
documented default of free_gpu_memory_fraction. Read.
"""

from planner.cost.memory.buffers import (
    NVLINK_BUFFER,
    RDMA_BUFFER,
    SGLANG_TOKENS,
    gathered_bytes,
    low_latency_bytes,
)
from planner.cost.memory.case import Case
from planner.cost.memory.line import Line
from planner.model import ModelSpec

MIB, GIB = 1 << 20, 1 << 30
TOKEN_BYTES = 1.5 * MIB  # activations of a token, SGLang's figure
LEAST_TOKENS = 2048
LEAST_FREE, LARGE_GPU = 10 * GIB, 60 * GIB  # SGLang's floor, and from which memory on it holds
GRAPH_RANKS = 8  # above it a graph's padding does not grow with the ranks where tokens go through DeepEP
FRACTION_STEP = 0.001  # SGLang's fraction has three digits
# Tokens a rank of the phase that was not planned, for a server of both.
OTHER_TOKENS = {"decode": 128, "prefill": 4096}
LEAST_CHUNK = 256  # of prompts that go through the low-latency buffer
GATHERED_TOKENS = 16384  # the same for prompts of all ranks, where every rank holds them all

VLLM_MARGIN = 0.08  # of the memory: gpu_memory_utilization is 0.92
TRTLLM_MARGIN = 0.1  # of what weights and buffers leave: free_gpu_memory_fraction is 0.9
ASSUMED_MARGIN = 0.1  # of the memory
DRIVER = GIB  # CUDA context, NCCL
SGLANG_KIN = ("sglang", "tokenspeed")
VLLM_KIN = ("vllm", "hygon", "vllm_ascend")


def reserve(case: Case, engine: str | None, held_bytes: float) -> Line:
    """`held_bytes`: of weights and buffers."""
    if engine in SGLANG_KIN:
        known = "read: SGLang 0.5.23" if engine == "sglang" else "assumed: as SGLang 0.5.23"
        basis = f"{known} leaves it for activations, graphs and buffers (--mem-fraction-static)"
        return Line("reserve", _sglang(case), basis)
    activations = DRIVER + TOKEN_BYTES * case.workload.tokens_per_rank
    if engine in VLLM_KIN:
        margin = VLLM_MARGIN * case.memory_bytes
        known = "read: vLLM 0.33.0" if engine == "vllm" else "assumed: as vLLM 0.33.0"
        basis = f"{known}, gpu_memory_utilization is 0.92; driver and activations assumed"
        return Line("reserve", margin + activations, basis)
    if engine == "trtllm":
        left = max(0.0, case.memory_bytes - held_bytes - activations)
        basis = "read: free_gpu_memory_fraction is 0.9; driver and activations assumed"
        return Line("reserve", TRTLLM_MARGIN * left + activations, basis)
    basis = f"assumed: {ASSUMED_MARGIN:.0%} for the driver, activations and graphs"
    return Line("reserve", ASSUMED_MARGIN * case.memory_bytes, basis)


def sglang_free_bytes(
    model: ModelSpec,
    gpus: int,
    memory_bytes: float,
    *,
    running: int,
    chunk: int,
    shared: int,
    gathers: bool,
    graphs: bool = True,
) -> float:
    """What SGLang keeps free beside buffers, for steps of so many tokens of a rank.

    `gathers`: there is no all-to-all, so that its experts see the tokens of all ranks. `shared`: GPUs that
    share a request's attention also hold each other's tokens before and after it.
    """
    tokens = max(running, chunk)
    free = TOKEN_BYTES * max(tokens, LEAST_TOKENS) + GIB / 2 + min(gpus, 16) / 8 * GIB
    free += 2 * 2.0 * (shared - 1) * tokens * model.hidden
    if gathers:
        width = model.expert_matrices * model.expert_intermediate + model.dispatch_width
        free += 2.0 * gpus * tokens * model.top_k * width
    if graphs:
        free += running * (2 + 3 * (gpus if gathers else min(gpus, GRAPH_RANKS))) * MIB
    return max(free, LEAST_FREE) if memory_bytes > LARGE_GPU else free


def _sglang(case: Case) -> float:
    """Of a server of both phases, as a launch starts it unless it is told its role.

    Without an all-to-all in one phase it may have one in the other: what takes more is kept.
    """
    phase, tokens = case.workload.phase, case.workload.tokens_per_rank
    gathers = case.workload.transport == "allgather"
    other_chunk = max(64, GATHERED_TOKENS // case.gpus) if gathers else OTHER_TOKENS["prefill"]
    running, chunk = (tokens, other_chunk) if phase == "decode" else (OTHER_TOKENS["decode"], tokens)
    kept = _free(case, running, chunk, gathers=gathers) + _other_buffer(case, max(running, chunk))
    if gathers:
        deep = chunk if phase == "prefill" else OTHER_TOKENS["prefill"]
        buffers = _low_latency(case, running) + _normal(case)
        planned = gathered_bytes(case, tokens)
        kept = max(kept, _free(case, running, deep, gathers=False) + buffers - planned)
    return kept + FRACTION_STEP * case.memory_bytes


def _free(case: Case, running: int, chunk: int, *, gathers: bool) -> float:
    return sglang_free_bytes(
        case.model,
        case.gpus,
        case.memory_bytes,
        running=running,
        chunk=chunk,
        shared=case.workload.attention_tp,
        gathers=gathers,
    )


def _other_buffer(case: Case, tokens: int) -> float:
    """The buffer of the phase that was not planned.

    Where both go through low latency, a chunk of prompts is larger than a decode step.
    """
    planned = case.workload.tokens_per_rank
    if case.workload.transport == "allgather":
        return gathered_bytes(case, tokens - planned)
    if case.workload.transport == "slot":
        through = _low_latency(case, max(planned, LEAST_CHUNK)) - _low_latency(case, planned)
        return max(_normal(case), through)
    return _low_latency(case, SGLANG_TOKENS)


def _normal(case: Case) -> float:
    return float(NVLINK_BUFFER if case.one_hop else NVLINK_BUFFER + RDMA_BUFFER)


def _low_latency(case: Case, tokens: int) -> float:
    return float(low_latency_bytes(max(tokens, SGLANG_TOKENS), case.model.dispatch_width, case.slots))
