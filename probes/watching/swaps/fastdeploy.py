"""FastDeploy 2.x: a plan's counts handed to its balancer, by the program that `emit` writes for that.

It is told the ranks' addresses and waits until FastDeploy has loaded the experts, or refuses. Who may ask is
in FD_EPLB_USER and FD_EPLB_PASSWORD.
"""

import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from planner.base import BadInput
from probes.watching.place import Place

ENGINE = "fastdeploy"
TABLE, PROGRAM = "expert_stats.json", "rearrange.py"
LONGEST_SECONDS = 1600  # a little more than the program itself waits

Files = Mapping[str, str]


def swapper(place: Place, map_file: Path | None) -> "Balancer":
    if map_file is not None:
        raise BadInput(f"--map {map_file}: FastDeploy reads no map; it is handed counts by --server")
    return Balancer(tuple(urlsplit(server.url).netloc for server in place.servers()))


class Balancer:
    engine, plugin = ENGINE, False

    def __init__(self, addresses: tuple[str, ...], seconds: float = LONGEST_SECONDS) -> None:
        self._addresses, self._seconds = addresses, seconds

    def digest(self, files: Files) -> str:
        return hashlib.sha256(files[TABLE].encode()).hexdigest()

    def in_place(self, files: Files) -> None:
        """It tells nobody which placement it serves by."""
        del files

    def hand_over(self, files: Files) -> bool:
        with tempfile.TemporaryDirectory(prefix="moeplan-") as folder:
            for name in (TABLE, PROGRAM):
                (Path(folder) / name).write_text(files[name], encoding="utf-8")
            try:
                self._run(Path(folder) / PROGRAM)
            except subprocess.TimeoutExpired as error:
                raise BadInput(f"FastDeploy did not rearrange within {self._seconds:g} s") from error
        return True

    def _run(self, program: Path) -> None:
        command = [sys.executable, str(program), *self._addresses]
        run = subprocess.run(command, capture_output=True, text=True, timeout=self._seconds, check=False)
        if run.returncode:
            last = " ".join((run.stderr.strip().splitlines() or ["no reason given"])[-1].split())[:200]
            raise BadInput(f"{self._addresses[0]}: FastDeploy was not made to rearrange ({last})")
