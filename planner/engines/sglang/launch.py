"""The words that start SGLang on one node."""

import math

from planner.engines.common import deepep, script
from planner.engines.common.releases import Release
from planner.engines.sglang.expert_location import MAP_NAME
from planner.problem import Problem

ATTN_DP = "--attn-dp-size"
BUFFER = "SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK"
DISPATCH_TOKENS = 128  # BUFFER's default


def node_words(problem: Problem, model_path: str, node: int, release: Release) -> list[str]:
    """One node's command, as bash words."""
    gpus, nodes = str(problem.gpus), problem.topology.node_count
    words = ["python3", "-m", "sglang.launch_server", "--model-path", script.quote(model_path)]
    words += ["--tp-size", gpus]
    if nodes > 1:
        words += ["--nnodes", str(nodes), "--node-rank", str(node)]
        words += ["--dist-init-addr", '"$HEAD_ADDRESS:20000"']
    if not release.reads_map(problem.model):
        return [*words, "--ep-size", str(math.gcd(problem.model.experts, problem.gpus))]
    attention = [ATTN_DP, gpus] if ATTN_DP in release.flags else ["--dp-size", gpus, "--enable-dp-attention"]
    words += ["--ep-size", gpus, *attention, "--moe-dense-tp-size", "1", *_all_to_all(problem)]
    words.append("--disable-shared-experts-fusion")  # a fused shared expert is a slot that no map has
    return [*_dispatch_buffer(problem), *words]


def _all_to_all(problem: Problem) -> list[str]:
    """How tokens are moved and replicas chosen, and the map they are chosen from."""
    phase = problem.workload.phase
    mode = "low_latency" if phase == "decode" else "normal"
    deep = deepep.serves(phase, problem.topology)
    backend = ["deepep", "--deepep-mode", mode] if deep else ["none"]
    replicas = ["--ep-num-redundant-experts", str(problem.redundant)]
    location = ["--init-expert-location", f"{script.PLAN_DIR}/{MAP_NAME}"]
    dispatch = ["--ep-dispatch-algorithm", "static" if deep else "dynamic"]
    return ["--moe-a2a-backend", *backend, *replicas, *location, *dispatch]


def _dispatch_buffer(problem: Problem) -> list[str]:
    tokens = problem.workload.tokens_per_rank
    larger = problem.workload.phase == "decode" and tokens > DISPATCH_TOKENS
    return ["env", f"{BUFFER}={tokens}"] if larger else []
