"""A fabric's verdict in sentences: the answer, each reading that departs, and what cannot be compared."""

from collections.abc import Iterator

from planner.base import human_bandwidth
from planner.planning.diagnosis.cost import Fault
from planner.planning.diagnosis.fabric import GOOD_ENOUGH, FabricVerdict, Reading
from planner.topology import ABOVE, Topology, unstated


def sentence(verdict: FabricVerdict) -> str:
    """The answer, in one line: what it costs, and the largest part of that."""
    step = f"a {verdict.phase} step of {verdict.model.rpartition('/')[2]}"
    share, worst = _percent(verdict.whole.share), verdict.worst
    if worst is None and verdict.domains == 1:
        return f"Not measured. One NVLink domain: {step} crosses no network."
    measured = f" Measured: {what(worst)}" if worst else " Nothing was measured."
    if verdict.whole.share < GOOD_ENOUGH:
        start = "Good enough" if worst else "Good enough if it keeps what is stated"
        best = "a fabric of 1:1 at the stated rates"
        return f"{start}: {best} would save {share} of {step}.{measured}"
    if verdict.design is not None:
        return f"The fabric costs {share} of {step}: {verdict.design.what}.{measured}"
    return f"The fabric costs {share} of {step}: {what(worst) if worst else 'rates below the stated'}"


def _percent(share: float) -> str:
    """
    >>> _percent(0.309), _percent(0.001)
    ('31 %', 'under 1 %')
    """
    return f"{100 * share:.0f} %" if share >= 0.01 else "under 1 %"


def what(reading: Reading) -> str:
    """The figures, and the likeliest cause as a question."""
    return reading.seen.text + (f": {reading.causes[0].name}" if reading.causes else "")


def fabric_faults(verdict: FabricVerdict, topology: Topology) -> Iterator[Fault]:
    """The readings that depart from what links reach, and measured rates that nothing can be held against."""
    for reading in verdict.readings:
        if reading.seen.departs:
            yield _fault(reading)
    bare = unstated(topology)
    if bare:
        tiers = ", ".join(dict.fromkeys(one.tier for one in bare))
        rate = human_bandwidth(bare[0].rate.bytes_per_s)
        said = f"measured ({rate}), and what was stated is not known: nothing to compare it with"
        remedy = "import again, with --nic or ibstat beside the log"
        yield Fault("not-compared", tiers, said, "", remedy)


def _fault(reading: Reading) -> Fault:
    seen = reading.seen
    others = "".join(f" Or {cause.name}" for cause in reading.causes[1:])
    also = f" ({' or '.join(seen.also)}: stated about as fast)" if seen.also else ""
    where = seen.where + (f" and {seen.links - 1} more" if seen.links > 1 else "")
    rule = "above-stated" if seen.share > ABOVE else "below-stated"
    first = reading.causes[0]
    remedy = f"{first.remedy}. Sure? {first.test}"
    loss = reading.loss
    return Fault(rule, where, f"{what(reading)}{others}{also}", loss.text, remedy, loss.lost_seconds)
