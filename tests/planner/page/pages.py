"""Plans to make pages of, and a page read back: its tags, its figures, its tables, its text."""

from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np

from planner.engines import default_placement
from planner.load import LoadProfile
from planner.model import find_model
from planner.plan import Origin, judged, write_plan
from planner.planning import find_topology
from planner.problem import Problem, Workload

Attributes = Mapping[str, str | None]
VOID = ("meta", "br", "input", "hr")


class Page(HTMLParser):
    """A page as its tags tell it. Every tag that is opened must be closed, in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, Attributes]] = []
        self.figures: list[tuple[str, float]] = []  # by where in the file they stand
        self.tables: dict[str, list[list[str]]] = {}  # by caption
        self.texts: list[str] = []
        self._open: list[str] = []
        self._rows: list[list[str]] = []
        self._caption = ""
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append((tag, found))
        if tag not in VOID:
            self._open.append(tag)
        if tag == "table":
            self._rows, self._caption = [], ""
        if tag == "tr":
            self._rows.append([])
        if tag in ("td", "th"):
            self._rows[-1].append("")
        where = found.get("data-of")
        if tag == "data" and where:
            self.figures.append((where, float(str(found["value"]))))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        if tag == "table":
            self.tables[self._caption] = self._rows

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if "caption" in self._open:
            self._caption += data
        elif {"td", "th"} & set(self._open):
            self._rows[-1][-1] += data

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def named(self, tag: str) -> list[Attributes]:
        return [attributes for name, attributes in self.tags if name == tag]


def standing(value: Any, path: str) -> float:
    """The figure at a path like 'predicted.baselines.0.fitted.total_seconds' of a file."""
    for step in path.split("."):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return float(value)


def large_plan(folder: Path, machine: str = "hgx-h100:8", model_name: str = "deepseek-v3") -> Path:
    """A plan of a large model that nobody had to search for: the engine's own placement, on a skewed load."""
    model, (topology, _) = find_model(model_name), find_topology(machine, None)
    shape = (1, len(model.placed_layer_ids), model.experts)
    counts_WLE = np.rint(np.random.default_rng(0).lognormal(6, 1, shape)).astype(np.int64)
    load = LoadProfile(counts_WLE, model.placed_layer_ids, "made for tests")
    slots = -(-model.experts // topology.gpu_count) + 1
    problem = Problem(topology, model, load, Workload(dispatch_dtype="fp8"), slots)
    plan = judged(problem, default_placement("sglang", problem), origin=Origin("sglang"), held_out_load=load)
    return write_plan(plan, folder / "large.json")
