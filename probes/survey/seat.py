"""Where all ranks sit, told through a folder. No torch.

Each writes its seat into a folder that they share, and the first reads them.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from planner.base import BadInput, read_json, write_json
from planner.topology import Seat, seat_from_dict
from probes.ranks.launch import Launch

POLL_SECONDS = 0.1


def gather_seats(own: Seat, launch: Launch, folder: Path, timeout_seconds: float) -> tuple[Seat, ...] | None:
    """Every rank's seat, for rank 0; None for the others. BadInput names the ranks that did not come in time.

    The files carry the launch's own id, so that an earlier start's are not read.
    """
    run = "".join(letter if letter.isalnum() else "-" for letter in launch.run or "run")
    paths = [folder / f"seat-{run}-{rank}.json" for rank in range(launch.world)]
    if not folder.is_dir():
        raise BadInput(f"{folder}: not a folder on host {own.host}; --gather names one that all ranks share")
    write_json(paths[own.rank], {key: value for key, value in asdict(own).items() if key != "node"})
    if own.rank:
        return None
    deadline = time.monotonic() + timeout_seconds
    while absent := [rank for rank, path in enumerate(paths) if not path.is_file()]:
        if time.monotonic() > deadline:
            _remove(paths)
            shown = ", ".join(map(str, absent[:8])) + (", ..." if len(absent) > 8 else "")
            late = f"no seat of rank {shown} after {timeout_seconds:g} s"
            raise BadInput(f"{folder}: {late}; did they start, and do they share this folder?")
        time.sleep(POLL_SECONDS)
    seats = tuple(seat_from_dict(read_json(path), str(path)) for path in paths)
    _remove(paths)
    return seats


def _remove(paths: Sequence[Path]) -> None:
    """A launcher may give the next start the same id, which must not find these."""
    for path in paths:
        path.unlink(missing_ok=True)
