"""Run by an interpreter that has vLLM 0.33.0: what its balancer state makes of many plugins' maps in turn.

stdin: [{"package": folder of the plugin's module, "experts": E, "redundant": R, "layers": [n of the main
model, n of the draft model], "ranks": G}, ...]. The last line of stdout is a list with {"maps": [rows of each
model], "replicas": [counts that vLLM's compute_logical_maps makes of them]} or {"error": text} for each. Here
the module is loaded from its folder; vllm_plugin_oracle.py holds that vLLM finds an installed one by itself.
"""

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any


def register(package: str) -> None:
    """Loads the plugin's module and calls its function, as vLLM does, in the place of the one before."""
    policies: Any = importlib.import_module("vllm.distributed.eplb.policy").EPLB_POLICIES
    policies["default"] = None
    found = importlib.util.spec_from_file_location("plugin", Path(package) / "__init__.py")
    assert found is not None
    assert found.loader is not None
    module: Any = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    module.register()


def answer(torch: Any, plan: dict[str, Any]) -> dict[str, Any]:
    state_of: Any = importlib.import_module("vllm_plugin_oracle").state_of  # beside this program
    compute: Any = importlib.import_module("vllm.distributed.eplb.eplb_state").compute_logical_maps
    register(plan["package"])
    slots, maps, replicas = plan["experts"] + plan["redundant"], [], []
    try:
        for layers in filter(None, plan["layers"]):
            policy = state_of(torch, plan, layers).policy
            found = policy.rebalance_experts(
                torch.rand(layers, plan["experts"]), slots, 1, 1, plan["ranks"], None
            )
            maps.append(found.tolist())
            replicas.append(compute(found, plan["experts"])[1].tolist())
    except Exception as error:  # noqa: BLE001 - the engine's refusal is the answer
        return {"error": f"{type(error).__name__}: {error}"}
    return {"maps": maps, "replicas": replicas}


def main() -> None:
    torch: Any = importlib.import_module("torch")
    print(json.dumps([answer(torch, plan) for plan in json.load(sys.stdin)]))  # noqa: T201 - a program


if __name__ == "__main__":
    main()
