"""The command that hands a plan's traffic to the benchmarks of others, and holds their results to it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from planner.cli.console import noted, say
from planner.cli.options import FILE, json_option, load_option, option

if TYPE_CHECKING:
    from planner.exchange import LayerExchange
    from planner.problem import Problem


@click.command()
@click.argument("plan_file", metavar="PLAN", type=FILE)
@option("--layers", default="busiest", metavar="busiest|all|ID,...", help="Which layers' traffic to write.")
@load_option("Load or trace whose tokens are sent. [default: the rows kept beside the plan, else its counts]")
@option(
    "-o", "--output", "folder", type=FILE, help="Write matrices into this folder, made where it is absent."
)
@option(
    "--measured",
    type=FILE,
    metavar="FOLDER|LOG",
    help="Instead of writing: compare what the benchmarks printed, beside the matrices, with the prediction.",
)
@json_option
def traffic(
    plan_file: Path,
    layers: str,
    load_files: tuple[Path, ...],
    folder: Path | None,
    measured: Path | None,
    as_json: bool,
) -> None:
    """Prove a plan with others' tools: write its traffic, and that of the engine's default placement, as
    matrices that nccl-tests (alltoallv_perf) and UCC (ucc_perftest) send; then read what they measured.

    \b
    Example: moeplan traffic plan.json -o traffic
    Then:    bash traffic/run.sh nccl-tests
    Then:    moeplan traffic plan.json --measured traffic
    """  # noqa: D301 - click wants the backspace itself: it keeps the lines apart
    if (folder is None) == (measured is None):
        raise click.UsageError("give -o FOLDER to write matrices, or --measured to read what was measured")
    if measured is not None:
        _compare(plan_file, measured, as_json=as_json)
        return
    from planner.engines import default_placement
    from planner.exchange import DEFAULT, PLAN, layer_exchanges, write_traffic
    from planner.plan import read_plan

    problem, placement, value = read_plan(plan_file)
    problem = _on_load(problem, plan_file, value, load_files)
    sides = {PLAN: placement, DEFAULT: default_placement(value.get("engine"), problem)}
    exchanges = layer_exchanges(problem, sides, layers)
    written = [str(path) for path in write_traffic(problem, plan_file, exchanges, Path(str(folder)))]
    notes = _notes(problem, exchanges)
    say(noted(notes, *written), {"files": written, "notes": notes}, as_json)


def _on_load(
    problem: "Problem", plan_file: Path, value: dict[str, Any], load_files: tuple[Path, ...]
) -> "Problem":
    """The problem on what is sent: the load given, else the rows kept beside the plan, else its own."""
    from dataclasses import replace

    from planner.plan import kept_file, kept_of, read_kept
    from planner.planning import find_load

    if load_files:
        return replace(problem, load=find_load(load_files, problem.model))
    kept = kept_of(value)
    rows = read_kept(kept, plan_file, problem) if kept else None
    if rows is None:
        return problem
    return replace(problem, load=replace(rows, source=kept_file(plan_file).name))  # no folder in the manifest


def _compare(plan_file: Path, measured: Path, *, as_json: bool) -> None:
    from planner.exchange import held_to_dict, read_traffic
    from planner.plan import read_plan
    from planner.report.exchange import exchange_report
    from probes.survey.exchanges import read_results

    topology = read_plan(plan_file).problem.topology
    held = read_results(read_traffic(measured, plan_file), measured, topology)
    say(exchange_report(held), held_to_dict(held), as_json)


def _notes(problem: "Problem", exchanges: "Sequence[LayerExchange]") -> list[str]:
    """What a flat all-to-all of these bytes does not say."""
    notes = []
    if any(one.exchange.hop for one in exchanges):
        overlapped = "an engine overlaps them, so a phase takes between the longer one and both"
        transport = problem.workload.transport
        notes.append(f"the two hops of transport '{transport}' are two matrices a phase: {overlapped}")
    if not problem.load.trace:
        notes.append("bytes are expected from counts of the load; --load TRACE gives those of its own tokens")
    return notes
