"""Where the memory of a GPU goes: weights, buffers, and the rest for the KV cache.

Expert slots are exact; other weights, all-to-all and transfer buffers go as far as sources tell. Sources:
DeepEP csrc/config.hpp (030cdf0) for the low-latency buffer; vLLM 0.33.0 and SGLang 0.5.23 for what they ask
DeepEP for, vLLM for its 1 GiB buffers and its transfer buffer; read, and what vLLM asks DeepEP for run too.
Everything else is assumed, and says so.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from planner.base import Infeasible
from planner.problem import Problem

ProblemOfR = Callable[[int], Problem]

# attention weights of a layer over hidden^2: queries, keys, values, output of one width; MLA and GQA are near
ATTENTION_SQUARES = 4
DENSE_SQUARES = 8  # of a dense layer's feed-forward
VOCABULARY = 128 * 1024  # tokens, embedded once and projected once, in bf16
SGLANG_TOKENS = 128  # fewest tokens a rank that SGLang sizes the low-latency buffer for
# Bytes of vLLM's DeepEP buffers in normal mode: VLLM_DEEPEP_BUFFER_SIZE_MB is 1024. Launches in low latency
# mode, which uses none, set it to 0.
NVLINK_BUFFER = RDMA_BUFFER = 1 << 30
LOW_LATENCY_WIDTHS = (
    2048,
    2560,
    3072,
    4096,
    5120,
    6144,
    7168,
    8192,
)  # of DeepEP's kernels; vLLM pads up to one
MOVING = ("vllm",)  # engines that move weights while they serve, also where the plan never changes


@dataclass(frozen=True)
class Line:
    """One use of memory. `basis`: exact, read or assumed, and of what."""

    name: str
    size_bytes: float
    basis: str


@dataclass(frozen=True)
class Ledger:
    """The GPU that keeps least, and what it holds."""

    gpu: int
    memory_bytes: float
    lines: tuple[Line, ...]

    @property
    def kv_left_bytes(self) -> float:
        """For the KV cache, activations and the driver; negative where the lines do not fit."""
        return self.memory_bytes - sum(line.size_bytes for line in self.lines)


def ledger(problem: Problem, engine: str | None) -> Ledger:
    """What lies on each GPU; all hold as much, so the one with least memory keeps least."""
    gpu = int(problem.free_bytes_G.argmin())
    needed = -(-problem.model.experts // problem.gpus)
    by_thumb = "assumed: attention, dense layers and embeddings by rule of thumb, whole on every GPU"
    lines = (
        Line("expert_weights", needed * problem.slot_bytes, "exact"),
        Line("replica", (problem.slots_per_gpu - needed) * problem.slot_bytes, "exact"),
        Line("other_weights", _other_weights(problem), by_thumb),
        _all_to_all(problem, engine),
        _transfer(problem, engine),
    )
    return Ledger(gpu, problem.topology.gpus[gpu].model.memory_bytes, lines)


def within_floor(problem_of: ProblemOfR, engine: str | None) -> ProblemOfR:
    """The same question, Infeasible where the ledger leaves less than the floor asked for.

    Without a floor nothing is refused by what is assumed.
    """

    def resolve(redundant: int) -> Problem:
        problem = problem_of(redundant)
        if problem.kv_floor_bytes and ledger(problem, engine).kv_left_bytes < problem.kv_floor_bytes:
            raise Infeasible(_too_little(problem, engine))
        return problem

    return resolve


def memory_notes(problem: Problem, engine: str | None) -> tuple[str, ...]:
    missing = -ledger(problem, engine).kv_left_bytes
    if missing <= 0:
        return ()
    what = f"the memory of a GPU is {missing / 1e9:.1f} GB too small for weights and buffers"
    return (f"WARNING: {what} (other weights and some buffers are assumed)",)


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


def _other_weights(problem: Problem) -> float:
    model = problem.model
    element = 1.0 if model.weight_dtype == "fp8" else 2.0
    attention = ATTENTION_SQUARES * (model.layers + len(model.draft_layer_ids))
    dense = DENSE_SQUARES * (model.layers - len(model.moe_layer_ids))
    shared = model.shared_experts * model.expert_bytes * len(model.placed_layer_ids)
    return (attention + dense) * model.hidden**2 * element + shared + 2 * VOCABULARY * model.hidden * 2.0


def _all_to_all(problem: Problem, engine: str | None) -> Line:
    """The buffers of the transport, which the engine allocates once for all layers."""
    transport, tokens = problem.workload.transport, problem.workload.tokens_per_rank
    width = problem.model.dispatch_width
    if transport == "slot":
        tokens = max(tokens, SGLANG_TOKENS) if engine == "sglang" else tokens
        width = low_latency_width(width) if engine == "vllm" else width
        known = "read" if engine in ("sglang", "vllm") else "assumed"
        basis = f"{known}: DeepEP low latency for {tokens} tokens a rank"
        return Line("all_to_all", low_latency_bytes(tokens, width, problem.slots), basis)
    if transport in ("rank", "node"):
        network = RDMA_BUFFER if transport == "node" else 0
        known = "read" if engine == "vllm" else "assumed"
        basis = f"{known}: 1 GiB for NVLink{', 1 GiB for the network' if network else ''}"
        return Line("all_to_all", float(NVLINK_BUFFER + network), basis)
    gathered = 2 * problem.gpus * tokens * width * 2.0
    return Line("all_to_all", gathered, "assumed: every rank's tokens in bf16, in and out")


def _transfer(problem: Problem, engine: str | None) -> Line:
    if engine not in MOVING:
        return Line("transfer", 0.0, "read: the plan is loaded once, no weight is moved")
    layer_bytes = problem.slots_per_gpu * problem.model.expert_bytes
    return Line("transfer", layer_bytes, "read: one layer's slots, to move weights through")


def _too_little(problem: Problem, engine: str | None) -> str:
    found = ledger(problem, engine)
    held = ", ".join(
        f"{line.name.replace('_', ' ')} {line.size_bytes / 1e9:.1f} GB ({line.basis.split(':')[0]})"
        for line in found.lines
        if line.size_bytes
    )
    return (
        f"GPU {found.gpu} of {found.memory_bytes / 1e9:.1f} GB keeps {found.kv_left_bytes / 1e9:.1f} GB "
        f"for the KV cache beside {held}; "
        f"less than the floor of {problem.kv_floor_bytes / 1e9:.1f} GB: {_way_out(problem, engine)}"
    )


def _way_out(problem: Problem, engine: str | None) -> str:
    """The most redundant experts that leave the floor free, or why there are none."""
    least = -problem.model.experts % problem.gpus
    for redundant in range(problem.redundant - problem.gpus, least - 1, -problem.gpus):
        try:
            fewer = replace(problem, slots_per_gpu=(problem.model.experts + redundant) // problem.gpus)
        except Infeasible as limit:  # of what else is asked; fewer still are no better
            return f"use more GPUs or a lower floor, for fewer redundant experts do not do: {limit}"
        if ledger(fewer, engine).kv_left_bytes >= problem.kv_floor_bytes:
            return f"--redundant {redundant} would fit"
    return "no number of redundant experts fits: use more GPUs, or a lower floor"
