"""What is wrong with a machine for expert-parallel serving, what each fault costs on a step of a model, and what to do about it.

A cost is a prediction for an even load and the plain placement: the step as it is, over the step with that one fault mended. So it says what the
machine costs, apart from any plan.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import mode

from planner.base import human_bandwidth, human_seconds
from planner.cost import Cost, cost
from planner.load import uniform_load
from planner.model import ModelSpec
from planner.problem import Problem, Workload, check_slots
from planner.solvers import find_method
from planner.topology import Fabric, Node, Topology

LEAST_LOSS = 0.005  # of a step; below it a cost is not worth a number
SLOW_DISPATCH = 1.0  # dispatch + combine longer than compute


@dataclass(frozen=True)
class Finding:
    """One thing a person should know. `cost` is empty where it has none that can be predicted."""

    rule: str
    where: str
    what: str
    cost: str
    remedy: str


def diagnose(topology: Topology, model: ModelSpec, workload: Workload) -> list[Finding]:
    """Everything found, in the order of the rules below. Infeasible where the model does not fit on the machine."""
    doctor = _Doctor(topology, model, workload)
    return [finding for rule in RULES for finding in rule(doctor)]


class _Doctor:
    """The machine, and what a step costs on it and on mended versions of it."""

    def __init__(self, topology: Topology, model: ModelSpec, workload: Workload) -> None:
        self.topology, self.model, self.workload = topology, model, workload
        self.now = self.step(topology)

    def step(self, topology: Topology) -> Cost:
        redundant = -self.model.experts % topology.gpu_count
        slots_per_gpu = check_slots(self.model, topology.gpu_count, redundant)
        problem = Problem(topology, self.model, uniform_load(self.model), self.workload, slots_per_gpu)
        return cost(problem, find_method("linear")(problem))

    def loss(self, nodes: tuple[Node, ...] | None = None, fabric: Fabric | None = None) -> str:
        """What the machine loses against one with these nodes or that fabric."""
        mended = self.step(
            replace(self.topology, nodes=nodes or self.topology.nodes, fabric=fabric or self.topology.fabric)
        )
        share = self.now.total_seconds / mended.total_seconds - 1
        seconds = f"{human_seconds(mended.total_seconds)} to {human_seconds(self.now.total_seconds)}"
        return (
            f"step {share:.1%} longer, {seconds}"
            if share >= LEAST_LOSS
            else f"under {LEAST_LOSS:.1%} of a step"
        )


def _leaves_domain(doctor: _Doctor) -> Iterator[Finding]:
    topology, now = doctor.topology, doctor.now
    communication = float((now.dispatch_seconds_L + now.combine_seconds_L).sum())
    compute = float(now.compute_seconds_L.sum())
    if topology.domain_count > 1 and communication > SLOW_DISPATCH * compute:
        yield Finding(
            "leaves-domain",
            f"{topology.domain_count} NVLink domains",
            f"expert traffic leaves the NVLink domain and waits for {now.bottleneck}",
            f"dispatch and combine {communication / compute:.1f} x compute ({human_seconds(communication)} against {human_seconds(compute)} a step)",
            "keep the EP group inside a domain (--ep), raise the tokens of a step, or overlap dispatch with compute",
        )


def _oversubscribed(doctor: _Doctor) -> Iterator[Finding]:
    fabric = doctor.topology.fabric
    for tier, factor, mended in (
        ("leaf", fabric.oversubscription, replace(fabric, oversubscription=1.0)),
        ("pod", fabric.pod_oversubscription, replace(fabric, pod_oversubscription=1.0)),
    ):
        if factor > 1:
            what = f"the {tier} uplinks carry 1/{factor:g} of what its hosts can send"
            yield Finding(
                "oversubscribed",
                f"network ({fabric.evidence.kind})",
                what,
                doctor.loss(fabric=mended),
                f"place the job under one {tier}",
            )


def _shared_nics(doctor: _Doctor) -> Iterator[Finding]:
    for where, node in _named_nodes(doctor.topology):
        shared = [pool for pool in node.nic_pools if len(node.nics[pool[0]].gpus) > len(pool)]
        if doctor.topology.node_count > 1 and shared:
            gpus = len(node.nics[shared[0][0]].gpus)
            what = f"{gpus} GPUs share {len(shared[0])} NIC{'s' if len(shared[0]) > 1 else ''} of {human_bandwidth(node.nics[shared[0][0]].rate.bytes_per_s)}"
            mended = tuple(_own_nics(other) for other in doctor.topology.nodes)
            yield Finding(
                "shared-nics",
                where,
                what,
                doctor.loss(mended),
                "use every NIC of the host, or fewer GPUs of it",
            )
            return


def _nodes_differ(doctor: _Doctor) -> Iterator[Finding]:
    totals = [sum(nic.rate.bytes_per_s for nic in node.nics) for node in doctor.topology.nodes]
    rails = [tuple(sorted(nic.rail for nic in node.nics)) for node in doctor.topology.nodes]
    usual = max(totals, default=0.0)
    best = doctor.topology.nodes[totals.index(usual)]
    for (where, node), total, own_rails in zip(_named_nodes(doctor.topology), totals, rails, strict=True):
        if total < usual and len(node.gpus) == len(best.gpus):
            mended = tuple(
                replace(other, nics=best.nics) if other is node else other for other in doctor.topology.nodes
            )
            what = f"its NICs carry {human_bandwidth(total)}, other hosts' {human_bandwidth(usual)}"
            yield Finding(
                "nics-differ",
                where,
                what,
                doctor.loss(mended),
                "look for NICs that are down, missing or at a lower rate there",
            )
        elif own_rails != mode(rails):
            yield Finding(
                "rails-differ",
                where,
                f"its NICs are on rails {list(own_rails)}, others' on {list(mode(rails))}",
                "",
                "check the cabling and the NIC order",
            )


def _slow_pcie(doctor: _Doctor) -> Iterator[Finding]:
    for where, node in _named_nodes(doctor.topology):
        if node.pcie is None:
            continue
        rates = [rate.bytes_per_s for rate in node.pcie.rates]
        slow = [gpu for gpu, rate in enumerate(rates) if rate < max(rates)]
        if slow:
            rest = replace(node.pcie, rates=(node.pcie.rates[rates.index(max(rates))],) * len(rates))
            mended = tuple(
                replace(other, pcie=rest) if other is node else other for other in doctor.topology.nodes
            )
            what = f"GPU {', '.join(map(str, slow))}: PCIe at {human_bandwidth(rates[slow[0]])}, the others at {human_bandwidth(max(rates))}"
            yield Finding(
                "slow-pcie",
                where,
                what,
                doctor.loss(mended),
                "reseat the card; check the slot's width and the BIOS link speed",
            )


def _outside_nvlink(doctor: _Doctor) -> Iterator[Finding]:
    for where, node in _named_nodes(doctor.topology):
        linked = {gpu for island in node.nvlink.islands for gpu in island.gpus} | {
            gpu for link in node.nvlink.pairs for gpu in link.gpus
        }
        alone = sorted(set(range(len(node.gpus))) - linked)
        if linked and alone:
            what = (
                f"GPU {', '.join(map(str, alone))} has no NVLink while {len(linked)} others of the host have"
            )
            yield Finding(
                "lost-nvlink",
                where,
                what,
                "every byte to and from it crosses PCIe",
                "drain the host and reset the GPU; leave it out of the EP group until then",
            )


def _told(doctor: _Doctor) -> Iterator[Finding]:
    for where, node in _named_nodes(doctor.topology):
        for fault in node.faults:
            yield Finding("reported", where, fault, "", "see the report of the source it comes from")


def _assumed(doctor: _Doctor) -> Iterator[Finding]:
    tiers = sorted(
        {resource.tier for resource in doctor.topology.resources if resource.rate.evidence.kind == "assumed"}
    )
    if tiers:
        yield Finding(
            "assumed",
            ", ".join(tiers),
            "rates of these tiers are assumed, not read or measured",
            "",
            "measure them: moeplan probe --measure",
        )


RULES = (
    _leaves_domain,
    _oversubscribed,
    _shared_nics,
    _nodes_differ,
    _slow_pcie,
    _outside_nvlink,
    _told,
    _assumed,
)


def _named_nodes(topology: Topology) -> list[tuple[str, Node]]:
    return [(node.name or f"node{index}", node) for index, node in enumerate(topology.nodes)]


def _own_nics(node: Node) -> Node:
    """The node with a NIC of the same rate for every GPU."""
    nics = [(nic, gpu) for pool in node.nic_pools for nic in (node.nics[pool[0]],) for gpu in nic.gpus]
    pcie = node.pcie and replace(
        node.pcie, switches=tuple(replace(switch, nics=()) for switch in node.pcie.switches)
    )
    return replace(
        node,
        nics=tuple(replace(nic, gpus=(gpu,), rail=gpu, name="", socket=None) for nic, gpu in nics),
        pcie=pcie,
    )
