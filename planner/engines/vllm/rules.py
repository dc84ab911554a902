"""The judge of vLLM's launches: every rule that bears on one, with its source and the words that answer it.

Sources are files of the wheel of 0.33.0 below vllm; "run": seen by running its code on a CPU.
"""

from collections.abc import Iterator

from planner.cost import low_latency_bytes, low_latency_width
from planner.engines.common import deepep
from planner.engines.common.capability import SM90, SM100, capability
from planner.engines.common.verdict import DECODE, MIXED, NOTE, PREFILL, WARNING, Finding, Said, refused
from planner.engines.vllm import launch as words
from planner.engines.vllm.attention import attention_limits
from planner.engines.vllm.backend import GATHER, LOW_LATENCY, NORMAL, WHEEL
from planner.engines.vllm.launch import MOST_BUFFER_BYTES, Launch
from planner.engines.vllm.models import NOT_SERVED
from planner.engines.vllm.redundant import map_limits, without_balancer
from planner.problem import Violation
from planner.topology import gpu_names

_METHOD = "model_executor/layers/fused_moe/routed_experts.py:186, run"
_MODES = {
    LOW_LATENCY: "every step goes through a buffer for as many tokens a rank as it may have",
    NORMAL: "steps have no limit on tokens and no CUDA graphs",
}


def findings(launch: Launch) -> list[Said]:
    """What bears on a launch, refusals first, and how each is said."""
    said = [*_refusals(launch), *_redundant(launch), *_all_to_all(launch), *_balancer(launch)]
    said += [*_sizes(launch), *_machine(launch), *_host(launch), *_role(launch)]
    return sorted(said, key=lambda one: not one[0].refused)


def _refusals(launch: Launch) -> Iterator[Said]:
    model, backend = launch.problem.model, launch.backend
    if model.architecture in NOT_SERVED:
        why, source = NOT_SERVED[model.architecture]
        yield refused(
            "model", f"{WHEEL} does not serve {model.architecture} by expert parallelism: {why}", source
        )
    if backend.unknown:
        text = f"{backend.why}; plan and serve a release in bf16, fp8, int4, mxfp4 or nvfp4 that is known"
        yield refused("weights", text, backend.source)
    for limit in attention_limits(launch.problem):
        yield refused(limit.rule, limit.text, "config/parallel.py:768, config/model.py:1557, read")
    if launch.buffer_bytes > MOST_BUFFER_BYTES:
        buffer = f"{launch.buffer_bytes / 2**30:.1f} GiB for {launch.tokens} tokens a rank"
        text = f"DeepEP's low-latency buffer must stay below 32 GiB, and takes {buffer}: {_fewer(launch)}"
        yield refused("deepep-buffer", text, f"{deepep.UPSTREAM.name}, csrc/legacy/buffer.hpp:112, read")


def _fewer(launch: Launch) -> str:
    """The most tokens whose buffer DeepEP takes."""
    problem = launch.problem
    width = low_latency_width(problem.model.dispatch_width)
    most = next(
        (
            n
            for n in range(launch.tokens, 0, -1)
            if low_latency_bytes(n, width, problem.slots) <= MOST_BUFFER_BYTES
        ),
        0,
    )
    most //= problem.workload.attention_tp
    return f"plan for at most --tokens-per-rank {most}" if most else "use fewer slots"


def _redundant(launch: Launch) -> Iterator[Said]:
    problem, backend = launch.problem, launch.backend
    limits = map_limits(problem.model, problem.slots)
    if problem.redundant and not limits and backend.unbalanced and not backend.unknown:
        limits = [Violation("redundant", without_balancer(backend.unbalanced))]
    for limit in limits:
        text = limit.text
        if -problem.model.experts % problem.gpus and backend.unbalanced:
            text += f", on a number of GPUs that divides {problem.model.experts}"
        yield refused(limit.rule, text, f"{_METHOD}; config/parallel.py:587, run")


def _all_to_all(launch: Launch) -> Iterator[Said]:
    backend = launch.backend
    if backend.unknown:
        return
    flags = ("--enable-expert-parallel", "--all2all-backend", backend.name)
    if not backend.deep:
        text = deepep.instead(backend.why, f"--all2all-backend {GATHER}")
        yield Finding("all-to-all", text, backend.source, flags), NOTE
        return
    text = f"tokens go through DeepEP, {backend.name}: {_MODES[backend.name]}"
    yield Finding("all-to-all", text, backend.source, flags), None


def _balancer(launch: Launch) -> Iterator[Said]:
    """What the plan's placement is served by, or why it is not; a launch says it by its `ignored`."""
    backend = launch.backend
    if backend.unknown:
        return
    if not backend.eplb:
        text = f"{WHEEL} {backend.unbalanced}: it serves its default placement, not the plan's"
        yield Finding("map", text, _METHOD), None
        return
    text = (
        "vLLM reads no map; its balancer moves experts, and the plugin of --plugin makes it follow the plan"
    )
    source = "distributed/eplb, run; the method supports EPLB, run"
    yield Finding("map", text, source, tuple(words.balancer_words(launch))), None


def _sizes(launch: Launch) -> Iterator[Said]:
    source = "config/scheduler.py:42,319,331; engine/arg_utils.py:3167-3231; all2all_utils.py:259, run"
    held = f"a step brings up to {launch.tokens} tokens to a rank"
    held += f", {launch.requests} requests at most" if launch.requests else ""
    held += f", through a buffer of {launch.buffer_bytes / 1e9:.2f} GB" if launch.buffer_bytes else ""
    text = f"{held}; CUDA graphs are captured up to that, prompts are cut into what fits"
    yield Finding("sizes", text, source, tuple(words.size_words(launch))), None
    if launch.backend.name == LOW_LATENCY:
        text = "low latency mode uses no NVLink buffer, for which vLLM would take 1 GiB of every GPU"
        flags = ("=".join(words.NO_NVLINK_BUFFER),)
        yield Finding("nvlink-buffer", text, "envs.py:2036, all2all.py:345, run", flags), None


def _machine(launch: Launch) -> Iterator[Said]:
    topology = launch.problem.topology
    found, gpu = capability(topology), ", ".join(gpu_names(topology))
    if found is None:
        text = f"the compute capability of {gpu} is not known: kernels are chosen as for SM90"
        yield Finding("gpu", text, "NVIDIA's list of CUDA GPUs"), WARNING
    elif found[0] not in (SM90, SM100):
        text = f"kernels were looked at for SM90 and SM100, and {gpu} is SM{found[0]}{found[1]}"
        yield Finding("gpu", text, WHEEL), WARNING
    if launch.backend.name != LOW_LATENCY:
        return
    if launch.over_trays:
        text = "NVLink joins GPUs of several hosts, and DeepEP uses it between them only where it is told"
        source = "envs.py, all2all.py:364, run; DeepEP dd758ca, deep_ep/buffers/legacy.py:122, read"
        yield Finding("mnnvl", text, source, ("=".join(words.ACROSS_TRAYS),)), None
    for text in deepep.unreached(topology):
        yield Finding("deepep-peers", text, deepep.UPSTREAM.name), WARNING


def _host(launch: Launch) -> Iterator[Said]:
    del launch
    text = "vLLM listens on all interfaces by default; the launch says so"
    yield Finding("host", text, "entrypoints/launchers/launcher.py:376, read", words.HOST), None


def _role(launch: Launch) -> Iterator[Said]:
    if launch.role != MIXED:
        text = f"the KV cache travels by NIXL, from the address in {words.SIDE_CHANNEL} of each host"
        source = "config/kv_transfer.py:110, run; envs.py:232, read"
        flags = (*words.role_words(launch), f"{words.SIDE_CHANNEL}=ADDRESS")
        yield Finding("role", text, source, flags), None
        return
    tokens = f"{launch.tokens} tokens a rank"
    if launch.problem.workload.phase == DECODE:
        text = f"planned for decode; prompts run by the same placement, in what a step of {tokens} has left"
    else:
        slow = ", without CUDA graphs" if launch.backend.name == NORMAL else ""
        text = f"planned for {PREFILL} in steps of {tokens}; requests decode by the same placement{slow}"
    yield Finding("role", text, "the plan"), NOTE
