"""Commands about machines in files: presets, what they look like, what is wrong with them."""

from pathlib import Path

import click

from planner.cli.completion import complete_topology
from planner.cli.console import say
from planner.cli.options import FILE, json_option, option, step_options


@click.group()
def topology() -> None:
    """Machines that ship with moeplan, and topology files."""


@topology.command("list")
@json_option
def topology_list(as_json: bool) -> None:
    """List the presets.

    Example: moeplan topology list
    """
    from planner.base import topology_names
    from planner.report.presets import preset_rows, preset_table

    rows = preset_rows(topology_names())
    say(preset_table(rows), [row._asdict() for row in rows], as_json)


@topology.command("show")
@click.argument("name", metavar="NAME[:NODES[xGPUS]]|FILE", shell_complete=complete_topology)
@json_option
def topology_show(name: str, as_json: bool) -> None:
    """Draw a machine; print its tiers, bisection bandwidth and oversubscription.

    Example: moeplan topology show hgx-h100:4
    """
    from planner.report.topology import topology_report, topology_summary
    from planner.topology import read_topology

    found = read_topology(name)
    say(topology_report(found), topology_summary(found), as_json)


@topology.command("check")
@click.argument("name", metavar="NAME[:NODES[xGPUS]]|FILE", shell_complete=complete_topology)
@click.argument("logs", metavar="[LOG...]", nargs=-1, type=FILE)
@option("--model", "model_name", default="mixtral", help="Model whose step the costs are predicted for.")
@step_options
@json_option
def topology_check(
    name: str, logs: tuple[Path, ...], model_name: str, phase: str, tokens_per_rank: int | None, as_json: bool
) -> None:
    """Say whether the fabric is good enough, what is wrong with a machine for expert-parallel serving, what
    it costs a model, and what to do. LOG is an all-to-all of nccl-tests, or what `probe --measure` wrote.

    Example: moeplan topology check gcp-a3-high:4 --model deepseek-v3

    Example: moeplan topology check hgx-h100:2 alltoall.log --model deepseek-v3
    """
    from planner.model import find_model
    from planner.planning import PlanRequest, diagnose, find_topology, workload_for
    from planner.report.fabric import check_report, check_to_dict
    from probes.survey.benchmarks import read_runs

    found, _ = find_topology(name)
    request = PlanRequest(model_name, topology=name, phase=phase, tokens_per_rank=tokens_per_rank)
    spec = find_model(model_name)
    runs, notes = read_runs(logs, found)
    diagnosis = diagnose(found, spec, workload_for(request, spec, found), runs)
    say(check_report(diagnosis, notes), check_to_dict(diagnosis, notes), as_json)
