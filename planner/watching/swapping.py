"""A swap from its promise to its end: written down, handed over, seen served, and kept or not.

A process may be killed between any two steps: `recover` goes on from what the ledger and the engine say.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import numpy as np

from planner.base import BadInput
from planner.maps import emit_plan
from planner.placement import Placement
from planner.watching.ledger import ASKED, GIVEN, LEFT, REFUSED, TAKEN, Ledger, Swap
from planner.watching.look import Rolling, kept_seconds
from planner.watching.running import Running

PATIENCE = 3  # windows after which an engine that serves another map than it was handed does not take it

Files = Mapping[str, str]


class Swapper(Protocol):
    """How one engine is handed a placement while it serves."""

    engine: str
    plugin: bool  # whether the engine follows by the plan's plugin

    def digest(self, files: Files) -> str:
        """SHA-256 of the map among the files of an emission, as windows name it."""

    def in_place(self, files: Files) -> bool | None:
        """Whether this is the map that the engine is told now; None where it cannot be asked."""

    def hand_over(self, files: Files) -> bool:
        """Hands the map over, whole or not at all; whether the engine is known to serve by it now.

        BadInput where it is refused: the old one stays.
        """


class Swapping:
    """The swaps of what runs. Without a `swapper` there are none, and the person swaps."""

    def __init__(self, running: Running, ledger: Ledger, swapper: Swapper | None) -> None:
        self._running, self._ledger, self._swapper = running, ledger, swapper

    def recover(self) -> tuple[str, ...]:
        """What was open when the last process ended, gone on with; lines to say.

        BadInput where the engine is told another map than PLAN's.
        """
        last = self._last()
        if self._swapper is None:
            return ()
        if last is not None and last.state == ASKED:
            return (self._resumed(self._swapper, last),)
        if last is not None and last.state == GIVEN:
            return ()
        if self._swapper.in_place(self._files(self._running.plan_file)) is False:
            raise BadInput(
                f"{self._running.plan_file}: PLAN must be the plan that runs, and the engine is told another "
                "map; give the plan that its map was emitted from"
            )
        return ()

    def swap(self, promised: float, after: int) -> None:
        """From PLAN to NEXT. BadInput where the engine refuses: PLAN stays."""
        assert self._swapper is not None
        running = self._running
        files = self._files(running.next_file)
        digest, before_LP = running.next_digest(), running.saved.placement.expert_LP.astype(np.int32)
        swap = Swap(after, digest, self._swapper.digest(files), promised, before_LP)
        self._hand_over(self._swapper, self._ledger.ask(swap), files)

    def settle(self, rolling: Rolling, maps: tuple[str, ...]) -> tuple[bool, tuple[str, ...]]:
        """(whether a swap is still open, lines to say), by the maps that windows were served by."""
        last = self._last()
        if last is None or last.state == LEFT:
            return False, ()
        since = [served for served, number in zip(maps, rolling.numbers, strict=True) if number > last.after]
        said: tuple[str, ...] = ()
        if last.state == GIVEN and since:
            said = self._seen(last, since)
            last = self._last()
            assert last is not None
        if last.state == TAKEN:
            self._keep_book(last, rolling)
        return last.state in {ASKED, GIVEN}, said

    def _seen(self, last: Swap, since: list[str]) -> tuple[str, ...]:
        """What the windows since a hand-over say of it."""
        if since[-1] == last.map_sha256:
            return (self._take(last.number, last.plan_sha256),)
        if len(since) < PATIENCE:
            return ()
        self._ledger.settle(last.number, state=REFUSED)
        if self._swapper is not None:
            self._swapper.hand_over(self._files(self._running.plan_file))
        return (
            (
                f"the engine has not taken the map it was handed {len(since)} windows ago (see its log); "
                f"{self._running.plan_file} stays what runs, and its map was put back"
            ),
        )

    def _keep_book(self, last: Swap, rolling: Rolling) -> None:
        saved = self._running.saved
        if last.before_LP.shape == saved.placement.expert_LP.shape:
            before = Placement(
                last.before_LP.astype(np.int64), saved.placement.layer_ids, saved.placement.gpus
            )
            kept = kept_seconds(saved, before, rolling, last.after)
            if kept is not None:
                self._ledger.settle(last.number, kept=kept)

    def _resumed(self, swapper: Swapper, last: Swap) -> str:
        """A process ended between writing a swap down and the engine's answer."""
        if self._running.next_digest() != last.plan_sha256:
            self._ledger.settle(last.number, state=LEFT)
            return f"{self._running.next_file} is not the plan of the swap that was begun; it is dropped"
        files = self._files(self._running.next_file)
        if swapper.in_place(files) is False:
            self._ledger.settle(last.number, state=LEFT)
            return "the swap that was begun never reached the engine; it is dropped"
        self._hand_over(swapper, last.number, files)  # again, where nobody can say whether it was
        return "the swap that was begun is gone on with"

    def _hand_over(self, swapper: Swapper, number: int, files: Files) -> None:
        try:
            serves = swapper.hand_over(files)
        except BadInput as fault:
            self._ledger.settle(number, state=REFUSED)
            raise BadInput(f"{fault}; {self._running.plan_file} stays what runs") from fault
        self._ledger.settle(number, state=GIVEN)
        if serves:
            self._take(number, self._running.next_digest())

    def _take(self, number: int, plan_sha256: str) -> str:
        """The engine serves by it: PLAN becomes NEXT."""
        running = self._running
        if running.next_digest() == plan_sha256:
            running.adopt()
            self._ledger.settle(number, state=TAKEN)
            return f"the engine serves by the new map; {running.plan_file} is now that plan"
        self._ledger.settle(number, state=LEFT)
        return (
            f"the engine serves by the new map, and {running.next_file} is another plan than that by now: "
            f"put the plan that runs into {running.plan_file}"
        )

    def _files(self, plan_file: Path) -> Files:
        assert self._swapper is not None
        return emit_plan(plan_file, self._swapper.engine, plugin=self._swapper.plugin, trust=True).files

    def _last(self) -> Swap | None:
        return next(reversed(self._ledger.swaps()), None)
