"""The command that writes what an engine loads to serve a plan."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from planner.cli.console import noted, say
from planner.cli.options import FILE, hosts_option, json_option, option, options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.engines import Emission

launch_options = options(
    option("--launcher", help="shell, slurm, kubernetes, llm-d or dynamo. [default: shell]"),
    hosts_option("Hosts in the plan's node order, prefill's first. [default: the topology's own names]"),
    option("--image", help="Container image of the engine, for launchers that write manifests."),
)


@click.command()
@click.argument("plan_files", metavar="PLAN [PLAN]", type=FILE, nargs=-1, required=True)
@option("--engine", required=True, help="The engine that will serve; 'moeplan engine list' shows all.")
@option("--engine-version", help="Release that will serve, like 0.5.23.")
@option(
    "--trust", is_flag=True, help="Write for a release nobody has read, by the nearest earlier one's rules."
)
@option(
    "--role",
    type=click.Choice(["mixed", "prefill", "decode"]),
    default="mixed",
    show_default=True,
    help="A server for all traffic, or half of a prefill/decode pair; two plans are a whole pair.",
)
@option(
    "--flags-only",
    is_flag=True,
    help="Where the engine would not read the plan's map: the launch without it, instead of exit 2.",
)
@option(
    "--no-draft",
    is_flag=True,
    help="SGLang: MTP stays off, so the limits of the model's draft layers do not count.",
)
@option(
    "--plugin",
    is_flag=True,
    help="vLLM: also write a package for pip that makes its balancer return the plan's map.",
)
@option(
    "--replay",
    type=FILE,
    metavar="TRACE",
    help="vLLM: also write a package for pip that routes tokens by a trace's rows: its outputs mean nothing.",
)
@option(
    "-o",
    "--output",
    "folder",
    required=True,
    type=FILE,
    help="Folder for the files; made where it is absent.",
)
@option(
    "--force", is_flag=True, help="Overwrite files in the folder that are not ours, or were edited since."
)
@option("--model-path", help="What the engine is given as its model. [default: the plan's model name]")
@launch_options
@json_option
def emit(plan_files: tuple[Path, ...], folder: Path, as_json: bool, **flags: Any) -> None:
    """Write what an engine loads, and the command that starts it; exit 2 and no file where the engine would
    ignore the plan's map or the launch would not stand.

    \b
    Example: moeplan emit plan.json --engine sglang -o out
    A pair:  moeplan emit prefill.json decode.json --engine sglang -o out
    """  # noqa: D301 - click wants the backspace itself: it keeps the lines apart
    from planner.maps import emit_pair, emit_plan, write_emission, write_pair

    chosen = {"version": flags["engine_version"], "draft": not flags["no_draft"]}
    chosen |= {name: flags[name] for name in ("model_path", "flags_only", "plugin", "trust", "replay")}
    if len(plan_files) == 1:
        emission = emit_plan(plan_files[0], flags["engine"], role=flags["role"], **chosen)
        emission = _with_launcher(emission, plan_files[0], flags, flags["role"], flags["hosts"])
        written = write_emission(emission, plan_files[0], folder, force=flags["force"])
        value = _value(emission, written)
        say(noted(value["notes"], *value["files"]), value, as_json)
        return
    if len(plan_files) > 2 or flags["role"] != "mixed":
        raise click.UsageError("give one plan, or the two plans of a pair without --role")
    pair = emit_pair(plan_files, flags["engine"], **chosen)
    hosts = _hosts_of_halves(pair.plans, flags["hosts"])
    emissions = {
        role: _with_launcher(emission, pair.plans[role], flags, role, hosts[role])
        for role, emission in pair.emissions.items()
    }
    halves = {role: (emission, pair.plans[role]) for role, emission in emissions.items()}
    written = write_pair(halves, pair.router, folder, force=flags["force"])
    own = {role: [path for path in written if path.is_relative_to(folder / role)] for role in halves}
    values = {role: _value(emissions[role], own[role]) for role in halves}
    router = str(next(path for path in written if path.name == "router.sh"))
    notes = [f"{role}: {note}" for role, half in values.items() for note in half["notes"]]
    say(noted(notes, *map(str, written)), {**values, "router": router}, as_json)


def _hosts_of_halves(plans: "Mapping[str, Path]", given: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """By role, the hosts of each half of a pair."""
    from planner.launch import hosts_of_pair
    from planner.plan import read_plan

    topologies = [read_plan(plans[role]).problem.topology for role in ("prefill", "decode")]
    return dict(zip(("prefill", "decode"), hosts_of_pair(topologies, given), strict=True))


def _value(emission: "Emission", written: "list[Path]") -> dict[str, Any]:
    """What was written of one emission."""
    return {"files": list(map(str, written)), "notes": list(emission.notes), "launch": emission.launch}


def _with_launcher(
    emission: "Emission", plan_file: Path, flags: dict[str, Any], role: str, hosts: tuple[str, ...]
) -> "Emission":
    """The emission with a launcher's files.

    Without any where none is asked for and the engine starts nothing.
    """
    from planner.launch import job_for, launched
    from planner.plan import read_plan

    launcher = flags["launcher"]
    if launcher is None and not emission.commands:
        return emission
    problem, _, _ = read_plan(plan_file)
    job = job_for(emission, problem, flags["engine"], hosts, flags["image"], role)
    return launched(emission, job, launcher or "shell")
