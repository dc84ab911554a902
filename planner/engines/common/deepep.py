"""DeepEP V1, the all-to-all library of SGLang and vLLM: what its kernels accept, who is a neighbour to them.

Source: DeepEP at commit dd758ca (2026-07-14), csrc/kernels/legacy and deep_ep; read, not run.
"""

from itertools import combinations

from planner.model import ModelSpec
from planner.problem import Problem, Violation
from planner.topology import Topology

NVLINK_PEERS = 8
LOW_LATENCY_HIDDEN = (2048, 2560, 3072, 4096, 5120, 6144, 7168, 8192)
LOW_LATENCY_TOP_K = 11
NORMAL_NODES = (2, 3, 4, 6, 8, 12, 16, 18, 20)
NORMAL_GPUS = (2, 4, 8)


def transport(phase: str, topology: Topology) -> str:
    """How DeepEP moves tokens.

    Low latency (decode): a message per slot. Normal mode (prefill): one per node over the NIC, or one per GPU
    where NVLink reaches all. Where normal mode cannot run, what the engines gather with in its place.
    """
    if phase == "decode":
        return "slot"
    if apart(topology):
        return "allgather"
    near = topology.node_count == 1 or (topology.gpu_count <= NVLINK_PEERS and topology.domain_count == 1)
    return "rank" if near else "node"


def limits(problem: Problem, *, pads_hidden: bool) -> list[Violation]:
    """What DeepEP refuses, where it is used.

    `pads_hidden`: the engine rounds the hidden size up to one that has a kernel.
    """
    gpus, phase = problem.gpus, problem.workload.phase
    if not serves(phase, problem.topology):
        return []
    found = []
    if gpus > NVLINK_PEERS and gpus % NVLINK_PEERS:
        found.append(Violation("deepep-ranks", f"DeepEP takes up to 8 ranks or a multiple of 8, not {gpus}"))
    if phase == "decode":
        return found + _low_latency_limits(problem.model, pads_hidden=pads_hidden)
    return found + _normal_limits(gpus)


def _low_latency_limits(model: ModelSpec, *, pads_hidden: bool) -> list[Violation]:
    found, width, widest = [], model.dispatch_width, max(LOW_LATENCY_HIDDEN)
    if model.top_k > LOW_LATENCY_TOP_K:
        takes = f"DeepEP low latency takes a top_k of up to {LOW_LATENCY_TOP_K}"
        found.append(Violation("deepep-top-k", f"{takes}; {model.name} has {model.top_k}"))
    if not (width <= widest if pads_hidden else width in LOW_LATENCY_HIDDEN):
        sizes = f"up to {widest}" if pads_hidden else ", ".join(map(str, LOW_LATENCY_HIDDEN))
        kernels = f"DeepEP low latency has kernels for hidden sizes {sizes}"
        found.append(Violation("deepep-hidden", f"{kernels}; {model.name} dispatches {width}"))
    return found


def _normal_limits(gpus: int) -> list[Violation]:
    groups = gpus // NVLINK_PEERS
    if gpus <= NVLINK_PEERS and gpus not in NORMAL_GPUS:
        takes = f"2, 4 or 8 ranks, or several times 8; not {gpus}"
    elif gpus > NVLINK_PEERS and groups not in NORMAL_NODES:
        takes = f"{', '.join(map(str, NORMAL_NODES))} times 8 ranks, not {groups}"
    else:
        return []
    return [Violation("deepep-ranks", f"DeepEP normal mode takes {takes}")]


def apart(topology: Topology) -> tuple[int, int] | None:
    """The first two ranks without NVLink between them where normal mode needs it.

    It needs it within each eight ranks in a row, whatever the nodes are.
    """
    switch_G = topology.routes.switch_G
    place_G = list(zip(topology.node_G.tolist(), topology.index_G.tolist(), strict=True))
    linked = {
        frozenset((number, gpu) for gpu in link.gpus)
        for number, node in enumerate(topology.nodes)
        for link in node.nvlink.pairs
    }
    for first in range(0, topology.gpu_count, NVLINK_PEERS):
        for i, j in combinations(range(first, min(first + NVLINK_PEERS, topology.gpu_count)), 2):
            if not (switch_G[i] == switch_G[j] >= 0 or frozenset((place_G[i], place_G[j])) in linked):
                return i, j
    return None


def serves(phase: str, topology: Topology) -> bool:
    """Whether the engines can use DeepEP here.

    Low latency (decode) asks for each peer whether it is reachable, and uses the NIC where not.
    """
    return phase == "decode" or apart(topology) is None


def notes(topology: Topology, phase: str, backend: str) -> list[str]:
    """Why the launch uses `backend` in the place of normal mode; where low latency may find no way."""
    pair = apart(topology)
    if pair is None:
        return []
    which = f"GPUs {pair[0]} and {pair[1]}"
    if phase != "decode":
        need = f"DeepEP's normal mode needs NVLink between all GPUs of each {NVLINK_PEERS} ranks in a row"
        instead = f"the launch uses {backend} in its place, whose traffic does not depend on the placement"
        return [f"{need}, and {which} have none: {instead}"]
    node = int(topology.node_G[pair[0]])
    if node != topology.node_G[pair[1]] or topology.nodes[node].nics:
        return []
    need = "DeepEP's low latency mode needs NVLink, PCIe peer access or a NIC between GPUs"
    unknown = "their node lists no NIC, and peer access is not known: ask nvidia-smi topo -p2p r"
    return [f"WARNING: {need}; {which} have no NVLink, {unknown}"]
