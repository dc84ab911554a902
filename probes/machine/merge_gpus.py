"""The GPUs of one host from several sources, the best evidence first."""

from collections.abc import Sequence
from dataclasses import replace

from probes.base.facts import GpuFact, HostFacts
from probes.machine.ledger import Ledger, Places


def merge_gpus(facts: Sequence[HostFacts], ledger: Ledger) -> tuple[tuple[GpuFact, ...], Places]:
    """The GPUs in the order of the first source that has any.

    Others are matched by UUID, then PCI address, then index.
    """
    sources = [fact for fact in facts if fact.gpus]
    counts = {len(fact.gpus) for fact in sources}
    if len(counts) > 1:
        shown = ", ".join(f"{len(fact.gpus)} in {fact.source}" for fact in sources)
        ledger.warn(f"the sources show different numbers of GPUs: {shown}; {max(counts)} is used")
    gpus: list[GpuFact] = []
    places: Places = []
    for fact in facts:
        mine: dict[int, int] = {}
        for gpu in fact.gpus:
            place = _place_of(gpu, gpus, set(mine.values()))
            if place == len(gpus):
                gpus.append(GpuFact(place))
            mine[gpu.index] = place
            gpus[place] = ledger.fill(gpus[place], replace(gpu, index=place), fact, "gpu", place)
        places.append(mine)
    return tuple(gpus), places


def _place_of(gpu: GpuFact, known: Sequence[GpuFact], taken: set[int]) -> int:
    for key in ("uuid", "pci"):
        value = getattr(gpu, key)
        alike = (place for place, other in enumerate(known) if value and getattr(other, key) == value)
        match = next(alike, None)
        if match is not None:
            return match
    free = [place for place in range(len(known)) if place not in taken and not _other_gpu(gpu, known[place])]
    return gpu.index if gpu.index in free else len(known)


def _other_gpu(one: GpuFact, other: GpuFact) -> bool:
    both = [(one.uuid, other.uuid), (one.pci, other.pci)]
    return any(mine and theirs and mine != theirs for mine, theirs in both)
