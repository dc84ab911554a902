"""What an engine would make of a plan or a map file: whether it reads one, reads this one, and its limits."""

from collections.abc import Iterator

from planner.engines import engine_names, find_engine, find_format, map_formats
from planner.model import ModelSpec
from planner.problem import Problem, Violation


def map_violations(
    engine: str, named: str, model: ModelSpec | None, slots: int, gpus: int | None
) -> Iterator[Violation]:
    """What stands between a map of the format `named` and `engine`, which may be a map format's name."""
    if engine not in engine_names():
        if engine != named:
            of, expected = find_format(named).TITLE, find_format(engine).TITLE
            yield Violation("format", f"this is a map of {of}, not {expected}")
        return
    found = find_engine(engine)
    if engine not in map_formats():
        yield Violation("ignored", f"{found.TITLE} {found.VERSION} reads no map file")
        return
    if engine != named:
        of = f"it is a map of {find_format(named).TITLE}"
        own = f"`moeplan convert --to {engine}` makes its own"
        yield Violation("format", f"{found.TITLE} would not read this: {of}; {own}")
    if model is None:
        return
    if not found.reads_map(model):
        text = f"does not read a map for {model.architecture}: it would ignore this one"
        yield Violation("ignored", f"{found.TITLE} {found.VERSION} {text}")
    yield from found.map_limits(model, slots, gpus or 2)


def plan_violations(engine: str, problem: Problem) -> Iterator[Violation]:
    """What stands between a plan and `engine`."""
    found = find_engine(engine)
    yield from found.limits(problem)
    if not found.reads_map(problem.model):
        text = f"reads no map for {problem.model.architecture}: it would not serve this plan's placement"
        yield Violation("ignored", f"{found.TITLE} {found.VERSION} {text}")
