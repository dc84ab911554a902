"""What a person says of a plan, its model and EP size, held against what the plan says itself."""

from collections.abc import Iterator

from planner.model import ModelSpec, find_model, model_names
from planner.problem import Problem, Violation

SHAPE = {  # what two descriptions of one model agree in, and how each is called
    "architecture": "architecture",
    "layers": "layers",
    "experts": "experts",
    "moe_layer_ids": "MoE layers",
    "draft_layer_ids": "draft layers",
    "top_k": "experts a token",
    "hidden": "hidden size",
    "expert_intermediate": "expert width",
}


def contradictions(
    problem: Problem, where: str, model_name: str | None, ep: int | None
) -> Iterator[Violation]:
    """Where the plan is for another model or EP size than it is said to be."""
    planned = problem.model
    asked = find_model(model_name) if model_name else planned
    if _others(planned, asked):
        how = "; ".join(_differences(planned, asked)[:3])
        text = f"{where} is for {planned.name}, not for {asked.name}"
        yield Violation("other-model", f"{text} ({how})" if how else text)
    if ep is not None and ep != problem.gpus:
        yield Violation("other-ep", f"{where} is for an EP size of {problem.gpus}, not {ep}")


def _others(planned: ModelSpec, asked: ModelSpec) -> bool:
    """Two entries of the catalogue are two models; a config.json is any model that has its shape."""
    catalogued = {planned.name, asked.name} <= set(model_names())
    return bool(_differences(planned, asked)) or (catalogued and planned.name != asked.name)


def _differences(planned: ModelSpec, asked: ModelSpec) -> list[str]:
    pairs = {word: (getattr(planned, key), getattr(asked, key)) for key, word in SHAPE.items()}
    return [
        f"{word} {_shown(has)}, not {_shown(wanted)}"
        for word, (has, wanted) in pairs.items()
        if has != wanted
    ]


def _shown(value: str | int | tuple[int, ...]) -> str:
    return spans(value) if isinstance(value, tuple) else str(value)


def spans(numbers: tuple[int, ...]) -> str:
    """Numbers in few words.

    >>> spans((3, 4, 5, 9)), spans(())
    ('3..5, 9', 'none')
    """
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    shown = ["..".join(map(str, run)) for run in runs]
    more = f" and {len(shown) - 12} more" if len(shown) > 12 else ""
    return ", ".join(shown[:12]) + more if shown else "none"
