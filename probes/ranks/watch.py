"""Watch the ranks that run on this machine, and name the one that stopped the run."""

import time
from pathlib import Path
from typing import Protocol

from probes.ranks.party import RunFailed
from probes.ranks.status import FAILED, Place, dead, laggards, read_places

POLL_SECONDS = 0.05
LOSS_SECONDS = 3.0
STANDSTILL_SECONDS = 3.0  # a rank under SIGSTOP for so long is not waited for


class Launcher(Protocol):
    """What started the ranks: torch's launcher, or this program itself."""

    @property
    def returncode(self) -> int | None:
        """0 where every rank ended well; None while it has not ended."""

    def poll(self) -> int | None:
        """The same, looked at anew."""


def watch(launcher: Launcher, directory: Path, ranks: int, timeout_seconds: float) -> None:
    """Return when every rank has ended well; raise as soon as one has not, or when the time is over."""
    moving = time.monotonic()
    deadline = moving + timeout_seconds
    while launcher.poll() is None:
        places = read_places(directory, ranks)
        if dead(places) or any(place.phase == FAILED for place in places):
            _raise_fault(directory, places)
        _raise_loss(directory, places)
        stopped = [place.text for place in places if place.stopped]
        moving = moving if stopped else time.monotonic()
        if time.monotonic() - moving > STANDSTILL_SECONDS:
            ended = "the run was ended, the other ranks cannot go on without it"
            raise RunFailed(f"{'; '.join(stopped)}; {ended}")
        if time.monotonic() > deadline:
            ended = f"the run was ended after {timeout_seconds:g} s (raise --timeout if this is only slow)"
            raise RunFailed(f"{_late(places, ranks)}; {ended}")
        time.sleep(POLL_SECONDS)
    places = read_places(directory, ranks)
    if launcher.returncode != 0 or dead(places):
        _raise_fault(directory, places)


def _raise_fault(directory: Path, places: list[Place]) -> None:
    """A rank's own exception is ours and keeps its traceback, unless it refused in one line.

    A rank that vanished is named.
    """
    for place in places:
        if place.phase == FAILED:
            refused = directory / f"refused-{place.rank}"
            if refused.exists():
                raise RunFailed(refused.read_text())
            account = (directory / f"error-{place.rank}").read_text()
            raise RuntimeError(f"rank {place.rank} failed:\n{account}")
    gone = "; ".join(place.text for place in dead(places))
    if gone:
        remedy = "look for a kill or too little memory in that machine's log"
        raise RunFailed(f"{gone} without a result; {remedy}")
    lines = (directory / "launcher.log").read_text(errors="replace").strip().splitlines()
    said = lines[-1] if lines else "it said nothing"
    raise RunFailed(f"the launcher ended before the ranks did: {said}")


def _raise_loss(directory: Path, places: list[Place]) -> None:
    """Ranks that lost each other while all of them live.

    Told after a pause, in which a dying one would have been seen dead.
    """
    for place in places:
        account = directory / f"lost-{place.rank}"
        if account.exists() and time.time() - account.stat().st_mtime > LOSS_SECONDS:
            lines = account.read_text().strip().splitlines()
            reason = lines[0] if lines else "no reason given"
            others = "; ".join(other.text for other in laggards(places))
            raise RunFailed(f"rank {place.rank} lost the others in '{place.phase}' ({reason}): {others}")


def _late(places: list[Place], ranks: int) -> str:
    absent = sorted(set(range(ranks)) - {place.rank for place in places})
    if absent:
        return f"rank{'s' if len(absent) > 1 else ''} {', '.join(map(str, absent))} did not start"
    return "; ".join(place.text for place in laggards(places)) or "the launcher did not end"
