"""Balancing while an engine serves: how often it looks, how far back, whether it stops, and what it makes.

Shapes: L layers, E experts.
"""

from dataclasses import dataclass

import numpy as np

from planner.engines.common.balancer import Ids, rebalanced
from planner.placement import Placement
from planner.problem import Problem

# Bytes a second that one GPU receives in a rearrangement that stops the server, weights alone. Three that
# were recorded come to 11.6, 12.2 and 13.5: 0.35 s with Qwen3-30B-A3B FP4 on two GB200 (vLLM PR 48618),
# 0.26 s with DeepSeek-V2-Lite on eight H100 (PR 28369), 0.91 s with DeepSeek-R1 NVFP4 on 32 GB200 (PR 43219).
# Others were far slower: 15 s on 32 GPUs (issue 24116), 16 to 21 s for 3 GB on MI355X (PR 47206).
REARRANGED_BYTES_PER_S = 12e9


@dataclass(frozen=True)
class OnlineBalancer:
    """How an engine balances while it serves, as its flags are where nobody sets them."""

    interval_steps: int  # forward steps from one rearrangement to the next
    window_steps: int  # the last steps whose load it looks at
    stalls: bool  # whether the server waits until all weights have moved
    source: str  # what these figures are from, and what is not as the engine has it


def balanced(problem: Problem, counts_LE: Ids) -> Placement:
    """What DeepSeek's EPLB, as vLLM and SGLang have it, makes of these counts; the lower id first at ties.

    In node-limited mode where the model's expert groups divide over the nodes. It may put an expert twice on
    one GPU, as theirs do.
    """
    model, gpus = problem.model, problem.gpus
    nodes, bundles = problem.topology.node_count, model.expert_groups
    pinned = bundles % nodes == 0 and not (problem.slots % nodes or gpus % nodes or model.experts % bundles)
    rows = [
        rebalanced(counts_E, problem.slots, gpus, nodes, bundles=bundles, by_id=True)
        if pinned
        else rebalanced(counts_E, problem.slots, gpus, by_id=True)
        for counts_E in counts_LE
    ]
    return Placement(np.array(rows, dtype=np.int64), model.placed_layer_ids, gpus)
