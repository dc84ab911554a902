"""What would not stand of a launch, by what SGLang made of it (the answers of sglang_resolver.py)."""

from collections.abc import Iterator

from planner.engines import find_engine
from planner.engines.common import deepep
from planner.engines.sglang.models import BY_TRANSFORMERS, SPLIT_OVER_ALL
from tests.engines.launches import TOKENS, Answer
from tests.engines.sglang_launches import DRIVERS, Asked

ENGINE = find_engine("sglang")

UNBOUNDED = 2048  # running requests a rank, at least, where none are said


def faults(asked: Asked, answer: Answer) -> list[str]:
    """What would not stand of a launch, by what SGLang made of it."""
    if "error" in answer:
        return [str(answer["error"])]
    found = [*_meaning(asked, answer), *_kernels(asked, answer)]
    if ENGINE.reads_map(asked.model):
        found += _sizes(asked, answer)
    return found


def _meaning(asked: Asked, answer: Answer) -> Iterator[str]:
    """The flags resolve to the plan."""
    problem, resolved = asked.problem, answer["resolved"]
    meant = {
        "host": "0.0.0.0", "tp_size": problem.gpus, "nnodes": problem.topology.node_count,
        "enable_eplb": False, "disaggregation_mode": "null" if asked.role == "mixed" else asked.role,
    }  # fmt: skip
    if ENGINE.reads_map(asked.model):
        deep = problem.workload.transport != "allgather"
        static = problem.replica_rule == "nearest-static"
        meant |= {
            "ep_size": problem.gpus, "attn_dp_size": problem.gpus // asked.attention_tp,
            "ep_num_redundant_experts": problem.redundant, "disable_shared_experts_fusion": True,
            "moe_a2a_backend": "deepep" if deep else "none",
            "ep_dispatch_algorithm": "static" if static else "dynamic",
        }  # fmt: skip
    for field, value in meant.items():
        if resolved[field] != value:
            yield f"{field} is {resolved[field]}, not {value}"
    if not 0 < resolved["mem_fraction_static"] < 1:
        yield f"mem_fraction_static is {resolved['mem_fraction_static']}"
    offers = ENGINE.reads_map(asked.model) or asked.model.architecture in BY_TRANSFORMERS
    if answer["offers_layout"] != offers:
        yield f"the model's class offers a layout: {answer['offers_layout']}"


def _kernels(asked: Asked, answer: Answer) -> Iterator[str]:
    """Every batch finds its kernel, and none that routes by itself past the map."""
    experts, resolved = answer["experts"], answer["resolved"]
    if asked.model.architecture in SPLIT_OVER_ALL:  # no layer of experts: its class calls the kernel itself
        if asked.model.expert_intermediate % resolved["tp_size"]:
            yield f"experts cut into {resolved['tp_size']} lose what does not divide"
        return
    if "error" in experts:
        yield f"experts: {experts['error']}"
        return
    yield from (f"{kind}: {way['way']}" for kind, way in experts["batches"].items() if not way["ok"])
    runner, method, major = experts["runner"], experts["quant_method"], DRIVERS[asked.machine][1][0]
    mapped = resolved["init_expert_location"] != "trivial"
    if (
        mapped
        and resolved["moe_a2a_backend"] == "none"
        and (
            runner == "triton_kernel"
            or (runner == "flashinfer_trtllm" and method != "Fp8MoEMethod")
            or (runner == "flashinfer_mxfp4" and method == "Mxfp4MoEMethod")
        )
    ):
        yield f"{runner} routes in its kernel, past the map"
    if resolved["moe_a2a_backend"] != "deepep":
        return
    if answer["no_deepep_forward"]:
        yield "the model's forward has no branch for DeepEP"
    if runner == "deep_gemm" and asked.model.weight_dtype == "mxfp4" and major == 9:
        yield "DeepGEMM has no fp8 x fp4 kernel for SM90"
    layer, low = experts["layer"], "deepep_ll" in experts["batches"]
    if low and not (layer["hidden_size"] in deepep.SGLANG.hidden and layer["top_k"] <= deepep.SGLANG.top_k):
        yield f"no low-latency kernel for width {layer['hidden_size']}, top-k {layer['top_k']}"


def _sizes(asked: Asked, answer: Answer) -> Iterator[str]:
    """What a rank may bring to a step is what was planned, and fits the buffer that it goes through."""
    buffer, tokens, shared = answer["buffer"], TOKENS[asked.phase], asked.attention_tp
    # SGLang counts requests and tokens of an attention group; before experts its GPUs deal them out
    each = {name: count and -(-count // shared) for name, count in answer["per_rank"].items()}
    graph = -(-answer["decode_graph"]["largest"] // shared)
    running = each["running"] or UNBOUNDED
    decodes, prefills = asked.role != "prefill", asked.role != "decode"
    if asked.phase == "decode" and each["running"] != tokens:
        yield f"{each['running']} running requests a rank, planned were {tokens}"
    if asked.phase == "prefill" and each["chunk"] != tokens:
        yield f"chunks of {each['chunk']} tokens a rank, planned were {tokens}"
    if decodes and answer["decode_graph"]["on"] and graph < running:
        yield "steps of decode that no graph covers"
    batches = answer["experts"].get("batches", {})
    if "deepep_ll" in batches:
        step = max(graph, running) if decodes else 0
        if not step <= buffer <= 1024:
            yield f"decode steps of up to {step} tokens, a buffer of {buffer}"
        if prefills and "deepep_normal" not in batches and each["chunk"] > buffer:
            yield f"chunks of {each['chunk']} tokens through a buffer of {buffer}"
    if "deepep_ll" in batches and prefills and answer["prefill_graph"]["unaligned"]:
        yield f"prefill graphs of {answer['prefill_graph']['unaligned']} tokens: no multiples of 8"
    if "deepep_normal" in batches and asked.problem.gpus > 8 and asked.launch["devices"] % 8:
        yield "normal mode's groups of eight span nodes"
