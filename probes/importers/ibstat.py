"""`ibstat` and `ibstatus`: the adapters of one host, or of several behind pdsh's 'host: '. Also lists of 'VM_hostname NAME' above a port GUID each."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from planner.base import BadInput
from probes.base.facts import HostFacts, NicFact
from probes.base.port_rates import port_bytes_per_s
from probes.fabric.naming import normal_guid
from probes.host.adapters import mark_fabric, port_fact

_DEVICE = re.compile(
    r"^[> \t]*(?:([\w.-]{1,255}):[ \t]{1,4})?(?:CA|Infiniband device) '([^'\r\n]{1,64})'(?: port (\d{1,3}) status:)?[ \t\r]*$",
    re.MULTILINE,
)
_PORT = re.compile(r"Port (\d{1,3}):")
_FIELD = re.compile(r"([A-Za-z_ ]{1,40}):\s*(.*)")
_PANIC = re.compile(r"ibpanic: .{0,200}")
_PANIC_DEVICE = re.compile(r"IB device '([^']{1,64})'")
_PAIR = re.compile(
    r"^VM_hostname[ \t]+(\S{1,255})[ \t\r]*\n[ \t]*(?:0x)?([0-9a-fA-F]{16})[ \t\r]*$", re.MULTILINE
)
_LAYERS = ("InfiniBand", "Ethernet")
_WORDS = ("CA '", "Infiniband device '", "VM_hostname ")


def recognise(content: bytes, name: str) -> bool:
    """Whether it holds a device line of ibstat or ibstatus, or a list of host names and GUIDs."""
    return any(word.encode() in content for word in _WORDS) and bool(
        _DEVICE.search(_text(content)) or _is_list(content)
    )


def read(content: bytes, name: str) -> tuple[HostFacts, ...]:
    """One value for each host. Unrelated lines around are passed over. BadInput where a device appears twice on a host."""
    text = _text(content)
    if not _DEVICE.search(text):
        return _read_list(text, name)
    hosts = list(dict.fromkeys(match[1] for match in _DEVICE.finditer(text)))
    facts = [_host(host, _lines_of(host, text), name) for host in hosts]
    lost = sum(text.count(word) for word in _WORDS[:2]) - sum(1 for _ in _DEVICE.finditer(text))
    if lost > 0:
        facts[0] = replace(
            facts[0],
            unknown=(
                *facts[0].unknown,
                f"{lost} lines name a device in a way that cannot be read: adapters are missing",
            ),
        )
    last = text.rstrip().rpartition("\n")[2].lstrip("> \t")
    if "CA '".startswith(last) or (last.startswith("CA '") and not _DEVICE.match(last)):
        facts[-1] = replace(
            facts[-1],
            unknown=(
                *facts[-1].unknown,
                f"the text ends in {last[:40]!r}: adapters from there on are missing",
            ),
        )
    return tuple(facts)


@dataclass
class _Device:
    """One device while its lines come in: its own fields, then those of each port by number. Keys are ibstat's words in lower case."""

    name: str
    line: int
    fields: dict[str, str] = field(default_factory=dict)
    ports: dict[str, dict[str, str]] = field(default_factory=dict)


def _lines_of(host: str | None, text: str) -> Iterable[tuple[int, str]]:
    """Numbered lines of one host, without quote marks, indentation and the host's prefix."""
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.lstrip("> \t")
        if host is None:
            yield number, stripped.strip()
        elif stripped.startswith(f"{host}:"):
            yield number, stripped[len(host) + 1 :].strip()


def _host(host: str | None, lines: Iterable[tuple[int, str]], name: str) -> HostFacts:
    devices, panics = _devices(lines, name)
    unknown: list[str] = []
    found: list[NicFact] = []
    several = {device.name for device in devices if set(device.ports) - {"1"}}
    for device in devices:
        for number, fields in device.ports.items() or [("", {})]:
            words = {**device.fields, **fields}
            unknown += _doubts(device, words)
            found.append(_nic(device.name, number if device.name in several else None, words))
        declared = device.fields.get("number of ports", str(len(device.ports)))
        if declared != str(len(device.ports)):
            unknown.append(
                f"{device.name} (line {device.line}) says it has {declared} ports; {len(device.ports)} are shown: the text may be cut short"
            )
    for panic in panics:
        missing = _PANIC_DEVICE.search(panic)
        unknown.append(
            f"ibstat stopped early ({panic}): {missing[1] if missing else 'what follows'} is not shown"
        )
    kind = (
        "ibstatus"
        if any("default gid" in fields for device in devices for fields in device.ports.values())
        else "ibstat"
    )
    nics, warnings = mark_fabric(found)
    return HostFacts(name, kind, "imported", host, nics=nics, unknown=tuple(unknown), warnings=warnings)


def _devices(lines: Iterable[tuple[int, str]], name: str) -> tuple[list[_Device], list[str]]:
    """The devices, and what ibpanic said."""
    devices: list[_Device] = []
    panics: list[str] = []
    target: dict[str, str] = {}
    seen = set()
    for number, line in lines:
        start, port = _DEVICE.match(line), _PORT.fullmatch(line)
        if start and start[1] is None:
            devices.append(_Device(start[2], number))
            target = devices[-1].ports.setdefault(start[3], {}) if start[3] else devices[-1].fields
            if (start[2], start[3]) in seen:
                why = "give each machine's output in a file of its own, or with pdsh's 'host: ' before every line"
                raise BadInput(f"{name}: line {number}: {start[2]} appears twice; {why}")
            seen.add((start[2], start[3]))
        elif port and devices:
            target = devices[-1].ports.setdefault(port[1], {})
        elif panic := _PANIC.search(line):
            panics.append(panic[0].strip())
        elif devices and (found := _FIELD.fullmatch(line)):
            key = found[1].strip().lower()
            key = {"link_layer": "link layer", "phys state": "physical state"}.get(key, key)
            if key == "node guid" and key in devices[-1].fields:
                devices[-1].fields["second node guid"] = found[
                    2
                ]  # the line that begins another device is missing
            target.setdefault(key, found[2].strip())
    return devices, panics


def _doubts(device: _Device, words: dict[str, str]) -> list[str]:
    where = f"{device.name} (line {device.line})"
    if "second node guid" in words:
        return [
            f"{where} has two node GUIDs: the line that begins another adapter is missing, and so is that adapter"
        ]
    missing = [word for word in ("state", "rate", "link layer") if word not in words]
    layer = words.get("link layer", "")
    if missing or any(known != layer and known.startswith(layer) for known in _LAYERS):
        return [
            f"{where} is not whole ({', '.join(missing) or 'link layer'} missing): the text may be cut short there, and adapters after it missing"
        ]
    return (
        []
        if layer in _LAYERS
        else [f"{where}: the link layer {layer[:40]!r} is neither InfiniBand nor Ethernet"]
    )


def _nic(device: str, number: str | None, words: dict[str, str]) -> NicFact:
    """`number` where the device has several ports."""
    state, physical = (
        words[key].split(":")[-1].strip() if key in words else None for key in ("state", "physical state")
    )
    layer = words.get("link layer")
    gid = words.get("default gid", "")
    own = (
        normal_guid("".join(gid.split(":")[4:]))
        if gid.count(":") == 7
        else normal_guid(words.get("port guid", ""))
    )
    nic = NicFact(
        device if number is None else f"{device}:{number}",
        device=None if number is None else device,
        rate_bytes_per_s=port_bytes_per_s(words.get("rate", ""))
        if layer is not None
        else None,  # the line before may be cut: 40 of 400
        link_layer=layer if layer in _LAYERS else None,
        guid=own or normal_guid(words.get("node guid", "")),
        model=words.get("ca type") or None,
        card=normal_guid(words.get("system image guid", "")),
    )
    return port_fact(nic, state.capitalize() if state else None, physical)


def _read_list(text: str, name: str) -> tuple[HostFacts, ...]:
    pairs = _PAIR.findall(text)
    if "VM_hostname " not in text:
        raise BadInput(f"{name}: no adapter in it; give the output of ibstat or ibstatus")
    if len(pairs) != text.count("VM_hostname "):
        raise BadInput(
            f"{name}: {text.count('VM_hostname ')} lines 'VM_hostname NAME' have {len(pairs)} GUIDs below them; give each its port GUID (16 hex digits)"
        )
    if len({host for host, _ in pairs}) != len(pairs):
        raise BadInput(f"{name}: a host name appears twice in the list; name every host once")
    unknown = "the list gives names and port GUIDs alone: no rates, states or other adapters"
    facts = HostFacts(name, "guid-list", "imported", unknown=(unknown,))
    return tuple(
        replace(facts, host=host, nics=(NicFact(guid.lower(), guid=guid.lower()),)) for host, guid in pairs
    )


def _is_list(content: bytes) -> bool:
    return bool(re.search(rb"^VM_hostname \S", content, re.MULTILINE))


def _text(content: bytes) -> str:
    return content.decode("utf-8-sig", "replace")
