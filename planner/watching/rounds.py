"""A round of `watch`: hear what is new, look whether another plan pays, write it, have the engine swap to it.

What cannot be read, kept or swapped is a line, and the next round goes on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from planner.base import BadInput
from planner.load import Source
from planner.plan import write_plan
from planner.watching.database import Database
from planner.watching.ledger import Ledger
from planner.watching.look import Asked, Look, Rolling, check_asked, look
from planner.watching.running import Running
from planner.watching.store import Store
from planner.watching.swapping import Swapper, Swapping

LOOKED_AT = "looked_at"  # the newest window of the last look that came to an end


@dataclass(frozen=True, eq=False)
class Round:
    """What one round came to. `number`: of the newest window; `wrote`: the file of the plan that pays."""

    heard: int  # windows that came
    number: int
    look: Look | None  # None where nothing new came, or a swap is still open
    wrote: Path | None
    handed_over: bool
    said: tuple[str, ...]  # a line each
    faults: int  # of these lines, those of what could not be read, kept or swapped
    signals: Mapping[str, float]  # what the server says of its balance


class Watch:
    """What is watched, and what was learnt of it."""

    def __init__(
        self,
        running: Running,
        state_file: Path,
        source: Source,
        asked: Asked,
        swapper: Swapper | None = None,
        keep: int = 64,
    ) -> None:
        check_asked(asked, running.saved.problem)
        self._running, self._source, self._asked = running, source, asked
        self._database = Database(state_file)
        self._store = Store(self._database, keep, running.saved.problem.model.experts)
        self._ledger = Ledger(self._database)
        self._swapping = Swapping(running, self._ledger, swapper)
        self._swaps_itself = swapper is not None
        self._unsaid = self._swapping.recover()

    def close(self) -> None:
        self._database.close()

    def round(self) -> Round:
        heard, signals, said, faults = self._hear()
        said = [*self._unsaid, *said]
        self._unsaid = ()
        seen = wrote = None
        handed_over = False
        try:
            self._running.refresh()
            rolling, maps = self._rolling()
            if rolling is not None:
                open_swap, lines = self._swapping.settle(rolling, maps)
                said += lines
                if not open_swap and rolling.numbers[-1] > int(self._store.noted(LOOKED_AT) or 0):
                    where = str(self._running.plan_file)
                    seen = look(self._running.saved, where, rolling, self._ledger.swaps(), self._asked)
            if seen is not None and seen.verdict.pays:
                wrote = write_plan(seen.plan, self._running.next_file)
                if self._swaps_itself:
                    self._swapping.swap(seen.verdict.saved_seconds, self._store.newest)
                    handed_over = True
            if seen is not None:
                self._store.note(LOOKED_AT, str(self._store.newest))
        except BadInput as fault:
            said.append(str(fault))
            faults += 1
        return Round(heard, self._store.newest, seen, wrote, handed_over, tuple(said), faults, signals)

    def _hear(self) -> tuple[int, dict[str, float], list[str], int]:
        """(windows that came, signals, lines, how many of them are faults)."""
        heard, faults = 0, 0
        said, signals = list[str](), dict[str, float]()
        try:
            for news in self._source.poll(self._store):
                heard += self._store.add(news)
                signals |= news.signals
                said += (*news.said, *news.notes)
                faults += len(news.said)
        except BadInput as fault:
            said.append(str(fault))
            faults += 1
        return heard, signals, said, faults

    def _rolling(self) -> tuple[Rolling | None, tuple[str, ...]]:
        """None before the first window."""
        tokens_WLE, numbers, maps = self._store.windows()
        if not numbers:
            return None, ()
        return Rolling(tokens_WLE, self._store.layer_ids, numbers), maps
