"""What was found in a plan or a map file: the report that `moeplan check` prints."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from planner.problem import Violation

SHOWN_PROBLEMS = 8  # a fault of one layer is often that of all


@dataclass(frozen=True)
class MapReport:
    """`ok` where nothing is wrong; `unchecked` says what could not be judged, and what it takes."""

    kind: str
    violations: tuple[Violation, ...] = ()
    unchecked: tuple[str, ...] = ()
    facts: Mapping[str, int | str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return not self.violations

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
        lines += [f"not checked: {line}" for line in self.unchecked]
        return "\n".join([*lines, "ok" if self.ok else f"{count} problem{'s' if count > 1 else ''}"])

    def to_dict(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            **asdict(self),
            "violations": [asdict(violation) for violation in self.violations],
            "problems": self.problems,
        }
