"""Run by an interpreter that has vLLM 0.33.0 and the plugin's package: what its balancer state does with it.

The package is on the interpreter's path.

stdin: {"experts": E, "redundant": R, "layers": [n of the main model, n of the draft model], "ranks": G}. The
last line of stdout is {"policy": name, "maps": [rows of each model], "replicas": [counts that vLLM's
compute_logical_maps makes of them], "refused": error for a foreign model}. The plugin is found by its entry
point and called by vLLM's own loader; `EplbState.add_model` chooses the policy. Model, group and devices are
stand-ins.
"""

import importlib
import json
import sys
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock


def state_of(torch: Any, asked: dict[str, Any], layers: int) -> Any:
    """The state of vLLM after it was given a model of that many MoE layers."""
    module: Any = importlib.import_module("vllm.distributed.eplb.eplb_state")
    balancer = importlib.import_module("vllm.config.parallel").EPLBConfig(
        num_redundant_experts=asked["redundant"], use_async=False, communicator="torch_gloo"
    )
    parallel = SimpleNamespace(eplb_config=balancer, enable_elastic_ep=False, num_ubatches=1)
    slots = asked["experts"] + asked["redundant"]
    model = MagicMock(
        num_routed_experts=asked["experts"], num_logical_experts=asked["experts"],
        num_redundant_experts=asked["redundant"], num_physical_experts=slots,
        num_local_physical_experts=slots // asked["ranks"], num_moe_layers=layers, num_expert_groups=1,
        expert_weights=[[torch.zeros(1)]],
    )  # fmt: skip
    module.get_ep_group = module.get_eplb_group = MagicMock()
    alone = SimpleNamespace(world_size=1, rank_in_group=0)
    vars(importlib.import_module("vllm.distributed.parallel_state"))["get_eplb_group"] = lambda: alone
    module.create_eplb_communicator = MagicMock()
    state = module.EplbState(parallel, torch.device("cpu"))
    state.add_model(model, SimpleNamespace(compute_hash=lambda: str(layers), model="stand-in"))
    return state


def main() -> None:
    asked = json.load(sys.stdin)
    torch: Any = importlib.import_module("torch")
    importlib.import_module("vllm.plugins").load_general_plugins()
    compute: Any = importlib.import_module("vllm.distributed.eplb.eplb_state").compute_logical_maps
    slots, maps, replicas = asked["experts"] + asked["redundant"], [], []
    policy: Any = None
    for layers in asked["layers"]:
        policy = state_of(torch, asked, layers).policy
        found = policy.rebalance_experts(
            torch.rand(layers, asked["experts"]), slots, 1, 1, asked["ranks"], None
        )
        maps.append(found.tolist())
        replicas.append(compute(found, asked["experts"])[1].tolist())
    refused = ""
    try:
        policy.rebalance_experts(torch.rand(99, asked["experts"]), slots, 1, 1, asked["ranks"], None)
    except RuntimeError as error:
        refused = str(error)
    answer = {"policy": policy.__name__, "maps": maps, "replicas": replicas, "refused": refused}
    print(json.dumps(answer))  # noqa: T201 - a program


if __name__ == "__main__":
    main()
