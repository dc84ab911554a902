"""The verdict in sentences: the answer, the cause, and the tests that prove or refute it."""

from collections.abc import Iterator

import numpy as np

from planner.topology import Topology
from probes.dispatch.verdict.causes import Finding, Fitted
from probes.dispatch.verdict.figures import PhaseFigures
from probes.dispatch.verdict.gain import Gain
from probes.dispatch.verdict.judge import Verdict

MOST_ALIKE = 2  # suspects beside the likeliest that are named
AGAIN = "moeplan probe --measure, then validate with the topology it writes"
TESTS = {
    "nvlink": "nvidia-smi nvlink -s (all links up?)",
    "pcie": "lspci -vv | grep LnkSta: (as root, under load)",
    "host": "lspci -vv | grep LnkSta: (as root, under load)",
    "nic": "ib_write_bw --report_gbits between this host and each other one; ethtool or ibstat for its rate",
    "leaf": "alltoall_perf on two hosts of one leaf switch, then of two: only the second is slow?",
    "spine": "alltoall_perf on two leaves of one spine, then of two: only the second is slow?",
    "compute": "nvidia-smi -q -d CLOCK,PERFORMANCE,POWER on its host (throttled?)",
}


def sentence(verdict: Verdict, topology: Topology) -> str:
    """The answer, in one line."""
    parts = {
        "prediction": "The prediction fails",
        "gain": "The promised gain fails",
        "undecided": "Not to be told at this noise",
        "kept": "The plan keeps its promise",
        "held": "The prediction holds",
    }
    why = "; ".join(_why(verdict, topology))
    return f"{parts[verdict.state]}: {why}"


def _why(verdict: Verdict, topology: Topology) -> Iterator[str]:
    if verdict.off:
        worst = max(verdict.off, key=lambda one: abs(np.log(one.whole.median / one.whole.drawn)))
        yield off_words(worst, verdict)
    if verdict.missed:
        missed = min(verdict.missed, key=lambda one: one.promised - one.measured)
        yield gain_words(missed) + ("" if missed.in_bytes else "; nor do the bytes that were sent hold it")
    if verdict.cause is not None:
        yield cause_words(verdict.cause, topology)
    if not verdict.ok:
        return
    for phase in verdict.undecided[:1]:
        yield f"{phase}, tolerance {verdict.tolerances[phase].reason}; ask for more --repeats or --tokens"
    kept = [one for one in verdict.gains if one.state == "kept"] or list(verdict.gains)
    of_side = {one.against: one for one in reversed(kept)}  # the first of each side: a single phase
    yield from (gain_words(one) for one in reversed(of_side.values()))
    if not kept:
        worst = max(verdict.phases, key=lambda one: abs(one.whole.error))
        yield off_words(worst, verdict)


def off_words(one: PhaseFigures, verdict: Verdict) -> str:
    """As in 'dispatch of the plan took 2.61 times what was predicted (tolerance 12 %)'."""
    times = one.whole.median / one.whole.drawn
    tolerance = f"tolerance {_percent(verdict.tolerances[one.phase].share)}"
    side = f"the {one.side}" if one.side in ("plan", "default") else f"'{one.side}'"
    return f"{one.phase} of {side} took {times:.2f} times what was predicted ({tolerance})"


def gain_words(gain: Gain) -> str:
    """As in 'dispatch 0.69 of the default, promised 0.67 (tolerance 0.08)'."""
    other = f"the {gain.against}" if gain.against == "default" else f"'{gain.against}'"
    measured = f"{gain.name} {gain.measured:.2f} of {other}, promised {gain.promised:.2f}"
    if gain.state == "untold":
        return f"{measured}: too small a gain to be told here (tolerance {gain.tolerance:.2f})"
    return f"{measured} (tolerance {gain.tolerance:.2f})"


def cause_words(cause: Finding, topology: Topology) -> str:
    """What is likely, and how much better it fits than no fault and than the next best."""
    if cause.best.suspect.kind == "none" or not cause.explains:
        name = suspect_words(cause.best, topology)
        return f"no single cause explains it (the best, {name}, leaves errors of {_percent(cause.best.left)})"
    likely = [cause.best, *cause.alike[:MOST_ALIKE]]
    names = ", or ".join(suspect_words(one, topology) for one in likely)
    more = len(cause.alike) - MOST_ALIKE
    others = f", or {more} more" if more > 0 else ""
    left = f"it leaves errors of {_percent(cause.best.left)}, no fault {_percent(cause.left_without)}"
    if cause.next is not None and cause.next.suspect.kind != "none":
        left += f", the next best ({suspect_words(cause.next, topology)}) {_percent(cause.next.left)}"
    return f"most likely {names}{others} ({left})"


def suspect_words(one: Fitted, topology: Topology) -> str:
    what, share = one.suspect.what, _percent(one.x)
    words = {
        "none": "no fault",
        "link": f"{what} at {share} of its rate",
        "tier": _tier_words(what, one.x, topology),
        "rank": f"{what} slow as a whole, at {share}: its host is busy",
        "side": f"the side '{what}' alone, {1 / one.x:.2f} times as long, whatever its links",
        "phase": f"{what} alone, {1 / one.x:.2f} times as long, whatever its links",
        "order": f"rank order: {what}",
        "uplinks": f"uplinks above every {what} that were not told of, about {1 / one.x:.1f}:1",
        "start-up": f"{1e3 * one.x:.3g} ms more start-up",
    }
    return words[one.suspect.kind]


def _tier_words(tier: str, x: float, topology: Topology) -> str:
    if tier in ("leaf", "spine"):
        fabric = topology.fabric
        told = fabric.oversubscription if tier == "leaf" else fabric.pod_oversubscription
        return f"{tier} uplinks nearer {told / x:.2g}:1 than {told:g}:1"
    if tier == "compute":
        return f"every GPU's compute at {_percent(x)} of what was predicted"
    return f"every {tier or 'link'}{' link' if tier else ''} at {_percent(x)} of its rate"


def how_to_check(cause: Finding, topology: Topology) -> str:
    """What proves or refutes it, in one line."""
    suspect = cause.best.suspect
    if suspect.kind == "link" or (suspect.kind == "tier" and suspect.what):
        tier = suspect.what if suspect.kind == "tier" else _tier(suspect.what, topology)
        return f"{TESTS[tier]}; {AGAIN}"
    by_kind = {
        "rank": "top and nvidia-smi on its host: what else runs there?",
        "order": "hostname of every rank against the plan's nodes; what moeplan emit writes pins the order",
        "uplinks": f"{TESTS['leaf']}; {AGAIN}",
        "start-up": f"moeplan validate --calibrate; {AGAIN}",
        "side": "the same again with another --seed, and with the sides' layers in --details",
        "phase": "moeplan validate --calibrate",
    }
    return by_kind.get(suspect.kind, AGAIN)


def _tier(link: str, topology: Topology) -> str:
    """Of a link by the name of one of its directions; a GPU of compute has no link."""
    return next((one.tier for one in topology.resources if one.name.startswith(link)), "compute")


def _percent(share: float) -> str:
    """
    >>> _percent(0.243), _percent(0.004)
    ('24 %', '0.4 %')
    """
    return f"{100 * share:.2g} %" if share < 1 else f"{100 * share:.0f} %"
