"""The verdict on a launch: whether it would stand, what must be said for it to, and where each rule is from.

One judge is asked by `solve` (early), `emit` (which refuses), `check` and `moeplan engine show`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from planner.base import BadInput
from planner.problem import Violation

MIXED, PREFILL, DECODE = "mixed", "prefill", "decode"
ROLES = (MIXED, PREFILL, DECODE)  # a server for all traffic, or half of a disaggregated pair


@dataclass(frozen=True)
class Finding:
    """One rule that bears on a launch. `flags`: words, or NAME=value of the environment, that answer it."""

    rule: str
    text: str
    source: str  # what was read or run, with its release
    flags: tuple[str, ...] = ()
    refused: bool = False


NOTE, WARNING = "", "WARNING: "  # how a finding is said where a launch is written
Said = tuple[Finding, str | None]  # None: it is not, its flags are there to be seen


def refused(rule: str, text: str, source: str) -> Said:
    """A finding that refuses; it is not said beside the launch, for there is none."""
    return Finding(rule, text, source, refused=True), None


@dataclass(frozen=True)
class Verdict:
    """What the judge says of one engine, release, question and role."""

    engine: str
    version: str
    role: str
    findings: tuple[Finding, ...] = ()

    @property
    def refused(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.refused)

    @property
    def outcome(self) -> str:
        """serves, serves with flags, or refused."""
        if self.refused:
            return "refused"
        return "serves with flags" if any(finding.flags for finding in self.findings) else "serves"

    @property
    def violations(self) -> list[Violation]:
        """What is refused, as the judge of placements says it."""
        return [Violation(finding.rule, finding.text) for finding in self.refused]


def check_role(title: str, role: str, roles: Sequence[str], phase: str) -> None:
    """BadInput where the engine has no such role, or the plan was made for the other half of a pair."""
    if role not in roles:
        known = ", ".join(roles)
        raise BadInput(f"--role {role}: {title} is started as {known}; emit the plan without --role")
    if role not in (MIXED, phase):
        raise BadInput(
            f"--role {role}: the plan is for {phase}; make one with --phase {role}, or use --role {phase}"
        )
