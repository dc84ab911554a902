"""What a measurement by torch.distributed is asked to do, and how its ranks' times become facts. No torch here.

Shapes: G ranks.
"""

import json
import math
from collections import Counter
from dataclasses import asdict, dataclass
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
    """The sizes of an all-to-all: from `smallest_bytes` to `largest_bytes` by `factor`, as nccl-tests counts them; each timed `repeats` times."""

    smallest_bytes: int = 8 << 20
    largest_bytes: int = 256 << 20
    factor: int = 2
    repeats: int = 5

    def __post_init__(self) -> None:
        if (
            self.smallest_bytes < 1
            or self.largest_bytes < self.smallest_bytes
            or self.factor < 2
            or self.repeats < 1
        ):
            given = f"{self.smallest_bytes} to {self.largest_bytes} bytes by {self.factor}, {self.repeats} repeats"
            raise BadInput(
                f"cannot measure {given}; sizes go up from at least 1 byte by a factor of at least 2, with at least one repeat"
            )
        if len(self.sizes) > MOST_SIZES:
            raise BadInput(
                f"{len(self.sizes)} sizes are more than the {MOST_SIZES} that are measured; use a larger factor"
            )

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
    return MeasureJob(
        **{**data, "sweep": Sweep(**data["sweep"])},
        domain_of_rank=None if domains is None else tuple(domains),
    )


def scopes(host_G: list[str], domain_of_rank: tuple[int, ...] | None) -> dict[str, list[list[int]]]:
    """The groups of ranks that exchange at the same time, by scope; a scope that would repeat another, or whose groups are not alike, is absent.

    A rail holds the ranks that come n-th on their hosts.
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


def measured(
    job: MeasureJob, found: list[dict[str, Any]], source: str, date: str | None
) -> tuple[MeasureFacts, ...]:
    """One fact for each scope. A size took as long as its slowest rank, in the median over the repeats."""
    host_G = [one["host"] for one in found]
    facts = []
    for scope, groups in scopes(host_G, job.domain_of_rank).items():
        ranks = len(groups[0])
        factor = bus_factor("alltoall", ranks) or 0.0
        samples = []
        for index, row in enumerate(found[0]["rows"][scope]):
            repeats = zip(*(one["rows"][scope][index]["seconds"] for one in found), strict=True)
            seconds, size = median(map(max, repeats)), row["size"]
            samples.append(
                Sample(
                    size,
                    seconds,
                    size / seconds,
                    size * factor / seconds,
                    size * factor / seconds,
                    in_place=False,
                )
            )
        facts.append(
            MeasureFacts(
                source=source,
                kind="torch-nccl" if job.device == "cuda" else "torch-gloo",
                collective="alltoall",
                ranks=job.ranks,
                hosts=tuple(host_G),
                gpu_names=tuple(dict.fromkeys(one["gpu"] for one in found if one["gpu"])),
                scope=scope,
                groups=len(groups),
                samples=tuple(samples),
                date=date,
                warnings=_warnings(job, host_G),
            )
        )
    return tuple(facts)


def _warnings(job: MeasureJob, host_G: list[str]) -> tuple[str, ...]:
    warnings = []
    if job.device == "cpu":
        warnings.append(
            "measured between CPU processes over gloo (TCP): this is the rate of that network, not of NVLink or of GPUs' NICs"
        )
    if len(set(Counter(host_G).values())) > 1:
        warnings.append(
            "the hosts have different numbers of ranks: rails and domains were not measured apart"
        )
    return tuple(warnings)
