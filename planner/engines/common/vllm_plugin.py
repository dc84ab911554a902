"""The vLLM plugin of a plan: a package for pip that makes vLLM's balancer return the plan's map.

Its function, called by vLLM in each of its processes, puts a policy that returns the map in the place of
vLLM's balancer. vLLM then moves the weights itself. Run by vLLM 0.33.0's own code on a CPU, on four processes
that move weights; never served on a GPU.
"""

from pathlib import Path

from planner.base import BadInput
from planner.engines.common import vllm_plan_plugin
from planner.engines.common.command import Requirement
from planner.engines.common.layout import rows_by_layer
from planner.engines.common.vllm_package import pyproject, requirement
from planner.engines.common.vllm_plugin_map import map_text
from planner.model import ModelSpec
from planner.placement import Placement

PACKAGE = "moeplan_vllm_plan"  # of distribution and module
FOLDER = "vllm_plugin"  # beside launch.sh
MAP_PATH = f"{FOLDER}/{PACKAGE}/{vllm_plan_plugin.MAP_NAME}"
MAP_VARIABLE = vllm_plan_plugin.MAP
RELEASE = "2"  # 1 had its map in the package alone
REQUIREMENT: Requirement = requirement(PACKAGE, RELEASE, FOLDER, "the plan's plugin")
_DESCRIPTION = "Makes vLLM's expert balancer return the placement of a moeplan plan"


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
    module = Path(__file__).with_name("vllm_plan_plugin.py").read_text(encoding="utf-8")
    return {
        f"{FOLDER}/pyproject.toml": pyproject(PACKAGE, RELEASE, _DESCRIPTION),
        f"{FOLDER}/{PACKAGE}/__init__.py": module,
        MAP_PATH: map_text(rows_by_layer(placement), model, placement.gpus),
    }


def notes(step_interval: int) -> tuple[str, ...]:
    """What a person must do and know.

    `step_interval`: forward steps between two rearrangements; vLLM makes the first after a quarter of it.
    """
    install = f"install the plugin into vLLM's environment on every node: pip install ./{FOLDER}"
    first = f"the default one until about step {step_interval // 4}, then the plan's"
    live = f"{MAP_PATH} on node 0 may change while vLLM serves: every {step_interval} steps it is read again"
    folder = f"{vllm_plan_plugin.FOLDER} beside it ({vllm_plan_plugin.WINDOWS} names another)"
    windows = f"load windows go into {folder}, which --load reads"
    run = "the plugin was run with vLLM 0.33.0's own code on a CPU, never served on a GPU"
    return (
        f"{install} (and list it in VLLM_PLUGINS where you set that); launch.sh starts nothing without it",
        f"WARNING: vLLM serves its own placement at first: {first}",
        f"{live}; {windows}",
        f"WARNING: {run}; on ROCm vLLM may skip the move by its own estimate",
    )
