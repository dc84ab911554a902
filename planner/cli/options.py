"""Options that several commands have, and how options are put on a command."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from planner.base import BadInput, is_whole
from planner.cli.completion import COMPLETED

Decorator = Callable[[Any], Any]

FILE = click.Path(path_type=Path)


def option(*names: str, **settings: Any) -> Decorator:
    """As click's; `--help` shows the default where there is one, and a shell completes what has names."""
    if "default" in settings:
        settings.setdefault("show_default", True)
    if names[0] in COMPLETED:
        settings.setdefault("shell_complete", COMPLETED[names[0]])
    return click.option(*names, **settings)


def options(*given: Decorator) -> Decorator:
    """Several options as one decorator, shown in the order given."""

    def put_on(command: Any) -> Any:
        for each in reversed(given):  # the last one applied is the first one shown
            command = each(command)
        return command

    return put_on


def count_or(word: str, text: str, flag: str) -> int | None:
    """The whole number that a flag was given, or None for `word`."""
    if text == word:
        return None
    if not is_whole(text):
        raise BadInput(f"{flag} {text!r}: give a whole number, or {word}")
    return int(text)


def machine_option(help_text: str) -> Decorator:
    return option("--topology", "topology_text", metavar="NAME[:NODES[xGPUS]]|FILE", help=help_text)


def load_option(help_text: str) -> Decorator:
    return option("--load", "load_files", multiple=True, type=FILE, help=help_text)


def hosts_option(help_text: str) -> Decorator:
    """A tuple of host names, empty where none are given."""
    return option("--hosts", metavar="HOST,...", callback=_split, help=help_text)


def _split(_context: click.Context, _parameter: click.Parameter, text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",")) if text else ()


calibration_option = option(
    "--calibration",
    "calibrations",
    multiple=True,
    type=FILE,
    help="What `validate --calibrate` wrote: its start-up and efficiency take the place of the GPU's. "
    "Repeatable, one for each transport.",
)


def kv_floor_option(help_text: str) -> Decorator:
    return option("--kv-floor", default="0 B", metavar="SIZE", help=help_text)


def device_option(help_text: str) -> Decorator:
    return option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", help=help_text)


json_option = option("--json", "as_json", is_flag=True, help="Print JSON for machines instead of tables.")
details_option = option(
    "--details", is_flag=True, help="Also print the tables and notes that the answer rests on."
)
map_option = option(
    "--map",
    "map_file",
    type=FILE,
    help="Plan or engine map the load was recorded under, where it counts slots and not experts.",
)
ranks_option = option(
    "--ranks",
    type=click.Choice(["same", "sum"]),
    help="Load files with identical counts: "
    "same, one counter that several ranks wrote; sum, several that agree.",
)
model_option = option(
    "--model", "model_name", required=True, help="Catalogue name or a Hugging Face config.json."
)
measured_load_option = load_option(
    "Measured load; the one shipped for the model, or an even one, where it is not given."
)
asked_machine_option = machine_option("Machine; hgx-h100:4x2 is two GPUs of each of four nodes.")
ep_option = option(
    "--ep", type=int, help="Expert-parallel size; all GPUs of the topology where it is not given."
)
step_options = options(
    option("--phase", type=click.Choice(["decode", "prefill"]), default="decode"),
    option(
        "--tokens-per-rank",
        type=int,
        help="Tokens each GPU brings to a step. [default: 128 in decode, 4096 in prefill]",
    ),
)
length_options = options(
    option(
        "--context",
        type=int,
        help="Tokens of a request, prompt and output together: its KV cache has to fit. "
        "[default: 2048, assumed]",
    ),
    option("--isl", type=int, help="Tokens of a request's prompt, in place of --context. [default: 1024]"),
    option("--osl", type=int, help="Tokens of a request's output. [default: 1024]"),
)
request_options = options(
    length_options,
    option("--attention-tp", type=int, default=1, help="GPUs that share the attention of one request."),
)
transport_option = option(
    "--transport", help="slot, rank, node or allgather; the engine's own where it is not given."
)
held_out_option = option(
    "--held-out",
    type=float,
    default=1 / 3,
    show_default="1/3",
    help="Share of the load's windows kept for judging, not for fitting.",
)
