"""Commands about the map files of engines."""

from pathlib import Path
from typing import Any

import click

from planner.cli.console import noted, say
from planner.cli.options import FILE, json_option, option


@click.command()
@click.argument("file", metavar="MAP", type=FILE)
@option(
    "--to",
    "target",
    required=True,
    metavar="FORMAT",
    help="eplb, or an engine that reads a map; 'moeplan engine list' shows all.",
)
@option(
    "--from",
    "source",
    metavar="FORMAT",
    help="What MAP is; found by its content where it is not given. EPLB's own JSON needs it.",
)
@option("--model", "model_name", help="Model the map is for. [default: that of the plan beside MAP]")
@option(
    "--ep",
    type=int,
    help="EP size, for formats with a list a device. [default: that of the map, or of the plan beside it]",
)
@option("-o", "--output", type=FILE, required=True, help="Map file to write; --to eplb also as .npz.")
@json_option
def convert(file: Path, target: str, source: str | None, output: Path, as_json: bool, **known: Any) -> None:
    """Write an engine's map, or a plan, as the map of another engine.

    Example: moeplan convert expert_location.json --from sglang --to trtllm --model deepseek-v3 --ep 32
    -o map.yaml
    """
    from planner.maps import convert_file, write_map

    converted = convert_file(file, target, source, known["model_name"], known["ep"])
    write_map(converted, target, output)
    value = {"file": str(output), "notes": list(converted.notes)}
    say(noted(converted.notes, str(output)), value, as_json)
