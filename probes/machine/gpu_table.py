"""What data sheets say of NVLink and PCIe of each GPU model, and the names that drivers print for it.

Memory and compute of the same models are in planner/data/gpus.yaml.
"""

from dataclasses import dataclass

from planner.base import GpuModel


@dataclass(frozen=True)
class GpuLinks:
    """Links of a GPU model, each rate in bytes/s of one direction.

    `model` is its name in the catalogue; no NVLink is `nvlinks` 0. `optional`: its NVLinks lead nowhere
    without a bridge or a board that is sold apart. `figures` where the model is a person's own.
    """

    model: str
    nvlinks: int
    nvlink_bytes_per_s: float
    pcie_bytes_per_s: float
    names: tuple[str, ...]  # without 'NVIDIA' and 'Tesla', in lower case, words joined by '-'
    optional: bool = False
    figures: GpuModel | None = None
    told_by: str = ""

    @property
    def source(self) -> str:
        return self.told_by or f"NVIDIA data sheet of the {self.model}"


_NONE_3, _NONE_4, _NONE_5 = (0, 0.0, 16e9), (0, 0.0, 32e9), (0, 0.0, 64e9)  # PCIe x16 alone, by generation
_V100, _A100, _H100, _B200 = (6, 25e9, 16e9), (12, 25e9, 32e9), (18, 25e9, 64e9), (18, 50e9, 64e9)
_GRACE = (18, 50e9, 225e9)  # to the Grace CPU over NVLink-C2C, 450 GB/s for the two GPUs of a superchip
_TURING, _AMPERE = (2, 25e9, 16e9), (4, 14.0625e9, 32e9)  # workstation cards with a bridge
_H100_NAMES = ("h100-80gb-hbm3", "h100-sxm5-80gb", "h100-sxm-80gb", "h100-sxm5", "h100-sxm", "h100")
_RTX_PRO = ("rtx-pro-6000-blackwell-server-edition", "rtx-pro-6000", "rtx-pro-6000-96gb")
_WORKSTATION = (
    "rtx-pro-6000-blackwell-workstation-edition",
    "rtx-pro-6000-blackwell",
    "rtx-pro-6000-workstation",
)
_MAX_Q = ("rtx-pro-6000-blackwell-max-q-workstation-edition", "rtx-pro-6000-max-q")
# NVLinks and the rate of one; PCIe of its generation, raw; product names of the driver and short forms
GPUS = (
    GpuLinks("V100-SXM2-16GB", *_V100, ("v100-sxm2-16gb",)),
    GpuLinks("V100-SXM2-32GB", *_V100, ("v100-sxm2-32gb", "v100-sxm2-32gb-ls", "v100-sxm2")),
    GpuLinks("V100-SXM3-32GB", *_V100, ("v100-sxm3-32gb", "v100-sxm3-32gb-h", "v100-sxm3")),
    GpuLinks("V100-PCIe-16GB", *_NONE_3, ("v100-pcie-16gb", "v100-pcie")),
    GpuLinks("V100-PCIe-32GB", *_NONE_3, ("v100-pcie-32gb",)),
    GpuLinks("V100S-PCIe-32GB", *_NONE_3, ("v100s-pcie-32gb", "v100s")),
    GpuLinks("Titan-V-12GB", *_NONE_3, ("titan-v",)),
    GpuLinks("Quadro-GV100-32GB", 4, 25e9, 16e9, ("quadro-gv100", "gv100"), optional=True),
    GpuLinks("T4-16GB", *_NONE_3, ("t4",)),
    GpuLinks("Quadro-RTX-8000-48GB", *_TURING, ("quadro-rtx-8000", "rtx-8000"), optional=True),
    GpuLinks("Quadro-RTX-6000-24GB", *_TURING, ("quadro-rtx-6000",), optional=True),
    GpuLinks("Quadro-RTX-5000-16GB", 1, 25e9, 16e9, ("quadro-rtx-5000",), optional=True),
    GpuLinks("Titan-RTX-24GB", *_TURING, ("titan-rtx",), optional=True),
    GpuLinks("A100-SXM-40GB", *_A100, ("a100-sxm4-40gb", "a100-sxm-40gb", "a100-40gb")),
    GpuLinks("A100-SXM-80GB", *_A100, ("a100-sxm4-80gb", "a100-sxm-80gb", "a100-80gb")),
    GpuLinks("A100-PCIe-40GB", *_A100, ("a100-pcie-40gb",), optional=True),
    GpuLinks("A100-PCIe-80GB", *_A100, ("a100-80gb-pcie", "a100-pcie-80gb", "a100-pcie"), optional=True),
    GpuLinks("A100X-80GB", *_A100, ("a100x",), optional=True),
    GpuLinks("A800-SXM-80GB", 8, 25e9, 32e9, ("a800-sxm4-80gb", "a800-sxm-80gb", "a800-sxm", "a800")),
    GpuLinks(
        "A800-PCIe-80GB", 8, 25e9, 32e9, ("a800-80gb-pcie", "a800-pcie-80gb", "a800-pcie"), optional=True
    ),
    GpuLinks("A800-40GB-Active", 8, 25e9, 32e9, ("a800-40gb-active",), optional=True),
    GpuLinks("A30-24GB", 4, 25e9, 32e9, ("a30",), optional=True),
    GpuLinks("A40-48GB", *_AMPERE, ("a40",), optional=True),
    GpuLinks(
        "A16-16GB", 0, 0.0, 8e9, ("a16",), told_by="NVIDIA data sheet of the A16, a quarter of the board's"
    ),
    GpuLinks("A10-24GB", *_NONE_4, ("a10",)),
    GpuLinks("A10G-24GB", *_NONE_4, ("a10g",)),
    GpuLinks("A2-16GB", 0, 0.0, 16e9, ("a2",), told_by="NVIDIA data sheet of the A2, x8"),
    GpuLinks("RTX-A6000-48GB", *_AMPERE, ("rtx-a6000", "a6000"), optional=True),
    GpuLinks("RTX-A5500-24GB", *_AMPERE, ("rtx-a5500", "a5500"), optional=True),
    GpuLinks("RTX-A5000-24GB", *_AMPERE, ("rtx-a5000", "a5000"), optional=True),
    GpuLinks("RTX-A4500-20GB", *_AMPERE, ("rtx-a4500", "a4500"), optional=True),
    GpuLinks("RTX-A4000-16GB", *_NONE_4, ("rtx-a4000", "a4000")),
    GpuLinks("GeForce-RTX-3090-24GB", *_AMPERE, ("geforce-rtx-3090", "rtx-3090", "3090"), optional=True),
    GpuLinks("GeForce-RTX-3090-Ti-24GB", *_AMPERE, ("geforce-rtx-3090-ti", "rtx-3090-ti"), optional=True),
    GpuLinks("L40S-48GB", *_NONE_4, ("l40s", "l40s-48gb")),
    GpuLinks("L40-48GB", *_NONE_4, ("l40", "l40-48gb")),
    GpuLinks("L20-48GB", *_NONE_4, ("l20",)),
    GpuLinks("L4-24GB", *_NONE_4, ("l4", "l4-24gb")),
    GpuLinks("L2-24GB", *_NONE_4, ("l2",)),
    GpuLinks("RTX-6000-Ada-48GB", *_NONE_4, ("rtx-6000-ada-generation", "rtx-6000-ada")),
    GpuLinks("RTX-5000-Ada-32GB", *_NONE_4, ("rtx-5000-ada-generation", "rtx-5000-ada")),
    GpuLinks("RTX-4500-Ada-24GB", *_NONE_4, ("rtx-4500-ada-generation", "rtx-4500-ada")),
    GpuLinks("RTX-4000-Ada-20GB", *_NONE_4, ("rtx-4000-ada-generation", "rtx-4000-ada")),
    GpuLinks("GeForce-RTX-4090-24GB", *_NONE_4, ("geforce-rtx-4090", "rtx-4090", "4090")),
    GpuLinks("H100-SXM-80GB", *_H100, _H100_NAMES),
    GpuLinks("H100-PCIe-80GB", 12, 25e9, 64e9, ("h100-pcie", "h100-pcie-80gb"), optional=True),
    GpuLinks("H100-NVL-94GB", 12, 25e9, 64e9, ("h100-nvl", "h100-nvl-94gb"), optional=True),
    GpuLinks("H800-SXM-80GB", 8, 25e9, 64e9, ("h800", "h800-sxm-80gb", "h800-sxm", "h800-sxm5")),
    GpuLinks("H800-PCIe-80GB", 8, 25e9, 64e9, ("h800-pcie", "h800-pcie-80gb"), optional=True),
    GpuLinks("H200-SXM-141GB", *_H100, ("h200", "h200-sxm-141gb", "h200-sxm")),
    GpuLinks("H200-NVL-141GB", *_H100, ("h200-nvl", "h200-nvl-141gb"), optional=True),
    GpuLinks("H20-SXM-96GB", *_H100, ("h20", "h20-sxm-96gb", "h20-sxm")),
    GpuLinks("H20-3e-SXM-141GB", *_H100, ("h20-3e", "h20-3e-sxm-141gb")),
    GpuLinks("GH200-96GB", *_H100, ("gh200-480gb", "gh200-120gb", "gh200-96gb", "gh200"), optional=True),
    GpuLinks("GH200-144GB", *_H100, ("gh200-144g-hbm3e", "gh200-144gb"), optional=True),
    GpuLinks("B200-SXM-180GB", *_B200, ("b200", "b200-sxm-180gb", "b200-sxm")),
    GpuLinks("B300-SXM-288GB", 18, 50e9, 128e9, ("b300-sxm6-ac", "b300", "b300-sxm-288gb", "b300-sxm")),
    GpuLinks("GB200-186GB", *_GRACE, ("gb200", "gb200-186gb")),
    GpuLinks("GB300-278GB", *_GRACE, ("gb300", "gb300-278gb")),
    GpuLinks("GB10-128GB", 0, 0.0, 32e9, ("gb10",), told_by="NVIDIA DGX Spark data sheet: two x4 to its NIC"),
    GpuLinks("RTX-PRO-6000-96GB", *_NONE_5, _RTX_PRO),
    GpuLinks("RTX-PRO-6000-Workstation-96GB", *_NONE_5, _WORKSTATION),
    GpuLinks("RTX-PRO-6000-Max-Q-96GB", *_NONE_5, _MAX_Q),
    GpuLinks("RTX-PRO-5000-48GB", *_NONE_5, ("rtx-pro-5000-blackwell", "rtx-pro-5000")),
    GpuLinks("GeForce-RTX-5090-32GB", *_NONE_5, ("geforce-rtx-5090", "rtx-5090", "5090")),
)
RACK_MODELS = ("GB200-186GB", "GB300-278GB")  # their NVLink domain spans hosts, their PCIe is NVLink-C2C
