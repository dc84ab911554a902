"""Buffers that lie on every GPU beside weights and KV cache: of the all-to-all, and to move weights through.

Sources: DeepEP csrc/config.hpp (030cdf0) for the low-latency buffer; vLLM 0.33.0 and SGLang 0.5.23 for what
they ask DeepEP for, vLLM for its 1 GiB buffers and its transfer buffer; read, and what vLLM asks DeepEP for
run too.
"""

from planner.cost.memory.case import Case
from planner.cost.memory.line import Line

SGLANG_TOKENS = 128  # fewest tokens a rank that SGLang sizes the low-latency buffer for
# Bytes of vLLM's DeepEP buffers in normal mode: VLLM_DEEPEP_BUFFER_SIZE_MB is 1024. Launches in low latency
# mode, which uses none, set it to 0.
NVLINK_BUFFER = RDMA_BUFFER = 1 << 30
# Of DeepEP's kernels; vLLM pads up to one.
LOW_LATENCY_WIDTHS = (2048, 2560, 3072, 4096, 5120, 6144, 7168, 8192)
MOVING = ("vllm",)  # engines that move weights while they serve, also where the plan never changes


def all_to_all(case: Case, engine: str | None) -> Line:
    """The buffers of the transport, which the engine allocates once for all layers."""
    transport, tokens = case.workload.transport, case.workload.tokens_per_rank
    width = case.model.dispatch_width
    if transport == "slot":
        tokens = max(tokens, SGLANG_TOKENS) if engine == "sglang" else tokens
        tokens *= case.workload.attention_tp if engine == "vllm" else 1  # it asks for those of a whole group
        width = low_latency_width(width) if engine == "vllm" else width
        known = "read" if engine in ("sglang", "vllm") else "assumed"
        basis = f"{known}: DeepEP low latency for {tokens} tokens a rank"
        return Line("all_to_all", low_latency_bytes(tokens, width, case.slots), basis)
    if transport in ("rank", "node"):
        network = RDMA_BUFFER if transport == "node" else 0
        known = "read" if engine == "vllm" else "assumed"
        basis = f"{known}: 1 GiB for NVLink{', 1 GiB for the network' if network else ''}"
        return Line("all_to_all", float(NVLINK_BUFFER + network), basis)
    gathered = gathered_bytes(case, tokens)
    return Line("all_to_all", gathered, "assumed: every rank's tokens in bf16, in and out")


def transfer(case: Case, engine: str | None) -> Line:
    if engine not in MOVING:
        return Line("transfer", 0.0, "read: the plan is loaded once, no weight is moved")
    layer_bytes = case.slots_per_gpu * case.model.expert_bytes
    return Line("transfer", layer_bytes, "read: one layer's slots, to move weights through")


def gathered_bytes(case: Case, tokens: int) -> float:
    """Every rank's tokens, in and out, in bf16."""
    return 2 * case.gpus * tokens * case.model.dispatch_width * 2.0


def low_latency_bytes(tokens: int, hidden: int, slots: int) -> int:
    """DeepEP's low-latency buffer of one rank: two send and two receive buffers with a message for each slot
    and token, and their signals.

    >>> low_latency_bytes(128, 7168, 288) / 1e9  # DeepSeek-V3 with 32 redundant experts
    2.146961792
    """
    dispatch = 16 + max(2 * hidden, hidden + hidden // 128 * 4)
    combine = hidden // 128 * 4 + 2 * hidden
    send = tokens * max(dispatch, slots * combine)
    receive = slots * tokens * max(dispatch, combine)
    signals = -(-slots * 4 // 128) * 128
    return (2 * (send + receive + signals) // 128 + 1) * 128


def low_latency_width(width: int) -> int:
    """Elements that vLLM sends of a token: the next that DeepEP has a kernel for, or as many where none has.

    >>> low_latency_width(2880), low_latency_width(7168), low_latency_width(9216)
    (3072, 7168, 9216)
    """
    return next((known for known in LOW_LATENCY_WIDTHS if known >= width), width)
