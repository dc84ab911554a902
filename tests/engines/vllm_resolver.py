"""Run by an interpreter that has vLLM 0.33.0, on a machine without a GPU: what vLLM itself makes of a launch.

stdin: [{"words": [after `vllm serve`, the model first], "environment": {name: value}, "config": config.json,
"gpu": a key of vllm_gpu.GPUS, "devices": GPUs of the node, "build": whether to make the model}, ...]. The
last line of stdout is a list with an object for each: "engine", what EngineArgs.create_engine_config resolved
to; "moe", what vLLM's classes built of the first layer of experts, on the meta device; "balanced", the class
that its balancer would ask; "error" where vLLM raised before there were any.
"""

import contextlib
import importlib
import io
import json
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, patch

vllm_gpu: Any = importlib.import_module("vllm_gpu")  # lies beside this program
Answer = dict[str, Any]
AT_ONCE, TOGETHER = 2, 40
FOUND: list[Any] = []  # layers of experts, in the order in which they were made


def vllm(name: str) -> Any:
    return importlib.import_module(f"vllm.{name}")


def resolved(launch: Answer, answer: Answer) -> Any:
    """VLLM's configuration of the launch."""
    parser = vllm("utils.argparse_utils").FlexibleArgumentParser()
    command = vllm("entrypoints.cli.serve").ServeSubcommand()
    command.subparser_init(parser.add_subparsers(required=False, dest="subparser"))
    args = parser.parse_args(["serve", *launch["words"]])
    command.validate(args)
    answer |= {"host": args.host, "port": args.port}
    folder = tempfile.mkdtemp(prefix="launch-")
    (Path(folder) / "config.json").write_text(json.dumps(launch["config"]))
    args.model = args.tokenizer = args.model_tag = folder
    args.skip_tokenizer_init = True
    # over several GPUs of a request it looks up passes that name operations of its library
    importlib.import_module("torch").ops._C.__class__.building = args.tensor_parallel_size > 1
    engine = vllm("engine.arg_utils").AsyncEngineArgs.from_cli_args(args)
    context = vllm("usage.usage_lib").UsageContext.OPENAI_API_SERVER
    found = engine.create_engine_config(context, headless=bool(args.headless))
    parallel, scheduler, transfer = found.parallel_config, found.scheduler_config, found.kv_transfer_config
    answer["engine"] = {
        "data": parallel.data_parallel_size, "tensor": parallel.tensor_parallel_size,
        "expert_parallel": parallel.enable_expert_parallel, "all2all": parallel.all2all_backend,
        "eplb": parallel.enable_eplb, "redundant": parallel.eplb_config.num_redundant_experts,
        "use_async": parallel.eplb_config.use_async, "tokens": scheduler.max_num_batched_tokens,
        "requests": scheduler.max_num_seqs, "chunked_prefill": scheduler.enable_chunked_prefill,
        "graph_sizes": list(found.compilation_config.cudagraph_capture_sizes or []),
        "kv": transfer and [transfer.kv_connector, transfer.kv_role],
    }  # fmt: skip
    return found


def built(config: Any, answer: Answer) -> None:
    """The model's own class on the meta device: its first experts' method, kernel and buffer."""
    torch: Any = importlib.import_module("torch")
    torch.ops._C.__class__.building = True
    _groups(config.parallel_config)
    _watch()
    vllm("v1.attention.backends.flashinfer")._get_multi_ctas_kv_counter_buffer = lambda *_: None
    dtype = vllm("utils.torch_utils").set_default_torch_dtype(config.model_config.dtype)
    try:
        with vllm("config").set_current_vllm_config(config, check_compile=False), dtype, _nowhere(torch):
            model = vllm("model_executor.model_loader.utils").initialize_model(vllm_config=config)
        found = vllm("model_executor.models.interfaces").get_mixture_of_experts_model(model)
        answer["balanced"] = None if found is None else type(found).__name__
    except Exception as error:  # whatever stops a model after its experts were made does not matter
        if not FOUND:
            raise
        answer["after_experts"] = f"{type(error).__name__}: {error}"[:300]  # of attention, and the stand-ins
    answer["moe"] = described(FOUND[0]) if FOUND else None


def described(experts: Any) -> Answer:
    method, moe = experts.quant_method, experts.moe_config
    kernel, parallel = getattr(method, "experts_cls", None), moe.moe_parallel_config
    made = {
        "method": type(method).__name__, "supports_eplb": bool(method.supports_eplb),
        "kernel": kernel and kernel.__name__, "batched": parallel.use_batched_activation_format,
        "kernel_batched": kernel and kernel.activation_format().name == "BatchedExperts",
        "experts": moe.num_experts, "ranks": parallel.ep_size, "top_k": moe.experts_per_token,
        "hidden": moe.hidden_dim, "tokens": moe.max_num_tokens, "deals_out": parallel.sp_size,
    }  # fmt: skip
    managers = vllm("distributed.device_communicators.all2all")
    if parallel.use_deepep_ll_kernels:
        sizes = {
            "max_num_tokens_per_dp_rank": moe.max_num_tokens, "token_hidden_size": moe.hidden_dim,
            "num_ep_ranks": parallel.ep_size, "num_global_experts": moe.num_experts,
            "num_local_experts": moe.num_experts // parallel.ep_size,
        }  # fmt: skip
        manager = SimpleNamespace(support_fault_tolerance=False, cpu_group=None)
        made["buffer"] = managers.DeepEPLLAll2AllManager._make_all2all_kwargs(manager, **sizes)
    if parallel.use_deepep_ht_kernels:
        spans = vllm_gpu.GPU["count"] < parallel.ep_size
        manager = SimpleNamespace(internode=spans, num_sms=20, cpu_group=None)
        made["buffer"] = managers.DeepEPHTAll2AllManager._make_all2all_kwargs(manager)
    made.get("buffer", {}).pop("group", None)
    return made


def _watch() -> None:
    experts = vllm("model_executor.layers.fused_moe.routed_experts").RoutedExperts
    init = experts.__init__

    def watched(self: Any, *args: Any, **named: Any) -> None:
        init(self, *args, **named)
        FOUND.append(self)

    experts.__init__ = watched


def _groups(parallel: Any) -> None:
    """Rank 0 of the groups that vLLM would make."""
    state, data = vllm("distributed.parallel_state"), parallel.data_parallel_size
    shared = parallel.tensor_parallel_size
    sizes = {"_TP": shared, "_PP": 1, "_PCP": 1, "_DCP": 1, "_WORLD": shared, "_DP": data}
    sizes |= {"_EP": data * shared, "_EPLB": data * shared}
    for name, size in sizes.items():
        first = {"rank_in_group": 0, "rank": 0, "local_rank": 0, "is_first_rank": True, "is_last_rank": True}
        setattr(state, name, MagicMock(world_size=size, ranks=list(range(size)), **first))


def _nowhere(torch: Any) -> Any:
    """A context in which a tensor asked for on a GPU is made on the meta device."""

    def meta(value: Any) -> Any:
        named = value.type if isinstance(value, torch.device) else str(value).split(":", maxsplit=1)[0]
        moved = isinstance(value, str | torch.device) and named == "cuda"
        return torch.device("meta") if moved else value

    class Nowhere(importlib.import_module("torch.overrides").TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = getattr(function, "__name__", "")
            if name == "cuda":
                return args[0].to("meta")
            if name == "to":
                args = ["meta" if type(value) is int else value for value in args]
            named = {key: "meta" if key == "device" and isinstance(value, int) else meta(value)
                     for key, value in (kwargs or {}).items()}  # fmt: skip
            return function(*map(meta, args), **named)

    stack = contextlib.ExitStack()
    stack.enter_context(Nowhere())
    stack.enter_context(torch.device("meta"))
    return stack


def answer_of(launch: Answer) -> Answer:
    answer: Answer = {}
    vllm_gpu.GPU.update(kind=launch["gpu"], count=launch["devices"])
    log = io.StringIO()
    try:
        with (
            patch.dict(os.environ, launch["environment"]),
            contextlib.redirect_stderr(log),
            contextlib.redirect_stdout(log),
        ):
            config = resolved(launch, answer)
            if launch["build"]:
                built(config, answer)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the engine's refusal is the answer
        answer["error"] = f"{type(error).__name__}: {error} {log.getvalue()[-300:]}"[:600]
    return answer


def apart(launches: list[Answer]) -> list[Answer]:
    """In a child process: what is made for one model would stay for the next."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        with os.fdopen(write, "w") as out:
            json.dump([answer_of(launch) for launch in launches], out, default=str)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as back:
        text = back.read()
    os.waitpid(child, 0)
    found: list[Answer] = json.loads(text) if text else [{"error": "the process died"} for _ in launches]
    return found


def groups(launches: list[Answer]) -> list[list[Answer]]:
    """A model that is made has a process of its own; configurations alone share one."""
    found: list[list[Answer]] = []
    for launch in launches:
        if launch["build"] or not found or found[-1][0]["build"] or len(found[-1]) >= TOGETHER:
            found.append([])
        found[-1].append(launch)
    return found


def main() -> None:
    launches = json.load(sys.stdin)
    real = os.dup(1)
    os.dup2(2, 1)
    os.environ |= {
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_HAS_FLASHINFER_CUBIN": "1",
        "VLLM_NO_USAGE_STATS": "1",
    }
    os.environ["HF_HUB_OFFLINE"] = "1"
    vllm_gpu.claim_cuda()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = [answer for found in pool.map(apart, groups(launches)) for answer in found]
    with os.fdopen(real, "w") as out:
        out.write(json.dumps(answers) + "\n")


if __name__ == "__main__":
    main()
