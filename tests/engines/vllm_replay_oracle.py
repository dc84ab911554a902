"""Run by an interpreter that has vLLM 0.33.0 and the replay's package: what its routers then choose.

stdin: {"layers": [absolute ids], "experts": E, "top_k": K, "ranks": [{"dp": [rank, size], "ep": [rank, size],
"sequence": whether tokens are split over a request's GPUs, "gathered": whether vLLM gathers tokens before it
routes them}, ...], "steps": tokens of each step, "stray": a layer id that the trace has not}.

The last line of stdout is {"ids": [rank][step][layer][token][k], "weights": what a token's weights sum to,
"dtypes": of ids and weights, "methods": of the routers, "refused": error for the stray layer, "unbound": that
of a router that no runner was made for}. Plugins are found and called by vLLM's own loader; routers are made
by its factory; runners are its MoERunner and route by its `_apply_quant_method`. Experts and configuration
are stand-ins.
"""

import importlib
import json
import sys
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

LAYERS = "vllm.model_executor.layers.fused_moe"


def vllm(name: str) -> Any:
    return importlib.import_module(name)


def runner_of(torch: Any, asked: dict[str, Any], rank: dict[str, Any], layer: int) -> Any:
    """VLLM's runner of one layer on one rank, with its own router; what the experts get is kept in `seen`."""
    module = vllm(f"{LAYERS}.runner.moe_runner")
    router = vllm(f"{LAYERS}.router.router_factory").create_fused_moe_router(
        top_k=asked["top_k"], global_num_experts=asked["experts"]
    )
    parallel = SimpleNamespace(
        dp_rank=rank["dp"][0], dp_size=rank["dp"][1], ep_rank=rank["ep"][0], ep_size=rank["ep"][1],
        pcp_size=1, is_sequence_parallel=rank["sequence"],
    )  # fmt: skip
    config = SimpleNamespace(
        moe_parallel_config=parallel, num_logical_experts=asked["experts"], dp_size=rank["dp"][1],
        is_sequence_parallel=rank["sequence"],
    )  # fmt: skip
    method = SimpleNamespace(
        is_monolithic=False, topk_indices_dtype=torch.int32, supports_internal_mk=not rank["gathered"]
    )
    seen: list[Any] = []
    experts = torch.nn.Module()
    experts.quant_method = method
    experts.forward_modular = lambda **given: seen.append((given["topk_ids"], given["topk_weights"]))
    compilation = SimpleNamespace(static_forward_context={}, static_all_moe_layers=[])
    current = SimpleNamespace(compilation_config=compilation)
    with patch.object(module, "get_current_vllm_config", lambda: current):
        runner = module.MoERunner(f"model.layers.{layer}.mlp.experts", config, router, experts)
    return SimpleNamespace(runner=runner, seen=seen)


def main() -> None:
    asked = json.load(sys.stdin)
    torch: Any = importlib.import_module("torch")
    vllm("vllm.plugins").load_general_plugins()
    ids, sums, dtypes, methods = [], set(), set(), set()
    with torch.inference_mode():
        for rank in asked["ranks"]:
            made = [runner_of(torch, asked, rank, layer) for layer in asked["layers"]]
            for tokens in asked["steps"]:
                for layer in made:
                    hidden, logits = torch.zeros(tokens, 4), torch.rand(tokens, asked["experts"])
                    layer.runner._apply_quant_method(hidden, logits, None)
            steps = zip(*(layer.seen for layer in made), strict=True)
            ids.append([[found.tolist() for found, _ in step] for step in steps])
            for layer in made:
                methods.add(layer.runner.router.routing_method_type.name)
                for found, weights in layer.seen:
                    sums |= {round(value, 5) for value in weights.sum(dim=1).tolist()}
                    dtypes |= {str(found.dtype), str(weights.dtype)}
        refused = unbound = ""
        try:
            runner_of(torch, asked, asked["ranks"][0], asked["stray"])
        except RuntimeError as error:
            refused = str(error)
        router = vllm(f"{LAYERS}.router.router_factory").create_fused_moe_router(
            top_k=asked["top_k"], global_num_experts=asked["experts"]
        )
        try:
            router.select_experts(torch.zeros(1, 4), torch.rand(1, asked["experts"]))
        except RuntimeError as error:
            unbound = str(error)
    answer = {
        "ids": ids, "weights": sorted(sums), "dtypes": sorted(dtypes), "methods": sorted(methods),
        "refused": refused, "unbound": unbound,
    }  # fmt: skip
    print(json.dumps(answer))  # noqa: T201 - a program


if __name__ == "__main__":
    main()
