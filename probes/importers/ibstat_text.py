"""The words of `ibstat` and `ibstatus`: the devices and ports of a text, with their fields as written."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from planner.base import BadInput

DEVICE = re.compile(
    r"^[> \t]*(?:([\w.-]{1,255}):[ \t]{1,4})?"
    r"(?:CA|Infiniband device) '([^'\r\n]{1,64})'(?: port (\d{1,3}) status:)?[ \t\r]*$",
    re.MULTILINE,
)
_PORT = re.compile(r"Port (\d{1,3}):")
_FIELD = re.compile(r"([A-Za-z_ ]{1,40}):\s*(.*)")
_PANIC = re.compile(r"ibpanic: .{0,200}")
_SAME_KEY = {"link_layer": "link layer", "phys state": "physical state"}


@dataclass
class Device:
    """One device while its lines come in: its own fields, then those of each port by number.

    Keys are ibstat's words in lower case.
    """

    name: str
    line: int
    fields: dict[str, str] = field(default_factory=dict)
    ports: dict[str, dict[str, str]] = field(default_factory=dict)

    def take(self, target: dict[str, str], key: str, value: str) -> None:
        """A field of the device or of one port."""
        key = _SAME_KEY.get(key, key)
        if key == "node guid" and key in self.fields:
            self.fields["second node guid"] = value  # the line that begins another device is missing
        target.setdefault(key, value.strip())


def lines_of(host: str | None, text: str) -> Iterable[tuple[int, str]]:
    """Numbered lines of one host, without quote marks, indentation and the host's prefix."""
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.lstrip("> \t")
        if host is None:
            yield number, stripped.strip()
        elif stripped.startswith(f"{host}:"):
            yield number, stripped[len(host) + 1 :].strip()


def devices_of(lines: Iterable[tuple[int, str]], name: str) -> tuple[list[Device], list[str]]:
    """The devices, and what ibpanic said. BadInput where one appears twice."""
    devices: list[Device] = []
    panics: list[str] = []
    target: dict[str, str] = {}
    seen = set()
    for number, line in lines:
        start, port = DEVICE.match(line), _PORT.fullmatch(line)
        if start and start[1] is None:
            device = Device(start[2], number)
            devices.append(device)
            target = device.ports.setdefault(start[3], {}) if start[3] else device.fields
            if (start[2], start[3]) in seen:
                raise BadInput(
                    f"{name}: line {number}: {start[2]} appears twice; give each machine's output "
                    "in a file of its own, or with pdsh's 'host: ' before every line"
                )
            seen.add((start[2], start[3]))
        elif port and devices:
            target = devices[-1].ports.setdefault(port[1], {})
        elif panic := _PANIC.search(line):
            panics.append(panic[0].strip())
        elif devices and (found := _FIELD.fullmatch(line)):
            devices[-1].take(target, found[1].strip().lower(), found[2])
    return devices, panics
