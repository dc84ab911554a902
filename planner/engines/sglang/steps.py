"""The part of SGLang's judge that looks at a server's steps: kernels, sizes, memory."""

from collections.abc import Iterator

from planner.engines.common import deepep
from planner.engines.common.capability import SM90, SM100, capability
from planner.engines.common.sizes import AUTO, LOW_LATENCY, MOST_BUFFER, NORMAL
from planner.engines.common.verdict import DECODE, NOTE, WARNING, Finding, Said, refused
from planner.engines.sglang import launch as words
from planner.engines.sglang.backend import GATHER as NO_ALL_TO_ALL
from planner.engines.sglang.backend import WHEEL
from planner.engines.sglang.launch import Launch
from planner.engines.sglang.models import page_tokens
from planner.topology import gpu_names

_MODES = {
    LOW_LATENCY: "every batch goes through the low-latency buffer",
    NORMAL: "every batch goes through normal mode, which has no limit on tokens and no decode graphs",
    AUTO: "a step with prompts goes through normal mode, one without through low latency, with graphs",
}


def steps(launch: Launch) -> list[Said]:
    """What bears on the steps of a server that reads a map."""
    return [*_kernels(launch), *_sizes(launch), *_memory(launch), *_machine(launch)]


def _kernels(launch: Launch) -> Iterator[Said]:
    backend, gpu = launch.backend, ", ".join(gpu_names(launch.problem.topology))
    if backend.unknown:
        text = f"{backend.why}; plan and serve a release in bf16, fp8, int4, mxfp4 or nvfp4 that is known"
        yield refused("weights", text, backend.source)
        return
    flags = (*words.all_to_all_words(launch), *backend.runner)
    if backend.deep:
        text = f"tokens go through DeepEP, {launch.mode}: {_MODES[launch.mode]}"
        yield Finding("all-to-all", text, backend.source, tuple(flags)), None
    else:
        text = deepep.instead(backend.why, NO_ALL_TO_ALL)
        yield Finding("all-to-all", text, backend.source, tuple(flags)), NOTE
    found = capability(launch.problem.topology)
    if found is None:
        text = f"the compute capability of {gpu} is not known: kernels are chosen as for SM90"
        yield Finding("gpu", text, "NVIDIA's list of CUDA GPUs"), WARNING
    elif found[0] not in (SM90, SM100):
        text = f"kernels were looked at for SM90 and SM100, and {gpu} is SM{found[0]}{found[1]}"
        yield Finding("gpu", text, WHEEL), WARNING


def _sizes(launch: Launch) -> Iterator[Said]:
    problem, sizes, page = launch.problem, launch.sizes, page_tokens(launch.problem.model)
    phase, tokens = problem.workload.phase, problem.workload.tokens_per_rank
    if phase == DECODE and launch.backend.deep and tokens > MOST_BUFFER:
        text = f"SGLang dispatches up to {MOST_BUFFER} tokens a rank in low latency mode, not {tokens}"
        yield refused("dispatch-tokens", text, "layers/moe/token_dispatcher/deepep.py:409, run")
        return
    if phase != DECODE and not sizes.chunk:
        text = f"a prefill step takes whole pages of up to {page} tokens; {tokens} tokens a rank are none"
        yield refused("chunk", text, "arg_groups/validation_hook.py:243, run")
        return
    if phase != DECODE and sizes.chunk != tokens:
        text = f"prefill steps take whole pages of {page} tokens: {sizes.chunk} of the plan's {tokens} a rank"
        yield Finding("chunk", text, "arg_groups/validation_hook.py:243, run"), NOTE
    flags = tuple(words.size_words(launch))
    buffer = (f"{words.BUFFER}={sizes.buffer}",) if sizes.buffer else ()
    held = [f"up to {sizes.running} running requests"] if sizes.running else []
    held += [f"prompts in chunks of {sizes.chunk} tokens"] if sizes.chunk else []
    held += [f"a buffer of {sizes.buffer} tokens"] if sizes.buffer else []
    source = "arg_groups/parallel_hook.py:331, run; mem_cache/kv_cache_configurator.py:3119, read"
    yield Finding("sizes", f"each rank has {', '.join(held)}", source, (*buffer, *flags)), None


def _memory(launch: Launch) -> Iterator[Said]:
    """SGLang's own guess takes the totals over all ranks for what each holds."""
    source = "arg_groups/memory_hook.py:282-400, run; moeplan's ledger"
    if not launch.room.fits:
        text = "buffers and activations of a step leave nothing of a GPU's memory for weights and KV cache"
        yield refused("memory", f"{text}: plan for fewer tokens a rank", source)
        return
    share = f"{launch.room.fraction:.3f} of a GPU's memory is left for weights and KV cache"
    yield Finding("memory", share, source, tuple(words.memory_words(launch))), None
    if launch.room.missing_bytes:
        text = f"the weights alone take {launch.room.missing_bytes / 1e9:.1f} GB more than that"
        why = "other weights and some buffers are assumed"
        yield Finding("weights-fit", f"{share}; {text} ({why})", "moeplan's ledger"), WARNING


def _machine(launch: Launch) -> Iterator[Said]:
    if launch.mode in (LOW_LATENCY, AUTO):
        for text in deepep.unreached(launch.problem.topology):
            yield Finding("deepep-peers", text, deepep.UPSTREAM.name), WARNING
