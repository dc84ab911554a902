"""What an engine would make of a plan or a map file: whether it reads one, reads this one, and its limits."""

from collections.abc import Iterator
from dataclasses import replace

from planner.cost import cost
from planner.engines import (
    Finding,
    check_role,
    engine_names,
    find_engine,
    find_format,
    judge_fit,
    judge_launch,
    map_formats,
    plugin_engines,
    stand_ins,
)
from planner.model import ModelSpec
from planner.placement import Placement
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
    if engine == getattr(find_format(named), "PLUGIN_OF", None):
        yield from _plugin_violations(engine, model, slots, gpus)
        return
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


def _plugin_violations(
    engine: str, model: ModelSpec | None, slots: int, gpus: int | None
) -> Iterator[Violation]:
    """What stands between the map of an engine's plugin and that engine with the plugin."""
    if model is None:
        return
    found = find_engine(engine)
    if not _plugin_serves(engine, model):
        text = (
            f"has no balancer for {model.architecture}, which its plugin needs: it would not serve this map"
        )
        yield Violation("ignored", f"{found.TITLE} {found.VERSION} {text}")
    yield from found.map_limits(model, slots, gpus or 2)


def plan_verdict(
    engine: str, problem: Problem, role: str, *, plugin: bool = False
) -> tuple[list[Violation], tuple[str, ...]]:
    """What stands between a plan and `engine`, by the judge of launches, and what the launch needs to stand.

    `plugin`: the engine has the plugin that makes it serve a plan.
    BadInput where the engine is not started in this role, or the plan is for the other half of a pair.
    """
    found = find_engine(engine)
    check_role(found.TITLE, role, found.ROLES, problem.workload.phase)
    verdict = judge_launch(engine, problem, None, role)
    fit = judge_fit(engine, problem)
    if fit.refused:
        verdict = replace(verdict, findings=(*verdict.findings, fit))
    notes = tuple(_said(finding) for finding in verdict.findings if not finding.refused)
    broken = verdict.violations
    served = found.reads_map(problem.model) or (plugin and _plugin_serves(engine, problem.model))
    if not served and not any(one.rule == "ignored" for one in broken):
        text = f"reads no map for {problem.model.architecture}: it would not serve this plan's placement"
        broken.append(Violation("ignored", f"{found.TITLE} {found.VERSION} {text}"))
    return broken, notes


def stand_in_note(engine: str, problem: Problem, placement: Placement) -> Iterator[str]:
    """How a step of what the engine makes of a plan compares with the plan's, where it takes no map."""
    if engine not in stand_ins() or not stand_ins()[engine].reads_map(problem.model):
        return
    found = stand_ins()[engine]
    rule = found.replica_rule(problem.workload.phase, problem.topology, problem.model)
    asked = replace(problem, replica_rule=rule)
    ours, theirs = (cost(asked, one).total_seconds for one in (placement, found.served(placement, problem)))
    times = f"{theirs * 1e3:.3f} ms a step, {ours * 1e3:.3f} ms of the plan's"
    yield f"{found.TITLE} makes a placement of its own of {found.TABLE_NAME}: predicted {times}"


def _said(finding: Finding) -> str:
    """A finding that something answers, or that is good to know."""
    answer = f"served with {' '.join(finding.flags)}: " if finding.flags else ""
    return f"{answer}{finding.text} [{finding.source}]"


def _plugin_serves(engine: str, model: ModelSpec) -> bool:
    plugins = plugin_engines()
    return engine in plugins and plugins[engine].plugin_serves(model)
