"""`nvidia-smi -L`, `nvlink -s` and `nvlink -R`: the GPUs, their MIG instances, and their active NVLinks."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from planner.base import BadInput
from planner.topology import LARGEST_NODE_GPUS
from probes.base.facts import GpuFact, Notes
from probes.importers.smi_far_ends import FarEnds

_GPU = re.compile(r"\s{0,16}GPU (\d{1,3}): ([\w .()/-]{1,80}?) \(UUID: (GPU-[0-9a-fA-F-]{8,40})\)\s*")
_MIG = re.compile(r"\s{1,16}MIG ([\w.+]{1,24})\s{1,16}Device\s{1,8}\d{1,3}:")
_LINK = re.compile(r"\s{1,16}Link (\d{1,2}): (?:([0-9]{1,4}(?:\.[0-9]{1,6})?) GB/s|<?(in[aA]ctive)>?)\s*")
_FAR_END = re.compile(
    r"\s{1,16}Link (\d{1,2}): Remote Device ([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F])"
    r": Link (\d{1,3})\s*"
)
_OTHER = re.compile(  # of `nvlink -c` and `-e`: what links can do, and their counters
    r"\s{0,16}Link \d{1,2}(?:, \w|: (?!Remote)[A-Z][\w ()/-]{2,60}: ?\S)"
)
_ANY_LINK = re.compile(r"\s{0,16}Link (\d{1,2}):")
_DAMAGED = re.compile(r"\s{0,16}(?:GPU \d{1,3}:|Link \d{1,2}\b)")
_ALL_INACTIVE = "all links are inActive"


@dataclass
class _Seen:
    """One GPU while its lines are read."""

    fact: GpuFact
    links: dict[int, float | None] = field(default_factory=dict)  # bytes/s; None: inactive
    slices: list[str] = field(default_factory=list)
    all_inactive: bool = False
    far: dict[int, tuple[str, int]] = field(default_factory=dict)  # by link: address and link of the far end

    @property
    def shown(self) -> set[int]:
        """The links that the text lists."""
        return set(self.links) | set(self.far)

    def take(self, line: str) -> bool:
        """Whether the line is of this GPU and could be read."""
        if mig := _MIG.match(line):
            self.slices.append(mig[1])
        elif link := _LINK.fullmatch(line):
            self.links[int(link[1])] = float(link[2]) * 1e9 if link[2] else None
        elif far := _FAR_END.fullmatch(line):
            self.far[int(far[1])] = far[2].lower(), int(far[3])
        elif _ALL_INACTIVE in line:
            self.all_inactive = True
        else:
            return False
        return True


@dataclass(frozen=True)
class Listed:
    """The kind of the output, its GPUs by index, and the far ends of their links where they are told."""

    kind: str
    gpus: tuple[GpuFact, ...]
    far: FarEnds


def is_listed(line: str) -> bool:
    """Whether a line names a GPU with its UUID."""
    return _GPU.fullmatch(line) is not None


def gpus_of_list(lines: list[str], name: str, notes: Notes) -> Listed:
    """What the text lists. BadInput where there are no GPUs, or two hosts' in one text."""
    seen = _scan(lines, name, notes)
    if not seen:
        example = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-...)"
        raise BadInput(f"{name}: no line like '{example}' can be read whole; give the whole output")
    end = lines[-1].strip()
    if end:
        stop = f"line {len(lines)}: the text ends without a line break in {end[:60]!r}"
        notes.warnings.append(f"{stop}; what follows it is not known")
    most = _most_links(seen.values())
    gpus = tuple(_gpu(seen[index], most[seen[index].fact.name], notes) for index in sorted(seen))
    tells_links = any(one.shown or one.all_inactive for one in seen.values())
    far = {index: one.far for index, one in seen.items() if one.far}
    return Listed("nvidia-smi-nvlink" if tells_links else "nvidia-smi-list", gpus, far)


def _scan(lines: list[str], name: str, notes: Notes) -> dict[int, _Seen]:
    seen: dict[int, _Seen] = {}
    current: _Seen | None = None
    below: set[str] = set()  # links below the last line of a GPU
    for number, line in enumerate(lines, start=1):
        if gpu := _GPU.fullmatch(line):
            index = int(gpu[1])
            fact = GpuFact(index, gpu[2], gpu[3])
            current, below = seen.setdefault(index, _Seen(fact)), set()
            if current.fact != fact or index >= LARGEST_NODE_GPUS:
                other = f"GPU {index} is here with another name or UUID than before"
                raise BadInput(f"{name}: line {number}: {other}; give each host a file of its own")
        elif _OTHER.match(line):
            continue
        elif link := _ANY_LINK.match(line):
            if link[1] in below or not (current and current.take(line)):
                twice = (
                    "comes twice: the line of another GPU is missing" if link[1] in below else "is damaged"
                )
                damaged = f"line {number}: {line.strip()[:60]!r} {twice}"
                notes.unknown.append(f"{damaged}; what it told is not known")
            below.add(link[1])
        elif not (current and current.take(line)) and _DAMAGED.match(line):
            damaged = f"line {number}: {line.strip()[:60]!r} is damaged"
            notes.unknown.append(f"{damaged}; what it told is not known")
    return seen


def _most_links(seen: Iterable[_Seen]) -> Mapping[str | None, int]:
    """How many links the text shows for any GPU of a name."""
    most: dict[str | None, int] = {}
    for one in seen:
        most[one.fact.name] = max(most.get(one.fact.name, 0), len(one.shown))
    return most


def _gpu(seen: _Seen, most: int, notes: Notes) -> GpuFact:
    """The GPU as listed; `most` is how many links others of its name have."""
    index, faults = seen.fact.index, []
    active = [rate for rate in seen.links.values() if rate is not None]
    if seen.slices:
        kinds = ", ".join(sorted(set(seen.slices)))
        faults.append(f"split into {len(seen.slices)} MIG instances ({kinds}), which NVLink does not join")
    if seen.all_inactive or (seen.links and len(active) < len(seen.links)):
        faults.append(f"{len(seen.links) - len(active) or 'all'} of its NVLinks are inactive")
    if len(set(active)) > 1:
        notes.warnings.append(f"GPU {index}: its NVLinks run at different rates; the lowest is used")
    links = len(active) if seen.links or seen.all_inactive else len(seen.far) or None
    shown = seen.shown
    if not seen.all_inactive and (len(shown) < most or shown != set(range(len(shown)))):
        links = None
        listed = f"GPU {index}: the text lists {len(shown)} of its {most} NVLinks"
        notes.unknown.append(f"{listed}; how many are active is not known")
    return replace(
        seen.fact, nvlinks=links, nvlink_bytes_per_s=min(active, default=None), faults=tuple(faults)
    )
