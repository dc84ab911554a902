"""Commands about what a plan is made from: models and loads."""

from pathlib import Path

import click

from planner.cli.completion import complete_model
from planner.cli.console import say, width
from planner.cli.options import FILE, json_option, map_option, option, ranks_option

WIDEST_PICTURE = 120  # columns; wider says nothing more


@click.group()
def model() -> None:
    """Models that moeplan knows, and Hugging Face config.json files."""


@model.command("list")
@json_option
def model_list(as_json: bool) -> None:
    """List the catalogue.

    Example: moeplan model list
    """
    from planner.model import find_model, model_names
    from planner.report.model import model_rows, models_table

    models = [find_model(name) for name in model_names()]
    say(models_table(models), model_rows(models), as_json)


@model.command("show")
@click.argument("name", metavar="NAME|CONFIG.JSON", shell_complete=complete_model)
@json_option
def model_show(name: str, as_json: bool) -> None:
    """Show what a plan uses of one model.

    Example: moeplan model show mixtral
    """
    from planner.model import find_model
    from planner.report.model import model_report, model_rows

    found = find_model(name)
    say(model_report(found), model_rows([found])[0], as_json)


@click.group()
def load() -> None:
    """Expert-load histograms and routing traces."""


@load.command("show")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=FILE)
@option(
    "--model",
    "model_name",
    required=True,
    help="Model the load was recorded on: a catalogue name or a config.json.",
)
@map_option
@ranks_option
@json_option
def load_show(
    files: tuple[Path, ...], model_name: str, map_file: Path | None, ranks: str | None, as_json: bool
) -> None:
    """Print how skewed each layer is, and a picture. FILE is a load file, or what an engine dumped.

    Example: moeplan load show counts.csv --model olmoe
    """
    from planner.model import find_model
    from planner.planning import find_load
    from planner.report.load import load_report, load_summary

    spec = find_model(model_name)
    found = find_load(files, spec, map_file, ranks)
    say(load_report(found, width=min(width(), WIDEST_PICTURE)), load_summary(found, spec.top_k), as_json)
