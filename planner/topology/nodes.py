"""What one host is made of. Values only: frozen, checked once, GPUs counted from 0 inside their node."""

import math
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace

from planner.base import BadInput, GpuModel, Rate
from planner.topology.members import check_groups, listed, renumbered
from planner.topology.nvlink import NO_NVLINK, NvLink
from planner.topology.pcie import Pcie

LARGEST_NODE_GPUS, LARGEST_NODE_NICS = 128, 256
MEASURED_OTHERWISE = "measured otherwise: "  # begins the fault of a host whose stated rates a run contradicts
LARGEST_SPEED = 100  # of a GPU beside another of its model; more is a slip of the pen


@dataclass(frozen=True)
class Nic:
    """One network card: the GPUs that use it, and the rail it is wired to (the leaf, in a rail fabric).

    Its place is the PCIe switch that lists it, else `socket`, else beside the first GPU that uses it.
    """

    rate: Rate
    gpus: tuple[int, ...]
    rail: int = 0
    name: str = ""
    socket: int | None = None

    def check(self, where: str, gpu_count: int) -> None:
        check_groups(f"{where}: NIC {self.name}".rstrip(), [self.gpus], gpu_count)
        if self.rail < 0 or (self.socket is not None and self.socket < 0):
            raise BadInput(f"{where}: a NIC has rail {self.rail}, socket {self.socket}; both count from 0")


@dataclass(frozen=True)
class Node:
    """One host.

    `pcie` is None where it is not known. `faults` are sentences of whoever looked at it, for a person to
    read. `speeds` are of each GPU beside others of its model, 1.0 for nominal; empty where all are.
    `devices` are the numbers that its driver gives the GPUs where the host has others too; else empty.
    """

    gpus: tuple[GpuModel, ...]
    nvlink: NvLink = NO_NVLINK
    pcie: Pcie | None = None
    nics: tuple[Nic, ...] = ()
    name: str = ""
    faults: tuple[str, ...] = ()
    speeds: tuple[float, ...] = ()
    devices: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        where = f"node '{self.name}'" if self.name else "node"
        if not 1 <= len(self.gpus) <= LARGEST_NODE_GPUS:
            raise BadInput(f"{where}: {len(self.gpus)} GPUs; a node has 1 to {LARGEST_NODE_GPUS}")
        self._check_speeds(where)
        self._check_devices(where)
        if len(self.nics) > LARGEST_NODE_NICS:
            raise BadInput(f"{where}: {len(self.nics)} NICs; a node has at most {LARGEST_NODE_NICS}")
        self.nvlink.check(where, len(self.gpus))
        if self.pcie is not None:
            self.pcie.check(where, len(self.gpus), len(self.nics))
        for nic in self.nics:
            nic.check(where, len(self.gpus))
        for pool in self.nic_pools:
            if len({self.nics[nic].rail for nic in pool}) > 1:
                raise BadInput(
                    f"{where}: the NICs of GPUs {listed(self.nics[pool[0]].gpus)} are on several rails; "
                    "give NICs that work together one rail"
                )

    def _check_speeds(self, where: str) -> None:
        if self.speeds and len(self.speeds) != len(self.gpus):
            raise BadInput(
                f"{where}: {len(self.speeds)} speeds for {len(self.gpus)} GPUs; "
                "give one number, or one for each GPU"
            )
        for gpu, speed in enumerate(self.speeds):
            if not (math.isfinite(speed) and 0 < speed <= LARGEST_SPEED):
                raise BadInput(
                    f"{where}: GPU {gpu} has the speed {speed}; "
                    f"it is a factor above 0 and at most {LARGEST_SPEED}, 1.0 for nominal"
                )

    def _check_devices(self, where: str) -> None:
        rising = list(self.devices) == sorted(set(self.devices))
        if self.devices and not (rising and len(self.devices) == len(self.gpus) and self.devices[0] >= 0):
            raise BadInput(
                f"{where}: its {len(self.gpus)} GPUs are the devices {listed(self.devices)}; "
                "give a rising number from 0 on for each GPU"
            )

    @property
    def nic_pools(self) -> tuple[tuple[int, ...], ...]:
        """NICs that serve the same GPUs work as one.

        BadInput where a GPU would be in two pools: its share of each would be a guess.
        """
        pools: dict[frozenset[int], list[int]] = {}
        for index, nic in enumerate(self.nics):
            pools.setdefault(frozenset(nic.gpus), []).append(index)
        served = [gpu for gpus in pools for gpu in gpus]
        shared = sorted({gpu for gpu in served if served.count(gpu) > 1})
        if shared:
            raise BadInput(
                f"node '{self.name}': GPU {shared[0]} uses NICs that serve different GPUs; "
                "NICs that share a GPU must list the same GPUs"
            )
        return tuple(tuple(pool) for pool in pools.values())

    def first(self, count: int) -> "Node":
        """The node with its first `count` GPUs, and the links and NICs those use."""
        if not 1 <= count <= len(self.gpus):
            raise BadInput(
                f"node '{self.name}' has {len(self.gpus)} GPUs; "
                f"cannot take {count} of them: choose 1 to {len(self.gpus)}"
            )
        return self.keep(range(count))

    def keep(self, gpus: Iterable[int]) -> "Node":
        """The node with these of its GPUs, renumbered in order, and the links and NICs those use."""
        new = {gpu: index for index, gpu in enumerate(sorted(set(gpus)))}
        kept_nics = [nic for nic, card in enumerate(self.nics) if any(gpu in new for gpu in card.gpus)]
        new_nic = {nic: index for index, nic in enumerate(kept_nics)}
        return replace(
            self,
            gpus=tuple(self.gpus[gpu] for gpu in new),
            nvlink=self.nvlink.keep(new),
            pcie=None if self.pcie is None else self.pcie.keep(new, new_nic),
            nics=tuple(self._kept_nic(self.nics[nic], new) for nic in kept_nics),
            speeds=tuple(self.speeds[gpu] for gpu in new) if self.speeds else (),
            devices=tuple(self.devices[gpu] for gpu in new) if self.devices else (),
        )

    def without(self, lost: Container[int]) -> "Node":
        """The node without these of its GPUs, with the numbers that the others have on the host."""
        kept = [gpu for gpu in range(len(self.gpus)) if gpu not in lost]
        left = self.keep(kept)
        return left if left.devices else replace(left, devices=tuple(kept))

    def _kept_nic(self, nic: Nic, new: dict[int, int]) -> Nic:
        return replace(nic, gpus=renumbered(nic.gpus, new), socket=self._socket_of(nic, new))

    def _socket_of(self, nic: Nic, kept: Container[int]) -> int | None:
        """Where the NIC is said to be once only these GPUs are kept.

        It does not move where the GPU it sits beside goes.
        """
        if self.pcie and nic.socket is None and nic.gpus[0] not in kept:
            return self.pcie.sockets[nic.gpus[0]]
        return nic.socket
