"""Workload: one step of serving, and how its bytes travel."""

from dataclasses import dataclass

from planner.base import BadInput

TRANSPORTS = {
    "slot": "one message per token and slot (DeepEP low latency)",
    "rank": "one message per token and GPU (DeepEP on one node, DeepEP v2 direct)",
    "node": "one message per token and node over the NIC, then NVLink (DeepEP normal)",
    "allgather": "every GPU gets every token; volume independent of placement",
}
BYTES_PER_ELEMENT = {"fp8": 1.0 + 4 / 128, "bf16": 2.0}  # fp8 carries one float32 scale per 128 elements


PROMPT_TOKENS = OUTPUT_TOKENS = 1024  # of a request, where nobody says: assumed


@dataclass(frozen=True)
class Workload:
    """One step of serving: how many tokens each rank brings, how they travel, and of which requests.

    Groups of `attention_tp` GPUs share the attention of their requests; groups / attention_tp serve side by
    side. In decode a group runs tokens_per_rank * attention_tp requests at once.
    """

    tokens_per_rank: int = 128
    phase: str = "decode"
    dispatch_dtype: str = "bf16"
    combine_dtype: str = "bf16"
    transport: str = "slot"
    prompt_tokens: int = PROMPT_TOKENS  # of a request
    output_tokens: int = OUTPUT_TOKENS
    attention_tp: int = 1  # GPUs that share one request's attention
    context_given: bool = False  # whether somebody said how long requests are; else it is assumed

    def __post_init__(self) -> None:
        if self.tokens_per_rank < 1:
            raise BadInput(f"tokens per rank is {self.tokens_per_rank}; it must be at least 1")
        for name in ("prompt_tokens", "output_tokens", "attention_tp"):
            if getattr(self, name) < 1:
                said = f"{name.replace('_', ' ')} is {getattr(self, name)}"
                raise BadInput(f"{said}; it must be at least 1")
        if self.phase not in ("prefill", "decode"):
            raise BadInput(f"phase {self.phase!r} is neither prefill nor decode")
        if self.transport not in TRANSPORTS:
            raise BadInput(f"transport {self.transport!r} is unknown; known are {', '.join(TRANSPORTS)}")
        for dtype in (self.dispatch_dtype, self.combine_dtype):
            if dtype not in BYTES_PER_ELEMENT:
                known = ", ".join(BYTES_PER_ELEMENT)
                raise BadInput(f"dispatch or combine dtype {dtype!r} is unknown; known are {known}")

    @property
    def context_tokens(self) -> int:
        """Tokens that a request has at its end."""
        return self.prompt_tokens + self.output_tokens
