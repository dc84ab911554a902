"""The command that judges a plan anew."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from planner.base import BadInput
from planner.cli.console import say
from planner.cli.options import (
    FILE,
    calibration_option,
    details_option,
    json_option,
    load_option,
    machine_option,
    map_option,
    option,
    ranks_option,
)

Answer = tuple[Any, dict[str, Any]]  # what is shown to people, and to machines


@click.command()
@click.argument("plan_file", metavar="PLAN", type=FILE)
@load_option("Load to judge the plan on; the plan's own where it is not given.")
@map_option
@ranks_option
@machine_option("Machine to judge it on; the plan's own where it is not given.")
@calibration_option
@option("--engine", help="Judge under this engine's replica rule and transport.")
@option("--all-engines", is_flag=True, help="Judge the same placement under every engine's, one row each.")
@option(
    "--gpu-speed",
    metavar="RANK=FACTOR,...|FILE",
    help="Compute of GPUs beside others of their model; the plan's own where it is not given.",
)
@option("--phase", type=click.Choice(["decode", "prefill"]), help="[default: the plan's own]")
@option(
    "--tokens-per-rank",
    type=int,
    help="Tokens each GPU brings to a step. [default: the plan's own, or usual]",
)
@option(
    "--best-split",
    is_flag=True,
    help="What balance the placement could reach if the engine weighed its replicas.",
)
@details_option
@json_option
def evaluate(all_engines: bool, best_split: bool, details: bool, as_json: bool, **asked: Any) -> None:
    """Predict what a plan costs on another load, another machine or another engine.

    Example: moeplan evaluate plan.json --load tomorrow.csv --topology hgx-h200:2
    """
    if best_split:
        text, value = _best_split(all_engines=all_engines, **asked)
    elif all_engines:
        text, value = _every_engine(**asked)
    else:
        text, value = _one_engine(details=details, **asked)
    say(text, value, as_json)


def _best_split(
    plan_file: Path, load_files: tuple[Path, ...], map_file: Path | None, ranks: str | None, **others: Any
) -> Answer:
    from planner.planning import re_split
    from planner.report.evaluation import split_report

    flags = {
        "--engine": others["engine"],
        "--all-engines": others["all_engines"],
        "--topology": others["topology_text"],
        "--calibration": others["calibrations"] or None,
        "--gpu-speed": others["gpu_speed"],
        "--phase": others["phase"],
        "--tokens-per-rank": others["tokens_per_rank"],
    }
    given = [flag for flag, value in flags.items() if value is not None and value is not False]
    if given:
        about = "--best-split is about the plan's own machine and about weights, not rules of engines"
        raise BadInput(f"{about}; leave out {', '.join(given)}")
    problem, split, notes = re_split(plan_file, load_files, map_file, ranks)
    return split_report(problem, split, notes), {**asdict(split), "notes": list(notes)}


def _every_engine(plan_file: Path, **asked: Any) -> Answer:
    from planner.plan import cost_to_dict
    from planner.planning import evaluate_engines
    from planner.report.evaluation import engines_report

    if asked["engine"]:
        raise BadInput(
            f"--engine {asked['engine']} and --all-engines ask for different things; give one of them"
        )
    by_engine, notes = evaluate_engines(plan_file, _anew(**asked))
    rows = {}
    for name, (problem, cost) in by_engine.items():
        rule = {"replica_rule": problem.replica_rule, "transport": problem.workload.transport}
        rows[name] = {**cost_to_dict(cost), **rule}
    return engines_report(by_engine, notes), {"engines": rows, "notes": list(notes)}


def _one_engine(plan_file: Path, *, details: bool, **asked: Any) -> Answer:
    from planner.plan import cost_to_dict
    from planner.planning import judged_anew
    from planner.report.evaluation import cost_report

    found = judged_anew(plan_file, _anew(**asked))
    value = {
        **cost_to_dict(found.cost),
        "replica_rule": found.problem.replica_rule,
        "notes": list(found.notes),
    }
    return cost_report(plan_file, found, details=details), value


def _anew(topology_text: str | None, **asked: Any) -> Any:
    from planner.planning import Anew

    return Anew(topology=topology_text, **asked)
