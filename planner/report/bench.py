"""Benchmark rows as a table."""

from collections.abc import Sequence

from rich.table import Table

from planner.bench import Row
from planner.units import human_bytes, human_seconds


def bench_table(rows: Sequence[Row]) -> Table:
    table = Table(title="Synthetic loads, median of the repeats; gap = summed busiest-GPU load above the lower bound", title_justify="left")
    for name in ("instance", "method", "time", "of vLLM's", "valid", "gap", "peak memory"):
        table.add_column(name, justify="left" if name in ("instance", "method", "valid") else "right")
    for row in rows:
        table.add_row(
            row.instance,
            row.method,
            human_seconds(row.seconds),
            f"{row.ratio:.2f} x" if row.ratio is not None else "",
            "yes" if row.valid else "NO",
            f"{row.gap:.3%}" if row.gap is not None else "",
            human_bytes(row.peak_bytes) if row.peak_bytes is not None else "",
        )
    return table
