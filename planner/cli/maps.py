"""Commands about the map files of engines."""

from pathlib import Path

import click

from planner.cli.console import FILE, json_option, say


@click.command()
@click.argument("file", metavar="MAP", type=FILE)
@click.option("--to", "target", required=True, metavar="FORMAT", help="eplb, sglang, trtllm or vllm_ascend.")
@click.option(
    "--from",
    "source",
    metavar="FORMAT",
    help="What MAP is; found by its content where it is not given. EPLB's own JSON needs it.",
)
@click.option("--model", "model_name", help="Model the map is for. [default: that of the plan beside MAP]")
@click.option(
    "--ep",
    type=int,
    help="EP size; vllm_ascend needs it. [default: that of the map, or of the plan beside it]",
)
@click.option("-o", "--output", type=FILE, required=True, help="Map file to write; --to eplb also as .npz.")
@json_option
def convert(
    file: Path,
    target: str,
    source: str | None,
    model_name: str | None,
    ep: int | None,
    output: Path,
    as_json: bool,
) -> None:
    """Write an engine's map, or a plan, as the map of another engine.

    Example: moeplan convert expert_location.json --from sglang --to trtllm --model deepseek-v3 --ep 32 -o map.yaml
    """
    from planner.maps import convert_file, write_map

    converted = convert_file(file, target, source, model_name, ep)
    write_map(converted, target, output)
    lines = [
        *(note if note.startswith("WARNING") else f"Note: {note}" for note in converted.notes),
        f"wrote {output}",
    ]
    say("\n".join(lines), {"file": str(output), "notes": list(converted.notes)}, as_json)
