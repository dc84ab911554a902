"""The nearest that fits: fewer replicas, else shorter or fewer requests, more GPUs, a smaller release."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from planner.base import Infeasible
from planner.cost.memory.case import Case
from planner.cost.memory.ledger import ledger_of
from planner.model import ModelSpec, find_model, model_names
from planner.problem import Problem

WORTH_SERVING = 256  # tokens: no shorter context is named beside another change
MOST_GPUS = 1024  # beyond it no number of GPUs is named
SUFFIX = re.compile(r"-(BF16|FP8|NVFP4|MXFP4|INT4|AWQ|GPTQ)$", re.IGNORECASE)


def nearest(
    case: Case, engine: str | None, problem_of: Callable[[int], Problem] | None = None, node_gpus: int = 8
) -> str:
    """What to change so that the case fits, as one clause. `problem_of`: what else is asked of R."""
    refused = ""
    for slots in range(case.slots_per_gpu - 1, case.fewest_slots - 1, -1):
        fewer = replace(case, slots_per_gpu=slots)
        if not ledger_of(fewer, engine).fits:
            continue
        refused = _refused(problem_of, fewer.redundant)
        if not refused:
            return f"the most that fits is --redundant {fewer.redundant}"
        break
    # of fewer replicas, those that the rest of the question allows
    least = case if refused else replace(case, slots_per_gpu=case.fewest_slots)
    fewest = "" if least.slots_per_gpu == case.slots_per_gpu else f"--redundant {least.redundant} "
    ways = [f"{fewest}{way}" for way in _less_load(least, engine)]
    ways += [f"{fewest}{way}" for way in _smaller_release(least, engine)]
    ways += _more_gpus(least, engine, node_gpus, shorter=not ways)
    found = f"what fits is {', or '.join(ways)}" if ways else "no context and no number of GPUs fits"
    return found + (f"; fewer redundant experts do not do: {refused}" if refused else "")


def _refused(problem_of: Callable[[int], Problem] | None, redundant: int) -> str:
    if problem_of is None:
        return ""
    try:
        problem_of(redundant)
    except Infeasible as limit:
        return str(limit)
    return ""


def _less_load(case: Case, engine: str | None) -> Iterator[str]:
    """A smaller floor where one was given; else the longest context, or the most tokens a rank."""
    found = ledger_of(case, engine)
    if case.kv_floor_bytes:
        if found.kv_left_bytes > 0:
            yield f"--kv-floor '{int(found.kv_left_bytes / 1e8) / 10} GB'"
        return
    workload = case.workload
    context = _longest(case, engine)
    if context:
        yield f"--context {context}"
    if workload.phase == "decode":
        tokens = _most(
            workload.tokens_per_rank - 1,
            lambda tokens: _fits(replace(case, workload=replace(workload, tokens_per_rank=tokens)), engine),
        )
        if tokens:
            yield f"--tokens-per-rank {tokens}"


def _longest(case: Case, engine: str | None) -> int:
    """The longest context that fits, in whole sixteens where there are some; 0: none."""
    if case.kv_floor_bytes:
        return 0
    most = case.workload.context_tokens - 1
    context = _most(most, lambda tokens: _fits(_with_context(case, tokens), engine))
    rounded = context // 16 * 16
    if rounded and _fits(_with_context(case, rounded), engine):
        return rounded
    return context if context > 1 else 0


def _more_gpus(case: Case, engine: str | None, node_gpus: int, *, shorter: bool) -> Iterator[str]:
    """The fewest that hold the whole; with `shorter`, also the fewest that hold shorter requests."""
    step = min(node_gpus, case.gpus)
    for gpus in range(case.gpus + step, min(MOST_GPUS, case.model.experts) + 1, step):
        slots = -(-case.model.experts // gpus)
        more = replace(case, gpus=gpus, slots_per_gpu=slots, one_hop=False)
        if gpus % case.workload.attention_tp:
            continue
        named = f"{gpus} such GPUs (R = {more.redundant})"
        if _fits(more, engine):
            yield named
            return
        if shorter and not case.kv_floor_bytes and _fits(_with_context(more, WORTH_SERVING), engine):
            yield f"{named} with --context {_longest(more, engine)}"
            shorter = False


def _smaller_release(case: Case, engine: str | None) -> Iterator[str]:
    """Of the catalogue: the same model with fewer bytes an expert, with shorter requests where it must."""
    names = (name for name in model_names() if _stem(name) == _stem(case.model.name))
    smaller = sorted(
        (model for model in map(find_model, names) if model.expert_bytes < case.model.expert_bytes),
        key=lambda model: (-model.expert_bytes, model.name),
    )
    for other in (replace(case, model=model) for model in smaller if _same(model, case.model)):
        if _fits(other, engine):
            yield f"--model {other.model.name}"
            return
        if not case.kv_floor_bytes and _fits(_with_context(other, WORTH_SERVING), engine):
            yield f"--model {other.model.name} --context {_longest(other, engine)}"
            return


def _same(one: ModelSpec, other: ModelSpec) -> bool:
    return (one.placed_layer_ids, one.experts, one.hidden) == (
        other.placed_layer_ids,
        other.experts,
        other.hidden,
    )


def _stem(name: str) -> str:
    return SUFFIX.sub("", name.rsplit("/", 1)[-1]).lower()


def _fits(case: Case, engine: str | None) -> bool:
    return ledger_of(case, engine).fits


def _with_context(case: Case, tokens: int) -> Case:
    prompt = max(1, tokens - tokens // 2)
    workload = replace(case.workload, prompt_tokens=prompt, output_tokens=max(1, tokens // 2))
    return replace(case, workload=workload)


def _most(most: int, fits: Callable[[int], bool]) -> int:
    """The largest whole number from 1 to `most` that fits, where smaller ones do too; 0: none."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
