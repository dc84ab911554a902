"""What a measured rate beside a stated one is judged by: what healthy links reach, and what the machine says.

The windows come from public runs on healthy machines and from figures that hold on any machine: PCIe's rates,
those of sockets, how a NIC's ports and a fabric's uplinks divide.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from planner.topology import Comparison, Fabric, Node, Topology, as_stated, everyone_GG

NO_RDMA_SHARE = 0.15  # below it neither uplinks nor ports explain a NIC's rate: 8:1 leaves 10 to 13 %
SOCKET_BYTES_PER_S = 6.5e9  # TCP sockets carry 1 to 6 GB/s, whatever the card
HALF = (0.4, 0.52)  # half of what is reached: 0.5 x 80 to 103 %
TWO_PLANES_BYTES_PER_S = 100e9  # 800 Gb/s cards serve two planes of 400
PCIE_BYTES_PER_S = {"Gen3 x16": (12.1e9, 13.5e9), "Gen4 x16": (24e9, 27e9)}  # reached of 16 and 32
OVERSUBSCRIPTIONS = (2, 3, 4, 8)
ALL_TO_ALL = "alltoall_perf -b 64M -e 1G -f 2 -g 1"


@dataclass(frozen=True)
class Cause:
    """A guess, the command that proves or refutes it with how to read it, and what to do if it is so."""

    name: str
    test: str
    remedy: str


@dataclass(frozen=True)
class Signs:
    """A comparison with what the machine says of its links; `rails` is the share that rails alone reach."""

    topology: Topology
    seen: Comparison
    rails: float | None = None

    @property
    def share(self) -> float:
        return self.seen.share

    @property
    def rate(self) -> float:
        return self.seen.measured.bytes_per_s

    @property
    def node(self) -> Node:
        return self.topology.nodes[0]

    @property
    def fabric(self) -> Fabric:
        """As stated."""
        return self.topology.fabric.as_stated

    @property
    def nics_a_gpu(self) -> float:
        """0.5 where two GPUs share one."""
        return self.seen.nics / self.seen.gpus

    @cached_property
    def crossing(self) -> float | None:
        """The part of NIC traffic that goes over uplinks; None where the switches are not known."""
        if self.fabric.kind == "none":
            return None
        machine, run = as_stated(self.topology), self.seen.run
        gpus = machine.gpu_count
        load_R = machine.resource_bytes(run.sent_GG(gpus) if run else everyone_GG(gpus))
        of_tier = dict.fromkeys(("nic", "leaf"), 0.0)
        for resource, load in zip(machine.resources, load_R.tolist(), strict=True):
            of_tier[resource.tier] = of_tier.get(resource.tier, 0.0) + load
        return of_tier["leaf"] / of_tier["nic"] if of_tier["nic"] else 0.0


Ranked = Iterator[tuple[int, Cause]]  # 0 is the likeliest
