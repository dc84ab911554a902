"""What sources show of a machine, as text: what is there, what is unknown or wrong, what was measured."""

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from planner.base import human_bandwidth
from planner.report.tables import table_of
from planner.report.topology import topology_report

if TYPE_CHECKING:  # only the command line imports probes at run time
    from planner.topology import Comparison
    from probes.survey.found import Found


SHOWN = 16  # domains and GPUs that are listed; JSON has them all


def found_report(found: "Found") -> RenderableType:
    """The machine, drawn where there is a topology; then the rest."""
    machine = found.machine
    parts: list[RenderableType] = [Text("\n".join(_counted(found)))]
    if machine.topology is not None:
        parts.append(topology_report(machine.topology))
    parts += [measured_table(found)] if found.measured else []
    parts += [Text(f"Fitted to {name}: {text}") for name, text in found.fits]
    parts += [
        Text(f"Bisection measured by {name}: at least {human_bandwidth(rate)} each way")
        for name, rate in found.measured_bisections
    ]
    notes = [f"Not known: {line}" for line in machine.unknown]
    notes += [f"Warning: {line}" for line in machine.warnings]
    return Group(*parts, Text("\n".join(notes))) if notes else Group(*parts)


def _counted(found: "Found") -> list[str]:
    machine = found.machine
    domains = len(machine.nvlink_domains)
    apart = [one for one in found.comparisons if one.departs]
    counts = f"{machine.gpus} GPUs, {machine.nics} NICs, {domains} NVLink domain{'' if domains == 1 else 's'}"
    return [
        f"{counts} (from {', '.join(machine.kinds)})",
        *(f"Measured {one.text}: for why and what it costs, {_ask(one)}" for one in apart),
        *(f"Measured {text}; nothing is stated to compare it with: give --nic" for text in found.uncompared),
        *(f"NVLink domain: GPUs {_span(domain)}" for domain in machine.nvlink_domains[:SHOWN]),
        *(
            f"GPU {gpu} is nearest to {', '.join(names) or 'no NIC'}"
            for gpu, names in list(machine.affinity.items())[:SHOWN]
        ),
    ]


def _ask(one: "Comparison") -> str:
    return f"moeplan topology check MACHINE {one.measured.evidence.source}"


def measured_table(found: "Found") -> Table:
    """The benchmark's busbw beside what a GPU's links really carry."""
    title = "Measured. busbw is made to compare runs by; a GPU's links carry what it sends"
    header, *samples = found.measured_rows
    return table_of(header, samples, words=("benchmark",), title=title)


def _span(domain: tuple[int, ...]) -> str:
    """
    >>> _span((0, 1, 2, 3)), _span((0, 2))
    ('0-3', '0, 2')
    """
    if len(domain) > 2 and domain == tuple(range(domain[0], domain[-1] + 1)):
        return f"{domain[0]}-{domain[-1]}"
    return ", ".join(map(str, domain))
