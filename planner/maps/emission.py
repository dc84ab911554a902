"""From a plan file to the files an engine loads: closed where the engine would not read the plan's map."""

from dataclasses import replace
from pathlib import Path

from planner.base import BadInput
from planner.engines import (
    Emission,
    check_known,
    engine_names,
    find_engine,
    judge_fit,
    map_formats,
    plugin_engines,
    replay_engines,
    replay_of,
    stand_ins,
)
from planner.load import LoadProfile, read_load
from planner.model import ModelSpec
from planner.placement import Placement
from planner.plan import read_plan
from planner.problem import Problem


def emit_plan(  # noqa: PLR0913 - each is an option of the command
    plan_file: Path,
    engine: str,
    model_path: str | None = None,
    version: str | None = None,
    *,
    flags_only: bool = False,
    plugin: bool = False,
    draft: bool = True,
    role: str = "mixed",
    trust: bool = False,
    replay: Path | None = None,
) -> Emission:
    """What `engine` loads to serve the plan.

    BadInput where the plan breaks a hard rule or one of the engine's limits; and where the engine is given a
    map, or a table in its place, and would not read this one, unless `flags_only` asks for the launch without
    it. An engine that has neither (vLLM without its `plugin`) is given its flags, and a note that says so:
    nothing is there that could be misread. Without `draft` the engine is served without its draft (MTP)
    layers, and their limits do not count.
    """
    problem, placement, value = read_plan(plan_file)
    found = find_engine(engine)
    if not trust:
        check_known(found.TITLE, found.RELEASES, version)
    fit = judge_fit(engine, problem)
    if fit.refused:
        raise BadInput(f"{plan_file}: {fit.text}; nothing was written")
    if plugin:
        _check_plugin(engine, flags_only=flags_only)
    if not draft:
        _check_no_draft(engine)
        problem, placement = _without_draft(problem, placement)
    served = model_path or problem.model.name
    if replay is not None:
        _check_replay(engine)
        rows = replay_of(read_load([replay], problem.model), problem.model)
        emission = replay_engines()[engine].emit_with_replay(
            placement, problem, served, rows, version, role, plugin=plugin
        )
    else:
        emit = plugin_engines()[engine].emit_with_plugin if plugin else found.emit
        emission = emit(placement, problem, served, version, role)
    if emission.ignored:
        if _given(engine) and not flags_only:
            raise BadInput(f"{plan_file}: {emission.ignored}; {_way_out(problem.model, engine)}")
        return emission
    if flags_only:
        raise BadInput(
            f"{plan_file}: {found.TITLE} {_takes(engine)} for {problem.model.architecture}; "
            "leave --flags-only out"
        )
    judged = _other_judgement(problem, engine, value.get("engine") or "none")
    if judged is None:
        return emission
    note = f"{judged}: `moeplan evaluate {plan_file} --engine {engine}` shows what that costs"
    return replace(emission, notes=(*emission.notes, note))


def _other_judgement(problem: Problem, engine: str, judged_for: str) -> str | None:
    """Where the plan's figures are for another replica rule or transport than the engine's."""
    found, workload = find_engine(engine), problem.workload
    rule = found.replica_rule(workload.phase, problem.topology, problem.model)
    transport = found.transport(workload.phase, problem.topology, problem.model)
    if (problem.replica_rule, workload.transport) == (rule, transport):
        return None
    return (
        f"the plan was judged under the replica rule '{problem.replica_rule}' "
        f"and transport '{workload.transport}' (engine {judged_for}); "
        f"{found.TITLE} uses '{rule}' and '{transport}'"
    )


def _way_out(model: ModelSpec, engine: str) -> str:
    """What to do where the engine would not read the map."""
    others = _served_by(model, engine)
    elsewhere = f", and {' or '.join(others)} would serve the plan" if others else ""
    return f"nothing was written. --flags-only writes the launch without {_given(engine)}{elsewhere}"


def _given(engine: str) -> str:
    """What the engine is given to serve a plan by; empty for one that gets flags alone."""
    if engine in stand_ins():
        return stand_ins()[engine].TABLE_NAME
    return "the map" if engine in map_formats() else ""


def _takes(engine: str) -> str:
    return f"takes {_given(engine)}" if engine in stand_ins() else "serves the plan's placement"


def _check_plugin(engine: str, *, flags_only: bool) -> None:
    known = plugin_engines()
    if engine in known and not flags_only:
        return
    titles = " or ".join(found.TITLE for found in known.values())
    raise BadInput(
        f"--plugin is for --engine {' or '.join(known)} without --flags-only: "
        f"the plugin makes {titles}'s balancer return the plan's map"
    )


def _check_replay(engine: str) -> None:
    known = replay_engines()
    if engine not in known:
        raise BadInput(
            f"--replay is for --engine {' or '.join(known)}: no other lets a trace's rows route its tokens "
            "(SGLang simulates even and round-robin routing alone)"
        )


def _check_no_draft(engine: str) -> None:
    if find_engine(engine).DRAFT_IS_OPTIONAL:
        return
    known = [name for name in engine_names() if find_engine(name).DRAFT_IS_OPTIONAL]
    raise BadInput(
        f"--no-draft is for --engine {' or '.join(known)}: "
        "the draft layers of other engines take the plan's redundant experts"
    )


def _without_draft(problem: Problem, placement: Placement) -> tuple[Problem, Placement]:
    """The same question and answer about the MoE layers alone."""
    kept = problem.model.moe_layer_ids
    load = LoadProfile(problem.load.tokens_WLE[:, : len(kept)].copy(), kept, problem.load.source)
    model = replace(problem.model, draft_layer_ids=())
    return replace(problem, model=model, load=load), Placement(
        placement.expert_LP[: len(kept)], kept, placement.gpus
    )


def _served_by(model: ModelSpec, engine: str) -> list[str]:
    """What to give `emit` in place of `engine` so that the plan's map is read, so far as the model decides.

    NPUs are no way out for a GPU.
    """
    accelerator = find_engine(engine).ACCELERATOR
    others = {name: find_engine(name) for name in engine_names() if name != engine}
    readers = [
        f"--engine {name}"
        for name, other in others.items()
        if name in map_formats() and accelerator == other.ACCELERATOR and other.reads_map(model)
    ]
    with_plugin = [
        f"--engine {name} --plugin" for name, other in plugin_engines().items() if other.plugin_serves(model)
    ]
    return [*readers, *with_plugin]
