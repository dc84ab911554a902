"""GPU names as drivers and people write them, to what is known of the model's links."""

import re
from collections.abc import Sequence

from planner.base import BadInput, nearest
from probes.machine.gpu_table import GPUS, RACK_MODELS, GpuLinks

__all__ = [
    "GPUS",
    "RACK_MODELS",
    "GpuLinks",
    "key_of",
    "links_of_gpu",
    "models_begun",
    "named_gpu",
    "payload_bytes_per_s",
]

_BY_NAME = {name: gpu for gpu in GPUS for name in gpu.names}
_BY_MODEL = {gpu.model.lower(): gpu for gpu in GPUS}
_LEAST_CUT = 12  # characters of a name that nvidia-smi's table has cut, so that it can be told from others
# What tools call a link's speed is its signalling rate; 16 of 17 bits (NVLink 4, 5) or 64 of 66 are payload.
# Rounded as tools print them, in MB/s.
_PAYLOAD_BYTES_PER_S = {26562: 25e9, 53125: 50e9, 25781: 25e9}


def key_of(name: str | None) -> str:
    """
    >>> key_of("Tesla V100-SXM2-16GB"), key_of("NVIDIA RTX 6000 Ada Generation")
    ('v100-sxm2-16gb', 'rtx-6000-ada-generation')
    """
    words = re.sub(r"[\s_-]+", "-", (name or "").strip().lower())
    return re.sub(r"^(?:nvidia-)?(?:tesla-)?", "", words)


def links_of_gpu(name: str | None, own: Sequence[GpuLinks] = ()) -> GpuLinks | None:
    """What is known of a product name like 'NVIDIA H100 80GB HBM3'; a person's `own` models come first.

    None where the table does not have it (an 'H100 PCIe' is not an H100 SXM). A name that ends in '...', as
    nvidia-smi's table cuts them, is the one model that begins so.
    """
    key = key_of(name)
    known = _BY_NAME | {one: gpu for gpu in own for one in gpu.names}
    if key.endswith("...") and len(key) >= _LEAST_CUT:
        begun = models_begun(key)
        return begun[0] if len(begun) == 1 else None
    return known.get(key) or _BY_MODEL.get(key)


def models_begun(name: str) -> list[GpuLinks]:
    """The models of the catalogue with a name that begins so, whatever dots end it."""
    key = key_of(name).rstrip(".-")
    return list(dict.fromkeys(gpu for one, gpu in _BY_NAME.items() if one.startswith(key)))


def named_gpu(hint: str, own: Sequence[GpuLinks] = ()) -> GpuLinks:
    """The model that a person named, in short ('H100') or as the driver does. BadInput names the nearest."""
    by_model = _BY_MODEL | {gpu.model.lower(): gpu for gpu in own}
    gpu = by_model.get(hint.strip().lower()) or links_of_gpu(hint, own)
    if gpu is None:
        known = [one.model for one in (*own, *GPUS)]
        meant = f"did you mean {nearest(hint, known)}? or describe it: --gpu-model FILE"
        raise BadInput(f"GPU {hint!r} is not one we know; {meant}; known are {', '.join(known)}")
    return gpu


def payload_bytes_per_s(link_bytes_per_s: float) -> float:
    """Data rate of an NVLink whose speed a tool prints: 25e9 of 26.562e9.

    Unknown speeds are taken as they are.
    """
    return _PAYLOAD_BYTES_PER_S.get(int(link_bytes_per_s / 1e6), link_bytes_per_s)
