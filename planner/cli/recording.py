"""The command that records routing: from a Hugging Face model at hand, or from a running server."""

from pathlib import Path
from typing import Any

import click

from planner.base import BadInput
from planner.cli.console import progress_bar, say
from planner.cli.options import FILE, device_option, json_option, option


@click.command()
@option(
    "--text",
    "text_file",
    required=True,
    type=FILE,
    help="Text to route: a text file, or .jsonl with a prompt a line.",
)
@option(
    "-o",
    "--output",
    type=FILE,
    metavar="TRACE.NPZ",
    help="Trace to write; `moeplan load show` and `solve --load` read it.",
)
@option("--model-path", metavar="DIR|HF_ID", help="Hugging Face model to run here, through transformers.")
@device_option("Where --model-path runs.")
@option(
    "--bytes",
    "as_bytes",
    is_flag=True,
    help="With --model-path: feed the text's bytes as tokens, for a folder without a tokenizer.",
)
@option("--server", "url", metavar="URL", help="Running server to ask instead: http://127.0.0.1:30000.")
@option("--engine", help="What the server is: sglang or vllm.")
@option("--model", "model_name", help="Model that the server serves: a catalogue name or a config.json.")
@option("--new-tokens", type=int, default=1, help="Tokens that the server generates for each sequence.")
@option(
    "--dump-on-server",
    is_flag=True,
    help="SGLang: run its own recorder over the text; the server writes counts to its own disk.",
)
@option("--timeout", type=float, default=120.0, help="Seconds that the server may take for one answer.")
@option(
    "--api-key",
    envvar="MOEPLAN_API_KEY",
    default="",
    show_default=False,
    help="Key of the server; better given in MOEPLAN_API_KEY.",
)
@option(
    "--sequence-characters", type=int, default=2000, help="Longest sequence that a text file is cut into."
)
@option("--sequences", type=int, help="Record the first N sequences only.")
@json_option
def record(
    text_file: Path,
    output: Path | None,
    sequence_characters: int,
    sequences: int | None,
    as_json: bool,
    **flags: Any,
) -> None:
    """Record which experts a model chooses over a text, token by token.

    Example: moeplan record --model-path ./OLMoE-1B-7B --text requests.jsonl -o trace.npz

    Example: moeplan record --server http://127.0.0.1:30000 --engine sglang --model deepseek-v3
    --text requests.jsonl -o trace.npz
    """
    from probes.routing.prompts import read_prompts

    _check(output, flags)
    prompts = read_prompts(text_file, sequence_characters, sequences)
    if flags["dump_on_server"]:
        _dump(prompts, as_json, flags)
        return
    from probes.routing.trace import write_trace

    assert output is not None
    trace = _from_model(prompts, flags) if flags["model_path"] else _from_server(prompts, flags)
    write_trace(trace, output)
    _show(trace, output, as_json)


def _show(trace: Any, output: Path, as_json: bool) -> None:
    told, layers = trace.to_dict(), len(trace.model.moe_layer_ids)
    sizes = f"{told['sequences']} sequences, {told['tokens']:,} tokens, {layers} MoE layers"
    lines = [
        f"{told['model']}: {sizes}, {told['top_k']} of {told['experts']} experts",
        *(f"Note: {note}" for note in trace.notes),
        f"wrote {output}",
    ]
    say("\n".join(lines), {**told, "file": str(output)}, as_json)


def _check(output: Path | None, flags: dict[str, Any]) -> None:
    """Which of the command's three forms is meant, before anything is read or loaded."""
    _check_source(flags)
    if flags["dump_on_server"]:
        if flags["engine"] != "sglang" or output is not None:
            where = "the server writes the files to its own disk"
            raise BadInput(f"--dump-on-server is for --engine sglang, without -o: {where}")
        return
    _check_output(output)
    if flags["url"] is not None and flags["model_name"] is None:
        raise BadInput(
            "--server needs --model, the model that it serves: "
            "a catalogue name (moeplan model list) or its config.json"
        )


def _check_source(flags: dict[str, Any]) -> None:
    """A model here or a server, and no flag of the other."""
    here, of_server = flags["url"] is None, ("engine", "model_name", "dump_on_server")
    if here == (flags["model_path"] is None):
        raise BadInput("give --model-path to run a model here, or --server to ask a running one; one of them")
    if here and (any(flags[name] for name in of_server) or flags["new_tokens"] != 1):
        raise BadInput("--engine, --model, --new-tokens and --dump-on-server belong to --server")
    if not here and flags["as_bytes"]:
        raise BadInput("--bytes belongs to --model-path; a server has its own tokenizer")
    if not here and flags["engine"] is None:
        raise BadInput("--server needs --engine sglang or vllm")


def _check_output(output: Path | None) -> None:
    if output is None or output.suffix.lower() != ".npz":
        raise BadInput(f"-o {output or ''}: name the trace to write, ending in .npz")
    if not output.parent.is_dir():  # told now, not after hours of recording
        raise BadInput(f"{output}: the folder {output.parent} is not there; make it first")


def _from_model(prompts: tuple[str, ...], flags: dict[str, Any]) -> Any:
    from probes.routing.hf_model import encode_all, load_model
    from probes.routing.hooks import record_routing

    loaded = load_model(flags["model_path"], flags["device"], as_bytes=flags["as_bytes"])
    with progress_bar("record") as progress:
        ids, path = encode_all(loaded, prompts), flags["model_path"]
        return record_routing(loaded.module, loaded.spec, ids, path, loaded.notes, progress)


def _from_server(prompts: tuple[str, ...], flags: dict[str, Any]) -> Any:
    from planner.model import find_model
    from probes.routing.server import record_server
    from probes.routing.web import Server

    server, model = Server(flags["url"], flags["timeout"], flags["api_key"]), find_model(flags["model_name"])
    with progress_bar("record") as progress:
        return record_server(server, flags["engine"], model, prompts, flags["new_tokens"], progress)


def _dump(prompts: tuple[str, ...], as_json: bool, flags: dict[str, Any]) -> None:
    from probes.routing.server import dump_on_sglang
    from probes.routing.web import Server

    with progress_bar("record") as progress:
        server = Server(flags["url"], flags["timeout"], flags["api_key"])
        mode = dump_on_sglang(server, prompts, flags["new_tokens"], progress)
    text = (
        f"the server's recorder (mode {mode}) saw {len(prompts)} sequences and was dumped: "
        "look on the server's machine for expert_distribution_recorder_*.pt "
        "in SGLANG_EXPERT_DISTRIBUTION_RECORDER_DIR (default /tmp)"
    )
    say(text, {"mode": mode, "sequences": len(prompts)}, as_json)
