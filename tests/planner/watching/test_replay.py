"""The whole of `watch` against a local server that replays counts: shifts, restarts and faults on the way.

The server answers as FastDeploy does: counters that grow, and begin anew with it.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.plan import read_plan
from planner.watching import Round, Running, Watch
from probes.watching.place import Place
from probes.watching.registry import find_source
from tests.planner.engines.examples import TINY
from tests.planner.watching.watched import FAST, counts, plan_in
from tests.probes.engine_server import Engine, ok, serving

ROUTE = "/get_per_expert_tokens_stats"


class Replay:
    """A server that has served some windows since it was started, and a watch that may be started anew."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine, self.folder, self.drawn = engine, folder, 0
        self.tokens_LE = np.zeros((TINY.layers, TINY.experts), dtype=np.int64)
        self.watch: Watch | None = None
        plan_in(folder)
        engine.answers[ROUTE] = self.answer

    def answer(self, _: Any) -> tuple[int, bytes]:
        return ok({"code": 0, "msg": "ok", "data": [self.tokens_LE.tolist()]})

    def serve(self, load: int) -> None:
        self.drawn += 1
        self.tokens_LE[list(TINY.moe_layer_ids)] += counts(load, self.drawn)

    def restart(self) -> None:
        self.tokens_LE[:] = 0

    def round(self) -> Round:
        if self.watch is None:
            place = Place(urls=(self.engine.url,), timeout_seconds=5)
            source = find_source("fastdeploy", None, place).source(place, TINY)
            running = Running(self.folder / "plan.json", self.folder / "next.json")
            self.watch = Watch(running, self.folder / "watch.db", source, FAST)
        return self.watch.round()

    def stop(self) -> None:
        if self.watch is not None:
            self.watch.close()
        self.watch = None

    def adopt(self) -> None:
        """The person starts the engine anew with the plan that pays."""
        (self.folder / "next.json").replace(self.folder / "plan.json")


@pytest.fixture
def replay(tmp_path: Path) -> Iterator[Replay]:
    with serving(Engine()) as engine:
        yield Replay(engine, tmp_path)


def test_a_day_of_a_server(replay: Replay) -> None:
    """Steady, then shifted; the server and watch are started anew; answers are garbage for a while; a plan
    that pays comes with the first window of each shift, and nothing is lost or counted twice.
    """
    paid = []
    for number, load in enumerate((1, 1, 1, 2, 2)):
        replay.serve(load)
        if number == 2:
            replay.stop()  # and started anew
        if number == 4:
            replay.engine.answers[ROUTE] = (200, b'{"code": 0, "data": [[1')
            found = replay.round()
            assert (found.heard, found.faults, found.wrote) == (0, 1, None)
            replay.engine.answers[ROUTE] = replay.answer
        found = replay.round()
        assert found.heard == 1
        if found.wrote is not None:
            paid.append(number)
            replay.adopt()
            replay.restart()  # its counters begin anew
    assert {0, 3} <= set(paid)
    tokens_WLE = replay.watch._store.windows()[0] if replay.watch else np.zeros(0)
    expected = [counts(load, place + 1) for place, load in enumerate((1, 1, 1, 2, 2))]
    assert (tokens_WLE == np.array(expected)).all()
    assert read_plan(replay.folder / "plan.json").value["moves"]["share"] <= 0.1


def test_a_server_started_anew_between_two_rounds(replay: Replay) -> None:
    """Its counters are lower than before: what they show was counted since, and that is said."""
    replay.serve(1)
    replay.round()
    replay.restart()
    replay.tokens_LE[list(TINY.moe_layer_ids)] += counts(1, 9) // 10
    found = replay.round()
    assert (found.heard, found.faults) == (1, 0)
    assert "began anew" in json.dumps(found.said)
    assert replay.watch is not None
    assert (replay.watch._store.windows()[0][-1] == counts(1, 9) // 10).all()
