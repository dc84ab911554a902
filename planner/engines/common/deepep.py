"""DeepEP V1, the all-to-all library of SGLang and vLLM: what its kernels accept, and which ranks it takes for neighbours.

Source: DeepEP at commit dd758ca (2026-07-14), csrc/kernels/legacy and deep_ep; read, not run.
"""

from itertools import combinations

from planner.problem import Problem, Violation
from planner.topology import Topology

NVLINK_PEERS = 8
LOW_LATENCY_HIDDEN = (2048, 2560, 3072, 4096, 5120, 6144, 7168, 8192)
LOW_LATENCY_TOP_K = 11
NORMAL_NODES = (2, 3, 4, 6, 8, 12, 16, 18, 20)
NORMAL_GPUS = (2, 4, 8)


def transport(phase: str, topology: Topology) -> str:
    """Low latency (decode): a message per slot. Normal mode (prefill): one per node over the NIC, or one per GPU where NVLink reaches all.

    Where normal mode cannot run, what the engines gather with in its place.
    """
    if phase == "decode":
        return "slot"
    if apart(topology):
        return "allgather"
    near = topology.node_count == 1 or (topology.gpu_count <= NVLINK_PEERS and topology.domain_count == 1)
    return "rank" if near else "node"


def limits(problem: Problem, *, pads_hidden: bool) -> list[Violation]:
    """What DeepEP refuses, where it is used. `pads_hidden`: the engine rounds the hidden size up to one that has a kernel."""
    if not serves(problem.workload.phase, problem.topology):
        return []
    found = []
    gpus, model = problem.gpus, problem.model
    if gpus > NVLINK_PEERS and gpus % NVLINK_PEERS:
        found.append(Violation("deepep-ranks", f"DeepEP takes up to 8 ranks or a multiple of 8, not {gpus}"))
    if problem.workload.phase == "decode":
        if model.top_k > LOW_LATENCY_TOP_K:
            found.append(
                Violation(
                    "deepep-top-k",
                    f"DeepEP low latency takes a top_k of up to {LOW_LATENCY_TOP_K}; {model.name} has {model.top_k}",
                )
            )
        fits = (
            model.dispatch_width <= max(LOW_LATENCY_HIDDEN)
            if pads_hidden
            else model.dispatch_width in LOW_LATENCY_HIDDEN
        )
        if not fits:
            sizes = (
                f"up to {max(LOW_LATENCY_HIDDEN)}" if pads_hidden else ", ".join(map(str, LOW_LATENCY_HIDDEN))
            )
            found.append(
                Violation(
                    "deepep-hidden",
                    f"DeepEP low latency has kernels for hidden sizes {sizes}; {model.name} dispatches {model.dispatch_width}",
                )
            )
    elif gpus <= NVLINK_PEERS and gpus not in NORMAL_GPUS:
        found.append(
            Violation(
                "deepep-ranks", f"DeepEP normal mode takes 2, 4 or 8 ranks, or several times 8; not {gpus}"
            )
        )
    elif gpus > NVLINK_PEERS and gpus // NVLINK_PEERS not in NORMAL_NODES:
        found.append(
            Violation(
                "deepep-ranks",
                f"DeepEP normal mode takes {', '.join(map(str, NORMAL_NODES))} times 8 ranks, not {gpus // NVLINK_PEERS}",
            )
        )
    return found


def apart(topology: Topology) -> tuple[int, int] | None:
    """The first two ranks without NVLink between them where normal mode needs it: within each eight ranks in a row, whatever the nodes are."""
    switch_G, node_G, index_G = topology.routes.switch_G, topology.node_G, topology.index_G
    linked = {
        (number, frozenset(link.gpus))
        for number, node in enumerate(topology.nodes)
        for link in node.nvlink.pairs
    }
    for first in range(0, topology.gpu_count, NVLINK_PEERS):
        for i, j in combinations(range(first, min(first + NVLINK_PEERS, topology.gpu_count)), 2):
            paired = (
                node_G[i] == node_G[j]
                and (int(node_G[i]), frozenset((int(index_G[i]), int(index_G[j])))) in linked
            )
            if not (switch_G[i] == switch_G[j] >= 0 or paired):
                return i, j
    return None


def serves(phase: str, topology: Topology) -> bool:
    """Whether the engines can use DeepEP here. Low latency (decode) asks for each peer whether it is reachable, and uses the NIC where not."""
    return phase == "decode" or apart(topology) is None


def notes(topology: Topology, phase: str, backend: str) -> list[str]:
    """Why the launch uses `backend` in the place of normal mode; where low latency may find no way between two GPUs."""
    pair = apart(topology)
    if pair is None:
        return []
    which = f"GPUs {pair[0]} and {pair[1]}"
    if phase != "decode":
        need = f"DeepEP's normal mode needs NVLink between all GPUs of each {NVLINK_PEERS} ranks in a row, and {which} have none"
        return [
            f"{need}: the launch uses {backend} in its place, whose traffic does not depend on the placement"
        ]
    node = int(topology.node_G[pair[0]])
    if node != topology.node_G[pair[1]] or topology.nodes[node].nics:
        return []
    need = f"WARNING: DeepEP's low latency mode needs NVLink, PCIe peer access or a NIC between GPUs; {which} have no NVLink"
    return [f"{need}, their node lists no NIC, and peer access is not known: ask nvidia-smi topo -p2p r"]
