"""Write into docs/engines.md when the engines' tests passed, and the table of launches they judged.

`make engines` does it. The tests leave a JSON object a line in the file that MOEPLAN_MATRIX_OUT names.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from itertools import product
from pathlib import Path
from typing import Any

from planner.base import BadInput
from planner.cli.version import commit_of_checkout
from planner.engines import engine_names, find_engine, stand_ins
from planner.model import ModelSpec, find_model, model_names
from planner.planning import PlanRequest, would_serve

PAGE = Path(__file__).resolve().parent / "engines.md"
LAST = re.compile(r"^Last passed: .*$", re.MULTILINE)
TABLE = re.compile(r"(?<=<!-- launches: make engines -->\n).*?(?=<!-- end of launches -->)", re.DOTALL)
COLUMNS = ("engine", "family", "weights", "machine", "decode", "prefill", "why", "checked by")
HEAD = f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|\n"
MACHINES = {  # as the engines' tests have them
    "8 x H100": "hgx-h100:1",
    "2 x 8 H100": "hgx-h100:2",
    "2 x 8 B200": "hgx-b200:2",
    "GB200 rack": "gb200-nvl72",
}
Row = Mapping[str, Any]


def rules_table(engines: Iterable[str]) -> str:
    """What the judge says of engines that no test asks: model families by engine, machine and answer."""
    found: dict[tuple[str, ...], set[str]] = {}
    for engine, machine, model in product(engines, MACHINES, map(find_model, model_names())):
        asked = PlanRequest(model, MACHINES[machine], engine=engine)
        answers = (_judged(replace(asked, phase=phase), model) for phase in ("decode", "prefill"))
        found.setdefault((engine, machine, *answers), set()).add(model.architecture)
    names = ("engine", "machine", "decode", "prefill", "families")
    head = f"| {' | '.join(names)} |\n{'|---' * len(names)}|\n"
    return head + "".join(
        f"| {' | '.join((*answer, ', '.join(sorted(families))))} |\n" for answer, families in found.items()
    )


def _judged(request: PlanRequest, model: ModelSpec) -> str:
    """The outcome by the rules alone; `moeplan engine show` says why."""
    engine = str(request.engine)
    try:
        verdict = would_serve(request).verdict
    except BadInput:
        return "refused"
    if verdict.refused:
        return "refused"
    if engine in stand_ins():
        return "own placement of a count table"
    return verdict.outcome if find_engine(engine).reads_map(model) else "map ignored"


def launches_table(rows: Iterable[Row]) -> str:
    """A line for each engine, model family, quantisation and group of machines with the same answer."""
    kinds: dict[tuple[str, ...], dict[str, list[Row]]] = {}
    for row in rows:
        told = (row["engine"], row["family"], row["quantisation"])
        kinds.setdefault(told, {}).setdefault(row["machine"], []).append(row)
    lines = []
    for kind, machines in sorted(kinds.items()):
        alike: dict[tuple[str, ...], list[str]] = {}
        for machine, found in machines.items():
            alike.setdefault(_answer(found), []).append(machine)
        lines += [_line(kind, names, answer) for answer, names in sorted(alike.items())]
    return HEAD + "".join(lines)


def _answer(rows: list[Row]) -> tuple[str, ...]:
    """(decode, prefill, why, checked by) of one machine, over roles and models of the family."""
    phases = [_outcomes(row for row in rows if row["phase"] == phase) for phase in ("decode", "prefill")]
    why = "; ".join(dict.fromkeys(_short(row["why"]) for row in rows if row["why"]))
    checked = ", ".join(sorted({row["checked"] for row in rows if row["checked"]}))
    return phases[0], phases[1], why, checked or "rules alone"


def _outcomes(rows: Iterable[Row]) -> str:
    return ", ".join(sorted({row["outcome"] for row in rows}))


def _short(why: str) -> str:
    """The first sentence, with numbers that differ by model left out."""
    text = why.partition("; ")[0]
    return text if len(text) <= 160 else text[:157] + "..."


def _line(kind: tuple[str, ...], machines: list[str], answer: tuple[str, ...]) -> str:
    engine, family, weights = kind
    cells = (engine, family, weights or "16 bits", ", ".join(machines), *answer)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def summary(rows: Iterable[Row]) -> str:
    """How many launches, by engine and outcome."""
    counts = Counter((row["engine"], row["outcome"]) for row in rows)
    return "".join(f"{engine}: {count} {outcome}. " for (engine, outcome), count in sorted(counts.items()))


def page(text: str, rows: list[Row]) -> str:
    """The page with its generated parts anew."""
    said = f"Last passed: {datetime.now(tz=timezone.utc):%Y-%m-%d}, commit {commit_of_checkout()}."
    text, count = LAST.subn(said, text)
    assert count == 1, "docs/engines.md has no line for the last run"
    if rows:
        asked = {row["engine"] for row in rows}
        others = rules_table(name for name in engine_names() if name not in asked)
        table = f"\n{summary(rows)}\n\n{launches_table(rows)}\nOthers, by rules alone:\n\n{others}\n"
        text, count = TABLE.subn(lambda _: table, text)
        assert count == 1, "docs/engines.md has no place for the table of launches"
    return text


if __name__ == "__main__":
    lines = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines() if len(sys.argv) > 1 else []
    PAGE.write_text(
        page(PAGE.read_text(encoding="utf-8"), [json.loads(line) for line in lines]), encoding="utf-8"
    )
    print(f"wrote {PAGE.name}")
