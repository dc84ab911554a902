"""Runs of nccl-tests as the tool prints them and as -J writes them, made up, and what is read from them."""

from collections.abc import Callable, Sequence
from typing import Any

from planner.base import BadInput
from probes.base.facts import MeasureFacts
from probes.importers.nccl_tests import read, recognise

NEW = "# {:>10} {:>12} {:>8} {:>7} {:>6} {:>7} {:>6} {:>6} {:>6} {:>7} {:>6} {:>6} {:>6}".format(
    *("size", "count", "type", "redop", "root"), *("time", "algbw", "busbw", "#wrong") * 2
)
OLD = NEW.replace("  root ", " ").replace("#wrong", " error")
FACTORS = {"alltoall": 3 / 4, "allreduce": 2 * 3 / 4, "allgather": 3 / 4}


def row(
    size: int,
    rate: float = 40.0,
    collective: str = "alltoall",
    ranks: int = 4,
    wrong: str = "0",
    root: str = "-1",
) -> str:
    """A row as the tool prints it, for `rate` GB/s of algbw and twice that in place."""
    count = size // 4 if collective == "allreduce" else size // 4 // ranks
    factor = {
        "alltoall": (ranks - 1) / ranks,
        "allgather": (ranks - 1) / ranks,
        "allreduce": 2 * (ranks - 1) / ranks,
    }[collective]
    redop = "sum" if collective == "allreduce" else "none"
    in_place = "N/A" if collective == "alltoall" else "0"
    halves = [
        f"{size / algbw / 1e3:8.2f} {algbw:6.2f} {algbw * factor:6.2f} {mark:>6}"
        for algbw, mark in ((rate, wrong), (2 * rate, in_place))
    ]
    return f"{size:12d} {count:12d} {'float':>8} {redop:>7} {root:>6} {halves[0]} {halves[1]}"


def devices(ranks: int = 4, per_host: int = 4, group: Callable[[int], int] = lambda rank: 0) -> list[str]:
    template = "#  Rank {:>2} Group {:>2} Pid {:>6} on {:>8} device {:>2} [0000:1b:00] NVIDIA H100 80GB HBM3"
    return [
        template.format(rank, group(rank), 100 + rank, f"host{rank // per_host}", rank % per_host)
        for rank in range(ranks)
    ]


def output(
    rows: Sequence[str], listed: Sequence[str] = (), name: str | None = "alltoall_perf", average: str = "21.5"
) -> str:
    start = [f"# Collective test starting: {name}"] if name else []
    settings_line = (
        "# nThread 1 nGpus 4 minBytes 8 maxBytes 1024 step: 2(factor) warmup iters: 1 iters: 20 "
        "agg iters: 1 validation: 1 graph: 0"
    )
    half = "(us)  (GB/s)  (GB/s)"
    units = f"#        (B)    (elements)                               {half}            {half}"
    end = ["# Out of bounds values : 0 OK", f"# Avg bus bandwidth    : {average} ", "#"]
    head = [*start, settings_line, "#", "# Using devices", *(listed or devices()), "#", NEW, units]
    return "\n".join([*head, *rows, *end]) + "\n"


SIZES = (1 << 20, 1 << 24, 1 << 28)
WHOLE = output([row(size) for size in SIZES])


def one(text: str, name: str = "run.txt") -> MeasureFacts:
    assert recognise(text.encode(), name)
    (facts,) = read(text.encode(), name)
    return facts


def attempt(content: bytes) -> tuple[MeasureFacts, ...]:
    """The facts; none where it is BadInput, which must be one line."""
    try:
        return read(content, "run.txt")
    except BadInput as error:
        if "\n" in str(error):
            raise AssertionError(str(error)) from error
        return ()


def figures(facts: MeasureFacts) -> list[tuple[int, bool, float]]:
    return [
        (sample.size_bytes, sample.in_place, round(sample.busbw_bytes_per_s / 1e9, 2))
        for sample in facts.samples
    ]


EXPECTED = [(size, in_place, 30.0 * (1 + in_place)) for size in SIZES for in_place in (False, True)]


def as_json(**changes: Any) -> dict[str, Any]:
    """What -J writes, version 3: an entry of devices a process, roots padded, truth values as text."""
    results = [
        {
            "size": size,
            "count": size // 16,
            "type": "float",
            "redop": "none",
            "root": "    -1",
            "actual_iterations": 20,
            "experiment_name": "",
            "out_of_place": {"time": size / 40e3, "alg_bw": 40.0, "bus_bw": 30.0, "nwrong": 0.0},
            "in_place": {"time": size / 80e3, "alg_bw": 80.0, "bus_bw": 60.0, "nwrong": None},
        }
        for size in SIZES
    ]
    device = {
        "rank": 0,
        "group": 0,
        "pid": 7,
        "hostname": "host0",
        "device": 0,
        "device_hex": "0000:1b:00",
        "device_info": "NVIDIA H100 80GB HBM3",
    }
    return {
        "version": 3,
        "start_time": "2026-01-15 10:34:05",
        "args": ["./build/alltoall_perf", "-g", "4"],
        "env": ["TOKEN=hunter2"],
        "nccl_version": 23007,
        "config": {"nthreads": 1, "ngpus": 4, "devices": [device]},
        "results": results,
        "out_of_bounds": {"count": 0, "okay": "true"},
        "average_bus_bandwidth": {"bandwidth": 21.5, "okay": "unchecked"},
        "errors": [""],
        "end_time": "2026-01-15 10:35:00",
        **changes,
    }
