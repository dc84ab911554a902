"""NVLink, PCIe and NICs of a node in a topology file; its shape was checked as a whole."""

from typing import Any

from planner.base import BadInput
from planner.topology.figures_from_dict import rate_of, rates_of
from planner.topology.nodes import Nic
from planner.topology.nvlink import Island, NvLink, PairLink
from planner.topology.pcie import Pcie, PcieSwitch


def nvlink_from_dict(entry: Any, where: str) -> NvLink:
    islands = [
        _island(island, f"{where}: islands[{index}]") for index, island in enumerate(entry.get("islands", []))
    ]
    pairs: list[PairLink] = []
    for index, group in enumerate(entry.get("pairs", [])):
        pairs += _pairs(group, f"{where}: pairs[{index}]")
    return NvLink(entry["kind"], tuple(islands), tuple(pairs))


def _island(entry: Any, where: str) -> Island:
    gpus = tuple(entry["gpus"])
    return Island(gpus, rates_of(entry["rate"], len(gpus), f"{where}: rate"))


def _pairs(entry: Any, where: str) -> list[PairLink]:
    rate = rate_of(entry["rate"], f"{where}: rate")
    return [PairLink((one, other), rate) for one, other in entry["gpus"]]


def pcie_from_dict(entry: Any, gpu_count: int, where: str) -> Pcie:
    sockets = tuple(entry.get("sockets", [0] * gpu_count))
    switches: list[PcieSwitch] = []
    for index, group in enumerate(entry.get("switches", [])):
        switches += _pcie_switches(group, f"{where}: switches[{index}]")
    inter_socket = None
    if "inter_socket" in entry:
        inter_socket = rate_of(entry["inter_socket"], f"{where}: inter_socket")
    return Pcie(rates_of(entry["rate"], gpu_count, f"{where}: rate"), sockets, tuple(switches), inter_socket)


def _pcie_switches(entry: Any, where: str) -> list[PcieSwitch]:
    """Switches of one uplink rate."""
    uplink = rate_of(entry["uplink"], f"{where}: uplink")
    gpus = entry["gpus"]
    nics = entry.get("nics", [[]] * len(gpus))
    if len(nics) != len(gpus):
        raise BadInput(
            f"{where}: 'nics' lists {len(nics)} switches, 'gpus' {len(gpus)}; "
            "give each switch its list of both"
        )
    return [PcieSwitch(tuple(below), uplink, tuple(cards)) for below, cards in zip(gpus, nics, strict=True)]


def nics_from_dict(entry: Any, where: str) -> list[Nic]:
    """NICs of one rate."""
    rate = rate_of(entry["rate"], f"{where}: rate")
    count = len(entry["gpus"])
    rails = tuple(entry.get("rails", [0] * count))
    names = entry.get("names", [""] * count)
    if len(rails) != count or len(names) != count:
        asked = "'rails' and 'names' need one entry for each"
        raise BadInput(f"{where}: lists {count} NICs under 'gpus'; {asked}")
    return [
        Nic(rate, tuple(gpus), rail, name, entry.get("socket"))
        for gpus, rail, name in zip(entry["gpus"], rails, names, strict=True)
    ]
