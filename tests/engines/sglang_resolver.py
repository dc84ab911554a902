"""Run by an interpreter that has SGLang 0.5.23, without a GPU: what does a launch come to?

stdin: a list of {"words": [after `sglang.launch_server --model-path MODEL`], "env": {}, "config": {...},
"memory_mib", "capability": [major, minor], "devices"}. The map file is not opened. The last line of stdout is
a list with an answer for each: {"error": text} where SGLang refuses, else {"resolved", "decode_graph",
"prefill_graph", "per_rank", "buffer", "experts", "offers_layout", "no_deepep_forward"}. Everything is
SGLang's own code: parser, resolution, the checks at start, and its experts layer; sglang_gpu.py says what is
replaced.

One process imports SGLang once; each launch is asked in a fork of it, several at a time, so that none sees
what another left behind.
"""

import contextlib
import importlib
import inspect
import io
import json
import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

gpu, layers = importlib.import_module("sglang_gpu"), importlib.import_module("sglang_experts")
sglang = gpu.sglang
Launch = dict[str, Any]
Answer = dict[str, Any]

FIELDS = (
    *("host", "port", "tp_size", "ep_size", "attn_dp_size", "nnodes", "moe_a2a_backend", "deepep_mode"),
    *("moe_runner_backend", "chunked_prefill_size", "max_prefill_tokens", "max_running_requests"),
    *("disaggregation_mode", "mem_fraction_static", "quantization", "dtype", "ep_dispatch_algorithm"),
    *("ep_num_redundant_experts", "init_expert_location", "enable_eplb", "disable_shared_experts_fusion"),
    *("attention_backend", "page_size", "kv_cache_dtype", "disable_radix_cache"),
)
BUFFER = "SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK"


def ask(launch: Launch) -> Answer:
    os.environ.update({name: str(value) for name, value in launch["env"].items()})
    capability, config = tuple(launch["capability"]), launch["config"]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(config))
        load = ["--skip-tokenizer-init", "--load-format", "dummy", "--device", "cuda"]
        with gpu.on_gpu(capability, launch["memory_mib"], launch["devices"]):
            args = sglang("server_args").prepare_server_args(
                ["--model-path", folder, *load, *launch["words"]]
            )
            args.resolve_once()
            sglang("arg_groups.validation_hook").check_server_args(args)  # as the engine does at its start
            answer = described(args)
            answer |= model_facts(args)
            try:
                answer["experts"] = layers.experts(args, answer["resolved"], config, capability)
            except Exception as error:  # noqa: BLE001 - the engine's refusal is the answer
                answer["experts"] = {"error": f"{type(error).__name__}: {error}"[:300]}
            return answer


def described(args: Any) -> Answer:
    """What the flags resolved to, and what that is for one rank."""
    resolved = args.resolved_dict()
    answer: Answer = {"resolved": {field: plain(resolved.get(field)) for field in FIELDS}}
    graphs = resolved["cuda_graph_config"]
    for phase in ("decode", "prefill"):
        answer[f"{phase}_graph"] = graph(
            graphs[phase] if isinstance(graphs, dict) else getattr(graphs, phase)
        )
    running = resolved["max_running_requests"]
    # None: thousands, by memory. max(1, ...) is SGLang's, mem_cache/kv_cache_configurator.py.
    each = max(1, running // resolved["attn_dp_size"]) if running else None
    answer["per_rank"] = {"running": each, "chunk": resolved["chunked_prefill_size"]}  # divided by the ranks
    answer["buffer"] = getattr(sglang("environ").envs, BUFFER).get()
    return answer


def graph(values: Any) -> Answer:
    values = values if isinstance(values, dict) else vars(values)
    sizes, backend = values.get("bs") or [], str(values.get("backend"))
    on = bool(sizes) and backend != "disabled"
    return {
        "on": on,
        "largest": max(sizes) if on else 0,
        "unaligned": [n for n in sizes if n % 8] if on else [],
    }


def model_facts(args: Any) -> Answer:
    config = sglang("arg_groups.model_override_base").model_config_of(args)
    model_class, _ = sglang("model_loader.utils").get_model_architecture(config)
    source = inspect.getsource(sys.modules[model_class.__module__])
    return {
        "offers_layout": hasattr(model_class, "get_model_config_for_expert_location"),
        "no_deepep_forward": "forward_deepep branch not implemented yet" in source,
    }


def plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str, list, dict)) else str(value)


def answer_or_error(launch: Launch) -> Answer:
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(complaint):
            return ask(launch)
    except SystemExit:  # of the parser
        return {"error": complaint.getvalue()[-300:]}
    except BaseException as error:  # noqa: BLE001 - the engine's refusal is the answer
        return {"error": f"{type(error).__name__}: {error}"[:500]}


def started(work: Callable[[], Any]) -> tuple[int, int]:
    """A fork that does the work and writes what it made into a pipe: its process id, and the pipe."""
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        return child, reader
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        json.dump(work(), pipe)
    os._exit(0)


def made(child: int, reader: int) -> Any:
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else {"error": "the fork died"}


def share(launches: list[Launch]) -> list[Answer]:
    """Each in a fork of its own, one after the other."""
    return [made(*started(partial(answer_or_error, launch))) for launch in launches]


def answers(launches: list[Launch]) -> list[Answer]:
    """In order; as many at a time as there are cores."""
    workers = min(os.cpu_count() or 1, len(launches))
    shares = [started(partial(share, launches[worker::workers])) for worker in range(workers)]
    found: list[Any] = [None] * len(launches)
    for worker, pipe in enumerate(shares):
        found[worker::workers] = made(*pipe)
    return found


def main() -> None:
    launches = json.load(sys.stdin)
    gpu.prepare()
    print(json.dumps(answers(launches)))  # noqa: T201 - a program


if __name__ == "__main__":
    main()
