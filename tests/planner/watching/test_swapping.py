"""A swap: written down, handed over, seen served; refused; and a process killed between any two steps."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from planner.base import BadInput, write_atomic
from planner.maps import emit_plan
from planner.plan import read_plan
from planner.watching import Watch
from planner.watching.database import Database
from planner.watching.ledger import Ledger
from tests.planner.watching.watched import Told, counts, plan_in, watch

PLUGIN_MAP = "vllm_plugin/moeplan_vllm_plan/plan_map.json"


@dataclass
class Engine:
    """Follows the text it was handed at its next window, as vLLM does; `serves`: that of its last window."""

    text: str
    serves: str = ""
    takes: bool = True
    refuses: str = ""
    asked: int = 0
    engine: str = "vllm"
    plugin: bool = True
    last: list[str] = field(default_factory=list)

    def digest(self, files: Mapping[str, str]) -> str:
        return str(hash(files[PLUGIN_MAP]))

    def in_place(self, files: Mapping[str, str]) -> bool | None:
        return self.text == files[PLUGIN_MAP]

    def hand_over(self, files: Mapping[str, str]) -> bool:
        self.asked += 1
        if self.refuses:
            raise BadInput(self.refuses)
        self.text = files[PLUGIN_MAP]
        return False

    def window(self) -> str:
        """The map that a window says it was served by."""
        if self.takes:
            self.serves = self.text
        return str(hash(self.serves))


def map_of(plan: Path) -> str:
    return emit_plan(plan, "vllm", plugin=True, trust=True).files[PLUGIN_MAP]


class Loop:
    """A plan, an engine that serves by it, and windows as it writes them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.source = folder, Told()
        text = map_of(plan_in(folder))
        self.engine = Engine(text, serves=text)
        self.watch: Watch | None = None

    def serve(self, load: int) -> None:
        self.source.maps.append(self.engine.window())
        self.source.news.append(counts(load, len(self.source.news)))

    def started(self) -> Watch:
        self.stop()
        self.watch = watch(self.folder, self.source, swapper=self.engine)
        return self.watch

    def stop(self) -> None:
        if self.watch is not None:
            self.watch.close()
        self.watch = None

    def states(self) -> list[str]:
        self.stop()
        database = Database(self.folder / "watch.db")
        found = [swap.state for swap in Ledger(database).swaps()]
        database.close()
        return found


@pytest.fixture
def loop(tmp_path: Path) -> Loop:
    return Loop(tmp_path)


def test_a_plan_that_pays_is_served_from_the_next_window_on(loop: Loop) -> None:
    """Handed over at once; PLAN becomes it when a window says that it is served; and it keeps its promise."""
    watched = loop.started()
    first = (loop.folder / "plan.json").read_bytes()
    loop.serve(1)
    found = watched.round()
    assert found.handed_over
    assert (loop.folder / "plan.json").read_bytes() == first
    loop.serve(1)
    found = watched.round()
    assert "the engine serves by the new map" in found.said[0]
    assert loop.engine.serves == map_of(loop.folder / "plan.json")
    loop.serve(1)
    watched.round()
    loop.stop()
    database = Database(loop.folder / "watch.db")
    swap = Ledger(database).swaps()[0]
    assert swap.kept == pytest.approx(swap.promised, rel=0.2)
    database.close()


def test_while_a_swap_is_open_nothing_else_is_handed_over(loop: Loop) -> None:
    """NEXT stays the plan that was handed over."""
    watched = loop.started()
    loop.engine.takes = False
    loop.serve(1)
    watched.round()
    handed = (loop.folder / "next.json").read_bytes()
    loop.serve(2)
    found = watched.round()
    assert (found.look, loop.engine.asked) == (None, 1)
    assert (loop.folder / "next.json").read_bytes() == handed


def test_a_map_that_is_never_taken_is_put_back(loop: Loop) -> None:
    """PLAN stays what runs, and the map is PLAN's again."""
    watched = loop.started()
    loop.engine.takes = False
    before, text = (loop.folder / "plan.json").read_bytes(), loop.engine.text
    said: list[str] = []
    for _ in range(4):
        loop.serve(1)
        found = watched.round()
        said += found.said
        if found.said:
            break
    assert "has not taken the map" in said[0]
    assert (loop.folder / "plan.json").read_bytes() == before
    loop.stop()
    assert loop.states()[0] == "refused"
    assert text in {loop.engine.text, map_of(loop.folder / "plan.json")}


def test_a_refused_swap_keeps_the_old_plan(loop: Loop) -> None:
    """One line; the next window tries again."""
    watched = loop.started()
    loop.engine.refuses = "the engine says no"
    before = (loop.folder / "plan.json").read_bytes()
    loop.serve(1)
    found = watched.round()
    assert (found.handed_over, found.faults) == (False, 1)
    assert found.said[0] == f"the engine says no; {loop.folder / 'plan.json'} stays what runs"
    assert (loop.folder / "plan.json").read_bytes() == before
    loop.engine.refuses = ""
    loop.serve(1)
    assert watched.round().handed_over
    assert loop.states() == ["refused", "given"]


def test_an_engine_that_knows_at_once(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """As FastDeploy does: PLAN is the new plan right away."""
    hand_over = Engine.hand_over
    monkeypatch.setattr(Engine, "hand_over", lambda self, files: not hand_over(self, files))
    watched = loop.started()
    loop.serve(1)
    assert watched.round().handed_over
    assert (loop.folder / "plan.json").read_bytes() == (loop.folder / "next.json").read_bytes()


def test_a_map_of_another_plan_is_refused_at_the_start(loop: Loop) -> None:
    loop.engine.text = map_of(plan_in(loop.folder, 5, "other.json"))
    with pytest.raises(BadInput, match="PLAN must be the plan that runs"):
        loop.started()


class Killed(BaseException):
    """In the place of kill -9: nothing of ours runs after it."""


def killing(step: int, counted: list[int]) -> Callable[..., Path]:
    """write_atomic that ends the process before its n-th file, or right after it (half steps)."""

    def write(path: Path, content: "str | bytes") -> Path:
        counted[0] += 1
        if 2 * counted[0] - 1 == step:
            raise Killed
        written = write_atomic(path, content)
        if 2 * counted[0] == step:
            raise Killed
        return written

    return write


@pytest.mark.parametrize("step", range(1, 7))
def test_a_process_killed_anywhere_goes_on_from_there(
    step: int, loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before or after each file of a swap is written (NEXT, the map, PLAN): every file is whole, PLAN is what
    the engine serves by in the end, and nothing is lost.
    """
    counted = [0]
    kill = killing(step, counted)
    monkeypatch.setattr("planner.base.files.write_atomic", kill)
    monkeypatch.setattr("planner.watching.running.write_atomic", kill)
    hand_over = Engine.hand_over

    def handed(self: Engine, files: Mapping[str, str]) -> bool:
        kill(loop.folder / "engine.map", files[PLUGIN_MAP])
        return hand_over(self, files)

    monkeypatch.setattr(Engine, "hand_over", handed)
    ended = False
    for _ in range(4):
        loop.serve(1)
        try:
            watched = loop.watch or loop.started()
            watched.round()
        except Killed:
            ended = True
            loop.stop()
        for name in ("plan.json", "next.json"):
            if (loop.folder / name).exists():
                read_plan(loop.folder / name)
        json.loads(loop.engine.text)
    assert ended
    assert loop.engine.serves == map_of(loop.folder / "plan.json")
    assert "asked" not in loop.states()
