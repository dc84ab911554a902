"""Watch the ranks that run on this machine, and name the one that stopped the run."""

import contextlib
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from probes.ranks.keep import Kept
from probes.ranks.party import Limit, RankBugError, RunFailed
from probes.ranks.status import FAILED, WAITING, Place, laggards, read_places, told

POLL_SECONDS = 0.05
LOSS_SECONDS = 4.0  # longer than ranks that lost each other call the roll
STANDSTILL_SECONDS = 3.0  # a rank under SIGSTOP for so long is not waited for


@dataclass(frozen=True)
class Loss:
    """What a rank tells that lost the others: why, and who did not answer it (none: it reached nobody)."""

    rank: int
    why: str
    silent: tuple[int, ...]
    age_seconds: float


def watch(kept: Kept, ranks: int, limit: Limit) -> None:
    """Return when every rank has ended well; raise as soon as one has not, or when the time is over."""
    moving = time.monotonic()
    while len(kept.codes) < ranks or any(kept.codes.values()):
        kept.look()
        places = read_places(kept.folder, ranks, kept.pids, kept.codes)
        _raise_fault(kept, places)
        losses = read_losses(kept.folder, ranks)
        if losses and max(loss.age_seconds for loss in losses) > LOSS_SECONDS:
            raise RunFailed(_lost(losses, places))
        stopped = [place for place in places if place.stopped]
        moving = moving if stopped else time.monotonic()
        if time.monotonic() - moving > STANDSTILL_SECONDS:
            ended = "the run was ended, the other ranks cannot go on without it"
            raise RunFailed(f"{told(stopped)}; {ended}")
        # where all wait, each calls the roll when the time is over: then it is known who does not answer
        all_wait = all(place.state == WAITING for place in laggards(places))
        if limit.left < (-LOSS_SECONDS if all_wait else 0):
            raise RunFailed(f"{_late(places)}; {limit.text}")
        time.sleep(POLL_SECONDS)
    _raise_fault(kept, read_places(kept.folder, ranks, kept.pids, kept.codes))


def _raise_fault(kept: Kept, places: Sequence[Place]) -> None:
    """A rank's own exception is ours and keeps its traceback; a rank that vanished is named."""
    for place in places:
        if place.state == FAILED and place.reason:
            raise RunFailed(f"rank {place.rank} failed in '{place.phase}': {place.reason}")
        if place.state == FAILED:
            account = _text(kept.folder / f"error-{place.rank}") or "its traceback could not be written"
            raise RankBugError(f"rank {place.rank} failed:\n{account}")
    gone = [place for place in places if place.vanished]
    if gone:
        said = kept.reasons.get(gone[0].rank) or _last_line(_text(kept.folder / f"printed-{gone[0].rank}"))
        remedy = f"it said: {said}" if said else "look for a kill or too little memory in that machine's log"
        raise RunFailed(f"{told(gone)}; {remedy}")


def read_losses(folder: Path, ranks: int) -> list[Loss]:
    """Of the ranks that lost the others and live."""
    losses = []
    for rank in range(ranks):
        with contextlib.suppress(OSError, ValueError):  # none, or half of it yet
            file = folder / f"lost-{rank}"
            account = json.loads(file.read_text())
            age_seconds = time.time() - file.stat().st_mtime
            losses.append(Loss(rank, account["why"], tuple(account["silent"]), age_seconds))
    return losses


def _lost(losses: Sequence[Loss], places: Sequence[Place]) -> str:
    """Ranks that lost each other while all of them live.

    Told after a pause, in which a dying one would have been seen dead.
    """
    first = losses[0]
    if cut := unreachable(losses, len(places)):
        shown = f"rank{'s' if len(cut) > 1 else ''} {', '.join(map(str, cut))}"
        where = f"{shown} cannot be reached over the network in '{places[cut[0]].phase}'"
        return f"{where} ({first.why}); look at the link and the host"
    where = f"rank {first.rank} lost the others in '{places[first.rank].phase}' ({first.why})"
    return f"{where}: {told(laggards(places))}"


def unreachable(losses: Sequence[Loss], ranks: int) -> list[int]:
    """Whom most of those that called the roll missed.

    One that missed everybody is cut off itself; of two ranks neither can tell.

    >>> three_miss_one = [Loss(rank, "late", (2,), 4.0) for rank in (0, 1, 3)]
    >>> unreachable([*three_miss_one, Loss(2, "late", (), 4.0)], ranks=4)
    [2]
    """
    votes: Counter[int] = Counter()
    for loss in losses:
        missed = [rank for rank in loss.silent if rank != loss.rank]
        alone = len(missed) == ranks - 1
        votes.update([loss.rank] * (ranks > 2 and alone) or missed)
    return sorted(rank for rank, count in votes.items() if count == max(votes.values()))


def _late(places: Sequence[Place]) -> str:
    return told(laggards(places)) or "the ranks are done but do not end"


def _text(file: Path) -> str:
    with contextlib.suppress(OSError):
        return file.read_text(errors="replace").strip()
    return ""


def _last_line(text: str) -> str:
    return text.splitlines()[-1] if text else ""
