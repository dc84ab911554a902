"""A benchmark's all-to-all as a planner's value: which GPUs exchanged, and how long each size took. Pure."""

from planner.base import BadInput
from planner.topology import AllToAll, Topology
from probes.base.facts import MeasureFacts
from probes.measure.busbw import out_of_place
from probes.measure.fit import POOREST_FIT, Fit, fit_facts
from probes.measure.placing import exchanging


def all_to_all_of(topology: Topology, facts: MeasureFacts) -> AllToAll:
    """The exchange between GPUs of this machine.

    BadInput where it is another collective, or its ranks do not fit. Where no line goes through the sizes the
    largest one counts whole: then its rate is a lower bound.
    """
    groups = exchanging(topology, facts)
    ranks = len(groups[0])
    seconds_of: dict[float, float] = {}
    for sample in out_of_place(facts):  # by size, then by seconds: the quickest of each size stays
        seconds_of.setdefault(sample.size_bytes / ranks, sample.seconds)
    if not seconds_of:
        raise BadInput(f"{facts.source}: has no out-of-place row; measure with the usual buffers")
    largest, line = max(seconds_of), _line(facts)
    slope = seconds_of[largest] / largest if line is None else ranks / line.bytes_per_s
    start = None if line is None else line.alpha_seconds
    sizes, seconds = tuple(seconds_of), tuple(seconds_of.values())
    hosts = len(set(facts.hosts))
    return AllToAll(facts.source, facts.scope, hosts, groups, sizes, seconds, slope, start)


def _line(facts: MeasureFacts) -> Fit | None:
    try:
        fitted = fit_facts(facts)
    except BadInput:
        return None
    return None if fitted.held_out_error > POOREST_FIT else fitted
