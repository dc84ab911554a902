"""The judge of SGLang's launches: every rule that bears on one, with its source and the words that answer it.

Sources are files of the wheel of 0.5.23 below sglang/srt; "run": seen by running its code on a CPU.
"""

from collections.abc import Iterator

from planner.engines.common import attention
from planner.engines.common.capability import capability
from planner.engines.common.layout import gpus_per_node, uneven_nodes
from planner.engines.common.sizes import NORMAL
from planner.engines.common.verdict import DECODE, MIXED, NOTE, WARNING, Finding, Said, refused
from planner.engines.sglang import launch as words
from planner.engines.sglang.backend import WHEEL
from planner.engines.sglang.launch import Launch
from planner.engines.sglang.models import (
    BARE_DRAFT,
    BY_TRANSFORMERS,
    NOT_SERVED,
    SPLIT_OVER_ALL,
    WITHOUT_REDUNDANCY,
)
from planner.engines.sglang.steps import steps
from planner.model import ModelSpec
from planner.problem import Violation
from planner.topology import gpu_names

# Without an all-to-all: dynamic dispatch, the same choice on every rank. Earlier releases get it wrong.
GATHERED_RULE = "row-index"
OLDEST_GPU = (7, 5)


def findings(launch: Launch) -> list[Said]:
    """What bears on a launch, refusals first, and how each is said."""
    said = [*_refusals(launch), *_host(launch), *_attention(launch)]
    if launch.reads_map:
        said += [*steps(launch)]
    return sorted([*said, *_role(launch)], key=lambda one: not one[0].refused)


def map_limits(model: ModelSpec, slots: int) -> list[Violation]:
    if slots <= model.experts or model.architecture not in WITHOUT_REDUNDANCY:
        return []
    serves = f"{WHEEL} serves {model.architecture} without redundant experts only"
    return [Violation("redundant", f"{serves}; use --redundant 0")]


def bare_draft(model: ModelSpec) -> str:
    """What is said of a draft layer that is built without redundant slots; empty where the model has none.

    0.5.23, deepseek_v2.py: that of DeepSeek-V4 (sglang#7893 has an older case of it).
    """
    if not model.draft_layer_ids or model.architecture not in BARE_DRAFT:
        return ""
    layer = model.draft_layer_ids[0]
    return f"draft layer {layer}: SGLang gives it {model.experts} slots, none of them redundant"


def _refusals(launch: Launch) -> Iterator[Said]:
    problem, found = launch.problem, capability(launch.problem.topology)
    for limit in uneven_nodes(problem.topology, "SGLang starts as many ranks on each node"):
        yield refused(limit.rule, limit.text, "server_args.py: --tp-size over --nnodes, run")
    if found is not None and found < OLDEST_GPU:
        text = f"SGLang needs SM75 or newer; {gpu_names(problem.topology)[0]} is SM{found[0]}{found[1]}"
        yield refused("gpu", text, "model_executor/model_runner_components/load_model_utils.py:91, read")
    if not launch.reads_map:
        for limit in attention.one_gpu("SGLang", problem, "without a map SGLang's launch is left to itself"):
            yield refused(limit.rule, limit.text, "the launch that is written")
        text = f"SGLang does not read a map for {problem.model.architecture}; it places experts itself"
        yield Finding("map", text, _why_no_map(problem.model), ("--flags-only",)), None
        yield from _not_served(problem.model)
        yield from _split_experts(launch)
        return
    for limit in [*map_limits(problem.model, problem.slots), *_draft_limits(launch)]:
        yield refused(limit.rule, limit.text, "the model's class, read")
    for limit in attention.undivided_heads(problem.model, launch.shared):
        yield refused(limit.rule, limit.text, "the classes' num_heads % attn_tp_size, read")
    if not launch.backend.deep and not launch.backend.unknown:
        yield from _without_all_to_all(launch)


def _why_no_map(model: ModelSpec) -> str:
    if model.architecture in BY_TRANSFORMERS:
        return f"{WHEEL}: models/transformers.py:473, its class, translates no ids to slots, read"
    return f"{WHEEL}: no get_model_config_for_expert_location in its class, run"


def _not_served(model: ModelSpec) -> Iterator[Said]:
    if model.architecture in NOT_SERVED:
        why, source = NOT_SERVED[model.architecture]
        yield refused("model", f"{WHEEL} does not serve {model.architecture}: {why}", source)


def _split_experts(launch: Launch) -> Iterator[Said]:
    """Without a map there are no redundant experts: ranks beyond those that divide share each expert."""
    model, gpus = launch.problem.model, launch.problem.gpus
    whole = 1 if model.architecture in SPLIT_OVER_ALL else words.expert_ranks(launch.problem)
    shares = gpus // whole
    if model.expert_intermediate % shares:
        text = f"SGLang cuts each expert of {model.name} into {shares} for {gpus} GPUs"
        text += f", and its width {model.expert_intermediate} does not divide: use fewer GPUs"
        yield refused("expert-width", text, "layers/moe/fused_moe_triton/layer.py:427, run")


def _without_all_to_all(launch: Launch) -> Iterator[Said]:
    """Before 0.5.23 layers without an all-to-all are not known to serve a map rightly (sglang#39580, #32962).

    Those of some models took experts for slots, or each rank its own replica.
    """
    if GATHERED_RULE in launch.release.flags:
        return
    older = f"SGLang {launch.release.version} is not known to serve a map rightly without an all-to-all"
    way = f"use 0.5.23{'' if launch.problem.workload.phase == DECODE else ', or --phase decode'}"
    yield refused("release", f"{launch.backend.why}, and {older}: {way}", "sglang#39580, #32962")


def _draft_limits(launch: Launch) -> list[Violation]:
    model, gpus = launch.problem.model, launch.problem.gpus
    bare = bare_draft(model)
    if not bare or not model.experts % gpus:
        return []
    text = (
        f"{bare}, and they do not divide over {gpus} ranks: MTP fails at start; "
        f"use an EP size that divides {model.experts}, or keep MTP off and say --no-draft"
    )
    return [Violation("draft", text)]


def _attention(launch: Launch) -> Iterator[Said]:
    """How requests are dealt to the ranks; only where it is not the usual one a rank."""
    shared, counts = launch.shared, gpus_per_node(launch.problem.topology)
    if shared == 1:
        return
    text = f"{shared} GPUs share the attention of a request, {launch.attention_groups} groups side by side"
    source = "runtime_context.py, derive_spawn_ranks; arg_groups/parallel_hook.py:326, run"
    yield Finding("attention", text, source, tuple(words.attention_words(launch))), None
    if attention.group_sizes(counts, shared):
        text = f"{shared} GPUs that share a request sit on several nodes: each layer waits for the network"
        yield Finding("attention-nodes", text, "the plan's rank order"), WARNING


def _host(launch: Launch) -> Iterator[Said]:
    del launch
    text = "SGLang listens on 127.0.0.1 unless told, where no other host reaches it"
    yield Finding("host", text, "arg_groups/fields/serving.py:65, run", words.HOST), None


def _role(launch: Launch) -> Iterator[Said]:
    if launch.role != MIXED:
        text = "both halves of a pair need one page size, which GPUs of two kinds do not choose alike"
        source = "disaggregation/common/conn.py:1320, read; page sizes run"
        yield Finding("role", text, source, tuple(words.role_words(launch))), None
        return
    phase, sizes = launch.problem.workload.phase, launch.sizes
    if not launch.reads_map:
        return
    if phase == DECODE:
        text = f"planned for decode; prompts run by the same placement, {sizes.chunk} tokens a rank at once"
    else:
        text = f"planned for prefill; {sizes.running} requests a rank decode by the same placement"
    slow = launch.mode == NORMAL
    text += ", without CUDA graphs, since low latency mode cannot run" if slow else ""
    yield Finding("role", text, "the plan", ()), WARNING if slow else NOTE
