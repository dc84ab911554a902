"""SGLang 0.5.23: its recorder, dumped round by round into a folder, and the balance that it exports.

A dump begins the recorder's counts anew and goes on recording. The recorder is started where a dump shows
that it does not run: in a new server, say. Source: eplb/expert_distribution.py, read. The dumps lie in the
server's SGLANG_EXPERT_DISTRIBUTION_RECORDER_DIR, which has to be seen from here too.
"""

import time
from collections.abc import Iterator

from planner.base import BadInput
from planner.load import Heard, Known
from planner.model import ModelSpec
from probes.routing.server import recorder_mode
from probes.routing.web import Server, fetch
from probes.watching.place import Place
from probes.watching.prometheus import samples
from probes.watching.sources.dumps import Dumps

NAME = "sglang"
NEEDS = ("folder", "urls")
PATTERN = "expert_distribution_recorder_*.pt"
BALANCE = "sglang:eplb_balancedness"
FILE_SECONDS = 20.0  # that a dump may take to lie in the folder; it is written after the answer


def source(place: Place, model: ModelSpec) -> "Recorder":
    dumps = Dumps(place.the_folder(), model, (PATTERN,), remove_read=place.remove_read)
    return Recorder(place.the_server(), dumps)


class Recorder:
    def __init__(self, server: Server, dumps: Dumps, file_seconds: float = FILE_SECONDS) -> None:
        self._server, self._dumps, self._file_seconds = server, dumps, file_seconds
        self._observed: tuple[float, float] | None = None  # sum and count of the balance, last time

    def poll(self, known: Known) -> Iterator[Heard]:
        mode = recorder_mode(self._server)
        if not mode.startswith("stat"):
            raise BadInput(
                f"{self._server.url}: its recorder is in mode {mode}; watch needs one file a dump: start the "
                "server with --expert-distribution-recorder-mode stat"
            )
        before = self._dumps.there(known)
        fetch(self._server, "/dump_expert_distribution_record", {})
        came = self._wait(known, before)
        running = False
        for heard in self._dumps.poll(known):
            running |= bool(heard.windows)
            yield heard
        if not running:
            fetch(self._server, "/start_expert_distribution_record", {})
        missing = (
            f"{self._server.url}: its dump is not in the folder after {self._file_seconds:g} s; "
            "does --folder name its SGLANG_EXPERT_DISTRIBUTION_RECORDER_DIR?"
        )
        yield Heard(signals=self._balance(), said=() if came else (missing,))

    def _wait(self, known: Known, before: set[str]) -> bool:
        """Whether the dump came to lie there, whole: its size stands still."""
        until, last = time.monotonic() + self._file_seconds, before
        while time.monotonic() < until:
            now = self._dumps.there(known)
            if now - before and now == last:
                return True
            last = now
            time.sleep(min(self._file_seconds / 20, 0.5))
        return bool(last - before)

    def _balance(self) -> dict[str, float]:
        """Max over mean of the GPUs since the last round, where the server exports its balancedness."""
        try:
            content = fetch(self._server, "/metrics")
            found = samples(content, self._server.at("/metrics"), f"{BALANCE}_sum", f"{BALANCE}_count")
        except BadInput:
            return {}  # without --enable-metrics there is none, and nothing is wrong
        total = sum(one.value for one in found if one.name.endswith("_sum"))
        count = sum(one.value for one in found if one.name.endswith("_count"))
        old, self._observed = self._observed, (total, count)
        if old is not None and count > old[1] and total > old[0]:
            total, count = total - old[0], count - old[1]
        return {"served_max_over_mean": count / total} if total > 0 else {}
