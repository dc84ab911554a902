"""A node whose links have the rates that were measured beside those stated, its own elsewhere. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from planner.base import Rate
from planner.topology import Nic, Node, NvLink, Pcie


def measured_node(number: int, node: Node, measured: Mapping[str, Rate]) -> Node:
    rates = _Rates(f"node{number}", measured)
    return replace(
        node, nvlink=rates.of_nvlink(node.nvlink), pcie=rates.of_pcie(node.pcie), nics=rates.of_nics(node)
    )


@dataclass(frozen=True)
class _Rates:
    """Measured rates by resource, whose names `planner.topology` gives them."""

    node: str
    measured: Mapping[str, Rate]

    def of_nvlink(self, nvlink: NvLink) -> NvLink:
        islands = tuple(
            replace(island, rates=self._of_ports("nvlink", dict(zip(island.gpus, island.rates, strict=True))))
            for island in nvlink.islands
        )
        pairs = tuple(
            replace(link, rate=self._now(f"gpu{min(link.gpus)}/nvlink/gpu{max(link.gpus)}", link.rate))
            for link in nvlink.pairs
        )
        return replace(nvlink, islands=islands, pairs=pairs)

    def of_pcie(self, pcie: Pcie | None) -> Pcie | None:
        if pcie is None:
            return None
        switches = tuple(
            replace(switch, uplink=self._now(f"pcie{index}/up", switch.uplink))
            for index, switch in enumerate(pcie.switches)
        )
        between = pcie.inter_socket and self._now("socket0/socket1", pcie.inter_socket)
        ports = self._of_ports("pcie", dict(enumerate(pcie.rates)))
        return replace(pcie, rates=ports, switches=switches, inter_socket=between)

    def of_nics(self, node: Node) -> tuple[Nic, ...]:
        """The NICs of a pool share its rate as they share its line rate."""
        nics = list(node.nics)
        for pool in node.nic_pools:
            more = f"+{len(pool) - 1}" if len(pool) > 1 else ""
            rate = self.measured.get(f"{self.node}/nic{pool[0]}{more}/out")
            if rate is None:
                continue
            whole = sum(node.nics[nic].rate.bytes_per_s for nic in pool)
            for nic in pool:
                own = rate.bytes_per_s * nics[nic].rate.bytes_per_s / whole
                nics[nic] = replace(nics[nic], rate=nics[nic].rate.measured_as(own, rate.evidence))
        return tuple(nics)

    def _of_ports(self, kind: str, now: Mapping[int, Rate]) -> tuple[Rate, ...]:
        return tuple(self._now(f"gpu{gpu}/{kind}/out", rate) for gpu, rate in now.items())

    def _now(self, resource: str, rate: Rate) -> Rate:
        seen = self.measured.get(f"{self.node}/{resource}")
        return rate if seen is None else rate.measured_as(seen.bytes_per_s, seen.evidence)
