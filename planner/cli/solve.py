"""The command that makes a plan."""

from pathlib import Path
from typing import Any

import click

from planner.cli.console import Interrupted, progress_bar, say, tell
from planner.cli.effort import effort_options, worker_options
from planner.cli.options import (
    FILE,
    asked_machine_option,
    calibration_option,
    count_or,
    details_option,
    ep_option,
    held_out_option,
    json_option,
    kv_floor_option,
    load_option,
    map_option,
    option,
    options,
    ranks_option,
    request_options,
    step_options,
    transport_option,
)

question_options = options(
    option(
        "--model",
        "model_name",
        required=True,
        help="Catalogue name (moeplan model list) or a Hugging Face config.json.",
    ),
    asked_machine_option,
    calibration_option,
    load_option("Measured load: CSV, JSON, YAML, npz, or what an engine dumped. Repeatable."),
    map_option,
    ranks_option,
    option(
        "--redundant",
        metavar="N|auto",
        default="auto",
        help="Redundant experts (slots beyond one per expert).",
    ),
    ep_option,
    option(
        "--engine",
        help="Engine that will run the plan: its replica rule, transport and default placement are used.",
    ),
)
engine_options = options(
    step_options,
    request_options,
    transport_option,
    option(
        "--replica-rule",
        help="even, nearest-static, hashed, round-robin, ...; the engine's own where it is not given.",
    ),
)
aim_options = options(
    held_out_option,
    option(
        "--objective",
        default="mean",
        help="Over the load's windows: mean, worst, or risk:Z for mean + Z standard deviations.",
    ),
    option("--robust", is_flag=True, help="Make the worst domain good: each --load file is a domain."),
    option(
        "--gpu-speed",
        metavar="RANK=FACTOR,...|FILE",
        help="Compute of GPUs beside others of their model; 3=0.9 is a slow GPU 3.",
    ),
    option(
        "--resplittable",
        is_flag=True,
        help="Join all GPUs of a layer by shared experts, for engines that weigh replicas at run time.",
    ),
    kv_floor_option(
        "Memory of each GPU to keep for the KV cache, like '20 GB', in place of what the planned batch takes."
    ),
    option(
        "--survive",
        metavar="F|node",
        help="Keep a slot of every expert when any F GPUs, or any one node, are lost.",
    ),
)
replan_options = options(
    option(
        "--without",
        metavar="GPU,...|NODE,...",
        help="Plan for the GPUs left without these: ranks, like 3,7 or 0-3, or nodes, like node1 or a name.",
    ),
    option(
        "--from",
        "previous",
        type=FILE,
        metavar="PLAN|MAP",
        help="Plan or engine map that runs now: plan not far from it, and print the moves; "
        "with --without, or with another --ep or --topology, for the GPUs left or the new size.",
    ),
    option(
        "--max-moves",
        "most_moves",
        metavar="N|SHARE%",
        help="With --from: slots of all layers that may get an expert new to their GPU. [default: any]",
    ),
)


@click.command()
@question_options
@effort_options
@engine_options
@aim_options
@replan_options
@worker_options
@option("-o", "--output", type=FILE, help="Plan file to write.")
@details_option
@json_option
def solve(
    output: Path | None,
    details: bool,
    as_json: bool,
    redundant: str,
    kv_floor: str,
    survive: str | None,
    **flags: Any,
) -> None:
    """Decide which expert sits in which slot of which GPU. Ctrl-C writes the best so far, with a note, and
    exits 130.

    Example: moeplan solve --model mixtral --topology hgx-h100:2 --redundant 8 -o plan.json
    """
    from planner.base import finishing, parse_bytes
    from planner.plan import plan_files, plan_to_dict, write_plan
    from planner.planning import PlanRequest, answer
    from planner.problem import parse_survival
    from planner.report.answer import Asked
    from planner.report.plan import plan_report

    request = PlanRequest(
        model=flags.pop("model_name"),
        topology=flags.pop("topology_text"),
        redundant=count_or("auto", redundant, "--redundant"),
        kv_floor_bytes=parse_bytes(kv_floor),
        survive=parse_survival(survive) if survive is not None else None,
        **flags,
    )
    with progress_bar("solve") as progress:
        plan = answer(request, progress)
    with finishing():
        if output:
            write_plan(plan, output)
        asked = Asked(output, str(request.model), str(request.topology) if request.topology else None)
        say(plan_report(plan, asked, details=details), plan_to_dict(plan), as_json)
        if output and not as_json:
            tell("\n".join(f"wrote {path}" for path in plan_files(plan, output)))
    if plan.origin.stopped:
        where = f"{output} holds" if output else "this is"
        raise Interrupted(f"interrupted; {where} the best plan found so far")
