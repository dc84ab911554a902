"""Run by an interpreter that has SGLang 0.5.23, without a GPU: what these flags mean, and each rank's slots.

What do the flags resolve to, and which slot does each rank use?

stdin: {"cases": [[folder with a config.json, flag, ...], ...], "experts": [token][k]}. The last line of
stdout is a list with one entry for each case: {"resolved": {...}, and where the flags name a map, on the last
node: "map_read": bool, "shape": [layers, slots], and one of "table": [rank][layer][expert] -> slot (static
dispatch) and "chosen": [rank][layer][token][k] -> slot (dynamic dispatch of `experts`)}, or {"error": text}
where the engine refuses. The map and its tables are the same on every node. Everything is the engine's own
code; only the device is replaced, and torchvision, which SGLang imports but this question does not need.
"""

import importlib
import json
import logging
import sys
import types
from importlib.machinery import ModuleSpec
from typing import Any
from unittest.mock import MagicMock

FIELDS = (
    *("tp_size", "ep_size", "attn_dp_size", "nnodes", "moe_a2a_backend", "deepep_mode"),
    *("ep_dispatch_algorithm", "ep_num_redundant_experts", "enable_eplb", "disable_shared_experts_fusion"),
)
TRANSFORMS = ("functional", "v2", "v2.functional")
TORCHVISION = ("", ".io", ".ops", ".transforms", *(f".transforms.{part}" for part in TRANSFORMS))


def sglang(module: str) -> Any:
    return importlib.import_module(f"sglang.srt.{module}")


def replace_torchvision() -> None:
    # These look for it themselves: before it is replaced.
    for auto in ("image_processing", "modeling", "processing", "video_processing"):
        importlib.import_module(f"transformers.models.auto.{auto}_auto")
    for part in TORCHVISION:
        module = MagicMock()
        module.__spec__, module.__path__ = ModuleSpec(f"torchvision{part}", None), []
        sys.modules[f"torchvision{part}"] = module


def ask(model: str, *flags: str, experts_TK: list[list[int]]) -> dict[str, Any]:
    args = sglang("server_args").prepare_server_args(
        ["--model-path", model, "--skip-tokenizer-init", "--load-format", "dummy", "--device", "cuda", *flags]
    )
    args.resolve_once()
    resolved = args.resolved_dict()
    answer: dict[str, Any] = {"resolved": {field: resolved[field] for field in FIELDS}}
    if resolved["init_expert_location"] != "trivial" and resolved["node_rank"] == resolved["nnodes"] - 1:
        sglang("runtime_context").publish(args, role="scheduler")
        config = sglang("arg_groups.model_override_base").model_config_of(args)
        locate = sglang("eplb.expert_location").compute_initial_expert_location_metadata
        ranks = [locate(config, rank) for rank in range(resolved["ep_size"])]
        answer["map_read"] = ranks[0] is not None
        if answer["map_read"]:
            answer["shape"] = list(ranks[0].physical_to_logical_map.shape)
            if resolved["ep_dispatch_algorithm"] == "static":
                answer["table"] = [rank.logical_to_rank_dispatch_physical_map.tolist() for rank in ranks]
            else:
                answer["chosen"] = [chosen(rank, experts_TK) for rank in ranks]
    return answer


def chosen(location: Any, experts_TK: list[list[int]]) -> list[list[list[int]]]:
    """slots_LTK that one rank dispatches to."""
    sglang("eplb.expert_location").set_global_expert_location_metadata(location, allow_overwrite=True)
    dispatch = sglang("eplb.expert_location_dispatch")
    topk_ids = importlib.import_module("torch").tensor(experts_TK)
    layers = range(location.physical_to_logical_map.shape[0])
    return [
        dispatch.topk_ids_logical_to_physical(
            topk_ids, dispatch.ExpertLocationDispatchInfo.init_new(layer)
        ).tolist()
        for layer in layers
    ]


def answer_or_error(case: list[str], experts_TK: list[list[int]]) -> dict[str, Any]:
    try:
        return ask(*case, experts_TK=experts_TK)
    except Exception as error:  # noqa: BLE001 - the engine's refusal is the answer
        return {"error": f"{type(error).__name__}: {error}"}


def main() -> None:
    request = json.load(sys.stdin)
    logging.disable(logging.WARNING)
    replace_torchvision()
    sglang("eplb.expert_location").get_device = lambda: types.SimpleNamespace(device="cpu")
    hopper = (9, 0)  # an H100 or H200
    vars(importlib.import_module("torch").cuda)["get_device_capability"] = lambda *_: hopper
    with sglang("runtime_context").override_platform(is_cuda=True):
        answers = [answer_or_error(case, request["experts"]) for case in request["cases"]]
    print(json.dumps(answers))  # noqa: T201 - a program


if __name__ == "__main__":
    main()
