"""Which engines would serve a point: the judge of launches, asked about the question as each would run it."""

from planner.base import BadInput
from planner.engines import engine_names, find_engine, judge_launch, plugin_engines, sliced_of, stand_ins
from planner.model import ModelSpec
from planner.planning.evaluation import under
from planner.planning.sweeping.row import Service
from planner.problem import Problem


def services(problem: Problem, engine: str | None, *, sliced: bool = False) -> tuple[Service, ...]:
    """The verdict on the engine that was asked about, or on every one for NVIDIA's GPUs, by name.

    `sliced`: without expert parallelism, which is no launch of ours: what was read of the engines decides.
    """
    ask = _asked_sliced if sliced else _asked
    names = (engine,) if engine else engine_names()
    return tuple(ask(name, problem) for name in names if engine or find_engine(name).ACCELERATOR == "nvidia")


def _asked(name: str, problem: Problem) -> Service:
    engine = find_engine(name)
    try:
        verdict = judge_launch(name, under(engine, problem))
    except BadInput as refused:
        return Service(name, serves=False, own=False, why=str(refused))
    why = verdict.refused[0].text if verdict.refused else ""
    return Service(name, serves=not why, own=not follows_a_plan(name, problem.model), why=why)


def _asked_sliced(name: str, problem: Problem) -> Service:
    known, gpus, shared = sliced_of(name), problem.gpus, problem.workload.attention_tp
    if known is None:
        why = f"not read whether {find_engine(name).TITLE} serves without expert parallelism"
        return Service(name, serves=False, own=True, why=why)
    why = known.refuses(problem.model, gpus, shared)
    return Service(name, serves=not why, own=True, why=why, launch="" if why else known.launch(gpus, shared))


def follows_a_plan(name: str, model: ModelSpec) -> bool:
    """Whether it serves a plan's placement: by a map, by what it makes of counts, or by the plugin."""
    plugin = plugin_engines().get(name)
    if plugin is not None:
        return plugin.plugin_serves(model)
    return name in stand_ins() or find_engine(name).reads_map(model)
