"""Small outputs of nvidia-smi: `-L` (names, UUIDs, MIG), `nvlink -s` (active links and their rate), `--query-gpu=... --format=csv` (names, fabric).

None of them says which GPUs the links join: domains stay unknown, but for GPUs without any link.
"""

import re
from dataclasses import dataclass, field, replace

from planner.base import BadInput
from planner.topology import LARGEST_NODE_GPUS
from probes.base.facts import GpuFact, HostFacts
from probes.machine.nvlink_domains import fabric_key

LARGEST_TEXT = 8 << 20
MIB = 1 << 20
_GPU = re.compile(r"\s{0,16}GPU (\d{1,3}): ([\w .()/-]{1,80}?) \(UUID: (GPU-[0-9a-fA-F-]{8,40})\)\s*")
_MIG = re.compile(r"\s{1,16}MIG ([\w.+]{1,24})\s{1,16}Device\s{1,8}\d{1,3}:")
_LINK = re.compile(r"\s{1,16}Link (\d{1,2}): (?:([0-9]{1,4}(?:\.[0-9]{1,6})?) GB/s|<?(in[aA]ctive)>?)\s*")
_DAMAGED = re.compile(r"\s{0,16}(?:GPU \d{1,3}:|Link \d{1,2}\b)")
_ALL_INACTIVE = "all links are inActive"
_START = re.compile(
    rb"(?m)^\s{0,16}GPU \d{1,3}: [^\n]{1,80} \(UUID: GPU-|^(?:index|name|uuid|gpu_uuid), [a-z_., \[\]/]{0,200}(?:name|uuid|fabric)",
    re.IGNORECASE,
)
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")


def recognise(content: bytes, name: str) -> bool:
    return _START.search(content[:LARGEST_TEXT]) is not None


def read(content: bytes, name: str) -> tuple[HostFacts, ...]:
    """The one host of the text. BadInput where a GPU comes twice with different identity, or a CSV has rows of another length."""
    lines = content[:LARGEST_TEXT].decode("utf-8", errors="replace").replace("\r", "").split("\n")
    start = next(
        (
            number
            for number, line in enumerate(lines)
            if line.lower().startswith(("index, ", "name, ", "uuid, ", "gpu_uuid, "))
        ),
        None,
    )
    return (_listed(lines, name) if start is None else _queried(lines, start, name),)


@dataclass
class _Seen:
    """One GPU while its lines are read."""

    fact: GpuFact
    links: dict[int, float | None] = field(default_factory=dict)  # bytes/s; None: inactive
    slices: list[str] = field(default_factory=list)
    all_inactive: bool = False


def _listed(lines: list[str], name: str) -> HostFacts:
    seen: dict[int, _Seen] = {}
    current: _Seen | None = None
    unknown: list[str] = []
    for number, line in enumerate(lines, start=1):
        gpu, mig, link = _GPU.fullmatch(line), _MIG.match(line), _LINK.fullmatch(line)
        if gpu:
            index = int(gpu[1])
            fact = GpuFact(index, gpu[2], gpu[3])
            current = seen.setdefault(index, _Seen(fact))
            if current.fact != fact or index >= LARGEST_NODE_GPUS:
                raise BadInput(
                    f"{name}: line {number}: GPU {index} is here with another name or UUID than before; give each host a file of its own"
                )
        elif current and mig:
            current.slices.append(mig[1])
        elif current and link:
            current.links[int(link[1])] = float(link[2]) * 1e9 if link[2] else None
        elif current and _ALL_INACTIVE in line:
            current.all_inactive = True
        elif _DAMAGED.match(line):
            unknown.append(f"line {number}: {line.strip()[:60]!r} is damaged; what it told is not known")
    if not seen:
        raise BadInput(
            f"{name}: no line like 'GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-...)' can be read whole; give the whole output"
        )
    warnings = (
        [
            f"line {len(lines)}: the text ends without a line break in {lines[-1].strip()[:60]!r}; what follows it is not known"
        ]
        if lines[-1].strip()
        else []
    )
    most = {
        one.fact.name: max(len(other.links) for other in seen.values() if other.fact.name == one.fact.name)
        for one in seen.values()
    }
    gpus = tuple(_gpu(seen[index], most[seen[index].fact.name], unknown, warnings) for index in sorted(seen))
    kind = (
        "nvidia-smi-nvlink"
        if any(one.links or one.all_inactive for one in seen.values())
        else "nvidia-smi-list"
    )
    return _host(name, kind, gpus, unknown, warnings)


def _gpu(seen: _Seen, most: int, unknown: list[str], warnings: list[str]) -> GpuFact:
    """The GPU as listed; `most` is how many links the text shows for any GPU of its name."""
    index, faults = seen.fact.index, []
    active = [rate for rate in seen.links.values() if rate is not None]
    if seen.slices:
        faults.append(
            f"split into {len(seen.slices)} MIG instances ({', '.join(sorted(set(seen.slices)))}), which NVLink does not join"
        )
    if seen.all_inactive or (seen.links and len(active) < len(seen.links)):
        faults.append(f"{len(seen.links) - len(active) or 'all'} of its NVLinks are inactive")
    if len(set(active)) > 1:
        warnings.append(f"GPU {index}: its NVLinks run at different rates; the lowest is used")
    links = len(active) if seen.links or seen.all_inactive else None
    if not seen.all_inactive and (len(seen.links) < most or set(seen.links) != set(range(len(seen.links)))):
        links = None
        unknown.append(
            f"GPU {index}: the text lists {len(seen.links)} of its {most} NVLinks; how many are active is not known"
        )
    return replace(
        seen.fact, nvlinks=links, nvlink_bytes_per_s=min(active, default=None), faults=tuple(faults)
    )


def _queried(lines: list[str], start: int, name: str) -> HostFacts:
    """`--query-gpu` with a header line; units stand in the header or behind the value."""
    columns = [word.strip().lower() for word in lines[start].split(",")]
    gpus: list[GpuFact] = []
    unknown: list[str] = []
    for offset, line in enumerate(lines[start + 1 :]):
        words = [word.strip() for word in line.split(",")]  # nvidia-smi quotes nothing
        if not any(words):
            break
        if len(words) != len(columns):
            raise BadInput(
                f"{name}: line {start + offset + 2}: {len(words)} values for {len(columns)} columns; the text may be cut"
            )
        row = dict(zip(columns, words, strict=True))
        index = row.get("index", str(len(gpus)))
        if not (index.isascii() and index.isdigit() and int(index) < LARGEST_NODE_GPUS) or int(index) in {
            gpu.index for gpu in gpus
        }:
            raise BadInput(
                f"{name}: line {start + offset + 2}: index {index[:20]!r} is not a new number below {LARGEST_NODE_GPUS}; give each host a file"
            )
        fabric, why = _fabric(row)
        unknown += [f"GPU {index}: {why}"] if why else []
        gpu = GpuFact(
            int(index),
            row.get("name"),
            row.get("uuid", row.get("gpu_uuid")),
            _pci(row.get("pci.bus_id")),
            fabric=fabric,
        )
        gpus.append(replace(gpu, memory_bytes=_memory(row)))
    if not gpus:
        raise BadInput(f"{name}: line {start + 1}: a header without a row below it; give the whole output")
    return _host(name, "nvidia-smi-query", tuple(sorted(gpus, key=lambda gpu: gpu.index)), unknown, [])


def _fabric(row: dict[str, str]) -> tuple[str | None, str | None]:
    uuid, clique = row.get("fabric.clusteruuid", ""), row.get("fabric.cliqueid", "")
    state = {"completed": 3, "in progress": 2, "not started": 1}.get(
        row.get("fabric.state", "completed").lower(), 0
    )
    status = 0 if row.get("fabric.status", "success").lower() == "success" else 999
    if not _UUID.fullmatch(uuid):
        return fabric_key(b"", 0, state, status) if state in {1, 2} else (None, None)
    if not (clique.isascii() and clique.isdigit()):
        return (
            None,
            f"the NVLink fabric {uuid} is given without its clique; which hosts share it is not known",
        )
    return fabric_key(bytes.fromhex(uuid.replace("-", "")), int(clique), state, status)


def _pci(text: str | None) -> str | None:
    """'00000000:1B:00.0' as sysfs writes it: '0000:1b:00.0'."""
    match = re.fullmatch(r"([0-9a-f]{4,8}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])", (text or "").lower())
    return f"{match[1][-4:]}:{match[2]}" if match else None


def _memory(row: dict[str, str]) -> int | None:
    text = next((value for key, value in row.items() if key.startswith("memory.total")), "")
    match = re.fullmatch(r"([0-9]{1,9})(?: MiB)?", text)
    return int(match[1]) * MIB if match else None


def _host(
    name: str, kind: str, gpus: tuple[GpuFact, ...], unknown: list[str], warnings: list[str]
) -> HostFacts:
    if [gpu.index for gpu in gpus] != list(range(len(gpus))):
        unknown.append(
            f"the text shows GPUs {', '.join(str(gpu.index) for gpu in gpus)} only; whether there are others is not known"
        )
        gpus = tuple(replace(gpu, index=place) for place, gpu in enumerate(gpus))
    bare = all(gpu.nvlinks == 0 for gpu in gpus)
    domains = tuple((gpu.index,) for gpu in gpus) if bare else None
    return HostFacts(
        name,
        kind,
        "imported",
        None,
        gpus,
        nvlink_kind="none" if bare else None,
        domains=domains,
        unknown=tuple(unknown),
        warnings=tuple(warnings),
    )
