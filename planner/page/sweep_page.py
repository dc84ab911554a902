"""The page of a sweep: what `moeplan sweep --json` printed, layouts by what they serve."""

from typing import Any

from planner.base import human_bytes, human_seconds
from planner.page.charts import Bar, bars
from planner.page.document import Section, document, paragraphs
from planner.page.html import Content, figure, tag
from planner.page.named import check_named
from planner.page.tables import folded_table
from planner.schema import Flag, Listing, Maybe, Number, Plain, Shape, Table, Text, Whole

SCHEMA = "moeplan/sweep/1"
DRAWN = 10
STANDINGS = {"meets": "", "slow": "slower than --tpot", "unserved": "no engine serves it"}
_FOUND: dict[str, Shape] = {
    **dict.fromkeys(("model", "load", "judged_on"), Text()),
    "tpot_seconds": Maybe(Number()),
    "answers": Table(Text()),
    "phases": Table(Listing(Table(Plain()))),
    "notes": Listing(Text()),
}
_ROW: dict[str, Shape] = {
    **dict.fromkeys(("standing", "machine", "experts", "why_not"), Text()),
    **dict.fromkeys(("ep", "groups", "attention_tp"), Whole(1)),
    "tie": Flag(),
    "engine": Maybe(Text()),
}
_FIGURES: dict[str, Shape] = {
    **dict.fromkeys(("tokens_per_s_per_gpu", "step_seconds", "max_over_mean", "memory_left_bytes"), Number()),
    **dict.fromkeys(("redundant", "tokens_per_rank", "requests", "survives"), Whole(0)),
    **dict.fromkeys(("transport", "bottleneck", "error"), Text()),
    "error_share": Maybe(Number()),
    "nics_halved": Maybe(Number()),
    "services": Listing(Table(Plain())),
}
Cells = dict[str, Content]
WORDS = ("layout", "machine", "engine", "transport", "limited by", "")
CHOICES = ("machine", "engine", "tokens a GPU", "transport", "max/mean")  # shown where they differ


def sweep_page(value: Any, where: str) -> str:
    """BadInput where the value is not what `sweep --json` prints."""
    found = check_named(value, where, _FOUND)
    for phase, rows in found["phases"].items():
        for at, row in enumerate(rows):
            place = f"{where}: phases: {phase}[{at}]"
            check_named(row, place, _ROW)
            if not row["why_not"]:
                check_named(row, place, _FIGURES)
    sections = [Section("answer", "Answer", [tag("p", tag("b", text)) for text in found["answers"].values()])]
    sections += [
        Section(f"phase-{at}", f"Layouts in {phase}", _phase(found, phase))
        for at, phase in enumerate(found["phases"])
    ]
    sections.append(Section("rests-on", "What it rests on", _basis(found)))
    lead = tag("p", "A sweep by moeplan: layouts of the same GPUs, by what they serve.", class_="dim")
    return document(f"Layouts for {found['model']}", lead, sections, None)


def _phase(found: dict[str, Any], phase: str) -> Content:
    rows = found["phases"][phase]
    fitting = [(at, row) for at, row in enumerate(rows) if not row["why_not"]]
    refused = dict.fromkeys((_layout(row), row["machine"], row["why_not"]) for row in rows if row["why_not"])
    drawn = [
        Bar(
            f"{_layout(row)} on {row['machine']}{_r(row)}",
            row["tokens_per_s_per_gpu"],
            f"{row['tokens_per_s_per_gpu']:,.0f}",
            "plan" if not place else "other",
        )
        for place, (_, row) in enumerate(fitting[:DRAWN])
    ]
    cells = [_cells(row, f"phases.{phase}.{at}") for at, row in fitting]
    refusals = ("layout", "machine", "does not fit because")
    return [
        _drawing(drawn) if drawn else None,
        _table(phase, cells) if cells else None,
        folded_table(refusals, [list(one) for one in refused], "What does not fit", (0, 1, 2))
        if refused
        else None,
    ]


def _drawing(drawn: list[Bar]) -> Content:
    best = "tokens/s a GPU, best first"
    return [tag("h3", best), tag("div", bars(best, drawn), class_="scroll")]


def _table(phase: str, cells: list[Cells]) -> Content:
    """Without the choices that are the same for all rows: those are said once."""
    alike = {name: cells[0][name] for name in CHOICES if len({str(row[name]) for row in cells}) == 1}
    names = [name for name in cells[0] if name not in alike]
    words = [at for at, name in enumerate(names) if name in WORDS]
    rows = [[row[name] for name in names] for row in cells]
    said = [tag("p", "All rows: ", [[name, " ", value, "; "] for name, value in alike.items()], class_="dim")]
    return [said if alike else None, folded_table(names, rows, f"{phase}, best first", words, 20)]


def _layout(row: dict[str, Any]) -> str:
    groups = f"{row['groups']} x " if row["groups"] > 1 else ""
    shared = f", attention TP{row['attention_tp']}" if row["attention_tp"] > 1 else ""
    return f"{groups}{row['experts'].upper()}{row['ep']}{shared}"


def _r(row: dict[str, Any]) -> str:
    return "" if row["experts"] == "tp" else f", R = {row['redundant']}"


def _cells(row: dict[str, Any], of: str) -> Cells:
    halved, tokens, seconds = row["nics_halved"], row["tokens_per_s_per_gpu"], row["step_seconds"]
    serving = sum(one.get("serves") is True for one in row["services"])
    error = "" if row["error_share"] is None else f" ± {row['error_share']:.0%}"
    marks = [STANDINGS.get(row["standing"], row["standing"]), "ties with the first" if row["tie"] else ""]
    left = row["memory_left_bytes"]
    return {
        "layout": _layout(row),
        "machine": row["machine"],
        "engine": row["engine"] or "none",
        "R": "-" if row["experts"] == "tp" else str(row["redundant"]),
        "tokens/s a GPU": figure(f"{tokens:,.0f}", tokens, f"{of}.tokens_per_s_per_gpu"),
        "step": [figure(human_seconds(seconds), seconds, f"{of}.step_seconds"), error],
        "tokens a GPU": str(row["tokens_per_rank"]),
        "transport": row["transport"],
        "max/mean": f"{row['max_over_mean']:.4f}",
        "left on a GPU": figure(human_bytes(left), left, f"{of}.memory_left_bytes"),
        "requests": f"{row['requests']:,}",
        "limited by": row["bottleneck"],
        "NICs at half": "-" if halved is None or not tokens else f"{halved / tokens - 1:+.0%}",
        "lost GPUs survived": row["survives"],
        "engines": f"{serving} of {len(row['services'])}",
        "": "; ".join(filter(None, marks)),
    }


def _basis(found: dict[str, Any]) -> Content:
    rows = [row for rows in found["phases"].values() for row in rows if not row["why_not"]]
    errors = dict.fromkeys(f"error of a step: {row['error']}" for row in rows)
    head = f"Load: {found['load']}; figures on {found['judged_on']} load, placed by a fast method."
    rest = (
        "Requests: at full context, on the GPUs of one request. Groups of a machine are alike and have it to "
        "themselves."
    )
    return [paragraphs(head, rest), tag("ul", [tag("li", text) for text in (*errors, *found["notes"])])]
