"""What a probe of its hosts would know of a cluster before anything is measured. Pure.

Known: the hosts and their names, the GPUs of each and their models, which of them NVLink joins (behind a
switch, in pairs, over how many hosts), the PCIe tree, and which NICs each GPU uses: what NVML and sysfs tell.
Not known: the rate of any link, how fast each GPU is, and everything between the hosts (leaves, rails,
spines, and how far they are oversubscribed).
"""

from dataclasses import replace

from planner.base import Evidence, Rate
from planner.topology import Fabric, Node, Topology, with_rates
from probes.emulation.trials import pairs_by_resource

NOT_KNOWN = Evidence("assumed", "not known before it is measured")


def before_measuring(topology: Topology) -> Topology:
    """The cluster with one rate for all links, and a network between its hosts of which nothing is known.

    NICs and PCIe that no pair of GPUs uses are left out: nothing can be measured of them.
    """
    nodes = tuple(_seen(node) for node in topology.nodes)
    span = topology.fabric.nvlink_domain_nodes
    seen = Topology(topology.name, nodes, Fabric("none", NOT_KNOWN, nvlink_domain_nodes=span), "not measured")
    seen = with_rates(seen, lambda _: Rate(1e9, NOT_KNOWN))
    used = {seen.resources[resource].tier for resource in pairs_by_resource(seen)}
    return replace(seen, nodes=tuple(_in_use(node, used) for node in seen.nodes))


def _seen(node: Node) -> Node:
    """Its NICs are taken to be wired alike on every host: the first of each host to one rail, and so on."""
    rail_of = {nic: rail for rail, pool in enumerate(node.nic_pools) for nic in pool}
    nics = tuple(replace(nic, rail=rail_of[at]) for at, nic in enumerate(node.nics))
    return replace(node, nics=nics, speeds=(), faults=())


def _in_use(node: Node, tiers: set[str]) -> Node:
    pcie = node.pcie if tiers & {"pcie", "host"} else None
    if pcie is not None and "host" not in tiers:
        pcie = replace(pcie, switches=(), inter_socket=None)
    return replace(node, nics=node.nics if "nic" in tiers else (), pcie=pcie)
