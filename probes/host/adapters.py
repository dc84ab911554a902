"""Which of a host's network adapters carry its fabric: a pure rule over link layer, rate, state and model."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from probes.base.facts import NicFact
from probes.base.port_rates import human_port

Port = tuple[str | None, float]  # link layer, bytes/s


def port_fact(nic: NicFact, state: str | None, physical: str | None) -> NicFact:
    """`nic` with its state.

    The rate of a port that is not active is no fact: down ports report 10 or 40 Gb/s whatever they are.
    """
    if state is None:
        return replace(nic, up=None)
    if state.lower() == "active":
        return replace(nic, up=True)
    where = f"{state}, {physical}" if physical and physical.lower() != "linkup" else state
    fault = f"{nic.name}: the port is not active ({where})"
    return replace(nic, up=False, rate_bytes_per_s=None, faults=(*nic.faults, fault))


def mark_fabric(nics: Sequence[NicFact]) -> tuple[tuple[NicFact, ...], tuple[str, ...]]:
    """The NICs with `compute` False where they cannot be of the fabric, and a sentence for each such group.

    The fabric is the link layer and rate with most bandwidth together; Ethernet beside InfiniBand, and slower
    ports beside faster ones of another model, are not of it. What is not ruled out stays None: a storage NIC
    may look just like a fabric NIC.
    """
    best = _most_bandwidth(nics)
    if not best:
        return tuple(nics), ()
    if len(best) > 1:
        ties = " and ".join(_group(*port) for port in best)
        untold = f"which adapters carry the fabric cannot be told: {ties} have the same bandwidth together"
        return tuple(nics), (untold,)
    fabric = best[0]
    models = {nic.model for nic in nics if nic.model and nic.up and _port(nic) == fabric}
    marked = _down_ones([_judged(nic, fabric, models) for nic in nics], models)
    newly = [
        after
        for before, after in zip(nics, marked, strict=True)
        if before.compute is None and after.compute is False
    ]
    return tuple(marked), (*_left_out(newly, fabric), *_faster(nics, fabric))


def _port(nic: NicFact) -> tuple[str | None, float | None]:
    return nic.link_layer, nic.rate_bytes_per_s


def _most_bandwidth(nics: Iterable[NicFact]) -> list[Port]:
    """The link layer and rate with most bandwidth together, or the first two where they tie."""
    total: dict[Port, float] = {}
    for nic in nics:
        if nic.up and nic.rate_bytes_per_s and nic.compute is not False:
            port = (nic.link_layer, nic.rate_bytes_per_s)
            total[port] = total.get(port, 0.0) + nic.rate_bytes_per_s
    best = sorted(total, key=lambda port: -total[port])[:2]
    return [port for port in best if total[port] == total[best[0]]]


def _left_out(nics: Iterable[NicFact], fabric: Port) -> list[str]:
    groups: dict[str, list[str]] = {}
    for nic in nics:
        if nic.rate_bytes_per_s:
            groups.setdefault(_group(nic.link_layer, nic.rate_bytes_per_s), []).append(nic.name)
    return [
        f"not counted for expert traffic: {', '.join(names)} ({group} beside {_group(*fabric)})"
        for group, names in groups.items()
    ]


def _faster(nics: Iterable[NicFact], fabric: Port) -> list[str]:
    layer, rate = fabric
    alike = [nic for nic in nics if nic.up and nic.link_layer == layer]
    faster = [nic.name for nic in alike if (nic.rate_bytes_per_s or 0) > rate]
    if not faster:
        return []
    most = f"faster than the {_group(*fabric)} of the most"
    return [f"{', '.join(faster)}: {most}; whether they are of the fabric is not told"]


def _judged(nic: NicFact, fabric: Port, models: set[str]) -> NicFact:
    layer, rate = fabric
    if not nic.up or nic.compute is False or not nic.rate_bytes_per_s:
        return nic
    if nic.link_layer != layer and None not in (nic.link_layer, layer):
        return replace(nic, compute=False)
    if nic.rate_bytes_per_s >= rate:
        return nic
    if nic.model in models:  # the same card at a lower rate: a bad cable as likely as another purpose
        others = f"others of its model ({nic.model}) run at {human_port(rate)}"
        slow = f"{nic.name}: runs at {human_port(nic.rate_bytes_per_s)} where {others}"
        return replace(nic, faults=(*nic.faults, slow))
    return replace(nic, compute=False)


def _down_ones(nics: list[NicFact], models: set[str]) -> list[NicFact]:
    """A port that is down tells nothing of itself.

    But one of a model that is only used elsewhere is not of the fabric either.
    """
    elsewhere = {nic.model for nic in nics if nic.compute is False and nic.model} - models

    def is_elsewhere(nic: NicFact) -> bool:
        return nic.up is False and nic.compute is None and nic.model in elsewhere

    return [replace(nic, compute=False) if is_elsewhere(nic) else nic for nic in nics]


def _group(layer: str | None, rate_bytes_per_s: float) -> str:
    return f"{human_port(rate_bytes_per_s)} {layer}" if layer else human_port(rate_bytes_per_s)
