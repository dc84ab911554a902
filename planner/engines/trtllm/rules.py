"""The judge of TensorRT-LLM's launches: every rule that bears on one, with its source and what answers it."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from planner.engines.common import attention
from planner.engines.common.capability import capability
from planner.engines.common.command import Endpoint
from planner.engines.common.layout import uneven_nodes
from planner.engines.common.verdict import DECODE, MIXED, NOTE, WARNING, Finding, Said, refused
from planner.engines.trtllm import alltoall
from planner.engines.trtllm import launch as words
from planner.engines.trtllm.launch import Launch
from planner.engines.trtllm.releases import BLACKWELL_FP8, PAIR, TITLE, why_no_map
from planner.model import ModelSpec
from planner.problem import Violation
from planner.topology import gpu_names

MOST_EXPERTS, MOST_SLOTS = 1024, 2**15  # the routing kernel's table, and its int16 slot ids
OLDEST_GPU = (8, 0)
HOPPER, BLACKWELL = 9, 10
# By weight dtype; fp8 by CUTLASS on SM90, by DeepGEMM on SM100 and SM103.
KERNELS = {"fp8": (HOPPER, BLACKWELL), "nvfp4": (BLACKWELL,)}
_NAMES = {"fp8": "SM90, SM100 and SM103", "nvfp4": "SM100 and SM103"}
_HOW = {
    alltoall.NVLINK: "tokens go through NVLink kernels, one message a GPU, with every batch",
    alltoall.DEEPEP: "tokens go through DeepEP's normal mode, one message a node, with every batch",
    alltoall.LOW_LATENCY: "decode steps go through DeepEP low latency, one message a slot",
    alltoall.GATHER: "every rank gathers all tokens, and traffic does not depend on the placement",
}


def findings(launch: Launch) -> list[Said]:
    """What bears on a launch, refusals first, and how each is said."""
    said = [*_refusals(launch), *_host(), *_map(launch), *_sizes(launch), *_role(launch)]
    return sorted(said, key=lambda one: not one[0].refused)


def map_limits(model: ModelSpec, slots: int, gpus: int) -> list[Violation]:
    found = []
    if model.experts > MOST_EXPERTS:
        most = f"TensorRT-LLM's load balancer takes up to {MOST_EXPERTS} experts"
        found.append(Violation("experts", f"{most}; {model.name} has {model.experts}"))
    if slots > MOST_SLOTS:
        text = f"TensorRT-LLM counts slots in 16 bits: up to {MOST_SLOTS}, not {slots}"
        found.append(Violation("slots", text))
    if gpus == 1:
        found.append(Violation("gpus", "TensorRT-LLM's load balancer wants an EP size of more than 1"))
    return found


def _refusals(launch: Launch) -> Iterator[Said]:
    problem, release = launch.problem, launch.release
    for limit in uneven_nodes(problem.topology, "TensorRT-LLM takes rank // gpus_per_node for the node"):
        yield refused(limit.rule, limit.text, "mapping.py, read")
    if problem.topology.node_count > 1 and any(node.devices for node in problem.topology.nodes):
        text = "TensorRT-LLM's ranks of several hosts take each host's first GPUs: take whole nodes, or one"
        yield refused("devices", text, "mapping.py, rank % gpus_per_node, read")
    for limit in map_limits(problem.model, problem.slots, problem.gpus):
        yield refused(limit.rule, limit.text, "moeLoadBalanceKernels.cu, read")
    whole = "TensorRT-LLM's attention is data parallel over all ranks or none, and a map wants all"
    for limit in attention.one_gpu(TITLE, problem, whole):
        yield refused(limit.rule, limit.text, "llm_args.py, enable_attention_dp; interface.py, read")
    yield from _gpu(launch)
    if launch.role != MIXED and PAIR not in release.flags:
        text = f"the options of a pair are not known of {TITLE} {release.version}: use 1.2.1, or no --role"
        yield refused("role", text, "llm_args.py, CacheTransceiverConfig, read")


def _gpu(launch: Launch) -> Iterator[Said]:
    found, name = capability(launch.problem.topology), gpu_names(launch.problem.topology)[0]
    if found is None:
        return
    chip = f"{name} is SM{found[0]}{found[1]}"
    if found < OLDEST_GPU:
        yield refused("gpu", f"TensorRT-LLM needs SM80 or newer; {chip}", "its support matrix, read")
    if not launch.with_map:
        return
    dtype, release = launch.problem.model.weight_dtype, launch.release
    source = "fused_moe_wide_ep.py, _get_quant_method; #17119; read"
    if found[0] not in KERNELS.get(dtype, (found[0],)):
        text = f"the WIDEEP backend has {dtype} kernels for {_NAMES[dtype]} alone; {chip}"
        yield refused("weights", text, source)
    elif dtype == "fp8" and found[0] == BLACKWELL and BLACKWELL_FP8 not in release.flags:
        text = f"the WIDEEP backend of {release.version} is not known to have fp8 kernels for {name}"
        yield refused("weights", f"{text}: use 1.2.1", source)


def _host() -> Iterator[Said]:
    text = "TensorRT-LLM listens on localhost unless told, where no other host reaches it"
    yield Finding("host", text, "commands/serve.py, --host, read", Endpoint().listen), None
    text = "the options file has one name in every release: --config came after 1.0"
    flags = (words.OPTIONS_FLAG, words.OPTIONS_NAME)
    yield Finding("options", text, "commands/serve.py; #9104 (2025-11); read", flags), None


def _map(launch: Launch) -> Iterator[Said]:
    why, source = why_no_map(launch.problem.model, launch.release)
    if why:
        text = f"TensorRT-LLM {launch.release.version} {why}"
        yield Finding("map", text, source, ("--flags-only",)), None
        return
    text = "the placement is served as it is: no weights move while it serves"
    flags = ("moe_config.backend=WIDEEP", "moe_config.load_balancer", "enable_attention_dp=true")
    yield Finding("map", text, "fused_moe_wide_ep.py, moe_load_balancer.py, read", flags), None
    yield from _all_to_all(launch)


def _all_to_all(launch: Launch) -> Iterator[Said]:
    method, why = launch.method
    source = "fused_moe_wide_ep.py, select_alltoall_method_type, read"
    text = f"{why}: {_HOW[method]}" if why else _HOW[method]
    yield Finding("all-to-all", text, source, tuple(launch.environment)), NOTE if why else None
    topology = launch.problem.topology
    if method == alltoall.NVLINK and topology.node_count > 1:
        need = "NVLink between nodes needs /dev/nvidia-caps-imex-channels in every container"
        yield Finding("imex", need, "examples/wide_ep/README.md, read"), NOTE
    if method == alltoall.LOW_LATENCY and topology.domain_count < topology.node_count:
        text = "DeepEP low latency sends between nodes by their NICs, also where NVLink joins them"
        yield Finding("deepep-nvlink", text, "deep_ep_utils.py, read"), WARNING


def _sizes(launch: Launch) -> Iterator[Said]:
    sizes = launch.sizes
    held = [f"up to {sizes.running} running requests"] if sizes.running else []
    held += [f"{launch.step_tokens} tokens a step"]
    held += [f"graphs up to {launch.graphs}"] if launch.graphs else ["no CUDA graphs"]
    source = "llm_args.py, CudaGraphConfig; model_config.py, max_num_tokens; read"
    bound = {"moe_config.max_num_tokens": launch.gathered_tokens} if launch.gathered_tokens else {}
    flags = (*_spelled(words.size_options(launch) | bound), *words.size_words(launch))
    yield Finding("sizes", f"each rank has {', '.join(held)}", source, flags), None
    if sizes.running and not launch.graphs:
        text = f"DeepEP's normal mode of {launch.release.version} waits for the CPU: nothing is captured"
        yield Finding("graphs", text, "deep_ep_utils.py; #7514; read"), WARNING


def _role(launch: Launch) -> Iterator[Said]:
    if launch.role != MIXED:
        text = "half of a pair hands its KV cache over; both halves need one backend for it"
        source = "llm_args.py, CacheTransceiverConfig; docs, disaggregated serving; read"
        yield Finding("role", text, source, tuple(_spelled(words.role_options(launch.role)))), None
        return
    phase, sizes, method = launch.problem.workload.phase, launch.sizes, launch.method[0]
    if not launch.with_map:
        return
    if phase == DECODE:
        text = f"planned for decode; a step with prompts brings up to {sizes.chunk} tokens a rank"
        text += ", gathered by every rank" if method == alltoall.LOW_LATENCY else ""
    else:
        text = f"planned for prefill; {sizes.running} requests a rank decode by the same placement"
    yield Finding("role", text, "the plan"), NOTE


def _spelled(options: Mapping[str, Any]) -> Iterator[str]:
    """Options as findings show them: one a key, those of a section behind its name."""
    for key, value in options.items():
        if isinstance(value, dict):
            yield from _spelled({f"{key}.{name}": held for name, held in value.items()})
        else:
            yield f"{key}={value if isinstance(value, str) else json.dumps(value)}"
