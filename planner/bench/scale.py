"""Scale: whole `moeplan solve` processes, cold, with their peak memory."""

from planner.bench.cold import solve_cold
from planner.bench.frame import Instance, Peers, Table
from planner.solve import Progress

TITLE = "Whole cold `moeplan solve` processes"
RUNS = (
    (Instance("58x256 -> 288 / 32 GPUs", 58, 256, 9, "hgx-h100:4"), "greedy"),
    (Instance("61x256 -> 2048 / 1024 GPUs", 61, 256, 2, "hgx-h100:128"), "auto"),
)


def run(peers: Peers, repeats: int, progress: Progress | None) -> Table:
    """One run each: minutes are minutes."""
    del peers, repeats
    rows: list[dict[str, object]] = []
    for number, (instance, method) in enumerate(RUNS):
        if progress:
            progress(number / len(RUNS), instance.name)
        found = solve_cold(instance, "--method", method)
        rows.append({"instance": instance.name, "method": method, "seconds": found.seconds, "peak_bytes": found.peak_bytes})
    return Table(TITLE, tuple(rows))
