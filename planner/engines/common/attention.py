"""Attention over several GPUs: how many share one request's, and whether its heads divide over them."""

from collections.abc import Iterator

from planner.model import Attention, ModelSpec
from planner.problem import Problem, Violation

RULE = "attention-tp"


def one_gpu(title: str, problem: Problem, why: str = "") -> list[Violation]:
    """The limit of engines whose launches give every GPU requests of its own."""
    shared = problem.workload.attention_tp
    if shared == 1:
        return []
    because = why or f"{title}'s launch is written for a GPU a request"
    return [Violation(RULE, f"{because}, not for attention over {shared} GPUs: use --attention-tp 1")]


def undivided_heads(model: ModelSpec, shared: int) -> list[Violation]:
    """Heads that do not divide over the GPUs that share a request: each holds whole ones.

    Fewer heads of keys and values than GPUs are copied, and then the GPUs must divide by them.
    """
    if shared == 1 or model.body is None:
        return []
    for kind in (*model.body.attention, *model.body.draft_attention):
        for count, whose in _heads(kind):
            if count % shared and not (whose == "key and value" and shared % count == 0):
                text = f"{model.name} has {count} {whose} heads, which do not divide over {shared} GPUs"
                return [Violation(RULE, f"{text}: use another --attention-tp")]
    return []


def group_sizes(gpus_of_nodes: tuple[int, ...], shared: int) -> list[Violation]:
    """The limit of engines that start the GPUs of one request on one node."""
    if all(count % shared == 0 for count in gpus_of_nodes):
        return []
    counts = ", ".join(map(str, sorted(set(gpus_of_nodes))))
    text = f"nodes of {counts} GPUs do not divide into {shared} that share a request's attention"
    return [Violation(RULE, f"{text}: use a smaller --attention-tp")]


def _heads(kind: Attention) -> Iterator[tuple[int, str]]:
    yield kind.heads, "attention"
    if kind.kind == "mamba2" and kind.groups > 1:
        yield kind.groups, "state"
    if kind.kv_heads:
        yield kind.kv_heads, "key" if kind.kind == "delta" else "key and value"
