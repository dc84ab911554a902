"""`ibstat` and `ibstatus`: the adapters of one host, or of several behind pdsh's 'host: '.

Also lists of 'VM_hostname NAME' above a port GUID each.
"""

import re
from collections.abc import Iterable
from dataclasses import replace

from planner.base import BadInput
from probes.base.facts import HostFacts, NicFact, noted
from probes.base.port_rates import port_bytes_per_s
from probes.fabric.naming import gid_guid, is_gid, normal_guid
from probes.host.adapters import mark_fabric, port_fact
from probes.importers.ibstat_text import DEVICE, Device, devices_of, lines_of

_PANIC_DEVICE = re.compile(r"IB device '([^']{1,64})'")
_PAIR = re.compile(
    r"^VM_hostname[ \t]+(\S{1,255})[ \t\r]*\n[ \t]*(?:0x)?([0-9a-fA-F]{16})[ \t\r]*$", re.MULTILINE
)
_LAYERS = ("InfiniBand", "Ethernet")
_WORDS = ("CA '", "Infiniband device '", "VM_hostname ")
OF_ONE_HOST = True


def recognise(content: bytes, name: str) -> bool:
    """Whether it holds a device line of ibstat or ibstatus, or a list of host names and GUIDs."""
    if not any(word.encode() in content for word in _WORDS):
        return False
    is_list = re.search(rb"^VM_hostname \S", content, re.MULTILINE)
    return bool(DEVICE.search(_text(content)) or is_list)


def read(content: bytes, name: str) -> tuple[HostFacts, ...]:
    """One value for each host. Unrelated lines around are passed over.

    BadInput where a device appears twice on a host.
    """
    text = _text(content)
    if not DEVICE.search(text):
        return _read_list(text, name)
    hosts = list(dict.fromkeys(match[1] for match in DEVICE.finditer(text)))
    facts = [_host(host, lines_of(host, text), name) for host in hosts]
    lost = sum(text.count(word) for word in _WORDS[:2]) - sum(1 for _ in DEVICE.finditer(text))
    if lost > 0:
        unread = f"{lost} lines name a device in a way that cannot be read: adapters are missing"
        facts[0] = noted(facts[0], [unread])
    last = text.rstrip().rpartition("\n")[2].lstrip("> \t")
    if "CA '".startswith(last) or (last.startswith("CA '") and not DEVICE.match(last)):
        cut = f"the text ends in {last[:40]!r}: adapters from there on are missing"
        facts[-1] = noted(facts[-1], [cut])
    return tuple(facts)


def _host(host: str | None, lines: Iterable[tuple[int, str]], name: str) -> HostFacts:
    devices, panics = devices_of(lines, name)
    unknown: list[str] = []
    found: list[NicFact] = []
    several = {device.name for device in devices if set(device.ports) - {"1"}}
    for device in devices:
        for number, fields in device.ports.items() or [("", {})]:
            words = {**device.fields, **fields}
            unknown += _doubts(device, words)
            found.append(_nic(device.name, number if device.name in several else None, words))
        unknown += _ports_missing(device)
    for panic in panics:
        missing = _PANIC_DEVICE.search(panic)
        what = missing[1] if missing else "what follows"
        unknown.append(f"ibstat stopped early ({panic}): {what} is not shown")
    has_gids = any("default gid" in fields for device in devices for fields in device.ports.values())
    kind = "ibstatus" if has_gids else "ibstat"
    nics, warnings = mark_fabric(found)
    return HostFacts(name, kind, "imported", host, nics=nics, unknown=tuple(unknown), warnings=warnings)


def _ports_missing(device: Device) -> list[str]:
    shown = str(len(device.ports))
    declared = device.fields.get("number of ports", shown)
    if declared == shown:
        return []
    where = f"{device.name} (line {device.line})"
    return [f"{where} says it has {declared} ports; {shown} are shown: the text may be cut short"]


def _doubts(device: Device, words: dict[str, str]) -> list[str]:
    where = f"{device.name} (line {device.line})"
    if "second node guid" in words:
        begins = "the line that begins another adapter is missing, and so is that adapter"
        return [f"{where} has two node GUIDs: {begins}"]
    missing = [word for word in ("state", "rate", "link layer") if word not in words]
    layer = words.get("link layer", "")
    if missing or any(known != layer and known.startswith(layer) for known in _LAYERS):
        lacks = ", ".join(missing) or "link layer"
        cut = "the text may be cut short there, and adapters after it missing"
        return [f"{where} is not whole ({lacks} missing): {cut}"]
    if layer not in _LAYERS:
        return [f"{where}: the link layer {layer[:40]!r} is neither InfiniBand nor Ethernet"]
    return []


def _nic(device: str, number: str | None, words: dict[str, str]) -> NicFact:
    """`number` where the device has several ports."""
    state, physical = (
        words[key].split(":")[-1].strip() if key in words else None for key in ("state", "physical state")
    )
    layer = words.get("link layer")
    gid = words.get("default gid", "")
    own = gid_guid(gid) if is_gid(gid) else normal_guid(words.get("port guid", ""))
    # without the link layer, which comes after it, the rate may be cut: 40 of 400
    rate = port_bytes_per_s(words.get("rate", "")) if layer is not None else None
    nic = NicFact(
        device if number is None else f"{device}:{number}",
        device=None if number is None else device,
        rate_bytes_per_s=rate,
        link_layer=layer if layer in _LAYERS else None,
        guid=own or normal_guid(words.get("node guid", "")),
        model=words.get("ca type") or None,
        card=normal_guid(words.get("system image guid", "")),
    )
    return port_fact(nic, state.capitalize() if state else None, physical)


def _read_list(text: str, name: str) -> tuple[HostFacts, ...]:
    pairs = _PAIR.findall(text)
    listed = text.count("VM_hostname ")
    if not listed:
        raise BadInput(f"{name}: no adapter in it; give the output of ibstat or ibstatus")
    if len(pairs) != listed:
        lines = f"{listed} lines 'VM_hostname NAME' have {len(pairs)} GUIDs below them"
        raise BadInput(f"{name}: {lines}; give each its port GUID (16 hex digits)")
    if len({host for host, _ in pairs}) != len(pairs):
        raise BadInput(f"{name}: a host name appears twice in the list; name every host once")
    unknown = "the list gives names and port GUIDs alone: no rates, states or other adapters"
    facts = HostFacts(name, "guid-list", "imported", unknown=(unknown,))
    return tuple(
        replace(facts, host=host, nics=(NicFact(guid.lower(), guid=guid.lower()),)) for host, guid in pairs
    )


def _text(content: bytes) -> str:
    return content.decode("utf-8-sig", "replace")
