"""Whether the links of an emulated cluster have the rates they were shaped to, seen from inside its ranks."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.base import human_bandwidth
from planner.topology import Topology
from probes.emulation.trials import Trial, trials_of
from probes.ranks.party import RunFailed

if TYPE_CHECKING:  # torch comes with it
    from probes.ranks.wire import Wire

MOST_OFF = 0.05
ATTEMPTS = 4  # other programs on the machine make single exchanges slow
ALL_SECONDS, LEAST_SECONDS, MOST_SECONDS = 8.0, 0.08, 0.25  # of all trials, and of one
_SHORT = 0.25  # of an exchange: what both have in common, start-up and a first burst, is not counted


@dataclass(frozen=True)
class CheckedLink:
    """A link with the rate that it was shaped to, and the one that it has."""

    name: str
    shaped_bytes_per_s: float
    measured_bytes_per_s: float

    @property
    def off(self) -> float:
        """By which share it is too fast, or negative too slow."""
        return self.measured_bytes_per_s / self.shaped_bytes_per_s - 1


def check_links(wire: "Wire", topology: Topology) -> tuple[CheckedLink, ...]:
    """Every link that can be a bottleneck, measured; called by all ranks together, before their own work.

    `topology` is that of the `Emulation`. RunFailed at every rank names the link that is off the most.
    """
    whole = trials_of(topology, 1.0)
    seconds = min(MOST_SECONDS, max(LEAST_SECONDS, ALL_SECONDS / max(1, len(whole))))
    checked = []
    for trial in whole:
        wire.status.enter(f"check of {topology.resources[trial.resource].name}")
        checked.append(_checked(wire, topology, trial, seconds))
    worst = max(checked, key=lambda link: abs(link.off), default=None)
    if worst is not None and abs(worst.off) > MOST_OFF:
        raise RunFailed(_refusal(worst))
    return tuple(checked)


def _checked(wire: "Wire", topology: Topology, trial: Trial, seconds: float) -> CheckedLink:
    """The closest of a few attempts: a busy machine makes a link seem slow once, a wrong rate always."""
    name, rate = topology.resources[trial.resource].name, float(topology.capacity_R[trial.resource])
    attempts = []
    for attempt in range(ATTEMPTS):
        attempts.append(CheckedLink(name, rate, _rate(wire, topology, trial, seconds * 2**attempt)))
        if abs(attempts[-1].off) <= MOST_OFF:
            break
    return min(attempts, key=lambda link: abs(link.off))


def _rate(wire: "Wire", topology: Topology, trial: Trial, seconds: float) -> float:
    from probes.emulation.timing import exchange_seconds

    load = float(topology.resource_bytes(trial.bytes_GG)[trial.resource]) * seconds
    short = exchange_seconds(wire, trial.bytes_GG * (seconds * _SHORT))
    took = exchange_seconds(wire, trial.bytes_GG * seconds)
    return load * (1 - _SHORT) / max(took - short, 1e-9)


def _refusal(link: CheckedLink) -> str:
    rates = f"carries {human_bandwidth(link.measured_bytes_per_s)}"
    asked = f"it was shaped to {human_bandwidth(link.shaped_bytes_per_s)}"
    off = f"{abs(link.off):.0%} off, at most {MOST_OFF:.0%} are accepted"
    return (
        f"the emulated cluster is off: {link.name} {rates}, {asked} ({off}); let the machine rest, try again"
    )
