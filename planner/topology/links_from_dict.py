"""NVLink, PCIe and NICs of a node in a topology file."""

from typing import Any

from planner.base import BadInput, check_keys
from planner.topology.figures_from_dict import members_of, rate_of, rates_of
from planner.topology.nodes import Nic
from planner.topology.nvlink import Island, NvLink, PairLink
from planner.topology.pcie import Pcie, PcieSwitch


def nvlink_from_dict(entry: Any, where: str) -> NvLink:
    check_keys(entry, where, {"kind": str}, {"islands": list, "pairs": list})
    islands = [
        _island(island, f"{where}: islands[{index}]") for index, island in enumerate(entry.get("islands", []))
    ]
    pairs: list[PairLink] = []
    for index, group in enumerate(entry.get("pairs", [])):
        pairs += _pairs(group, f"{where}: pairs[{index}]")
    return NvLink(entry["kind"], tuple(islands), tuple(pairs))


def _island(entry: Any, where: str) -> Island:
    check_keys(entry, where, {"gpus": list, "rate": (dict, list)})
    gpus = members_of(entry["gpus"], f"{where}: gpus")
    return Island(gpus, rates_of(entry["rate"], len(gpus), f"{where}: rate"))


def _pairs(entry: Any, where: str) -> list[PairLink]:
    check_keys(entry, where, {"gpus": list, "rate": dict})
    rate = rate_of(entry["rate"], f"{where}: rate")
    return [PairLink(_pair(pair, where), rate) for pair in entry["gpus"]]


def _pair(entry: Any, where: str) -> tuple[int, int]:
    members = members_of(entry, f"{where}: gpus")
    if len(members) != 2:
        raise BadInput(f"{where}: {entry} is not a pair of two GPUs")
    return members[0], members[1]


def pcie_from_dict(entry: Any, gpu_count: int, where: str) -> Pcie:
    check_keys(
        entry, where, {"rate": (dict, list)}, {"sockets": list, "switches": list, "inter_socket": dict}
    )
    sockets = members_of(entry.get("sockets", [0] * gpu_count), f"{where}: sockets")
    switches: list[PcieSwitch] = []
    for index, group in enumerate(entry.get("switches", [])):
        switches += _pcie_switches(group, f"{where}: switches[{index}]")
    inter_socket = None
    if "inter_socket" in entry:
        inter_socket = rate_of(entry["inter_socket"], f"{where}: inter_socket")
    return Pcie(rates_of(entry["rate"], gpu_count, f"{where}: rate"), sockets, tuple(switches), inter_socket)


def _pcie_switches(entry: Any, where: str) -> list[PcieSwitch]:
    """Switches of one uplink rate."""
    check_keys(entry, where, {"gpus": list, "uplink": dict}, {"nics": list})
    uplink = rate_of(entry["uplink"], f"{where}: uplink")
    gpus = entry["gpus"]
    nics = entry.get("nics", [[]] * len(gpus))
    if len(nics) != len(gpus):
        raise BadInput(
            f"{where}: 'nics' lists {len(nics)} switches, 'gpus' {len(gpus)}; "
            "give each switch its list of both"
        )
    return [
        PcieSwitch(members_of(below, f"{where}: gpus"), uplink, members_of(cards, f"{where}: nics"))
        for below, cards in zip(gpus, nics, strict=True)
    ]


def nics_from_dict(entry: Any, where: str) -> list[Nic]:
    """NICs of one rate."""
    check_keys(entry, where, {"gpus": list, "rate": dict}, {"rails": list, "names": list, "socket": int})
    rate = rate_of(entry["rate"], f"{where}: rate")
    count = len(entry["gpus"])
    rails = members_of(entry.get("rails", [0] * count), f"{where}: rails")
    names = entry.get("names", [""] * count)
    if len(rails) != count or len(names) != count or not all(isinstance(name, str) for name in names):
        asked = "'rails' and 'names' need one entry for each"
        raise BadInput(f"{where}: lists {count} NICs under 'gpus'; {asked}")
    return [
        Nic(rate, members_of(gpus, f"{where}: gpus"), rail, name, entry.get("socket"))
        for gpus, rail, name in zip(entry["gpus"], rails, names, strict=True)
    ]
