"""Which weights vLLM 0.33.0 has expert kernels for, and for which of them its balancer may move experts.

Each row was seen by building a model with vLLM's own classes on a CPU that says it is SM90 or SM100, and
asking the layer's method for `supports_eplb`; no kernel ran.
"""

from dataclasses import dataclass

from planner.engines.common.capability import SM90, SM100
from planner.model import ModelSpec

Flags = tuple[str, ...]
Majors = frozenset[int]
BOTH, NEITHER, NEWER = frozenset({SM90, SM100}), frozenset[int](), frozenset({SM100})


@dataclass(frozen=True)
class Kernels:
    """For one kind of weights, the generations that have a kernel, or a method that supports EPLB."""

    name: str
    method: str  # vLLM's class of the layer, and where it says whether it supports EPLB
    low_latency: Majors  # a kernel for the batches of low latency mode
    balanced_low: Majors  # EPLB in low latency mode
    balanced: Majors  # EPLB in every other mode
    flags: Flags = ()  # the kernel that EPLB needs in every other mode


def _never(name: str, method: str, low_latency: Majors = BOTH) -> Kernels:
    return Kernels(name, method, low_latency, NEITHER, NEITHER)


BF16 = Kernels("16-bit experts", "UnquantizedFusedMoEMethod", BOTH, BOTH, BOTH)
_W8A8 = "CompressedTensorsW8A8Fp8MoEMethod"
_WNA16 = "CompressedTensorsWNA16MoEMethod, compressed_tensors_moe_wna16.py:562"
KERNELS = {  # by weight dtype and quant_method
    ("bf16", ""): BF16,
    ("fp8", "fp8"): Kernels("fp8 experts", "Fp8MoEMethod", BOTH, BOTH, BOTH),
    ("fp8", "compressed-tensors"): Kernels("fp8 experts of compressed-tensors", _W8A8, BOTH, BOTH, BOTH),
    ("fp8", "modelopt"): _never("fp8 experts of ModelOpt", "ModelOptFp8MoEMethod, modelopt.py:481"),
    ("int4", "compressed-tensors"): Kernels(
        "int4 experts of compressed-tensors", _WNA16, BOTH, NEITHER, BOTH, ("--moe-backend", "triton")
    ),
    ("int4", "awq"): _never("int4 experts of AWQ", "AutoAWQMoEMethod"),
    ("int4", "gptq"): _never("int4 experts of GPTQ", "AutoGPTQMoEMethod"),
    ("mxfp4", "mxfp4"): _never("mxfp4 experts", "GptOssMxfp4MoEMethod"),
    ("mxfp4", "compressed-tensors"): _never(
        "mxfp4 experts of compressed-tensors", "CompressedTensorsW4A4Mxfp4MoEMethod", NEITHER
    ),
    ("mxfp4", "fp8"): Kernels(
        "mxfp4 experts in an fp8 release", "Mxfp4MoEMethod, mxfp4.py:592", BOTH, BOTH, BOTH
    ),
    ("nvfp4", "modelopt"): Kernels(
        "NVFP4 experts of ModelOpt", "ModelOptNvFp4FusedMoE, modelopt.py:1145", NEWER, NEWER, BOTH
    ),
    ("nvfp4", "compressed-tensors"): Kernels(
        "NVFP4 experts of compressed-tensors",
        "CompressedTensorsW4A4Nvfp4MoEMethod, compressed_tensors_moe_w4a4_nvfp4.py:73",
        *(NEWER, NEWER, NEWER),
    ),
}


def kernels_of(model: ModelSpec) -> Kernels | None:
    """The row for the model's routed experts; None where nobody has looked."""
    if model.weight_dtype == "bf16":
        return BF16
    fp8_release = model.weight_dtype == "mxfp4" and model.architecture == "deepseek_v4"
    return KERNELS.get((model.weight_dtype, "fp8" if fp8_release else model.quantization))
