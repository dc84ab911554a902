"""Sizes of a launch by one rule: tokens a rank -> running requests, graphs, chunk, dispatch buffer.

A decode step brings a token a request. What a server is told must agree: no step that it forms may bring more
tokens to a rank than the low-latency buffer holds, and a chunk holds whole pages of the KV cache.
"""

from dataclasses import dataclass

from planner.engines.common.verdict import DECODE, MIXED, PREFILL

LOW_LATENCY, NORMAL, AUTO, GATHER = "low_latency", "normal", "auto", "none"
DECODE_TOKENS, PREFILL_TOKENS = 128, 4096  # a rank, for the phase that was not planned
GATHERED_TOKENS = 16384  # of all ranks, for the same: without an all-to-all every rank holds them all
LEAST_BUFFER, MOST_BUFFER = 128, 1024  # tokens a rank
_BUFFER_STEP = 4  # ranks x buffer in whole cache lines, whatever the ranks
_MIXED_CHUNK = 256  # the least chunk of a server whose chunks go through the low-latency buffer


@dataclass(frozen=True)
class Sizes:
    """Tokens that one rank handles in a step; 0 where the server has no such step."""

    running: int  # requests that decode at once, and the largest graph
    chunk: int  # tokens of prompts
    buffer: int  # tokens that the low-latency buffer holds


def sizes_of(phase: str, tokens: int, role: str, mode: str, *, gpus: int, page: int) -> Sizes:
    """Sizes of a server that was planned for `phase`.

    >>> sizes_of("decode", 200, "mixed", "auto", gpus=16, page=64)
    Sizes(running=200, chunk=4096, buffer=200)
    """
    running = 0 if role == PREFILL else tokens if phase == "decode" else DECODE_TOKENS
    chunk = 0 if role == DECODE else tokens if phase == "prefill" else _unplanned_chunk(mode, gpus, page)
    chunk = chunk // page * page
    if mode == LOW_LATENCY and role == MIXED:
        chunk = min(_whole(max(running, _MIXED_CHUNK), max(page, _MIXED_CHUNK)), MOST_BUFFER)
    if mode not in (LOW_LATENCY, AUTO):
        return Sizes(running, chunk, 0)
    through = max(running, chunk) if mode == LOW_LATENCY else running
    return Sizes(running, chunk, max(LEAST_BUFFER, _whole(through, _BUFFER_STEP)))


def _unplanned_chunk(mode: str, gpus: int, page: int) -> int:
    return max(page, GATHERED_TOKENS // gpus) if mode == GATHER else PREFILL_TOKENS


def _whole(tokens: int, step: int) -> int:
    return -(-tokens // step) * step
