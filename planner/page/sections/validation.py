"""Prediction beside validation: what a run of the plan measured. Nothing where no run is given."""

from collections.abc import Mapping
from typing import Any

from planner.base import human_seconds
from planner.page.charts import Bar, bars, key
from planner.page.document import paragraphs
from planner.page.html import Content, figure, tag
from planner.page.tables import table_of
from planner.page.told import Told
from planner.page.validation import check_of_plan

TITLE = "Prediction and validation"
STATES = {"none": "none promised", "untold": "too small to tell", "kept": "kept", "missed": "missed"}


def section(told: Told) -> Content:
    run = told.validation
    if run is None:
        return paragraphs(
            f"Not run, or not given here: `moeplan validate {told.file} --json > run.json`, then "
            f"`moeplan report {told.file} --validation run.json -o report.html`."
        )
    check_of_plan(run, told.problem, told.layer_ids, "--validation")
    where = "GPUs" if run["device"] == "cuda" else "the CPU"
    scale = run.get("emulated_scale")
    emulated = f"; links emulated, rates divided by {scale:.4g}" if isinstance(scale, (int, float)) else ""
    hosts = len(set(run["hosts"]))
    layers = ", ".join(map(str, run["layers"]))
    about = (
        f"Layers {layers}; {len(run['hosts'])} ranks on {where} of {hosts} host(s){emulated}; "
        f"{run['tokens']} tokens a rank, {run['width']} wide, {run['repeats']} repeats."
    )
    return [
        tag("p", tag("b", run["answer"]), class_="ok" if run["ok"] else "bad"),
        paragraphs(about),
        _seconds(run) if run["verdict"] is None else _verdict(run["verdict"]),
        _checks(run),
        tag("ul", [tag("li", note) for note in run["notes"]]),
    ]


def _seconds(run: Mapping[str, Any]) -> Content:
    """Speed was not judged: what was measured is of another machine, and no picture sets it beside."""
    rows = [
        [
            side,
            phase,
            figure(human_seconds(measured), measured, f"measured_seconds.{side}.{phase}"),
            human_seconds(run["predicted_seconds"].get(side, {}).get(phase, 0.0)),
        ]
        for side, phases in run["measured_seconds"].items()
        for phase, measured in phases.items()
    ]
    why = f"Speed is not judged: {run.get('unjudged') or 'no reason given'}."
    names = ("side", "phase", "measured in this run", "predicted for the plan's GPUs")
    return [
        paragraphs(why, "The two columns are of different machines."),
        table_of(names, rows, "Seconds, slowest rank", words=(0, 1)),
    ]


def _verdict(verdict: Mapping[str, Any]) -> Content:
    drawn, rows = [], []
    for at, one in enumerate(verdict["phases"]):
        name, of = f"{one['phase']}, {one['side']}", f"verdict.phases.{at}"
        drawn.append(Bar(f"{name}: predicted", one["drawn"], human_seconds(one["drawn"]), "other"))
        drawn.append(Bar(f"{name}: measured", one["median"], human_seconds(one["median"]), "plan"))
        rows.append(
            [
                one["phase"],
                one["side"],
                figure(human_seconds(one["modelled"]), one["modelled"], f"{of}.modelled"),
                figure(human_seconds(one["drawn"]), one["drawn"], f"{of}.drawn"),
                figure(human_seconds(one["median"]), one["median"], f"{of}.median"),
                figure(human_seconds(one["p95"]), one["p95"], f"{of}.p95"),
                figure(f"{one['error']:+.1%}", one["error"], f"{of}.error")
                if one["phase"] in verdict["judged"]
                else "-",
                _word("yes", "ok") if one["holds"] else _word("no", "bad"),
            ]
        )
    names = ("phase", "side", "predicted", "by bytes sent", "measured median", "p95", "error", "holds")
    waited = f"Slowest: rank {verdict['slowest_rank']}" + (
        f"; it waited for {verdict['waited_for']}." if verdict["waited_for"] else "."
    )
    return [
        tag(
            "figure",
            tag("div", bars("Predicted and measured seconds", drawn), class_="scroll"),
            tag(
                "figcaption",
                key("other", "predicted for the bytes that were sent"),
                key("plan", "measured, median of repeats"),
            ),
        ),
        table_of(names, rows, "Slowest rank over the repeats, layers added up", words=(0, 1, 7)),
        _gains(verdict["gains"]),
        paragraphs(waited),
    ]


def _gains(gains: list[dict[str, Any]]) -> Content:
    rows = [
        [
            " + ".join(one["phases"]),
            one["against"],
            figure(f"{one['measured']:.3f}", one["measured"]),
            " to ".join(_known(one[end]) for end in ("low", "high")),
            figure(f"{one['promised']:.3f}", one["promised"]),
            _known(one["tolerance"]),
            STATES.get(one["state"], one["state"]),
        ]
        for one in gains
    ]
    names = ("phase", "against", "measured", "95 %", "promised", "tolerance", "promise")
    return table_of(names, rows, "Plan / other side, repeat by repeat", words=(0, 1, 6)) if rows else None


def _known(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _checks(run: Mapping[str, Any]) -> Content:
    rows = [
        [one["name"], _word("ok", "ok") if one["ok"] else _word("FAILED", "bad"), one["detail"]]
        for one in run["checks"]
    ]
    return table_of(("check", "", "what was found"), rows, "Checks of the traffic", words=(0, 1, 2))


def _word(text: str, look: str) -> Content:
    return tag("span", text, class_=look)
