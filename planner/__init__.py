"""moeplan: from a cluster and a measured expert load to a placement that can be loaded and checked.

`import planner` is quick: each name below is fetched from its room when it is first asked for. They are
what other programs and notebooks may use (docs/python.md); everything else is private by room.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.base import BadInput, Infeasible
    from planner.bounds import time_bound
    from planner.cost import Cost, WholeStep, whole_step
    from planner.cost import cost as predict
    from planner.engines import Emission, default_placement
    from planner.load import LoadProfile, Trace, read_load
    from planner.maps import check_file as check
    from planner.maps import convert_file as convert
    from planner.maps import emit_plan as emit
    from planner.maps import write_emission
    from planner.model import ModelSpec, find_model
    from planner.placement import Placement
    from planner.plan import Plan, SavedPlan, plan_to_dict, read_plan, write_plan
    from planner.planning import evaluate, solve
    from planner.problem import Problem, Violation, Workload, violations
    from planner.topology import Topology, read_topology
    from probes.dispatch.validation import Contender, validate
    from probes.dispatch.validation import Settings as ValidateSettings
    from probes.machine.hints import Hints as ImportHints
    from probes.survey.from_files import import_files as import_topology

__version__ = "0.1.0"
_FACE = {  # name -> (room, its name there)
    "BadInput": ("planner.base", "BadInput"),
    "Infeasible": ("planner.base", "Infeasible"),
    "ModelSpec": ("planner.model", "ModelSpec"),
    "find_model": ("planner.model", "find_model"),
    "Topology": ("planner.topology", "Topology"),
    "read_topology": ("planner.topology", "read_topology"),
    "LoadProfile": ("planner.load", "LoadProfile"),
    "Trace": ("planner.load", "Trace"),
    "read_load": ("planner.load", "read_load"),
    "Placement": ("planner.placement", "Placement"),
    "Problem": ("planner.problem", "Problem"),
    "Workload": ("planner.problem", "Workload"),
    "Violation": ("planner.problem", "Violation"),
    "violations": ("planner.problem", "violations"),
    "Cost": ("planner.cost", "Cost"),
    "predict": ("planner.cost", "cost"),
    "WholeStep": ("planner.cost", "WholeStep"),
    "whole_step": ("planner.cost", "whole_step"),
    "time_bound": ("planner.bounds", "time_bound"),
    "Plan": ("planner.plan", "Plan"),
    "SavedPlan": ("planner.plan", "SavedPlan"),
    "plan_to_dict": ("planner.plan", "plan_to_dict"),
    "read_plan": ("planner.plan", "read_plan"),
    "write_plan": ("planner.plan", "write_plan"),
    "Emission": ("planner.engines", "Emission"),
    "default_placement": ("planner.engines", "default_placement"),
    "check": ("planner.maps", "check_file"),
    "convert": ("planner.maps", "convert_file"),
    "emit": ("planner.maps", "emit_plan"),
    "write_emission": ("planner.maps", "write_emission"),
    "evaluate": ("planner.planning", "evaluate"),
    "solve": ("planner.planning", "solve"),
    "import_topology": ("probes.survey.from_files", "import_files"),
    "ImportHints": ("probes.machine.hints", "Hints"),
    "validate": ("probes.dispatch.validation", "validate"),
    "Contender": ("probes.dispatch.validation", "Contender"),
    "ValidateSettings": ("probes.dispatch.validation", "Settings"),
}
__all__ = [
    "BadInput",
    "Contender",
    "Cost",
    "Emission",
    "ImportHints",
    "Infeasible",
    "LoadProfile",
    "ModelSpec",
    "Placement",
    "Plan",
    "Problem",
    "SavedPlan",
    "Topology",
    "Trace",
    "ValidateSettings",
    "Violation",
    "WholeStep",
    "Workload",
    "check",
    "convert",
    "default_placement",
    "emit",
    "evaluate",
    "find_model",
    "import_topology",
    "plan_to_dict",
    "predict",
    "read_load",
    "read_plan",
    "read_topology",
    "solve",
    "time_bound",
    "validate",
    "violations",
    "whole_step",
    "write_emission",
    "write_plan",
]


def __getattr__(name: str) -> Any:
    if name not in _FACE:
        raise AttributeError(f"module 'planner' has no attribute {name!r}")
    room, there = _FACE[name]
    return getattr(importlib.import_module(room), there)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
