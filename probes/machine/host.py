"""One host as all sources together describe it, and the sentences that come up on the way to a machine."""

from dataclasses import dataclass, field

from planner.base import Evidence
from probes.base.facts import GpuFact, NicFact
from probes.machine.nvlink_domains import Domains


@dataclass(frozen=True)
class Host:
    """One host as all sources together describe it.

    `evidence` is of single values, by 'gpu', 'nic' or 'host', index, and field.
    """

    name: str
    sources: tuple[str, ...]
    kinds: tuple[str, ...]
    gpus: tuple[GpuFact, ...]
    nics: tuple[NicFact, ...]
    gpu_paths: dict[tuple[int, int], str]
    nic_paths: dict[tuple[int, int], str]
    links: Domains | None  # None: which GPUs NVLink joins is not known
    evidence: dict[tuple[str, int, str], Evidence]

    @property
    def title(self) -> str:
        return f"host {self.name}" if self.name else f"the host of {self.sources[0]}"

    def source_of(self, part: str, index: int, name: str) -> Evidence:
        return self.evidence[part, index, name]


@dataclass
class Notes:
    """Sentences, in the order in which they come up."""

    unknown: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
