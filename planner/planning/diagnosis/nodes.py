"""What is wrong with a node of a machine: its NICs, PCIe and NVLink, and what its probe reported."""

from collections.abc import Iterator
from dataclasses import replace
from statistics import mode

from planner.base import human_bandwidth
from planner.planning.diagnosis.cost import Fault, MachineCost
from planner.topology import Nic, Node, Topology


def shared_nics(machine: MachineCost) -> Iterator[Fault]:
    """Once for the machine: hosts with fewer NICs than GPUs are mostly alike in that."""
    if machine.topology.node_count == 1:
        return
    for where, node in _named_nodes(machine.topology):
        shared = [pool for pool in node.nic_pools if len(node.nics[pool[0]].gpus) > len(pool)]
        if shared:
            pool, nic = shared[0], node.nics[shared[0][0]]
            nics = f"{len(pool)} NIC{'s' if len(pool) > 1 else ''} of {human_bandwidth(nic.rate.bytes_per_s)}"
            what = f"{len(nic.gpus)} GPUs share {nics}"
            cost = machine.loss(tuple(own_nics(other) for other in machine.topology.nodes))
            remedy = "use every NIC of the host, or fewer GPUs of it"
            yield Fault("shared-nics", where, what, cost.text, remedy, cost.lost_seconds)
            return


def nodes_differ(machine: MachineCost) -> Iterator[Fault]:
    """NICs that carry less than another host's, or lie on other rails than most hosts'."""
    nodes = machine.topology.nodes
    totals = [sum(nic.rate.bytes_per_s for nic in node.nics) for node in nodes]
    rails = [tuple(sorted(nic.rail for nic in node.nics)) for node in nodes]
    usual = max(totals, default=0.0)
    best = nodes[totals.index(usual)]
    for (where, node), total, own_rails in zip(_named_nodes(machine.topology), totals, rails, strict=True):
        if total < usual and len(node.gpus) == len(best.gpus):
            what = f"its NICs carry {human_bandwidth(total)}, other hosts' {human_bandwidth(usual)}"
            cost = machine.loss_by(node, replace(node, nics=best.nics))
            remedy = "look for NICs that are down, missing or at a lower rate there"
            yield Fault("nics-differ", where, what, cost.text, remedy, cost.lost_seconds)
        elif own_rails != mode(rails):
            what = f"its NICs are on rails {list(own_rails)}, others' on {list(mode(rails))}"
            yield Fault("rails-differ", where, what, "", "check the cabling and the NIC order")


def slow_pcie(machine: MachineCost) -> Iterator[Fault]:
    """GPUs whose PCIe link is slower than another's of the host."""
    for where, node in _named_nodes(machine.topology):
        if node.pcie is None:
            continue
        rates = [rate.bytes_per_s for rate in node.pcie.rates]
        fastest = max(rates)
        slow = [gpu for gpu, rate in enumerate(rates) if rate < fastest]
        if slow:
            gpus, slower = ", ".join(map(str, slow)), human_bandwidth(rates[slow[0]])
            what = f"GPU {gpus}: PCIe at {slower}, the others at {human_bandwidth(fastest)}"
            alike = (node.pcie.rates[rates.index(fastest)],) * len(rates)
            cost = machine.loss_by(node, replace(node, pcie=replace(node.pcie, rates=alike)))
            remedy = "reseat the card; check the slot's width and the BIOS link speed"
            yield Fault("slow-pcie", where, what, cost.text, remedy, cost.lost_seconds)


def outside_nvlink(machine: MachineCost) -> Iterator[Fault]:
    """GPUs without NVLink on a host where others have it."""
    for where, node in _named_nodes(machine.topology):
        linked = {gpu for island in node.nvlink.islands for gpu in island.gpus}
        linked |= {gpu for link in node.nvlink.pairs for gpu in link.gpus}
        alone = sorted(set(range(len(node.gpus))) - linked)
        if linked and alone:
            gpus = ", ".join(map(str, alone))
            what = f"GPU {gpus} has no NVLink while {len(linked)} others of the host have"
            cost = "every byte to and from it crosses PCIe"
            remedy = "drain the host and reset the GPU; leave it out of the EP group until then"
            yield Fault("lost-nvlink", where, what, cost, remedy)


def reported(machine: MachineCost) -> Iterator[Fault]:
    """What the probe of the machine reported."""
    for where, node in _named_nodes(machine.topology):
        for fault in node.faults:
            yield Fault("reported", where, fault, "", "see the report of the source it comes from")


def _named_nodes(topology: Topology) -> list[tuple[str, Node]]:
    return [(node.name or f"node{index}", node) for index, node in enumerate(topology.nodes)]


def own_nics(node: Node) -> Node:
    """The node with a NIC of the same rate for every GPU that shares one; itself where none does."""
    nics: list[Nic] = []
    for pool in node.nic_pools:
        first = node.nics[pool[0]]
        if len(first.gpus) > len(pool):
            nics += [replace(first, gpus=(gpu,), rail=gpu, name="", socket=None) for gpu in first.gpus]
        else:
            nics += [node.nics[nic] for nic in pool]
    if len(nics) == len(node.nics):
        return node
    pcie = node.pcie and replace(
        node.pcie, switches=tuple(replace(switch, nics=()) for switch in node.pcie.switches)
    )
    return replace(node, nics=tuple(nics), pcie=pcie)
