"""What is wrong with a machine for expert-parallel serving, what it costs, and what to do about it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from planner.base import human_seconds
from planner.model import ModelSpec
from planner.planning.diagnosis.cost import Fault, MachineCost
from planner.planning.diagnosis.fabric import FabricVerdict, as_measured, compared, judge_fabric
from planner.planning.diagnosis.nodes import nodes_differ, outside_nvlink, reported, shared_nics, slow_pcie
from planner.planning.diagnosis.sentences import fabric_faults
from planner.problem import Workload
from planner.topology import AllToAll, Topology

BY_DESIGN = ("oversubscribed", "shared-nics")  # what a fabric costs without being broken
SLOW_DISPATCH = 1.0  # dispatch + combine longer than compute


@dataclass(frozen=True)
class Diagnosis:
    """Whether the fabric is good enough, then every fault: the fabric's, then those of `RULES` in order."""

    verdict: FabricVerdict
    faults: tuple[Fault, ...]


def diagnose(
    topology: Topology, model: ModelSpec, workload: Workload, runs: Sequence[AllToAll] = ()
) -> Diagnosis:
    """Of the machine as it was measured, by `runs` where they tell more than the topology keeps.

    Infeasible where the model does not fit on the machine.
    """
    seen = compared(topology, runs)
    measured = as_measured(topology, seen)
    machine = MachineCost(measured, model, workload)
    found = [finding for rule in RULES for finding in rule(machine)]
    verdict = judge_fabric(machine, topology, seen, [one for one in found if one.rule in BY_DESIGN])
    return Diagnosis(verdict, (*fabric_faults(verdict, measured), *found))


def _leaves_domain(machine: MachineCost) -> Iterator[Fault]:
    topology, now = machine.topology, machine.now
    communication, compute = machine.moving_seconds, machine.step.seconds["compute"]
    if topology.domain_count > 1 and communication > SLOW_DISPATCH * compute:
        seconds = f"{human_seconds(communication)} against {human_seconds(compute)} a step"
        yield Fault(
            "leaves-domain",
            f"{topology.domain_count} NVLink domains",
            f"expert traffic leaves the NVLink domain and waits for {now.bottleneck}",
            f"dispatch and combine {communication / compute:.1f} x compute ({seconds})",
            "keep the EP group inside a domain (--ep), raise the tokens of a step, "
            "or overlap dispatch with compute",
        )


def _oversubscribed(machine: MachineCost) -> Iterator[Fault]:
    """By what is stated; where less was measured that is a finding of its own."""
    fabric = machine.topology.fabric.as_stated
    for tier, factor, mended in (
        ("leaf", fabric.oversubscription, replace(fabric, oversubscription=1.0)),
        ("pod", fabric.pod_oversubscription, replace(fabric, pod_oversubscription=1.0)),
    ):
        if factor > 1:
            where = f"network ({fabric.evidence.kind})"
            what = f"the {tier} uplinks carry 1/{factor:g} of what its hosts can send"
            cost = machine.loss(fabric=mended, now=fabric)
            remedy = f"place the job under one {tier}"
            yield Fault("oversubscribed", where, what, cost.text, remedy, cost.lost_seconds)


def _assumed(machine: MachineCost) -> Iterator[Fault]:
    resources = machine.topology.resources
    tiers = sorted({one.tier for one in resources if one.rate.evidence.kind == "assumed"})
    if tiers:
        what = "rates of these tiers are assumed, not read or measured"
        yield Fault("assumed", ", ".join(tiers), what, "", "measure them: moeplan probe --measure")


RULES = (
    _leaves_domain,
    _oversubscribed,
    shared_nics,
    nodes_differ,
    slow_pcie,
    outside_nvlink,
    reported,
    _assumed,
)
