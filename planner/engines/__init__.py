"""Serving engines, a module each: what it accepts, how it picks replicas, which map and flags it loads."""

from planner.engines.common.command import NodeCommand
from planner.engines.common.elastic import Elastic, check_resize
from planner.engines.common.fit import judge_fit
from planner.engines.common.interface import Emission, Engine, MapFile
from planner.engines.common.layout import cyclic_placement, gpus_per_node
from planner.engines.common.online import REARRANGED_BYTES_PER_S, OnlineBalancer, balanced
from planner.engines.common.releases import check_known
from planner.engines.common.script import command_line
from planner.engines.common.verdict import Finding, Verdict, check_role
from planner.engines.common.vllm_replay import replay_of
from planner.engines.registry import (
    default_placement,
    elastic_of,
    engine_names,
    find_engine,
    find_format,
    judge_launch,
    map_formats,
    online_balancer,
    paired_engines,
    plugin_engines,
    replay_engines,
    sliced_of,
    stand_ins,
)

__all__ = [
    "REARRANGED_BYTES_PER_S",
    "Elastic",
    "Emission",
    "Engine",
    "Finding",
    "MapFile",
    "NodeCommand",
    "OnlineBalancer",
    "Verdict",
    "balanced",
    "check_known",
    "check_resize",
    "check_role",
    "command_line",
    "cyclic_placement",
    "default_placement",
    "elastic_of",
    "engine_names",
    "find_engine",
    "find_format",
    "gpus_per_node",
    "judge_fit",
    "judge_launch",
    "map_formats",
    "online_balancer",
    "paired_engines",
    "plugin_engines",
    "replay_engines",
    "replay_of",
    "sliced_of",
    "stand_ins",
]
