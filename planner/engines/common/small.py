"""What engines of one server for all traffic share: how they are asked, what is refused, their emission."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from planner.engines.common import attention, deepep, script
from planner.engines.common.command import Endpoint, node_command
from planner.engines.common.interface import Emission
from planner.engines.common.releases import Release, find_release
from planner.engines.common.verdict import DECODE, MIXED, WARNING, Finding, Verdict, check_role
from planner.problem import Problem, Violation

ROLES = (MIXED,)
DEVICES = {"hygon": "DCUs"}  # what accelerators are called that are no GPUs
DEEPEP = NORMAL_MODE, PEERS = ("deepep-nvlink", "deepep-peers")  # rules of DeepEP's that are warned of


def asked(
    title: str, releases: Sequence[Release], problem: Problem, version: str | None, role: str
) -> tuple[Release, tuple[str, ...]]:
    """The release whose rules hold, and a note where that is another one. BadInput for half of a pair."""
    check_role(title, role, ROLES, problem.workload.phase)
    return find_release(title, releases, version)


def verdict(title: str, version: str, problem: Problem, found: Iterable[Finding]) -> Verdict:
    """Refusals first, with that of every engine whose launch knows one GPU a request."""
    said = [*refused(attention.one_gpu(title, problem), "the launch that is written"), *found]
    return Verdict(title, version, MIXED, tuple(sorted(said, key=lambda one: not one.refused)))


def refused(limits: Iterable[Violation], source: str) -> Iterator[Finding]:
    """Limits as findings, all of one source."""
    for limit in limits:
        yield Finding(limit.rule, limit.text, source, refused=True)


def deepep_only(title: str, problem: Problem, phase: str, *, pads_hidden: bool) -> Iterator[Finding]:
    """Of an engine that moves tokens by DeepEP alone, as far as its kernels are known.

    `phase`: that of the mode that the planned steps go through.
    """
    broken = deepep.kernel_limits(phase, problem.gpus, problem.model, pads_hidden=pads_hidden)
    yield from refused(broken, f"{deepep.UPSTREAM.name}, read")
    why = deepep.why_not_normal(problem.topology)
    source = f"{deepep.UPSTREAM.name}, read; no other way of {title} is known"
    if why and phase != DECODE:
        yield from refused([Violation(NORMAL_MODE, why)], source)
    elif why:
        yield Finding(NORMAL_MODE, f"{why}: decode steps run without it, prompts may not", source)
    for text in deepep.unreached(problem.topology) if phase == DECODE else ():
        yield Finding(PEERS, text, deepep.UPSTREAM.name)


def other_phase(problem: Problem, what: str) -> Finding:
    """What one server for all traffic does with the phase that was not planned."""
    phase = problem.workload.phase
    other = "prompts run" if phase == DECODE else "requests decode"
    return Finding("role", f"planned for {phase}; {other} by the same placement, {what}", "the plan")


def said(judged: Verdict, rules: Iterable[str]) -> tuple[str, ...]:
    """Findings of these rules as notes of a launch: a warning for each that no flag answers."""
    found = [one for one in judged.findings if one.rule in set(rules) and not one.refused]
    return tuple(one.text if one.flags or one.rule == "role" else f"{WARNING}{one.text}" for one in found)


def emission(
    title: str,
    problem: Problem,
    commands: Sequence[Sequence[str]],
    files: Mapping[str, str],
    notes: tuple[str, ...],
    ignored: str = "",
    *,
    endpoint: Endpoint | None = None,
    accelerator: str = "nvidia",
) -> Emission:
    """The files and launch.sh, of a command that each node starts once. `title`: the engine and release."""
    heading = f"{title}, {problem.model.name} on {problem.gpus} {DEVICES.get(accelerator, 'GPUs')}"
    commands = script.on_devices(problem.topology, commands, accelerator)
    text = script.per_node(heading, notes, problem.topology, commands)
    started = tuple(node_command(words, accelerator=accelerator, endpoint=endpoint) for words in commands)
    return Emission({**files, "launch.sh": text}, text, notes, ignored, started)
