"""What was found in a plan, a map file or an emission: the report that `moeplan check` prints."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from planner.problem import Exposure, Violation

SHOWN_PROBLEMS = 8  # a fault of one layer is often that of all
# Rules of a file that could be served, but is another than what was said of it, or was emitted here.
MISTAKEN = frozenset({"other-model", "other-ep", "other-map", "changed", "missing"})


@dataclass(frozen=True)
class MapReport:
    """`ok` where nothing is wrong; `unchecked` says what could not be judged, and what it takes."""

    kind: str
    violations: tuple[Violation, ...] = ()
    unchecked: tuple[str, ...] = ()
    facts: Mapping[str, int | str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # what a person should know, and nothing is wrong with
    exposure: Exposure | None = None  # of a plan: experts that the loss of one GPU or node takes away

    @property
    def ok(self) -> bool:
        return not self.violations

    @property
    def mistaken(self) -> bool:
        """Whether it breaks no rule, and is another than it should be."""
        return bool(self.violations) and all(found.rule in MISTAKEN for found in self.violations)

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(violation.text for violation in self.violations)

    def text(self) -> str:
        """The report for a terminal, a line for each finding."""
        facts = ", ".join(f"{name} {value}" for name, value in self.facts.items())
        count = len(self.problems)
        lines = [f"{self.kind}: {facts}", *(f"bad: {line}" for line in self.problems[:SHOWN_PROBLEMS])]
        if count > SHOWN_PROBLEMS:
            lines.append(f"bad: and {count - SHOWN_PROBLEMS} more")
        exposed = self.exposure.sentences if self.exposure else ()
        lines += [f"note: {line}" for line in (*self.notes, *exposed)]
        lines += [f"not checked: {line}" for line in self.unchecked]
        return "\n".join([*lines, "ok" if self.ok else f"{count} problem{'s' if count > 1 else ''}"])

    def to_dict(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            **asdict(self),
            "violations": [asdict(violation) for violation in self.violations],
            "problems": self.problems,
        }
