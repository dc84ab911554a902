"""Run by an interpreter that has vLLM 0.33.0, without a GPU: does vLLM accept these flags?

Its own parser and parallel configuration answer.

stdin: [[argument of `vllm serve`, ...], ...], the model apart. The last line of stdout is a list with
{"config": {...}} or {"error": text} for each. The platform is replaced by one that claims CUDA devices; the
parser and the validators are vLLM's. No model is built.
"""

import importlib
import json
import sys
from typing import Any

FIELDS = ("enable_expert_parallel", "enable_eplb", "all2all_backend", "world_size_across_dp")
PASSED_ON = (
    *("tensor_parallel_size", "data_parallel_size", "data_parallel_size_local", "enable_expert_parallel"),
    *("enable_eplb", "eplb_config", "expert_placement_strategy", "all2all_backend"),
)


def claim_cuda() -> None:
    platforms: Any = importlib.import_module("vllm.platforms")
    interface = importlib.import_module("vllm.platforms.interface")
    names = {
        "device_name": "cuda",
        "device_type": "cuda",
        "dispatch_key": "CUDA",
        "ray_device_key": "GPU",
        "dist_backend": "nccl",
    }
    words = {**names, "_enum": interface.PlatformEnum.CUDA, "device_control_env_var": "CUDA_VISIBLE_DEVICES"}
    yes = classmethod(lambda _: True)
    claimed = type(
        "ClaimedCuda",
        (interface.Platform,),
        {**words, "device_count": classmethod(lambda _: 64), "use_custom_allreduce": yes},
    )
    platforms._current_platform = claimed()


def serve_parser() -> Any:
    serve_arguments = importlib.import_module("vllm.entrypoints.common.cli_args").make_arg_parser
    return serve_arguments(importlib.import_module("vllm.utils.argparse_utils").FlexibleArgumentParser())


def answer(parser: Any, words: list[str]) -> dict[str, Any]:
    arg_utils = importlib.import_module("vllm.engine.arg_utils")
    try:
        args = arg_utils.AsyncEngineArgs.from_cli_args(parser.parse_args(words))
        given = {name: getattr(args, name) for name in PASSED_ON if getattr(args, name) is not None}
        config = importlib.import_module("vllm.config").ParallelConfig(
            **given, distributed_executor_backend="mp"
        )
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a refusal is the answer; the parser exits
        return {"error": f"{type(error).__name__}: {error}"}
    found = {field: getattr(config, field) for field in FIELDS}
    return {
        "config": {
            **found,
            "num_redundant_experts": config.eplb_config.num_redundant_experts,
            "use_async": config.eplb_config.use_async,
        }
    }


def main() -> None:
    claim_cuda()
    parser = serve_parser()
    print(json.dumps([answer(parser, words) for words in json.load(sys.stdin)]))  # noqa: T201 - a program


if __name__ == "__main__":
    main()
