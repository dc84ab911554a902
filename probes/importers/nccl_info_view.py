"""The lines that one rank logs of the machine it found, as nodes, rates and paths."""

import re
from dataclasses import dataclass, field

_LINE = re.compile(
    r"(?P<host>[A-Za-z0-9][\w.-]{0,254}):(?P<thread>\d{1,9}:\d{1,9}) \[\d{1,4}\] NCCL INFO "
    r"(?P<text>[^\n]{0,16384})"
)
_BRANCH = re.compile(
    r"(?P<indent> {0,512})\+ (?P<link>[A-Z0-9]{2,4})\[(?P<rate>\d{1,6}\.\d)\] - "
    r"(?P<node>[A-Z]{3}/[0-9A-Fa-f-]{1,24})(?: \((?P<told>[^)]{0,80})\))?\s*"
)
_CPU = re.compile(r"(CPU/[0-9A-Fa-f-]{1,16})(?: \([^)]{0,40}\))?\s*")
_PATHS = re.compile(r"(?P<node>(?:GPU|NET)/[0-9A-Fa-f-]{1,24}) :(?P<ends>.*)")
_END = re.compile(r"([A-Z]{3}/[0-9A-Fa-f-]{1,24}) \(\d{1,3}/\d{1,6}(?:\.\d{1,9})?/([A-Z0-9]{3,4})\)")
_USING = re.compile(r"NET/IB : Using (?P<devices>.{0,8192})")
_DEVICE = re.compile(r"\[(\d{1,4})\]([A-Za-z][\w.-]{0,62}):(\d{1,3})/(IB|RoCE)")
_LAYERS = {"IB": "InfiniBand", "RoCE": "Ethernet"}
MOST_VIEWS = 65_536


@dataclass
class View:
    """One rank's view of its host; nodes by their words, as 'GPU/1B000'. Rates are GB/s, as logged."""

    host: str
    ended: bool = False
    gpus: list[str] = field(default_factory=list)
    nets: list[str] = field(default_factory=list)
    numa: dict[str, int] = field(default_factory=dict)
    nvlinks: dict[tuple[str, str], float] = field(default_factory=dict)  # GPU, and switch or GPU
    rates: dict[str, float] = field(default_factory=dict)  # of NETs
    cards: dict[str, str] = field(default_factory=dict)  # NET -> its NIC
    paths: dict[tuple[str, str], str] = field(default_factory=dict)
    devices: dict[int, str] = field(default_factory=dict)  # names of NETs
    layers: dict[int, str] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    cpu: str = ""
    above: list[tuple[int, str]] = field(default_factory=list)  # indentation and node, from the CPU down

    def branch(self, line: re.Match[str]) -> None:
        """A node below another one."""
        depth, node, rate = len(line["indent"]), line["node"], float(line["rate"])
        while self.above and self.above[-1][0] >= depth:
            self.above.pop()
        parent = self.above[-1][1] if self.above else self.cpu
        if line["link"] == "NVL" and parent.startswith("GPU"):
            self.nvlinks[parent, node] = self.nvlinks.get((parent, node), 0.0) + rate
            return
        self.above.append((depth, node))
        if line["link"] in ("SYS", "C2C") or node in self.numa:
            return
        if node.startswith("GPU"):
            self.gpus.append(node)
        elif node.startswith("NET"):
            self.nets.append(node)
            told = (line["told"] or "").split("/")
            self.rates[node] = float(told[-1]) if re.fullmatch(r"\d{1,5}\.\d{1,9}", told[-1]) else rate
            if parent.startswith("NIC"):
                self.cards[node] = parent
        number = self.cpu.rpartition("/")[2].rpartition("-")[2]
        self.numa[node] = int(number, 16) if number else 0


def views_of(text: str) -> list[View]:
    """All views in a log, whose lines may come mixed."""
    views: list[View] = []
    of_thread: dict[tuple[str, str], View] = {}
    devices: dict[str, list[tuple[str, str, str, str]]] = {}
    for line in _LINE.finditer(text):
        key = line["host"], line["thread"]
        told = line["text"]
        if told.startswith("=== System") and len(views) < MOST_VIEWS:
            views.append(of_thread.setdefault(key, View(line["host"])))
            if views[-1].ended:  # another communicator of the same thread
                views[-1] = of_thread[key] = View(line["host"])
        elif using := _USING.match(told):
            devices.setdefault(line["host"], _DEVICE.findall(using["devices"]))
        elif key in of_thread:
            _take(of_thread[key], told)
    for view in views:
        for number, device, port, layer in devices.get(view.host, []):
            view.devices[int(number)] = device if port == "1" else f"{device}:{port}"
            view.layers[int(number)] = _LAYERS[layer]
    return list({id(view): view for view in views}.values())


def _take(view: View, told: str) -> None:
    if view.ended:
        if paths := _PATHS.match(told):
            for node, kind in _END.findall(paths["ends"]):
                view.paths.setdefault((paths["node"], node), kind)
    elif told.startswith("======"):
        view.ended = True
    elif cpu := _CPU.fullmatch(told):
        view.cpu, view.above = cpu[1], []
    elif branch := _BRANCH.fullmatch(told):
        view.branch(branch)
