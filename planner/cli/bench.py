"""The benchmark's command."""

from pathlib import Path

import click

from planner.base import BadInput
from planner.cli.console import progress_bar, say
from planner.cli.options import FILE, json_option, option


@click.command()
@option(
    "--study",
    "studies",
    multiple=True,
    help="Study to run, like balance; all where none is given. Repeatable.",
)
@option(
    "--peer",
    "peer_wheels",
    multiple=True,
    type=FILE,
    help="A wheel of vLLM or SGLang: its own balancer is run beside ours; or of aiconfigurator-core: figures "
    "that others measured. Repeatable.",
)
@option("--repeats", type=int, default=5, help="Timed runs of each method; the median counts.")
@option("--chart", type=FILE, help="SVG file for a picture of quality against time (study balance).")
@json_option
def bench(
    studies: tuple[str, ...], peer_wheels: tuple[Path, ...], repeats: int, chart: Path | None, as_json: bool
) -> None:
    """Our methods on fixed instances, beside a peer in the same run: seconds, gap to the bound, ratios.

    Example: moeplan bench --study balance
    """
    from planner.base import write_atomic
    from planner.bench import run_bench
    from planner.report.bench import bench_tables
    from planner.report.chart import quality_chart

    if chart and studies and "balance" not in studies:
        raise BadInput(
            "--chart draws the study balance, which is not among those asked for; add --study balance"
        )
    with progress_bar("bench") as progress:
        tables = run_bench(studies, peer_wheels, repeats, progress)
    if chart:
        write_atomic(chart, quality_chart(tables["balance"].rows))
    value = {
        name: {"title": table.title, "rows": table.rows, "notes": table.notes}
        for name, table in tables.items()
    }
    say(bench_tables(tables), value, as_json)
