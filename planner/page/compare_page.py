"""The page of a comparison: what `moeplan compare --json` printed, sides next to each other."""

from string import ascii_uppercase
from typing import Any

from planner.base import human_bytes, human_seconds
from planner.bounds import PARTS
from planner.page.charts import Bar, bars, stacked
from planner.page.document import Section, document, paragraphs
from planner.page.html import Content, figure, markup, tag
from planner.page.named import check_named
from planner.page.tables import table_of
from planner.schema import Flag, Listing, Maybe, Number, Plain, Shape, Table, Text, Whole

SCHEMA = "moeplan/compare/1"
_FOUND: dict[str, Shape] = {
    "answer": Text(),
    "best": Text(),
    "load": Text(),
    "unseen": Flag(),
    "sides": Listing(Table(Plain()), 1, 1000),
    "notes": Listing(Text()),
}
_SIDE: dict[str, Shape] = {
    **dict.fromkeys(("name", "topology", "replica_rule", "transport", "error"), Text()),
    **dict.fromkeys(("tokens_per_s_per_gpu", "gain", "step_seconds", "ttft_seconds"), Number()),
    **dict.fromkeys(("gpus", "redundant"), Whole(0)),
    "engine": Maybe(Text()),
    "error_share": Maybe(Number()),
    "tie": Flag(),
    "seconds": Table(Number()),
}
_MOE: dict[str, Shape] = {
    **{f"{part}_seconds": Number() for part in PARTS},
    **dict.fromkeys(("max_over_mean", "cross_node_share"), Number()),
    "bottleneck": Text(),
}


def compare_page(value: Any, where: str) -> str:
    """BadInput where the value is not what `compare --json` prints."""
    found = check_named(value, where, _FOUND)
    for at, side in enumerate(found["sides"]):
        check_named(side, f"{where}: sides[{at}]", _SIDE)
        check_named(side.get("moe"), f"{where}: sides[{at}]: moe", _MOE)
        check_named(side.get("memory"), f"{where}: sides[{at}]: memory", {"kv_left_bytes": Number()})
    sides = found["sides"]
    sections = [
        Section("answer", "Answer", _answer(found)),
        Section("side-by-side", "Side by side", _table(sides)),
        Section("where-time-goes", "Where the time goes", _steps(sides)),
        Section("rests-on", "What it rests on", _basis(found)),
    ]
    lead = tag("p", "A comparison by moeplan: sides on the same load.", class_="dim")
    return document(f"Compared: {', '.join(side['name'] for side in sides)}", lead, sections, None)


def _letter(at: int) -> str:
    return ascii_uppercase[at] if at < len(ascii_uppercase) else f"#{at + 1}"


def _answer(found: dict[str, Any]) -> Content:
    sides = [
        [tag("dt", _letter(at)), tag("dd", f"{side['name']}: {_setting(side)}")]
        for at, side in enumerate(found["sides"])
    ]
    drawn = [
        Bar(
            f"{_letter(at)}: {side['name']}",
            side["tokens_per_s_per_gpu"],
            f"{side['tokens_per_s_per_gpu']:,.0f}",
            "plan" if side["name"] == found["best"] else "other",
        )
        for at, side in enumerate(found["sides"])
    ]
    which = "held-out load" if found["unseen"] else "load that a plan was fitted to"
    return [
        tag("p", tag("b", found["answer"])),
        tag("dl", sides, class_="answer"),
        paragraphs(f"Judged on {which}: {found['load']}."),
        tag("h3", "tokens/s a GPU"),
        tag("div", bars("tokens/s a GPU", drawn), class_="scroll"),
    ]


def _setting(side: dict[str, Any]) -> str:
    return f"{side['topology']}, {side['engine'] or 'no engine'}, {side['replica_rule']}, {side['transport']}"


def _table(sides: list[dict[str, Any]]) -> Content:
    """Figures down, sides across."""
    columns = [_figures(side, f"sides.{at}") for at, side in enumerate(sides)]
    rows = [[name, *(column[name] for column in columns)] for name in columns[0]]
    names = ["", *(_letter(at) for at in range(len(sides)))]
    return table_of(names, rows, "Figures of each side; seconds of a step")


def _figures(side: dict[str, Any], of: str) -> dict[str, Content]:
    moe, seconds = side["moe"], side["step_seconds"]
    tie = " (tie)" if side["tie"] and side["gain"] else ""
    kept = side["memory"]["kv_left_bytes"]
    parts = {
        f"MoE {part}": figure(
            human_seconds(moe[f"{part}_seconds"]), moe[f"{part}_seconds"], f"{of}.moe.{part}_seconds"
        )
        for part in PARTS
    }
    tokens, first = side["tokens_per_s_per_gpu"], side["ttft_seconds"]
    return {
        "tokens/s a GPU": figure(f"{tokens:,.0f}", tokens, f"{of}.tokens_per_s_per_gpu"),
        "against A": [figure(f"{side['gain']:+.1%}", side["gain"], f"{of}.gain"), tie],
        "whole step": figure(human_seconds(seconds), seconds, f"{of}.step_seconds"),
        "first token": figure(human_seconds(first), first, f"{of}.ttft_seconds"),
        **parts,
        "max/mean": figure(f"{moe['max_over_mean']:.4f}", moe["max_over_mean"], f"{of}.moe.max_over_mean"),
        "cross-node": f"{moe['cross_node_share']:.1%}",
        "bottleneck": moe["bottleneck"],
        "GPUs": side["gpus"],
        "R": side["redundant"],
        "left for the KV cache": figure(human_bytes(kept), kept, f"{of}.memory.kv_left_bytes"),
    }


def _steps(sides: list[dict[str, Any]]) -> Content:
    found: list[Content] = []
    longest = max(side["step_seconds"] for side in sides)
    for at, side in enumerate(sides):
        parts = [(name, value, human_seconds(value)) for name, value in side["seconds"].items() if value > 0]
        title = f"{_letter(at)}: {human_seconds(side['step_seconds'])}"
        found += [tag("h3", title), stacked(f"Whole step of {title}", parts, longest)]
    return markup(found)


def _basis(found: dict[str, Any]) -> Content:
    errors = dict.fromkeys(f"whole step: {side['error']}" for side in found["sides"])
    rule = "A tie is within the model's error of the whole step; below 1 % where only placements differ."
    return [paragraphs(rule), tag("ul", [tag("li", text) for text in (*errors, *found["notes"])])]
