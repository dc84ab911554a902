"""The engines and map formats of this room, by name. Each is a module; a new one touches no other file."""

from typing import cast

from planner.base import find_named, modules_with
from planner.engines.common.elastic import FIXED, Elastic
from planner.engines.common.interface import (
    Engine,
    MapFormat,
    PairedEngine,
    PluginEngine,
    ReplayEngine,
    StandIn,
)
from planner.engines.common.layout import cyclic_placement
from planner.engines.common.online import OnlineBalancer
from planner.engines.common.sliced import Sliced
from planner.engines.common.verdict import MIXED, Verdict
from planner.placement import Placement
from planner.problem import Problem

ROOM = "planner.engines"


def engine_names() -> tuple[str, ...]:
    """Names of the engines, in alphabetical order."""
    return tuple(sorted(_engines()))


def find_engine(name: str) -> Engine:
    return find_named(name, _engines(), "engine")


def judge_launch(engine: str, problem: Problem, version: str | None = None, role: str = MIXED) -> Verdict:
    """What the judge of launches says of this engine, question and role."""
    return find_engine(engine).judge(problem, version, role)


def elastic_of(engine: str) -> Elastic:
    """What the engine does after a loss, and how it changes its size."""
    found: Elastic = getattr(find_engine(engine), "ELASTIC", FIXED)
    return found


def paired_engines() -> dict[str, PairedEngine]:
    """By name, the engines that can be started as a pair of prefill and decode servers."""
    engines = _engines()
    with_router = [name for name in sorted(engines) if hasattr(engines[name], "router_text")]
    return {name: cast("PairedEngine", engines[name]) for name in with_router}


def plugin_engines() -> dict[str, PluginEngine]:
    """By name, the engines that a plugin can make serve a plan's placement."""
    engines = _engines()
    with_plugin = [name for name in sorted(engines) if hasattr(engines[name], "emit_with_plugin")]
    return {name: cast("PluginEngine", engines[name]) for name in with_plugin}


def replay_engines() -> dict[str, ReplayEngine]:
    """By name, the engines in which a trace can be replayed."""
    engines = _engines()
    with_replay = [name for name in sorted(engines) if hasattr(engines[name], "emit_with_replay")]
    return {name: cast("ReplayEngine", engines[name]) for name in with_replay}


def stand_ins() -> dict[str, StandIn]:
    """By name, the engines that take no map and make a placement of their own of what they are given."""
    engines = _engines()
    with_table = [name for name in sorted(engines) if hasattr(engines[name], "TABLE_NAME")]
    return {name: cast("StandIn", engines[name]) for name in with_table}


def online_balancer(engine: str) -> OnlineBalancer | None:
    """How it balances while it serves; None where it does not, or where that was not read."""
    found: OnlineBalancer | None = getattr(find_engine(engine), "ONLINE", None)
    return found


def sliced_of(engine: str) -> Sliced | None:
    """How it serves without expert parallelism; None where that was not read."""
    found: Sliced | None = getattr(find_engine(engine), "SLICED", None)
    return found


def map_formats() -> tuple[str, ...]:
    """Names of the map formats: of each engine that reads one, and of the balancers' plain tensors."""
    return tuple(sorted(_formats()))


def find_format(name: str) -> MapFormat:
    return find_named(name, _formats(), "map format")


def default_placement(engine: str | None, problem: Problem) -> Placement:
    """The engine's own map for this question; without an engine the cyclic one, which most share."""
    make = find_engine(engine).default_placement if engine else cyclic_placement
    return make(problem.model, problem.gpus, problem.redundant)


def _engines() -> dict[str, Engine]:
    """Every module here that has a NAME is an engine."""
    return {module.NAME: cast("Engine", module) for module in modules_with(ROOM, "NAME").values()}


def _formats() -> dict[str, MapFormat]:
    """Every module here that has a MAP_NAME reads and writes a map, under the module's own name."""
    return {name: cast("MapFormat", module) for name, module in modules_with(ROOM, "MAP_NAME").items()}
