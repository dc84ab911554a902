"""The plainest cluster: equal hosts of one NVLink switch each, and a NIC for each GPU. Pure."""

from planner.base import Evidence, GpuModel, Rate
from planner.topology import Fabric, Island, Nic, Node, NvLink, Topology


def flat_cluster(hosts: int, ranks_per_host: int, inside: float, between: float) -> Topology:
    """`hosts` x `ranks_per_host` ranks with links of `inside` and `between` bytes/s, each way."""
    said = Evidence("assumed", "asked for as the rates of a cluster to emulate")
    gpus = tuple(range(ranks_per_host))
    nvlink = NvLink("switch", (Island(gpus, (Rate(inside, said),) * ranks_per_host),))
    model = GpuModel("rank", 1e9, 1e9, {"bf16": 1e9}, said)
    nics = tuple(Nic(Rate(between, said), (gpu,), gpu) for gpu in gpus)
    node = Node((model,) * ranks_per_host, nvlink, nics=nics)
    source = f"{hosts} hosts of {ranks_per_host}, made up to be emulated"
    return Topology("flat", (node,) * hosts, Fabric("none", said), source)
