"""What one host is made of, and the fabric between hosts. Values only: frozen, checked once, GPUs counted from 0 inside their node."""

import math
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace

from planner.base import BadInput, Evidence, GpuModel, Rate

LARGEST_NODE_GPUS, LARGEST_NODE_NICS = 128, 256
LARGEST_SPEED = 100  # of a GPU beside another of its model; more is a slip of the pen


@dataclass(frozen=True)
class Island:
    """GPUs of one node on one NVLink switch fabric, each with its own rate in and out."""

    gpus: tuple[int, ...]
    rates: tuple[Rate, ...]

    def keep(self, new: dict[int, int]) -> "Island":
        kept = [(new[gpu], rate) for gpu, rate in zip(self.gpus, self.rates, strict=True) if gpu in new]
        return Island(tuple(gpu for gpu, _ in kept), tuple(rate for _, rate in kept))


@dataclass(frozen=True)
class PairLink:
    """A direct NVLink connection of two GPUs: `rate` in each direction, all lanes together."""

    gpus: tuple[int, int]
    rate: Rate


@dataclass(frozen=True)
class NvLink:
    """How the GPUs of a node are joined by NVLink. `switch` has islands; `mesh` and `bridge` have pairs; `none` has neither."""

    kind: str = "none"
    islands: tuple[Island, ...] = ()
    pairs: tuple[PairLink, ...] = ()

    def check(self, where: str, gpu_count: int) -> None:
        if self.kind not in ("none", "switch", "mesh", "bridge"):
            raise BadInput(f"{where}: NVLink kind {self.kind!r} is not one of none, switch, mesh, bridge")
        if bool(self.islands) != (self.kind == "switch") or bool(self.pairs) != (
            self.kind in ("mesh", "bridge")
        ):
            found = f"{len(self.islands)} islands and {len(self.pairs)} pairs"
            raise BadInput(
                f"{where}: NVLink kind '{self.kind}' goes with {_PARTS[self.kind]}; this one has {found}"
            )
        _check_groups(f"{where}: NVLink island", [island.gpus for island in self.islands], gpu_count)
        for island in self.islands:
            if len(island.rates) != len(island.gpus):
                raise BadInput(
                    f"{where}: an NVLink island of {len(island.gpus)} GPUs has {len(island.rates)} rates; give one, or one for each GPU"
                )
        for link in self.pairs:
            _check_groups(f"{where}: NVLink pair", [link.gpus], gpu_count)
        if len({frozenset(link.gpus) for link in self.pairs}) != len(self.pairs):
            raise BadInput(
                f"{where}: a pair of GPUs is listed twice under NVLink; add its lanes up into one rate"
            )


_PARTS = {"none": "neither islands nor pairs", "switch": "islands", "mesh": "pairs", "bridge": "pairs"}


@dataclass(frozen=True)
class PcieSwitch:
    """GPUs and NICs (indices into the node's) below one PCIe switch; `uplink` is its rate to the socket, each way."""

    gpus: tuple[int, ...]
    uplink: Rate
    nics: tuple[int, ...] = ()


@dataclass(frozen=True)
class Pcie:
    """The host side: a rate and a socket for each GPU, the switches, and the link between sockets (None where it is not known: then it is not charged)."""

    rates: tuple[Rate, ...]
    sockets: tuple[int, ...]
    switches: tuple[PcieSwitch, ...] = ()
    inter_socket: Rate | None = None

    def check(self, where: str, gpu_count: int, nic_count: int) -> None:
        if len(self.rates) != gpu_count or len(self.sockets) != gpu_count:
            raise BadInput(
                f"{where}: {gpu_count} GPUs need {gpu_count} PCIe rates and sockets; got {len(self.rates)} and {len(self.sockets)}"
            )
        if min(self.sockets) < 0:
            raise BadInput(f"{where}: socket {min(self.sockets)} is not a number from 0 up")
        _check_groups(f"{where}: PCIe switch", [switch.gpus for switch in self.switches], gpu_count)
        _check_groups(
            f"{where}: PCIe switch",
            [switch.nics for switch in self.switches if switch.nics],
            nic_count,
            "NIC",
        )
        for switch in self.switches:
            if len({self.sockets[gpu] for gpu in switch.gpus}) > 1:
                raise BadInput(
                    f"{where}: the PCIe switch of GPUs {_listed(switch.gpus)} spans several sockets; a switch hangs on one"
                )


@dataclass(frozen=True)
class Nic:
    """One network card: the GPUs that use it, and the rail (the leaf switch, in a rail fabric) it is wired to.

    Its place is the PCIe switch that lists it, else `socket`, else beside the first GPU that uses it.
    """

    rate: Rate
    gpus: tuple[int, ...]
    rail: int = 0
    name: str = ""
    socket: int | None = None


@dataclass(frozen=True)
class Node:
    """One host. `pcie` is None where it is not known; `faults` are sentences of whoever looked at it, for a person to read."""

    gpus: tuple[GpuModel, ...]
    nvlink: NvLink = NvLink()
    pcie: Pcie | None = None
    nics: tuple[Nic, ...] = ()
    name: str = ""
    faults: tuple[str, ...] = ()
    speeds: tuple[
        float, ...
    ] = ()  # of each GPU beside others of its model, 1.0 for nominal; empty where all are

    def __post_init__(self) -> None:
        where = f"node '{self.name}'" if self.name else "node"
        if not 1 <= len(self.gpus) <= LARGEST_NODE_GPUS:
            raise BadInput(f"{where}: {len(self.gpus)} GPUs; a node has 1 to {LARGEST_NODE_GPUS}")
        if self.speeds and len(self.speeds) != len(self.gpus):
            raise BadInput(
                f"{where}: {len(self.speeds)} speeds for {len(self.gpus)} GPUs; give one number, or one for each GPU"
            )
        for gpu, speed in enumerate(self.speeds):
            if not (math.isfinite(speed) and 0 < speed <= LARGEST_SPEED):
                raise BadInput(
                    f"{where}: GPU {gpu} has the speed {speed}; it is a factor above 0 and at most {LARGEST_SPEED}, 1.0 for nominal"
                )
        if len(self.nics) > LARGEST_NODE_NICS:
            raise BadInput(f"{where}: {len(self.nics)} NICs; a node has at most {LARGEST_NODE_NICS}")
        self.nvlink.check(where, len(self.gpus))
        if self.pcie is not None:
            self.pcie.check(where, len(self.gpus), len(self.nics))
        for nic in self.nics:
            _check_groups(f"{where}: NIC {nic.name}".rstrip(), [nic.gpus], len(self.gpus))
            if nic.rail < 0 or (nic.socket is not None and nic.socket < 0):
                raise BadInput(f"{where}: a NIC has rail {nic.rail}, socket {nic.socket}; both count from 0")
        for pool in self.nic_pools:
            if len({self.nics[nic].rail for nic in pool}) > 1:
                raise BadInput(
                    f"{where}: the NICs of GPUs {_listed(self.nics[pool[0]].gpus)} are on several rails; give NICs that work together one rail"
                )

    @property
    def nic_pools(self) -> tuple[tuple[int, ...], ...]:
        """NICs that serve the same GPUs work as one. BadInput where a GPU would be in two pools: its share of each would be a guess."""
        pools: dict[frozenset[int], list[int]] = {}
        for index, nic in enumerate(self.nics):
            pools.setdefault(frozenset(nic.gpus), []).append(index)
        served = [gpu for gpus in pools for gpu in gpus]
        shared = sorted({gpu for gpu in served if served.count(gpu) > 1})
        if shared:
            raise BadInput(
                f"node '{self.name}': GPU {shared[0]} uses NICs that serve different GPUs; NICs that share a GPU must list the same GPUs"
            )
        return tuple(tuple(pool) for pool in pools.values())

    def first(self, count: int) -> "Node":
        """The node with its first `count` GPUs, and the links and NICs those use."""
        if not 1 <= count <= len(self.gpus):
            raise BadInput(
                f"node '{self.name}' has {len(self.gpus)} GPUs; cannot take {count} of them: choose 1 to {len(self.gpus)}"
            )
        return self.keep(range(count))

    def keep(self, gpus: Iterable[int]) -> "Node":
        """The node with these of its GPUs, renumbered in order, and the links and NICs those use."""
        new = {gpu: index for index, gpu in enumerate(sorted(set(gpus)))}
        kept = [index for index, nic in enumerate(self.nics) if any(gpu in new for gpu in nic.gpus)]
        nics = tuple(
            replace(
                self.nics[index],
                gpus=_renumbered(self.nics[index].gpus, new),
                socket=self._socket_of(index, new),
            )
            for index in kept
        )
        islands = tuple(
            island.keep(new) for island in self.nvlink.islands if any(gpu in new for gpu in island.gpus)
        )
        pairs = tuple(
            replace(link, gpus=(new[link.gpus[0]], new[link.gpus[1]]))
            for link in self.nvlink.pairs
            if all(gpu in new for gpu in link.gpus)
        )
        nvlink = NvLink(self.nvlink.kind, islands, pairs) if islands or pairs else NvLink()
        pcie = self.pcie
        if pcie is not None:
            card = {old: index for index, old in enumerate(kept)}
            switches = (
                replace(s, gpus=_renumbered(s.gpus, new), nics=_renumbered(s.nics, card))
                for s in pcie.switches
            )
            rates, sockets = tuple(pcie.rates[gpu] for gpu in new), tuple(pcie.sockets[gpu] for gpu in new)
            pcie = replace(
                pcie,
                rates=rates,
                sockets=sockets,
                switches=tuple(switch for switch in switches if switch.gpus),
            )
        speeds = tuple(self.speeds[gpu] for gpu in new) if self.speeds else ()
        return replace(
            self,
            gpus=tuple(self.gpus[gpu] for gpu in new),
            nvlink=nvlink,
            pcie=pcie,
            nics=nics,
            speeds=speeds,
        )

    def _socket_of(self, nic: int, kept: Container[int]) -> int | None:
        """Where the NIC is said to be once only these GPUs are kept: it does not move where the GPU it sits beside goes."""
        card = self.nics[nic]
        return (
            self.pcie.sockets[card.gpus[0]]
            if self.pcie and card.socket is None and card.gpus[0] not in kept
            else card.socket
        )


@dataclass(frozen=True)
class Fabric:
    """The network between nodes.

    `none`: one flat network without a bottleneck that we know of. `leaf-spine`: `nodes_per_leaf` consecutive nodes share a leaf switch. `rail`: the
    NICs of rail r of those nodes share a leaf. A leaf's uplink is the rate of its NICs / `oversubscription`. `nodes_per_pod` (0: no such tier)
    consecutive nodes share a spine, whose uplink is the sum of its leaves' uplinks / `pod_oversubscription`. `nvlink_domain_nodes` consecutive
    nodes share one NVLink domain: 1 for most machines, 18 for an NVL72 rack.
    """

    kind: str
    evidence: Evidence
    nodes_per_leaf: int = 1
    oversubscription: float = 1.0
    nvlink_domain_nodes: int = 1
    nodes_per_pod: int = 0
    pod_oversubscription: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in ("none", "leaf-spine", "rail"):
            raise BadInput(f"fabric kind {self.kind!r} is not one of none, leaf-spine, rail")
        if self.nodes_per_leaf < 1 or self.nvlink_domain_nodes < 1:
            raise BadInput(
                f"fabric: nodes_per_leaf {self.nodes_per_leaf} and nvlink_domain_nodes {self.nvlink_domain_nodes} must be at least 1"
            )
        for name, value in (
            ("oversubscription", self.oversubscription),
            ("pod_oversubscription", self.pod_oversubscription),
        ):
            if not (math.isfinite(value) and value >= 1):
                raise BadInput(f"fabric: {name} is {value}; it is down / up bandwidth and at least 1")
        if self.nodes_per_pod and (self.kind == "none" or self.nodes_per_pod % self.nodes_per_leaf):
            raise BadInput(
                f"fabric: nodes_per_pod {self.nodes_per_pod} must be a multiple of nodes_per_leaf {self.nodes_per_leaf}, in a fabric with leaves"
            )


def _check_groups(where: str, groups: list[tuple[int, ...]], count: int, noun: str = "GPU") -> None:
    members = [member for group in groups for member in group]
    for member in members:
        if not 0 <= member < count:
            raise BadInput(f"{where}: there is no {noun} {member}; the node's are 0 to {count - 1}")
    if len(set(members)) != len(members):
        raise BadInput(f"{where}: {noun} {next(m for m in members if members.count(m) > 1)} is listed twice")
    if any(not group for group in groups):
        raise BadInput(f"{where}: lists no GPU; name the GPUs it serves")


def _renumbered(members: tuple[int, ...], new: dict[int, int]) -> tuple[int, ...]:
    return tuple(new[member] for member in members if member in new)


def _listed(members: Iterable[int]) -> str:
    return ", ".join(map(str, members))
