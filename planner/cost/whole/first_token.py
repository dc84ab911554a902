"""The first token: terms of the time between a request and its first token, on a server that has room for it.

Not a queue: a prompt waits for those that came with it, not for a server that is full.
"""

from planner.cost.whole.asked import Asked
from planner.cost.whole.machine import Machine
from planner.cost.whole.terms import prompt_seconds
from planner.model import body_parts
from planner.problem import Problem

START_SECONDS = 0.1  # unit of what is not work: HTTP, tokenizing, scheduling
TTFT_TERMS = ("start", "weights", "prompt", "waiting")
JUDGED_REQUESTS = 16  # open at once on a server, up to which the time is fitted and judged


def ttft_terms(problem: Problem, asked: Asked) -> dict[str, float]:
    """Seconds of each of TTFT_TERMS, before any calibration."""
    machine, model = Machine(problem), asked.model
    parts = body_parts(model, asked.attention_tp)
    experts = len(model.moe_layer_ids) * model.experts * model.expert_bytes / problem.gpus
    weights_bytes = experts + sum(parts[name].size_bytes for name in ("attention", "dense", "shared"))
    prompt = prompt_seconds(problem, asked, asked.prompt_tokens)
    return {
        "start": START_SECONDS,
        "weights": weights_bytes / machine.bytes_per_s,
        "prompt": prompt,
        "waiting": prompt * asked.requests,
    }
