"""A machine with the rates that were stated of it, where measurements took their place."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from planner.base import Evidence, Rate
from planner.topology.nodes import Node
from planner.topology.nvlink import NvLink
from planner.topology.pcie import Pcie
from planner.topology.topology import Topology

EVERY_TIER = ("nvlink", "pcie", "host", "nic", "leaf", "spine")
Change = Callable[[Rate], Rate]


def as_stated(topology: Topology, tiers: Collection[str] = EVERY_TIER) -> Topology:
    """The machine as line rates, presets and sources say these tiers are; itself where none was measured."""

    def stated(rate: Rate) -> Rate:
        return rate.as_stated

    fabric = topology.fabric.as_stated if "leaf" in tiers else topology.fabric
    topology = topology if fabric == topology.fabric else replace(topology, fabric=fabric)
    return _changed(topology, dict.fromkeys(tiers, stated))


def with_share(topology: Topology, tier: str, share: float, source: str) -> Topology:
    """The machine whose links of this tier carry that share of what is stated, as was measured.

    Uplinks of leaves and spines have no rate of their own: they are oversubscribed by so much more.
    """
    stated = topology.fabric.as_stated
    ratios = {"leaf": stated.oversubscription, "spine": stated.pod_oversubscription}
    if tier in ratios:
        fabric = topology.fabric.measured_as(tier, ratios[tier] / share, Evidence("measured", source))
        return replace(topology, fabric=fabric)

    def measured(rate: Rate) -> Rate:
        return rate.measured_as(rate.as_stated.bytes_per_s * share, Evidence("measured", source))

    return _changed(topology, {tier: measured})


def with_rates(topology: Topology, change: Change) -> Topology:
    """The machine with another rate for each of its links. Uplinks follow the NICs below them."""
    return _changed(topology, dict.fromkeys(EVERY_TIER, change))


def _changed(topology: Topology, changes: Mapping[str, Change]) -> Topology:
    """With other rates of these tiers."""
    changed: dict[Node, Node] = {}
    for node in topology.nodes:
        if node not in changed:
            changed[node] = _with_rates(node, changes)
    nodes = tuple(changed[node] for node in topology.nodes)
    return topology if nodes == topology.nodes else replace(topology, nodes=nodes)


def _with_rates(node: Node, changes: Mapping[str, Change]) -> Node:
    of_nic, of_nvlink = changes.get("nic", _same), changes.get("nvlink", _same)
    nics = tuple(replace(nic, rate=of_nic(nic.rate)) for nic in node.nics)
    pcie = None if node.pcie is None else _pcie(node.pcie, changes)
    return replace(node, nvlink=_nvlink(node.nvlink, of_nvlink), pcie=pcie, nics=nics)


def _nvlink(nvlink: NvLink, change: Change) -> NvLink:
    islands = tuple(replace(island, rates=_all(island.rates, change)) for island in nvlink.islands)
    pairs = tuple(replace(link, rate=change(link.rate)) for link in nvlink.pairs)
    return replace(nvlink, islands=islands, pairs=pairs)


def _pcie(pcie: Pcie, changes: Mapping[str, Change]) -> Pcie:
    of_port, of_host = changes.get("pcie", _same), changes.get("host", _same)
    switches = tuple(replace(switch, uplink=of_host(switch.uplink)) for switch in pcie.switches)
    between = pcie.inter_socket and of_host(pcie.inter_socket)
    return replace(pcie, rates=_all(pcie.rates, of_port), switches=switches, inter_socket=between)


def _all(rates: Iterable[Rate], change: Change) -> tuple[Rate, ...]:
    return tuple(map(change, rates))


def _same(rate: Rate) -> Rate:
    return rate
