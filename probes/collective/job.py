"""What a measurement by torch.distributed is asked to do, and how its ranks' times become facts.

No torch here.

Shapes: G ranks.
"""

import datetime as dt
import json
import math
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from planner.base import BadInput, read_json
from probes.base.facts import MeasureFacts, Sample
from probes.measure.busbw import bus_factor

SCOPES = ("domain", "rail", "all")
MOST_SIZES = 64


@dataclass(frozen=True)
class Sweep:
    """The sizes of an all-to-all, from smallest to largest by `factor` as nccl-tests counts them.

    Each is timed `repeats` times.
    """

    smallest_bytes: int = 8 << 20
    largest_bytes: int = 256 << 20
    factor: int = 2
    repeats: int = 5

    def __post_init__(self) -> None:
        rises = 1 <= self.smallest_bytes <= self.largest_bytes and self.factor >= 2
        if not rises or self.repeats < 1:
            sizes = f"{self.smallest_bytes} to {self.largest_bytes} bytes by {self.factor}"
            raise BadInput(
                f"cannot measure {sizes}, {self.repeats} repeats; "
                "sizes go up from at least 1 byte by a factor of at least 2, with at least one repeat"
            )
        if len(self.sizes) > MOST_SIZES:
            most = f"more than the {MOST_SIZES} that are measured"
            raise BadInput(f"{len(self.sizes)} sizes are {most}; use a larger factor")

    @property
    def sizes(self) -> list[int]:
        steps = int(math.log(self.largest_bytes / self.smallest_bytes, self.factor) + 1e-9) + 1
        return [self.smallest_bytes * self.factor**step for step in range(steps)]


@dataclass(frozen=True)
class MeasureJob:
    """One measurement over `ranks`. `domain_of_rank` None: the ranks of one host are a domain."""

    ranks: int
    sweep: Sweep
    device: str  # cpu, cuda
    timeout_seconds: float
    domain_of_rank: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.ranks < 2:
            raise BadInput(f"{self.ranks} rank sends nothing; measure at least 2 ranks")
        if not 0 < self.timeout_seconds < 1e6:
            raise BadInput(f"the timeout is {self.timeout_seconds} s; give a positive number of seconds")
        if self.domain_of_rank is not None and len(self.domain_of_rank) != self.ranks:
            raise BadInput(f"{len(self.domain_of_rank)} domains are named for {self.ranks} ranks")


def save(job: MeasureJob, path: Path) -> None:
    path.write_text(json.dumps(asdict(job)))


def load(path: Path) -> MeasureJob:
    data = read_json(path)
    domains = data.pop("domain_of_rank")
    sweep = Sweep(**data.pop("sweep"))
    return MeasureJob(**data, sweep=sweep, domain_of_rank=None if domains is None else tuple(domains))


def scopes(host_G: list[str], domain_of_rank: tuple[int, ...] | None) -> dict[str, list[list[int]]]:
    """The groups of ranks that exchange at the same time, by scope.

    A rail holds the ranks that come n-th on their hosts. A scope that would repeat another, or whose groups
    are not alike, is absent.
    """
    everyone = list(range(len(host_G)))
    labels: dict[str, list[Any]] = {
        "domain": list(domain_of_rank or host_G),
        "rail": [host_G[:rank].count(host) for rank, host in enumerate(host_G)],
    }
    found: dict[str, list[list[int]]] = {}
    for scope, label_G in labels.items():
        groups: dict[Any, list[int]] = {}
        for rank in everyone:
            groups.setdefault(label_G[rank], []).append(rank)
        sizes = set(map(len, groups.values()))
        if len(sizes) == 1 and 1 < len(groups) < len(everyone):
            found[scope] = list(groups.values())
    return {**found, "all": [everyone]}


def today() -> str:
    return dt.datetime.now(dt.timezone.utc).date().isoformat()


def measured(
    job: MeasureJob, found: list[dict[str, Any]], source: str, date: str | None
) -> tuple[MeasureFacts, ...]:
    """One fact for each scope."""
    host_G = [one["host"] for one in found]
    whole = MeasureFacts(
        source=source,
        kind="torch-nccl" if job.device == "cuda" else "torch-gloo",
        collective="alltoall",
        ranks=job.ranks,
        hosts=tuple(host_G),
        gpu_names=tuple(dict.fromkeys(one["gpu"] for one in found if one["gpu"])),
        date=date,
        warnings=_warnings(job, host_G),
    )
    groups_of = scopes(host_G, job.domain_of_rank)
    return tuple(
        replace(
            whole,
            scope=scope,
            groups=len(groups),
            samples=_samples([one["rows"][scope] for one in found], len(groups[0])),
        )
        for scope, groups in groups_of.items()
    )


def _samples(rows_of_ranks: list[list[dict[str, Any]]], ranks: int) -> tuple[Sample, ...]:
    """A size took as long as its slowest rank, in the median over the repeats."""
    factor = bus_factor("alltoall", ranks) or 0.0
    samples = []
    for rows in zip(*rows_of_ranks, strict=True):
        repeats = zip(*(row["seconds"] for row in rows), strict=True)
        seconds, size = median(map(max, repeats)), rows[0]["size"]
        busbw = size * factor / seconds
        samples.append(Sample(size, seconds, size / seconds, busbw, busbw, in_place=False))
    return tuple(samples)


def _warnings(job: MeasureJob, host_G: list[str]) -> tuple[str, ...]:
    warnings = []
    if job.device == "cpu":
        network = "this is the rate of that network, not of NVLink or of GPUs' NICs"
        warnings.append(f"measured between CPU processes over gloo (TCP): {network}")
    if len(set(Counter(host_G).values())) > 1:
        warnings.append(
            "the hosts have different numbers of ranks: rails and domains were not measured apart"
        )
    return tuple(warnings)
