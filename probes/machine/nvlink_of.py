"""The NVLink of one host as the planner's `NvLink`, each rate with what it rests on."""

from collections.abc import Sequence
from itertools import combinations

from planner.base import Evidence, Rate, weakest
from planner.topology import Island, NvLink, PairLink
from probes.machine.gpu_names import payload_bytes_per_s
from probes.machine.gpu_table import GpuLinks
from probes.machine.hints import NO_HINTS, Hints
from probes.machine.host import Host
from probes.machine.nvlink_domains import Domains, links_of
from probes.machine.nvlink_labels import domains_from_paths
from probes.machine.stated import MissingFigureError


def known_links(host: Host, hints: Hints = NO_HINTS) -> Domains | None:
    """The NVLink domains, where need be told apart (switch or direct) by the GPU model."""
    shows_links = any(links_of(path) for path in host.gpu_paths.values())
    if host.links is None or host.links.kind is not None or not shows_links:
        return host.links
    read = {hints.links_of(one.name) for one in host.gpus}
    model = next(iter(read)) if len(read) == 1 else None
    model = model or hints.stated_gpu
    return domains_from_paths(len(host.gpus), host.gpu_paths, model.nvlinks if model else None)


def nvlink_of(host: Host, links: Domains | None, gpus: Sequence[GpuLinks]) -> NvLink:
    if links is None:
        if len(gpus) == 1 or not any(gpu.nvlinks for gpu in gpus):
            return NvLink()
        raise MissingFigureError(
            f"{host.title}: which GPUs NVLink joins is not known; add the output of 'nvidia-smi topo -m'"
        )
    largest = max(map(len, links.domains))
    seen_whole = links.kind is None and all(pair in host.gpu_paths for pair in _pairs(host))
    if links.kind == "none" or (largest == 1 and seen_whole):
        return NvLink()
    if links.kind == "switch":
        return _switched(host, links, gpus)
    if links.kind in {"mesh", "bridge"} or (largest == 2 and seen_whole):
        return NvLink("bridge" if largest == 2 else "mesh", pairs=_cabled(host, links, gpus))
    raise MissingFigureError(
        f"{host.title}: how NVLink joins the GPUs is not known; "
        "add the whole output of 'nvidia-smi topo -m', or name the GPU: --gpu"
    )


def _pairs(host: Host) -> list[tuple[int, int]]:
    return list(combinations(range(len(host.gpus)), 2))


def _switched(host: Host, links: Domains, gpus: Sequence[GpuLinks]) -> NvLink:
    groups = [group for group in links.domains if len(group) > 1 or host.gpus[group[0]].fabric]
    islands = [
        Island(group, tuple(_port_rate(host, links, gpu, gpus[gpu]) for gpu in group)) for group in groups
    ]
    return NvLink("switch", tuple(islands)) if groups else NvLink()


def _cabled(host: Host, links: Domains, gpus: Sequence[GpuLinks]) -> tuple[PairLink, ...]:
    inside = [pair for pair in _pairs(host) if any(set(pair) <= set(group) for group in links.domains)]
    bare = next((pair for pair in inside if pair not in host.gpu_paths), None)
    if bare:
        raise MissingFigureError(
            f"{host.title}: the link of GPUs {bare[0]} and {bare[1]} is not in any source; "
            "add the whole output of 'nvidia-smi topo -m'"
        )
    joined = [pair for pair in inside if links_of(host.gpu_paths[pair])]
    return tuple(PairLink(pair, _pair_rate(host, pair, gpus[pair[0]])) for pair in joined)


def _port_rate(host: Host, links: Domains, gpu: int, model: GpuLinks) -> Rate:
    count, counted = links.links[gpu] or host.gpus[gpu].nvlinks, host.evidence["host", 0, "nvlink"]
    if not count:
        count, counted = model.nvlinks, Evidence("preset", model.source)
    return _together(count, counted, host, gpu, model)


def _pair_rate(host: Host, pair: tuple[int, int], model: GpuLinks) -> Rate:
    count, counted = links_of(host.gpu_paths[pair]), host.evidence["host", 0, "nvlink"]
    return _together(count, counted, host, pair[0], model)


def _together(count: int, counted: Evidence, host: Host, gpu: int, model: GpuLinks) -> Rate:
    """Payload rate of so many NVLinks of a GPU."""
    rate, evidence, words = _link_rate(host, gpu, model)
    source = f"{count} NVLinks ({counted.source}) of {words}"
    return Rate(count * rate, Evidence(weakest((counted, evidence)).kind, source))


def _link_rate(host: Host, gpu: int, model: GpuLinks) -> tuple[float, Evidence, str]:
    """Payload bytes/s of one NVLink, what it rests on, and the words for it."""
    read = host.gpus[gpu].nvlink_bytes_per_s
    if read:
        evidence = host.source_of("gpu", gpu, "nvlink_bytes_per_s")
        payload = payload_bytes_per_s(read)
        return payload, evidence, f"{payload / 1e9:g} GB/s of payload each ({read / 1e9:g} GB/s read)"
    rate = model.nvlink_bytes_per_s
    if not rate:
        raise MissingFigureError(
            f"{host.title}: GPU {gpu} shows NVLinks, which the {model.model} does not have; "
            "name the right GPU: --gpu"
        )
    return rate, Evidence("preset", model.source), f"{rate / 1e9:g} GB/s each, {model.source}"
