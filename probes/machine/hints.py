"""What a person adds to the sources."""

from dataclasses import dataclass

from planner.base import BadInput
from planner.topology import LARGEST_GPUS
from probes.machine.gpu_names import GpuLinks, links_of_gpu, named_gpu


@dataclass(frozen=True)
class Hints:
    """What a person adds to the sources. Values that a source tells win over hints, with a warning."""

    gpu: str | None = None  # 'H100-SXM', or the driver's name
    nic_bytes_per_s: float | None = None  # of each NIC whose rate no source tells, one direction
    nodes: int | None = None  # hosts like the one described
    oversubscription: float | None = None
    nvlink_domain_nodes: int | None = None  # hosts in one NVLink domain: 18 in an NVL72 rack
    cpu_rates: bool = False  # take rates measured between CPU processes for those of the machine
    name: str = "imported"
    own_gpus: tuple[GpuLinks, ...] = ()  # models that a person described (--gpu-model)
    nic_of: tuple[tuple[int, tuple[str, ...]], ...] = ()  # the NICs of a GPU of each host, by name (--nic-of)

    @property
    def stated_gpu(self) -> GpuLinks | None:
        """The model that a person named; a single one that they described needs no name."""
        if self.gpu is None and len(self.own_gpus) == 1:
            return self.own_gpus[0]
        return None if self.gpu is None else named_gpu(self.gpu, self.own_gpus)

    def links_of(self, product: str | None) -> GpuLinks | None:
        """What is known of a driver's product name."""
        return links_of_gpu(product, self.own_gpus)


NO_HINTS = Hints()


def check_hints(hints: Hints) -> None:
    """BadInput where one is no number that can be, or names a GPU we do not know."""
    _ = hints.stated_gpu
    for flag, count in (("--nodes", hints.nodes), ("--nvlink-domain-nodes", hints.nvlink_domain_nodes)):
        if count is not None and not 1 <= count <= LARGEST_GPUS:
            raise BadInput(f"{flag} {count}: give a number from 1 to {LARGEST_GPUS:,}")
    if hints.nic_bytes_per_s is not None and not 0 < hints.nic_bytes_per_s < 1e15:
        raise BadInput(f"--nic {hints.nic_bytes_per_s:g} bytes/s: give the rate of one NIC, like 400G")
    if hints.oversubscription is not None and not 1 <= hints.oversubscription < 1e6:
        given = f"--oversubscription {hints.oversubscription:g}"
        raise BadInput(f"{given}: is down / up bandwidth of a leaf switch and at least 1")
