"""A small plan that runs, counts of a load that shifts, and a source that tells them."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from planner.base import BadInput
from planner.load import Heard, Known, Window
from planner.plan import Origin, judged, write_plan
from planner.problem import Problem
from planner.watching import Asked, Running, Terms, Watch
from tests.planner.engines.examples import TINY, machine, question, random_placement

Counts = npt.NDArray[np.int64]
TOKENS = 20_000
LAYERS = TINY.moe_layer_ids
FAST = Asked(terms=Terms(horizon_seconds=600.0))


def problem() -> Problem:
    return question(TINY, machine(4, 4), 16)


def plan_in(folder: Path, seed: int = 0, name: str = "plan.json") -> Path:
    """A plan of a random placement, as vLLM would serve it."""
    placement = random_placement(TINY, 8, 16, seed)
    return write_plan(judged(problem(), placement, origin=Origin("vllm")), folder / name)


def counts(load: int, draw: int = 0, tokens: int = TOKENS) -> Counts:
    """A window [layer, expert] of the load of that number; `draw` says which of its windows."""
    share_LE = np.random.default_rng([7, load]).dirichlet(np.full(TINY.experts, 2.0), len(LAYERS))
    drawn = np.random.default_rng([load, draw]).multinomial(tokens * TINY.top_k, share_LE)
    return np.minimum(drawn, tokens).astype(np.int64)


class Told:
    """A source that tells what it is given, once each; a fault where that is one."""

    def __init__(self, *news: "Counts | BadInput") -> None:
        self.news = list(news)
        self.maps: list[str] = []

    def poll(self, known: Known) -> Iterator[Heard]:
        for place, found in enumerate(self.news):
            key = f"{place}"
            if known.has(key):
                continue
            if isinstance(found, BadInput):
                self.news[place] = np.zeros((len(LAYERS), TINY.experts), dtype=np.int64)
                raise found
            served = self.maps[place] if place < len(self.maps) else ""
            yield Heard((Window(found, LAYERS, served),), (key,))


def watch(folder: Path, source: Told, asked: Asked = FAST, **more: object) -> Watch:
    running = Running(folder / "plan.json", folder / "next.json")
    # `more` is a swapper, or keep
    return Watch(running, folder / "watch.db", source, asked, **more)  # type: ignore[arg-type]
