"""DeepEP V1, the all-to-all library of SGLang and vLLM: what its kernels accept, and which ranks it takes for neighbours.

Source: DeepEP at commit dd758ca (2026-07-14), csrc/kernels/legacy and deep_ep; read, not run.
"""

from planner.problem import Problem
from planner.rules import Violation
from planner.topology import Topology

NVLINK_PEERS = 8
LOW_LATENCY_HIDDEN = (2048, 2560, 3072, 4096, 5120, 6144, 7168, 8192)
LOW_LATENCY_TOP_K = 11
NORMAL_NODES = (2, 3, 4, 6, 8, 12, 16, 18, 20)
NORMAL_GPUS = (2, 4, 8)


def transport(phase: str, topology: Topology) -> str:
    """Low latency (decode): a message per slot. Normal mode (prefill): one per node over the NIC, or one per GPU where NVLink reaches all."""
    if phase == "decode":
        return "slot"
    near = topology.node_count == 1 or (topology.gpu_count <= NVLINK_PEERS and topology.domain_count == 1)
    return "rank" if near else "node"


def limits(problem: Problem, *, pads_hidden: bool) -> list[Violation]:
    """What DeepEP refuses. `pads_hidden`: the engine rounds the hidden size up to one that has a kernel."""
    found = []
    gpus, model = problem.gpus, problem.model
    if gpus > NVLINK_PEERS and gpus % NVLINK_PEERS:
        found.append(Violation("deepep-ranks", f"DeepEP takes up to 8 ranks or a multiple of 8, not {gpus}"))
    if problem.workload.phase == "decode":
        if model.top_k > LOW_LATENCY_TOP_K:
            found.append(Violation("deepep-top-k", f"DeepEP low latency takes a top_k of up to {LOW_LATENCY_TOP_K}; {model.name} has {model.top_k}"))
        fits = model.dispatch_width <= max(LOW_LATENCY_HIDDEN) if pads_hidden else model.dispatch_width in LOW_LATENCY_HIDDEN
        if not fits:
            sizes = f"up to {max(LOW_LATENCY_HIDDEN)}" if pads_hidden else ", ".join(map(str, LOW_LATENCY_HIDDEN))
            found.append(Violation("deepep-hidden", f"DeepEP low latency has kernels for hidden sizes {sizes}; {model.name} dispatches {model.dispatch_width}"))
    elif gpus <= NVLINK_PEERS and gpus not in NORMAL_GPUS:
        found.append(Violation("deepep-ranks", f"DeepEP normal mode takes 2, 4 or 8 ranks, or several times 8; not {gpus}"))
    elif gpus > NVLINK_PEERS and gpus // NVLINK_PEERS not in NORMAL_NODES:
        found.append(Violation("deepep-ranks", f"DeepEP normal mode takes {', '.join(map(str, NORMAL_NODES))} times 8 ranks, not {gpus // NVLINK_PEERS}"))
    return found


def neighbour_notes(topology: Topology, phase: str) -> list[str]:
    """A warning where normal mode would take GPUs without NVLink between them for NVLink peers: it counts ranks off by eights, whatever the nodes are."""
    if phase == "decode":
        return []  # low latency asks for each peer whether it is reachable, and uses the NIC where not
    for first in range(0, topology.gpu_count, NVLINK_PEERS):
        block = range(first, min(first + NVLINK_PEERS, topology.gpu_count))
        if len(set(topology.domain_G[block.start : block.stop].tolist())) > 1:
            text = f"WARNING: DeepEP's normal mode takes the ranks {block.start}-{block.stop - 1} for one NVLink domain, and here they are not; "
            return [text + "it will fail at start. Plan for NVLink nodes of 8 GPUs, or use another all-to-all backend"]
    return []
