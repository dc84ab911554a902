"""The command that writes what an engine loads to serve a plan."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from planner.cli.console import noted, say
from planner.cli.options import FILE, hosts_option, json_option, option, options

if TYPE_CHECKING:
    from planner.engines import Emission

launch_options = options(
    option("--launcher", help="shell, slurm, kubernetes or dynamo. [default: shell]"),
    hosts_option("Hosts in the plan's node order. [default: the topology's own names]"),
    option("--image", help="Container image of the engine, for --launcher kubernetes."),
)


@click.command()
@click.argument("plan_file", metavar="PLAN", type=FILE)
@option("--engine", required=True, help="sglang, trtllm, vllm or vllm_ascend.")
@option(
    "--engine-version",
    help="Release that will serve, like 0.5.23; an unknown one says which known one is assumed.",
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
    "-o",
    "--output",
    "folder",
    required=True,
    type=FILE,
    help="Folder for the files; made where it is absent.",
)
@option("--model-path", help="What the engine is given as its model. [default: the plan's model name]")
@launch_options
@json_option
def emit(plan_file: Path, engine: str, folder: Path, as_json: bool, **flags: Any) -> None:
    """Write what an engine loads, and the command that starts it; exit 2 and no file where the engine would
    ignore the plan's map.

    Example: moeplan emit plan.json --engine sglang -o out
    """
    from planner.maps import emit_plan, write_emission

    chosen = {"flags_only": flags["flags_only"], "plugin": flags["plugin"], "draft": not flags["no_draft"]}
    emission = emit_plan(plan_file, engine, flags["model_path"], flags["engine_version"], **chosen)
    launch = {name: flags[name] for name in ("launcher", "hosts", "image")}
    emission = _with_launcher(emission, plan_file, engine, **launch)
    written = [str(path) for path in write_emission(emission, plan_file, folder)]
    value = {"files": written, "notes": list(emission.notes), "launch": emission.launch}
    say(noted(emission.notes, *written), value, as_json)


def _with_launcher(
    emission: "Emission",
    plan_file: Path,
    engine: str,
    launcher: str | None,
    hosts: tuple[str, ...],
    image: str | None,
) -> "Emission":
    """The emission with a launcher's files.

    Without any where none is asked for and the engine starts nothing.
    """
    from planner.launch import job_for, launched
    from planner.plan import read_plan

    if launcher is None and not emission.commands:
        return emission
    problem, _, _ = read_plan(plan_file)
    job = job_for(emission, problem, engine, hosts, image)
    return launched(emission, job, launcher or "shell")
