"""Commands about plans: make one, judge it, write what engines load, run it."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from planner.base import BadInput
from planner.cli.console import (
    FILE,
    Interrupted,
    No,
    Refused,
    json_option,
    map_option,
    progress_bar,
    ranks_option,
    say,
)
from planner.cli.launching import check_live, launch_options, live_options, with_launcher


@click.command()
@click.option(
    "--model",
    "model_name",
    required=True,
    help="Catalogue name (moeplan model list) or a Hugging Face config.json.",
)
@click.option(
    "--topology",
    "topology_text",
    metavar="NAME[:NODES[xGPUS]]|FILE",
    help="Machine; hgx-h100:4x2 is two GPUs of each of four nodes.",
)
@click.option(
    "--load",
    "load_files",
    multiple=True,
    type=FILE,
    help="Measured load: CSV, JSON, YAML, npz, or what an engine dumped. Repeatable.",
)
@map_option
@ranks_option
@click.option(
    "--redundant",
    metavar="N|auto",
    default="auto",
    show_default=True,
    help="Redundant experts (slots beyond one per expert).",
)
@click.option("--ep", type=int, help="Expert-parallel size; all GPUs of the topology where it is not given.")
@click.option(
    "--engine",
    help="Engine that will run the plan: its replica rule, transport and default placement are used.",
)
@click.option(
    "--method",
    default="auto",
    show_default=True,
    help="auto tries several; linear, round-robin, greedy, refine, pinned, remote, affinity, sparse or cpsat is one.",
)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--budget",
    "budget_seconds",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Wall-clock limit; plans may then differ from run to run.",
)
@click.option(
    "--prove",
    is_flag=True,
    help="Spend half of the budget, or a counted effort, on proofs: exact bounds, and all placements where they are few.",
)
@click.option("--phase", type=click.Choice(["decode", "prefill"]), default="decode", show_default=True)
@click.option(
    "--tokens-per-rank",
    type=int,
    help="Tokens each GPU brings to a step. [default: 128 in decode, 4096 in prefill]",
)
@click.option("--transport", help="slot, rank, node or allgather; the engine's own where it is not given.")
@click.option(
    "--replica-rule",
    help="even, nearest-static, hashed, round-robin, ...; the engine's own where it is not given.",
)
@click.option(
    "--held-out",
    type=float,
    default=1 / 3,
    show_default="1/3",
    help="Share of the load's windows kept for judging, not for fitting.",
)
@click.option(
    "--objective",
    default="mean",
    show_default=True,
    help="Over the load's windows: mean, worst, or risk:Z for mean + Z standard deviations.",
)
@click.option("--robust", is_flag=True, help="Make the worst domain good: each --load file is a domain.")
@click.option(
    "--gpu-speed",
    metavar="RANK=FACTOR,...|FILE",
    help="Compute of GPUs beside others of their model; 3=0.9 is a slow GPU 3.",
)
@click.option(
    "--resplittable",
    is_flag=True,
    help="Join all GPUs of a layer by shared experts, for engines that weigh replicas at run time.",
)
@click.option(
    "--kv-floor",
    default="0 B",
    show_default=True,
    metavar="SIZE",
    help="Memory of each GPU to keep for the KV cache, like '20 GB'.",
)
@click.option(
    "--survive",
    metavar="F|node",
    help="Keep a slot of every expert when any F GPUs, or any one node, are lost.",
)
@click.option(
    "--from",
    "previous",
    type=FILE,
    metavar="PLAN|MAP",
    help="Plan or engine map that runs now: plan not far from it, and print the moves.",
)
@click.option(
    "--max-moves",
    "most_moves",
    metavar="N|SHARE%",
    help="With --from: slots of all layers that may get an expert new to their GPU. [default: any]",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes that share the layers; the plan is the same for any number. [default: by size]",
)
@click.option(
    "--ray",
    metavar="ADDRESS",
    help="Share the layers over this Ray cluster: HOST:PORT, ray://HOST:PORT or auto. Needs the extra 'ray'.",
)
@click.option("-o", "--output", type=FILE, help="Plan file to write.")
@json_option
def solve(
    output: Path | None, as_json: bool, redundant: str, kv_floor: str, survive: str | None, **flags: Any
) -> None:
    """Decide which expert sits in which slot of which GPU. Ctrl-C writes the best so far, with a note, and exits 130.

    Example: moeplan solve --model mixtral --topology hgx-h100:2 --redundant 8 -o plan.json
    """
    from planner.base import parse_bytes
    from planner.plan import plan_to_dict, write_plan
    from planner.planning import PlanRequest, answer
    from planner.problem import parse_survival
    from planner.report.plan import plan_report

    request = PlanRequest(
        model=flags.pop("model_name"),
        topology=flags.pop("topology_text"),
        redundant=_redundant(redundant),
        kv_floor_bytes=parse_bytes(kv_floor),
        survive=parse_survival(survive) if survive is not None else None,
        **flags,
    )
    with progress_bar("solve") as progress:
        plan = answer(request, progress)
    if output:
        write_plan(plan, output)
    say(plan_report(plan), plan_to_dict(plan), as_json)
    if output and not as_json:
        click.echo(f"wrote {output}")
    if plan.origin.stopped:
        raise Interrupted(
            f"interrupted; {f'{output} holds' if output else 'this is'} the best plan found so far"
        )


@click.command()
@click.argument("plan_file", metavar="PLAN", type=FILE)
@click.option(
    "--load",
    "load_files",
    multiple=True,
    type=FILE,
    help="Load to judge the plan on; the plan's own where it is not given.",
)
@map_option
@ranks_option
@click.option(
    "--topology",
    "topology_text",
    metavar="NAME[:NODES[xGPUS]]|FILE",
    help="Machine to judge it on; the plan's own where it is not given.",
)
@click.option("--engine", help="Judge under this engine's replica rule and transport.")
@click.option(
    "--all-engines", is_flag=True, help="Judge the same placement under every engine's, one row each."
)
@click.option(
    "--gpu-speed",
    metavar="RANK=FACTOR,...|FILE",
    help="Compute of GPUs beside others of their model; the plan's own where it is not given.",
)
@click.option(
    "--best-split",
    is_flag=True,
    help="What balance the placement could reach if the engine weighed its replicas.",
)
@json_option
def evaluate(
    plan_file: Path,
    load_files: tuple[Path, ...],
    map_file: Path | None,
    ranks: str | None,
    topology_text: str | None,
    engine: str | None,
    all_engines: bool,
    gpu_speed: str | None,
    best_split: bool,
    as_json: bool,
) -> None:
    """Predict what a plan costs on another load, another machine or another engine.

    Example: moeplan evaluate plan.json --load tomorrow.csv --topology hgx-h200:2
    """
    from planner.plan import cost_to_dict
    from planner.planning import evaluate_engines, re_evaluate, re_split
    from planner.report.plan import cost_report, engines_report, split_report

    if best_split:
        given = [
            name
            for name, value in (
                ("--engine", engine),
                ("--all-engines", all_engines),
                ("--topology", topology_text),
                ("--gpu-speed", gpu_speed),
            )
            if value
        ]
        if given:
            raise BadInput(
                f"--best-split is about the plan's own machine and about weights, not rules of engines; leave out {', '.join(given)}"
            )
        asked, split, notes = re_split(plan_file, load_files, map_file, ranks)
        say(split_report(asked, split, notes), {**asdict(split), "notes": list(notes)}, as_json)
        return
    if all_engines:
        if engine:
            raise BadInput(f"--engine {engine} and --all-engines ask for different things; give one of them")
        by_engine, notes = evaluate_engines(
            plan_file, load_files, topology_text, map_file=map_file, ranks=ranks, gpu_speed=gpu_speed
        )
        rows = {
            name: {
                **cost_to_dict(priced),
                "replica_rule": asked.replica_rule,
                "transport": asked.workload.transport,
            }
            for name, (asked, priced) in by_engine.items()
        }
        say(engines_report(by_engine, notes), {"engines": rows, "notes": list(notes)}, as_json)
        return
    problem, found, notes = re_evaluate(
        plan_file, load_files, topology_text, engine, map_file=map_file, ranks=ranks, gpu_speed=gpu_speed
    )
    say(
        cost_report(problem, found, notes),
        {**cost_to_dict(found), "replica_rule": problem.replica_rule, "notes": list(notes)},
        as_json,
    )


@click.command()
@click.argument("plan_file", metavar="PLAN", type=FILE)
@click.option("--engine", required=True, help="sglang, trtllm, vllm or vllm_ascend.")
@click.option(
    "--engine-version",
    help="Release that will serve, like 0.5.23; an unknown one says which known one is assumed.",
)
@click.option(
    "--flags-only",
    is_flag=True,
    help="Where the engine would not read the plan's map: the launch without it, instead of exit 2.",
)
@click.option(
    "--no-draft",
    is_flag=True,
    help="SGLang: MTP stays off, so the limits of the model's draft layers do not count.",
)
@click.option(
    "--plugin",
    is_flag=True,
    help="vLLM: also write a package for pip that makes its balancer return the plan's map.",
)
@click.option(
    "-o",
    "--output",
    "folder",
    required=True,
    type=FILE,
    help="Folder for the files; made where it is absent.",
)
@click.option("--model-path", help="What the engine is given as its model. [default: the plan's model name]")
@launch_options
@json_option
def emit(
    plan_file: Path,
    engine: str,
    folder: Path,
    engine_version: str | None,
    model_path: str | None,
    as_json: bool,
    **flags: Any,
) -> None:
    """Write what an engine loads, and the command that starts it; exit 2 and no file where the engine would ignore the plan's map.

    Example: moeplan emit plan.json --engine sglang -o out
    """
    from planner.maps import emit_plan, write_emission

    chosen = {"flags_only": flags["flags_only"], "plugin": flags["plugin"], "draft": not flags["no_draft"]}
    emission = emit_plan(plan_file, engine, model_path, engine_version, **chosen)
    emission = with_launcher(emission, plan_file, engine, flags["launcher"], flags["hosts"], flags["image"])
    written = write_emission(emission, plan_file, folder)
    lines = [
        *(note if note.startswith("WARNING") else f"Note: {note}" for note in emission.notes),
        *(f"wrote {path}" for path in written),
    ]
    say(
        "\n".join(lines),
        {"files": [str(path) for path in written], "notes": list(emission.notes), "launch": emission.launch},
        as_json,
    )


@click.command()
@click.argument("file", metavar="FILE", type=FILE)
@click.option(
    "--model", "model_name", help="Model the map is for; without it the number of experts is inferred."
)
@click.option(
    "--ep", type=int, help="EP size; without it 'no expert twice on a GPU' cannot be judged for a bare map."
)
@click.option("--engine", help="Also judge whether this engine would load it for this model.")
@live_options
@json_option
def check(
    file: Path,
    model_name: str | None,
    ep: int | None,
    engine: str | None,
    live: bool,
    as_json: bool,
    **flags: Any,
) -> None:
    """Judge a plan or an engine's map file by every hard rule; exit 0 for a good one, 2 for a bad one.

    Example: moeplan check out/physical_to_logical_map.json --model deepseek-v3 --ep 32

    Example: srun -n 16 moeplan check --live plan.json
    """
    from planner.maps import check_file

    if live:
        check_live(file, **flags, as_json=as_json)
        return
    report = check_file(file, model_name, ep, engine)
    say(report.text(), report.to_dict(), as_json)
    if not report.ok:
        raise Refused(f"{file}: {report.problems[0]}")


@click.command()
@click.argument("plan_file", metavar="PLAN", type=FILE)
@click.option(
    "--layers",
    default="4",
    show_default=True,
    metavar="N|all",
    help="How many layers to run: the busiest ones.",
)
@click.option("--tokens", type=int, default=64, show_default=True, help="Tokens each rank brings to a step.")
@click.option(
    "--hidden", type=int, help="Elements of a token. [default: 64 on a CPU, the model's own on GPUs]"
)
@click.option(
    "--repeats", type=int, default=5, show_default=True, help="Timed steps per layer and placement."
)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    show_default=True,
    help="auto: GPUs where there is one for every rank.",
)
@click.option(
    "--timeout",
    "timeout_seconds",
    type=float,
    default=120.0,
    show_default=True,
    help="Seconds after which a silent rank ends the run.",
)
@json_option
def validate(plan_file: Path, layers: str, as_json: bool, **flags: Any) -> None:
    """Run the plan's own dispatch, expert compute and combine, one process per rank; exit 0 only if every check holds.

    Example: moeplan validate plan.json
    """
    from planner.engines import default_placement
    from planner.plan import read_plan
    from planner.report.validation import validation_report
    from probes.dispatch.run import RunFailed
    from probes.dispatch.validation import Settings
    from probes.dispatch.validation import validate as run_plan
    from probes.ranks.launch import adopt

    adopt(os.environ)
    problem, placement, value = read_plan(plan_file)
    baseline = default_placement(value.get("engine"), problem)
    try:
        outcome = run_plan(problem, placement, baseline, Settings(layers=_count_or_all(layers), **flags))
    except RunFailed as failure:
        raise No(f"{plan_file}: {failure}") from failure
    if outcome.report.rank == 0:  # the other ranks of a launched group leave the word to it
        say(validation_report(outcome), outcome.to_dict(), as_json)
    if not outcome.ok:
        raise No(f"{plan_file}: {outcome.failed[0]}")


def _count_or_all(text: str) -> int | None:
    if text == "all":
        return None
    if not text.isdecimal():
        raise BadInput(f"--layers {text!r}: give a whole number, or all")
    return int(text)


def _redundant(text: str) -> int | None:
    if text == "auto":
        return None
    if not text.isdecimal():
        raise BadInput(f"--redundant {text!r}: give a whole number, or auto")
    return int(text)
