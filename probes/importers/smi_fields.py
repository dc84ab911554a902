"""The fields of one GPU as `nvidia-smi -q` names them, to a fact."""

import re
from collections.abc import Mapping, Sequence

from probes.base.facts import GpuFact, Notes
from probes.machine.nvlink_domains import Domains
from probes.machine.nvlink_fabric import fabric_key

Fields = dict[str, str]  # by 'field' (the first of that name) and by 'heading/field', in lower case
MIB = 1 << 20
FABRIC_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_GPU_UUID = re.compile(r"GPU-[0-9a-fA-F-]{8,40}")
FABRIC_STATES = {"completed": 3, "in progress": 2, "not started": 1}
OTHER_STATUS = 999  # NVML's unknown error
_LANE_BYTES_PER_S = {"1": 0.25e9, "2": 0.5e9, "3": 1e9, "4": 2e9, "5": 4e9, "6": 8e9}  # raw, by generation
_NONE = ("", "n/a", "none", "[n/a]", "not supported", "[not supported]")


def gpu_of_fields(index: int, pci: str, fields: Fields, notes: Notes) -> GpuFact:
    """The GPU. What is not known of its fabric goes to `notes`; a fabric that is not ready is its fault."""
    uuid = fields.get("gpu uuid", "")
    fabric, faults = _fabric(index, fields, notes)
    return GpuFact(
        index,
        name=_told(fields.get("product name")),
        uuid=uuid if _GPU_UUID.fullmatch(uuid) else None,
        pci=pci,
        memory_bytes=_memory(fields.get("fb memory usage/total", "")),
        fabric=fabric,
        pcie_bytes_per_s=_pcie(fields, "max"),
        faults=(*faults, *_mig(fields), *_slow_slot(fields)),
    )


def domains_by_fabric(gpus: Sequence[GpuFact]) -> Domains | None:
    """GPUs of one UUID and clique are a domain behind switches; None where some are of no fabric."""
    fabrics = list(dict.fromkeys(gpu.fabric for gpu in gpus))
    if None in fabrics:
        return None
    groups = [tuple(gpu.index for gpu in gpus if gpu.fabric == fabric) for fabric in fabrics]
    return Domains("switch", tuple(sorted(groups)), tuple(gpu.nvlinks for gpu in gpus))


def _told(text: str | None) -> str | None:
    return None if text is None or text.lower() in _NONE else text


def _memory(text: str) -> int | None:
    match = re.fullmatch(r"([0-9]{1,9}) MiB", text)
    return int(match[1]) * MIB if match else None


def _fabric(index: int, fields: Mapping[str, str], notes: Notes) -> tuple[str | None, list[str]]:
    state = fields.get("fabric/state", "").lower()
    if state in _NONE:
        return None, []
    number = FABRIC_STATES.get(state, 0)
    if number in (1, 2):
        return None, [f"NVLink fabric not ready ({fields['fabric/state']})"]
    uuid, clique = fields.get("fabric/clusteruuid", ""), fields.get("fabric/cliqueid", "")
    if number == 0 or not FABRIC_UUID.fullmatch(uuid) or not (clique.isascii() and clique.isdigit()):
        shown = f"state {fields['fabric/state'][:20]!r}, clique {clique[:20]!r}, UUID {uuid[:40]!r}"
        notes.unknown.append(f"GPU {index}: its NVLink fabric cannot be read ({shown}); the text may be cut")
        return None, []
    status = 0 if fields.get("fabric/status", "").lower() == "success" else OTHER_STATUS
    key, why = fabric_key(bytes.fromhex(uuid.replace("-", "")), int(clique), number, status)
    notes.unknown += [f"GPU {index}: {why}"] if why else []
    health = fields.get("health/bandwidth", "").lower()
    return key, ["NVLink bandwidth is degraded"] if health == "degraded" else []


def _mig(fields: Mapping[str, str]) -> list[str]:
    on = fields.get("mig mode/current", "").lower() == "enabled"
    return ["MIG is on: the GPU is split into instances, which NVLink does not join"] if on else []


def _pcie(fields: Mapping[str, str], which: str) -> float | None:
    """Raw bytes/s of the link, one direction; at rest the present generation is lower and says nothing."""
    lane = _LANE_BYTES_PER_S.get(fields.get(f"pcie generation/{which}", ""))
    width = re.fullmatch(r"(1|2|4|8|16|32)x", fields.get("link width/current", ""))
    return lane * int(width[1]) if lane and width else None


def _slow_slot(fields: Mapping[str, str]) -> list[str]:
    """A link that runs on fewer lanes than card and slot have."""
    now, most = fields.get("link width/current", ""), fields.get("link width/max", "")
    lanes = [re.fullmatch(r"(\d{1,2})x", text) for text in (now, most)]
    if lanes[0] and lanes[1] and int(lanes[0][1]) < int(lanes[1][1]):
        return [f"its PCIe link runs on {lanes[0][1]} of {lanes[1][1]} lanes"]
    return []
