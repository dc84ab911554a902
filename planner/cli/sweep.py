"""The command that compares layouts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from planner.base import BadInput, is_whole
from planner.cli.console import No, Refused, progress_bar, say, tell
from planner.cli.options import (
    FILE,
    calibration_option,
    held_out_option,
    json_option,
    kv_floor_option,
    length_options,
    map_option,
    measured_load_option,
    model_option,
    option,
    options,
    ranks_option,
)

Choice = TypeVar("Choice")

layout_options = options(
    option(
        "--topology",
        "topologies",
        multiple=True,
        metavar="NAME[:NODES]|FILE",
        help="Machine whose GPUs are divided into groups; several are compared.",
    ),
    option("--ep", default="auto", metavar="N,...|auto", help="EP sizes; auto: all that divide the machine."),
    option(
        "--attention-tp",
        default="1",
        metavar="N,...",
        help="GPUs that share the attention of one request; what does not divide an EP size is left out.",
    ),
    option(
        "--experts",
        default="ep,tp",
        metavar="ep,tp",
        help="ep: whole experts, placed; tp: a slice of each on every GPU, no expert parallelism.",
    ),
    option("--redundant", default="fewest,auto", metavar="N,...|fewest|auto", help="Redundant experts."),
    option("--engine", "engines", metavar="NAME,...|all", help="Engines whose rule and transport are used."),
)
step_options = options(
    option("--phase", type=click.Choice(["decode", "prefill", "both"]), default="decode"),
    option("--tokens-per-rank", "tokens", metavar="N,...", help="Tokens each GPU brings to a step."),
    option("--transport", "transports", metavar="NAME,...", help="slot, rank, node, allgather."),
    option("--tpot", metavar="TIME", help="Longest decode step, like '50 ms': slower rows rank below."),
)
worker_options = options(
    option(
        "--budget",
        "budget_seconds",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="Wall-clock limit for placing the best three rows anew by method auto. [default: they are not]",
    ),
    option("--workers", type=click.IntRange(min=1), metavar="N", help="Processes. [default: by size]"),
    option("--ray", metavar="ADDRESS", help="Work on this Ray cluster: HOST:PORT, ray://HOST:PORT or auto."),
)


@click.command()
@model_option
@layout_options
@calibration_option
@measured_load_option
@map_option
@ranks_option
@step_options
@length_options
@held_out_option
@kv_floor_option("Memory of each GPU to keep for the KV cache, like '20 GB'.")
@worker_options
@option("-o", "--output", type=FILE, help="Plan file of the best row to write, made as `solve` makes it.")
@json_option
def sweep(output: Path | None, as_json: bool, tpot: str | None, **flags: Any) -> None:
    """Which layout of the same GPUs serves most? EP size and groups, replicas, machines, phases, transports.

    Example: moeplan sweep --model olmoe --topology hgx-h100:2
    """
    from planner.plan import plan_files, write_plan
    from planner.planning import best_plan, sweep
    from planner.report.sweep import sweep_report, sweep_value

    asked = _request(tpot=tpot, **flags)
    with progress_bar("sweep") as progress:
        found = sweep(asked, progress)
        plan = best_plan(asked, found, progress) if output else None
    if output and plan:
        write_plan(plan, output)
    say(sweep_report(found), sweep_value(found), as_json)
    if output and plan and not as_json:
        tell("\n".join(f"wrote {path}" for path in plan_files(plan, output)))
    if output and not plan and found.answers and not as_json:
        tell("wrote no plan: no row that can be run has experts to place")
    for phase in found.phases:
        if not found.fits(phase):
            raise Refused(f"no layout fits in {phase}")
        if phase not in found.answers:
            raise No(
                f"no layout is within --tpot {tpot} and served" if tpot else "no engine serves what fits"
            )


def _request(
    *,
    tpot: str | None,
    model_name: str,
    topologies: tuple[str, ...],
    ep: str,
    attention_tp: str,
    experts: str,
    redundant: str,
    engines: str | None,
    phase: str,
    tokens: str | None,
    transports: str | None,
    kv_floor: str,
    **flags: Any,
) -> Any:
    from planner.base import parse_bytes, parse_seconds
    from planner.planning import PlanRequest, SweepRequest

    base = PlanRequest(model=model_name, kv_floor_bytes=parse_bytes(kv_floor), **flags)
    return SweepRequest(
        base,
        topologies or (None,),
        ep=None if ep == "auto" else _several(ep, "--ep", _whole(1)),
        attention_tp=_several(attention_tp, "--attention-tp", _whole(1)),
        experts=_several(experts, "--experts", _kind),
        redundant=_several(redundant, "--redundant", _redundant),
        engines=_engines(engines),
        phases=("decode", "prefill") if phase == "both" else (phase,),
        transports=_several(transports, "--transport", lambda text, _: text) if transports else (None,),
        tokens_per_rank=_several(tokens, "--tokens-per-rank", _whole(1)) if tokens else (None,),
        tpot_seconds=parse_seconds(tpot) if tpot else None,
    )


def _several(text: str, flag: str, read: Callable[[str, str], Choice]) -> tuple[Choice, ...]:
    """The choices of a list with commas, each once."""
    return tuple(dict.fromkeys(read(word.strip(), flag) for word in text.split(",")))


def _whole(least: int) -> Callable[[str, str], int]:
    def read(text: str, flag: str) -> int:
        if not is_whole(text) or int(text) < least:
            raise BadInput(
                f"{flag} {text!r}: give whole numbers of at least {least}, with commas between them"
            )
        return int(text)

    return read


def _kind(text: str, flag: str) -> str:
    if text not in ("ep", "tp"):
        raise BadInput(f"{flag} {text!r}: give ep, tp, or both with a comma between them")
    return text


def _redundant(text: str, flag: str) -> int | str:
    if text in ("fewest", "auto"):
        return text
    if not is_whole(text):
        raise BadInput(f"{flag} {text!r}: give whole numbers, fewest or auto, with commas between them")
    return int(text)


def _engines(text: str | None) -> tuple[str | None, ...]:
    from planner.engines import engine_names, find_engine

    if text is None:
        return (None,)
    if text == "all":
        return tuple(name for name in engine_names() if find_engine(name).ACCELERATOR == "nvidia")
    return _several(text, "--engine", lambda name, _: find_engine(name).NAME)
