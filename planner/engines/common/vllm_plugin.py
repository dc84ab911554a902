"""The vLLM plugin of a plan: a package for pip that makes vLLM's balancer return the plan's map.

Its function, called by vLLM in each of its processes, puts a policy that returns the map in the place of
vLLM's balancer. vLLM then moves the weights itself. Loaded by vLLM 0.33.0's own code on a CPU; never served
on a GPU.
"""

from planner.base import BadInput, dump_json
from planner.model import ModelSpec
from planner.placement import Placement

PACKAGE = "moeplan_vllm_plan"  # of distribution and module
FOLDER = "vllm_plugin"  # beside launch.sh

_PYPROJECT = f"""[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{PACKAGE.replace("_", "-")}"
version = "1"
description = "Makes vLLM's expert balancer return the placement of a moeplan plan"
requires-python = ">=3.10"

[project.entry-points."vllm.general_plugins"]
{PACKAGE} = "{PACKAGE}:register"

[tool.hatch.build.targets.wheel]
packages = ["{PACKAGE}"]
"""

# A backslash joins two lines of ours to one of the module's.
_MODULE = '''"""Makes vLLM's expert balancer return a plan's placement, plan_map.json beside this file. \
Written by moeplan for vLLM 0.33.0."""

import json
from pathlib import Path

PLAN = json.loads(Path(__file__).with_name("plan_map.json").read_text(encoding="utf-8"))


def rows_for(layers, experts, slots, ranks):
    """The plan's rows for a model with that many MoE layers: the main model's, or the draft model's. \
RuntimeError where the plan is not for it."""
    asked, planned = (experts, slots, ranks), (PLAN["experts"], PLAN["slots"], PLAN["ranks"])
    if asked != planned:
        raise RuntimeError(f"moeplan: vLLM runs {asked} experts, slots and ranks, \
and the plan is for {planned}: serve with the plan's launch.sh")
    for rows in (PLAN["moe"], PLAN["draft"]):
        if rows and len(rows) == layers:
            return rows
    counts = f"{len(PLAN['moe'])} MoE and {len(PLAN['draft'])} draft layers"
    raise RuntimeError(f"moeplan: vLLM asks for a placement of {layers} layers, \
and the plan has {counts}: this is another model than the plan's")


def register():
    """Called by vLLM in each of its processes; calling it again changes nothing."""
    import torch
    from vllm.distributed.eplb import policy

    class PlannedPolicy(policy.AbstractEplbPolicy):
        """Returns physical_to_logical_map [layers, slots], int64 on the CPU, whatever the load."""

        @classmethod
        def rebalance_experts(cls, weight, num_replicas, num_groups, num_nodes, num_ranks, \
old_global_expert_indices=None):
            layers, experts = weight.shape
            return torch.tensor(rows_for(layers, experts, num_replicas, num_ranks), dtype=torch.int64)

    policy.EPLB_POLICIES["default"] = PlannedPolicy
'''


def package(placement: Placement, model: ModelSpec) -> dict[str, str]:
    """Files of the package by their path in the plan's folder.

    BadInput where vLLM could not tell main and draft model apart.
    """
    moe, draft = len(model.moe_layer_ids), len(model.draft_layer_ids)
    if moe == draft:
        raise BadInput(
            f"{model.name} has as many MoE layers as draft layers ({moe}); vLLM asks by their number, "
            "so a plugin cannot tell them apart"
        )
    rows = placement.expert_LP.tolist()
    sizes = {"experts": model.experts, "slots": placement.slots, "ranks": placement.gpus}
    plan = {**sizes, "layer_ids": list(placement.layer_ids), "moe": rows[:moe], "draft": rows[moe:]}
    return {
        f"{FOLDER}/pyproject.toml": _PYPROJECT,
        f"{FOLDER}/{PACKAGE}/__init__.py": _MODULE,
        f"{FOLDER}/{PACKAGE}/plan_map.json": dump_json(plan),
    }


def notes(step_interval: int) -> tuple[str, ...]:
    """What a person must do and know.

    `step_interval`: forward steps between two rearrangements; vLLM makes the first after a quarter of it.
    """
    install = f"install the plugin into vLLM's environment on every node: pip install ./{FOLDER}"
    first = f"the default one until about step {step_interval // 4}, then the plan's"
    run = "the plugin was run with vLLM 0.33.0's own code on a CPU, never served on a GPU"
    return (
        f"{install} (and list it in VLLM_PLUGINS where you set that)",
        f"WARNING: without the plugin vLLM serves its own placement; with it, {first}",
        f"WARNING: {run}; on ROCm vLLM may skip the move by its own estimate",
    )
