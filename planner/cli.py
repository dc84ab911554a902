"""The command line: argv to values to text. The only place that prints or exits; everything heavy is imported inside a command."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from planner import __version__
from planner.errors import BadInput

if TYPE_CHECKING:
    from planner.solve import Progress


class _BadInput(click.ClickException):
    """What a person gave us cannot be used: one line on stderr, exit code 2."""

    exit_code = 2

    def format_message(self) -> str:
        return " ".join(self.message.split())

    def show(self, file: Any = None) -> None:
        click.echo(f"moeplan: {self.format_message()}", file=file, err=file is None)


class _No(_BadInput):
    """The answer to the question is no."""

    exit_code = 1


class _Interrupted(_BadInput):
    """Ctrl-C; the code that shells give to it."""

    exit_code = 130


class _Commands(click.Group):
    """Turns a fault in what a person gave us into one line and exit code 2. A bug of ours keeps its traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BadInput as fault:
            raise _BadInput(str(fault)) from fault
        except OSError as fault:
            if fault.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise _BadInput(f"the output cannot be written ({fault.strerror})") from fault
        except KeyboardInterrupt as stop:
            raise _Interrupted("interrupted; no file was written or changed") from stop


FILE = click.Path(path_type=Path)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines instead of tables.")


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="moeplan")
def main() -> None:
    """Plan where the experts of a Mixture-of-Experts model sit on your GPUs, and check the plan by running it.

    \b
    moeplan solve --model mixtral -o plan.json          which expert sits on which GPU
    moeplan emit plan.json --engine sglang -o out       what the engine loads, and how to start it
    moeplan validate plan.json                          run the plan's own dispatch, compute, combine
    """  # noqa: D301 - click wants the backspace itself: it keeps the lines below apart


@main.group()
def topology() -> None:
    """Machines that ship with moeplan, and topology files."""


@topology.command("list")
@json_option
def topology_list(as_json: bool) -> None:
    """List the presets.

    Example: moeplan topology list
    """
    from planner.catalog import topology_names
    from planner.report.topology import preset_rows, preset_table

    rows = preset_rows(topology_names())
    _say(preset_table(rows), [row._asdict() for row in rows], as_json)


@topology.command("show")
@click.argument("name", metavar="NAME[:NODES[xGPUS]]|FILE")
@json_option
def topology_show(name: str, as_json: bool) -> None:
    """Draw a machine; print its tiers, bisection bandwidth and oversubscription.

    Example: moeplan topology show hgx-h100:4
    """
    from planner.report.topology import topology_report, topology_summary
    from planner.topology_yaml import read_topology

    found = read_topology(name)
    _say(topology_report(found), topology_summary(found), as_json)


@main.group()
def model() -> None:
    """Models that moeplan knows, and Hugging Face config.json files."""


@model.command("list")
@json_option
def model_list(as_json: bool) -> None:
    """List the catalogue.

    Example: moeplan model list
    """
    from planner.catalog import find_model, model_names
    from planner.report.model import model_rows, models_table

    models = [find_model(name) for name in model_names()]
    _say(models_table(models), model_rows(models), as_json)


@model.command("show")
@click.argument("name", metavar="NAME|CONFIG.JSON")
@json_option
def model_show(name: str, as_json: bool) -> None:
    """Show what a plan uses of one model.

    Example: moeplan model show mixtral
    """
    from planner.catalog import find_model
    from planner.report.model import model_report, model_rows

    found = find_model(name)
    _say(model_report(found), model_rows([found])[0], as_json)


@main.group()
def load() -> None:
    """Expert-load histograms and routing traces."""


@load.command("show")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=FILE)
@click.option("--model", "model_name", required=True, help="Model the load was recorded on: a catalogue name or a config.json.")
@json_option
def load_show(files: tuple[Path, ...], model_name: str, as_json: bool) -> None:
    """Print how skewed each layer is, and a picture.

    Example: moeplan load show counts.csv --model olmoe
    """
    from planner.catalog import find_model
    from planner.load_files import read_load
    from planner.report.load import load_report, load_summary

    found = read_load(files, find_model(model_name))
    _say(load_report(found, width=_width()), load_summary(found), as_json)


@main.command()
@click.option("--model", "model_name", required=True, help="Catalogue name (moeplan model list) or a Hugging Face config.json.")
@click.option("--topology", "topology_text", metavar="NAME[:NODES[xGPUS]]|FILE", help="Machine; hgx-h100:4x2 is two GPUs of each of four nodes.")
@click.option("--load", "load_files", multiple=True, type=FILE, help="Measured load: CSV, JSON, YAML or npz. Repeatable.")
@click.option("--redundant", metavar="N|auto", default="auto", show_default=True, help="Redundant experts (slots beyond one per expert).")
@click.option("--ep", type=int, help="Expert-parallel size; all GPUs of the topology where it is not given.")
@click.option("--engine", help="Engine that will run the plan: its replica rule, transport and default placement are used.")
@click.option("--method", default="auto", show_default=True, help="linear, greedy, refine, cpsat or auto.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--budget",
    "budget_seconds",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Wall-clock limit; plans may then differ from run to run.",
)
@click.option("--phase", type=click.Choice(["decode", "prefill"]), default="decode", show_default=True)
@click.option("--tokens-per-rank", type=int, help="Tokens each GPU brings to a step. [default: 128 in decode, 4096 in prefill]")
@click.option("--transport", help="slot, rank, node or allgather; the engine's own where it is not given.")
@click.option("--replica-rule", help="even, nearest or nearest-static; the engine's own where it is not given.")
@click.option("--held-out", type=float, default=1 / 3, show_default="1/3", help="Share of the load's windows kept for judging, not for fitting.")
@click.option("--kv-floor", default="0 B", show_default=True, metavar="SIZE", help="Memory of each GPU to keep free, like '20 GB'.")
@click.option("-o", "--output", type=FILE, help="Plan file to write.")
@json_option
def solve(output: Path | None, as_json: bool, redundant: str, kv_floor: str, **flags: Any) -> None:
    """Decide which expert sits in which slot of which GPU.

    Example: moeplan solve --model mixtral --topology hgx-h100:2 --redundant 8 -o plan.json
    """
    from planner.plan_file import plan_to_dict, write_plan
    from planner.question import Question, answer
    from planner.report.plan import plan_report
    from planner.units import parse_bytes

    question = Question(
        model=flags.pop("model_name"),
        topology=flags.pop("topology_text"),
        redundant=_redundant(redundant),
        kv_floor_bytes=parse_bytes(kv_floor),
        **flags,
    )
    with _progress("solve") as progress:
        plan = answer(question, progress)
    if output:
        write_plan(plan, output)
    _say(plan_report(plan), plan_to_dict(plan), as_json)
    if output and not as_json:
        click.echo(f"wrote {output}")


@main.command()
@click.argument("plan_file", metavar="PLAN", type=FILE)
@click.option("--load", "load_files", multiple=True, type=FILE, help="Load to judge the plan on; the plan's own where it is not given.")
@click.option("--topology", "topology_text", metavar="NAME[:NODES[xGPUS]]|FILE", help="Machine to judge it on; the plan's own where it is not given.")
@click.option("--engine", help="Judge under this engine's replica rule and transport.")
@json_option
def evaluate(plan_file: Path, load_files: tuple[Path, ...], topology_text: str | None, engine: str | None, as_json: bool) -> None:
    """Predict what a plan costs on another load, another machine or another engine.

    Example: moeplan evaluate plan.json --load tomorrow.csv --topology hgx-h200:2
    """
    from planner.plan_file import cost_to_dict
    from planner.question import re_evaluate
    from planner.report.plan import cost_report

    problem, found, notes = re_evaluate(plan_file, load_files, topology_text, engine)
    _say(cost_report(problem, found, notes), {**cost_to_dict(found), "replica_rule": problem.replica_rule, "notes": list(notes)}, as_json)


@main.command()
@click.argument("plan_file", metavar="PLAN", type=FILE)
@click.option("--engine", required=True, help="sglang, trtllm or vllm.")
@click.option("-o", "--output", "folder", required=True, type=FILE, help="Folder for the files; made where it is absent.")
@click.option("--model-path", help="What the engine is given as its model. [default: the plan's model name]")
@json_option
def emit(plan_file: Path, engine: str, folder: Path, model_path: str | None, as_json: bool) -> None:
    """Write what an engine loads, and the command that starts it.

    Example: moeplan emit plan.json --engine sglang -o out
    """
    from planner.emission import emit_plan, write_emission

    emission = emit_plan(plan_file, engine, model_path)
    written = write_emission(emission, plan_file, folder)
    lines = [*(note if note.startswith("WARNING") else f"Note: {note}" for note in emission.notes), *(f"wrote {path}" for path in written)]
    _say("\n".join(lines), {"files": [str(path) for path in written], "notes": list(emission.notes), "launch": emission.launch}, as_json)


@main.command()
@click.argument("file", metavar="FILE", type=FILE)
@click.option("--model", "model_name", help="Model the map is for; without it the number of experts is inferred.")
@click.option("--ep", type=int, help="EP size; without it 'no expert twice on a GPU' cannot be judged for a bare map.")
@json_option
def check(file: Path, model_name: str | None, ep: int | None, as_json: bool) -> None:
    """Judge a plan or an engine's map file by every hard rule; exit 0 for a good one, 2 for a bad one.

    Example: moeplan check out/physical_to_logical_map.json --model deepseek-v3 --ep 32
    """
    from planner.check import check_file

    report = check_file(file, model_name, ep)
    _say(report.text(), report.to_dict(), as_json)
    if not report.ok:
        raise _BadInput(f"{file}: {report.problems[0]}")


@main.command("validate")
@click.argument("plan_file", metavar="PLAN", type=FILE)
@click.option("--layers", default="4", show_default=True, metavar="N|all", help="How many layers to run: the busiest ones.")
@click.option("--tokens", type=int, default=64, show_default=True, help="Tokens each rank brings to a step.")
@click.option("--hidden", type=int, help="Elements of a token. [default: 64 on a CPU, the model's own on GPUs]")
@click.option("--repeats", type=int, default=5, show_default=True, help="Timed steps per layer and placement.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", show_default=True, help="auto: GPUs where there is one for every rank.")
@click.option("--timeout", "timeout_seconds", type=float, default=120.0, show_default=True, help="Seconds after which a silent rank ends the run.")
@json_option
def validate_command(plan_file: Path, layers: str, as_json: bool, **flags: Any) -> None:
    """Run the plan's own dispatch, expert compute and combine, one process per rank; exit 0 only if every check holds.

    Example: moeplan validate plan.json
    """
    from planner.engines import default_placement
    from planner.plan_file import read_plan
    from planner.report.validation import validation_report
    from probes.dispatch import RunFailed
    from probes.validation import Settings, validate

    problem, placement, value = read_plan(plan_file)
    baseline = default_placement(value.get("engine"), problem)
    try:
        outcome = validate(problem, placement, baseline, Settings(layers=_count_or_all(layers), **flags))
    except RunFailed as failure:
        raise _No(f"{plan_file}: {failure}") from failure
    if outcome.report.rank == 0:  # the other ranks of a launched group leave the word to it
        _say(validation_report(outcome), outcome.to_dict(), as_json)
    if not outcome.ok:
        raise _No(f"{plan_file}: {outcome.failed[0]}")


@main.command()
@click.option("--method", "methods", multiple=True, default=("greedy", "refine"), show_default=True, help="Methods to time. Repeatable.")
@click.option("--peer", "peer_wheel", type=FILE, help="A vLLM wheel; its own policy is run beside ours.")
@click.option("--repeats", type=int, default=5, show_default=True)
@json_option
def bench(methods: tuple[str, ...], peer_wheel: Path | None, repeats: int, as_json: bool) -> None:
    """Time the methods on fixed instances, beside a peer: seconds, gap to the bound, ratios.

    Example: moeplan bench --method refine
    """
    from planner.bench import run_bench
    from planner.report.bench import bench_table

    with _progress("bench") as progress:
        rows = run_bench(methods, peer_wheel, repeats, progress)
    _say(bench_table(rows), [row._asdict() for row in rows], as_json)


def _say(text: Any, value: Any, as_json: bool) -> None:
    """Text or a rich renderable for people, or JSON."""
    if as_json:
        from planner.files import dump_json

        click.echo(dump_json(value), nl=False)
        return
    from rich.console import Console

    Console(width=_width(), highlight=False, markup=False, soft_wrap=isinstance(text, str)).print(text)


def _width() -> int:
    import shutil
    import sys

    return shutil.get_terminal_size((120, 40)).columns if sys.stdout.isatty() else 140


@contextmanager
def _progress(title: str) -> "Iterator[Progress | None]":
    """A progress bar on stderr where a person watches, nothing where a file or pipe does."""
    import sys

    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=1.0)
        yield lambda share, text: bar.update(task, completed=share, description=f"{title}: {text}")


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
