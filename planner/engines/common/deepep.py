"""DeepEP V1, the all-to-all library of SGLang and vLLM: what its kernels accept, who is a neighbour to them.

Sources: DeepEP at commit dd758ca (2026-07-14), csrc/kernels/legacy and deep_ep; for SGLang's own build the
wheel of sgl-deep-ep 0.1.2.post1 (0.1.2 is the same here): kernels and bounds in its library, ranks in
buffers/legacy.py. Read, not run.
"""

from dataclasses import dataclass
from itertools import combinations

from planner.model import ModelSpec
from planner.problem import Problem, Violation
from planner.topology import Topology

NVLINK_PEERS = 8
NORMAL_NODES = (2, 3, 4, 6, 8, 12, 16, 18, 20)
NORMAL_GPUS = (2, 4, 8)


@dataclass(frozen=True)
class Build:
    """What the low-latency kernels of one build were made for."""

    name: str
    hidden: tuple[int, ...]
    top_k: int


UPSTREAM = Build("DeepEP dd758ca", (2048, 2560, 3072, 4096, 5120, 6144, 7168, 8192), 11)
SGLANG = Build("sgl-deep-ep 0.1.2.post1", tuple(sorted((*UPSTREAM.hidden, 3584))), 16)


def transport(phase: str, topology: Topology) -> str:
    """How DeepEP moves tokens.

    Low latency (decode): a message per slot. Normal mode (prefill): one per node over the NIC, or one per GPU
    where NVLink reaches all. Where normal mode cannot run, what the engines gather with in its place.
    """
    if phase == "decode":
        return "slot"
    if not serves(phase, topology):
        return "allgather"
    near = topology.node_count == 1 or (topology.gpu_count <= NVLINK_PEERS and topology.domain_count == 1)
    return "rank" if near else "node"


def limits(problem: Problem, *, pads_hidden: bool, build: Build = UPSTREAM) -> list[Violation]:
    """What DeepEP refuses, where it is used.

    `pads_hidden`: the engine rounds the hidden size up to one that has a kernel.
    """
    phase = problem.workload.phase
    if not serves(phase, problem.topology):
        return []
    return kernel_limits(phase, problem.gpus, problem.model, pads_hidden=pads_hidden, build=build)


def kernel_limits(
    phase: str, gpus: int, model: ModelSpec, *, pads_hidden: bool, build: Build = UPSTREAM
) -> list[Violation]:
    """What the kernels of a phase refuse of so many ranks and of a model."""
    found = []
    if gpus > NVLINK_PEERS and gpus % NVLINK_PEERS:
        found.append(Violation("deepep-ranks", f"DeepEP takes up to 8 ranks or a multiple of 8, not {gpus}"))
    if phase == "decode":
        return found + _low_latency_limits(model, build, pads_hidden=pads_hidden)
    return found + _normal_limits(gpus)


def _low_latency_limits(model: ModelSpec, build: Build, *, pads_hidden: bool) -> list[Violation]:
    found, width, widest = [], model.dispatch_width, max(build.hidden)
    if model.top_k > build.top_k:
        takes = f"DeepEP low latency takes a top_k of up to {build.top_k}"
        found.append(Violation("deepep-top-k", f"{takes}; {model.name} has {model.top_k}"))
    if not (width <= widest if pads_hidden else width in build.hidden):
        sizes = f"up to {widest}" if pads_hidden else ", ".join(map(str, build.hidden))
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


def split(topology: Topology) -> tuple[int, int] | None:
    """The first two ranks of one group of eight that sit on two nodes, where there are several groups.

    As on trays of four GPUs in one NVLink domain: normal mode reaches the ranks of a group over NVLink, other
    groups over the network, and goes by rank numbers alone.
    """
    if topology.gpu_count <= NVLINK_PEERS:
        return None
    node_G = topology.node_G.tolist()
    pairs = ((first, first + NVLINK_PEERS - 1) for first in range(0, len(node_G), NVLINK_PEERS))
    for first, last in pairs:
        group = node_G[first : last + 1]
        other = next((rank for rank, node in enumerate(group) if node != group[0]), None)
        if other is not None:
            return first, first + other
    return None


def serves(phase: str, topology: Topology) -> bool:
    """Whether the engines can use DeepEP here.

    Low latency (decode) asks for each peer whether it is reachable, and uses the NIC where not.
    """
    return phase == "decode" or not why_not_normal(topology)


def why_not_normal(topology: Topology) -> str:
    """Why normal mode cannot run on this machine, whatever the model; empty where it can."""
    pair, ranks = apart(topology), f"each {NVLINK_PEERS} ranks in a row"
    if pair is not None:
        which = f"GPUs {pair[0]} and {pair[1]}"
        return f"DeepEP's normal mode needs NVLink between all GPUs of {ranks}, and {which} have none"
    pair = split(topology)
    if pair is None:
        return ""
    return f"DeepEP's normal mode needs {ranks} on one node, and GPUs {pair[0]} and {pair[1]} are on two"


def instead(why: str, backend: str) -> str:
    """What is said where a launch does without DeepEP."""
    return f"{why}: the launch uses {backend} in its place, whose traffic does not depend on the placement"


def notes(topology: Topology, phase: str, backend: str) -> list[str]:
    """Why the launch uses `backend` in the place of normal mode; where low latency may find no way."""
    if phase == "decode":
        return [*map("WARNING: {}".format, unreached(topology))]
    why = why_not_normal(topology)
    return [instead(why, backend)] if why else []


def unreached(topology: Topology) -> list[str]:
    """Where low latency may find no way between two GPUs."""
    pair = apart(topology)
    if pair is None:
        return []
    node = int(topology.node_G[pair[0]])
    if node != topology.node_G[pair[1]] or topology.nodes[node].nics:
        return []
    need = "DeepEP's low latency mode needs NVLink, PCIe peer access or a NIC between GPUs"
    unknown = "their node lists no NIC, and peer access is not known: ask nvidia-smi topo -p2p r"
    return [f"{need}; GPUs {pair[0]} and {pair[1]} have no NVLink, {unknown}"]
