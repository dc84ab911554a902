"""Attention over several GPUs in vLLM: a data-parallel rank of them, whose tokens must be dealt out."""

from planner.engines.common import attention
from planner.engines.common.layout import gpus_per_node
from planner.engines.vllm.backend import WHEEL
from planner.engines.vllm.models import SHARES_TOKENS
from planner.problem import Problem, Violation


def attention_limits(problem: Problem) -> list[Violation]:
    """Where GPUs cannot share a request, or would each send all its tokens to the experts."""
    shared, architecture = problem.workload.attention_tp, problem.model.architecture
    if shared == 1:
        return []
    found = attention.undivided_heads(problem.model, shared)
    found += attention.group_sizes(gpus_per_node(problem.topology), shared)
    if shared == problem.gpus:
        text = f"{WHEEL} uses no all-to-all where all {shared} GPUs share a request"
        found.append(Violation(attention.RULE, f"{text}: use a smaller --attention-tp"))
    if architecture not in SHARES_TOKENS:
        text = f"each of {shared} GPUs would send all tokens of their requests: {WHEEL} deals them out for"
        found.append(
            Violation(attention.RULE, f"{text} other models, not {architecture}; use --attention-tp 1")
        )
    return found
