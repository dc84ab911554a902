"""GPU names as drivers and people write them, to the model in planner/data/gpus.yaml.

With the model comes what its data sheet says of NVLink and PCIe.
"""

import re
from dataclasses import dataclass

from planner.base import BadInput, nearest


@dataclass(frozen=True)
class GpuLinks:
    """Links of a GPU model, each rate in bytes/s of one direction.

    `model` is its name in the catalogue; no NVLink is `nvlinks` 0.
    """

    model: str
    nvlinks: int
    nvlink_bytes_per_s: float
    pcie_bytes_per_s: float
    names: tuple[str, ...]  # without 'NVIDIA' and 'Tesla', in lower case, words joined by '-'

    @property
    def source(self) -> str:
        return f"NVIDIA data sheet of the {self.model}"


_V100, _A100, _H100, _B200 = (6, 25e9, 16e9), (12, 25e9, 32e9), (18, 25e9, 64e9), (18, 50e9, 64e9)
_H100_NAMES = ("h100-80gb-hbm3", "h100-sxm5-80gb", "h100-sxm-80gb", "h100-sxm5", "h100-sxm", "h100")
_RTX_NAMES = ("rtx-pro-6000-blackwell-server-edition", "rtx-pro-6000", "rtx-pro-6000-96gb")
# NVLinks and the rate of one; PCIe x16 of its generation, raw; product names of the driver and short forms
GPUS = (
    GpuLinks("V100-SXM2-32GB", *_V100, ("v100-sxm2-32gb", "v100-sxm2-32gb-ls", "v100-sxm2")),
    GpuLinks("V100-SXM3-32GB", *_V100, ("v100-sxm3-32gb", "v100-sxm3")),
    GpuLinks("A100-SXM-40GB", *_A100, ("a100-sxm4-40gb", "a100-sxm-40gb", "a100-40gb")),
    GpuLinks("A100-SXM-80GB", *_A100, ("a100-sxm4-80gb", "a100-sxm-80gb", "a100-80gb")),
    GpuLinks("A100-PCIe-80GB", *_A100, ("a100-80gb-pcie", "a100-pcie-80gb", "a100-pcie")),
    GpuLinks("A800-SXM-80GB", 8, 25e9, 32e9, ("a800-sxm4-80gb", "a800-sxm-80gb", "a800-sxm", "a800")),
    GpuLinks("H100-SXM-80GB", *_H100, _H100_NAMES),
    GpuLinks("H800-SXM-80GB", 8, 25e9, 64e9, ("h800", "h800-sxm-80gb", "h800-sxm", "h800-sxm5")),
    GpuLinks("H200-SXM-141GB", *_H100, ("h200", "h200-sxm-141gb", "h200-sxm")),
    GpuLinks("H20-SXM-96GB", *_H100, ("h20", "h20-sxm-96gb", "h20-sxm")),
    GpuLinks("H20-3e-SXM-141GB", *_H100, ("h20-3e", "h20-3e-sxm-141gb")),
    GpuLinks("B200-SXM-180GB", *_B200, ("b200", "b200-sxm-180gb", "b200-sxm")),
    GpuLinks("B300-SXM-288GB", *_B200, ("b300-sxm6-ac", "b300", "b300-sxm-288gb", "b300-sxm")),
    GpuLinks("GB200-186GB", *_B200, ("gb200", "gb200-186gb")),
    GpuLinks("GB300-278GB", *_B200, ("gb300", "gb300-278gb")),
    GpuLinks("L40S-48GB", 0, 0.0, 32e9, ("l40s", "l40s-48gb")),
    GpuLinks("RTX-PRO-6000-96GB", 0, 0.0, 64e9, _RTX_NAMES),
)
_BY_NAME = {name: gpu for gpu in GPUS for name in gpu.names}
_BY_MODEL = {gpu.model.lower(): gpu for gpu in GPUS}
RACK_MODELS = ("GB200-186GB", "GB300-278GB")  # their NVLink domain spans hosts
# What tools call a link's speed is its signalling rate; 16 of 17 bits (NVLink 4, 5) or 64 of 66 are payload.
# Rounded as tools print them, in MB/s.
_PAYLOAD_BYTES_PER_S = {26562: 25e9, 53125: 50e9, 25781: 25e9}


def links_of_gpu(name: str | None) -> GpuLinks | None:
    """What is known of a product name like 'NVIDIA H100 80GB HBM3'.

    None where the table does not have it (an 'H100 PCIe' is not an H100 SXM).
    """
    words = re.sub(r"[\s_-]+", "-", (name or "").strip().lower())
    return _BY_NAME.get(re.sub(r"^(?:nvidia-)?(?:tesla-)?", "", words))


def named_gpu(hint: str) -> GpuLinks:
    """The model that a person named, in short ('H100') or as the driver does. BadInput names the nearest."""
    gpu = links_of_gpu(hint) or _BY_MODEL.get(hint.strip().lower())
    if gpu is None:
        known = [one.model for one in GPUS]
        meant = f"did you mean {nearest(hint, known)}? known are {', '.join(known)}"
        raise BadInput(f"GPU {hint!r} is not one we know; {meant}")
    return gpu


def payload_bytes_per_s(link_bytes_per_s: float) -> float:
    """Data rate of an NVLink whose speed a tool prints: 25e9 of 26.562e9.

    Unknown speeds are taken as they are.
    """
    return _PAYLOAD_BYTES_PER_S.get(int(link_bytes_per_s / 1e6), link_bytes_per_s)
