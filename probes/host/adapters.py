"""Which of a host's network adapters carry its fabric: a pure rule over what every source tells (link layer, rate, state, model)."""

from collections.abc import Sequence
from dataclasses import replace

from probes.base.facts import NicFact
from probes.base.port_rates import human_port


def port_fact(nic: NicFact, state: str | None, physical: str | None) -> NicFact:
    """`nic` with its state. The rate of a port that is not active is no fact: down ports report 10 or 40 Gb/s whatever they are."""
    if state is None:
        return replace(nic, up=None)
    if state.lower() == "active":
        return replace(nic, up=True)
    where = f"{state}, {physical}" if physical and physical.lower() != "linkup" else state
    return replace(
        nic,
        up=False,
        rate_bytes_per_s=None,
        faults=(*nic.faults, f"{nic.name}: the port is not active ({where})"),
    )


def mark_fabric(nics: Sequence[NicFact]) -> tuple[tuple[NicFact, ...], tuple[str, ...]]:
    """The NICs with `compute` False where they cannot be of the fabric, and a sentence for each such group.

    The fabric is the link layer and rate with most bandwidth together; Ethernet beside InfiniBand, and slower ports beside faster ones of another
    model, are not of it. What is not ruled out stays None: a storage NIC may look just like a fabric NIC.
    """
    total: dict[tuple[str | None, float], float] = {}
    for nic in nics:
        if nic.up and nic.rate_bytes_per_s and nic.compute is not False:
            key = (nic.link_layer, nic.rate_bytes_per_s)
            total[key] = total.get(key, 0.0) + nic.rate_bytes_per_s
    best = sorted(total.items(), key=lambda entry: -entry[1])[:2]
    if not best or (len(best) == 2 and best[0][1] == best[1][1]):
        ties = " and ".join(_group(*key) for key, _ in best)
        return tuple(nics), (
            f"which adapters carry the fabric cannot be told: {ties} have the same bandwidth together",
        ) if best else ()
    fabric = best[0][0]
    models = {
        nic.model for nic in nics if nic.model and nic.up and (nic.link_layer, nic.rate_bytes_per_s) == fabric
    }
    marked = _down_ones([_judged(nic, fabric, models) for nic in nics], models)
    left_out: dict[str, list[str]] = {}
    for before, after in zip(nics, marked, strict=True):
        if after.compute is False and before.compute is None and after.rate_bytes_per_s:
            left_out.setdefault(_group(after.link_layer, after.rate_bytes_per_s), []).append(after.name)
    warnings = [
        f"not counted for expert traffic: {', '.join(names)} ({group} beside {_group(*fabric)})"
        for group, names in left_out.items()
    ]
    faster = [
        n.name for n in nics if n.up and n.link_layer == fabric[0] and (n.rate_bytes_per_s or 0) > fabric[1]
    ]
    if faster:
        warnings.append(
            f"{', '.join(faster)}: faster than the {_group(*fabric)} of the most; whether they are of the fabric is not told"
        )
    return tuple(marked), tuple(warnings)


def _judged(nic: NicFact, fabric: tuple[str | None, float], models: set[str]) -> NicFact:
    layer, rate = fabric
    if not nic.up or nic.compute is False or not nic.rate_bytes_per_s:
        return nic
    if nic.link_layer != layer and None not in (nic.link_layer, layer):
        return replace(nic, compute=False)
    if nic.rate_bytes_per_s >= rate:
        return nic
    if nic.model in models:  # the same card at a lower rate: a bad cable as likely as another purpose
        slow = f"{nic.name}: runs at {human_port(nic.rate_bytes_per_s)} where others of its model ({nic.model}) run at {human_port(rate)}"
        return replace(nic, faults=(*nic.faults, slow))
    return replace(nic, compute=False)


def _down_ones(nics: list[NicFact], models: set[str]) -> list[NicFact]:
    """A port that is down tells nothing of itself, but one of a model that is only used elsewhere is not of the fabric either."""
    elsewhere = {nic.model for nic in nics if nic.compute is False and nic.model} - models
    return [
        replace(nic, compute=False)
        if nic.up is False and nic.compute is None and nic.model in elsewhere
        else nic
        for nic in nics
    ]


def _group(layer: str | None, rate_bytes_per_s: float) -> str:
    return f"{human_port(rate_bytes_per_s)} {layer}" if layer else human_port(rate_bytes_per_s)
