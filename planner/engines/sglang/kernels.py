"""Which expert kernels of SGLang 0.5.23 run which weights, by how tokens arrive and by the GPU's generation.

Each row was seen by building the layer with SGLang's own classes and following a batch of its dispatch format
to the kernel, on a CPU that says it is SM90 or SM100; no kernel ran.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from planner.engines.common.capability import SM90, SM100
from planner.model import ModelSpec

Flags = tuple[str, ...]


def _runner(name: str, *more: str) -> Flags:
    return ("--moe-runner-backend", name, *more)


AUTO: Flags = ()  # SGLang's own choice runs
ROUTED = _runner("flashinfer_trtllm_routed")  # its sibling without _routed routes in its kernel, past the map


@dataclass(frozen=True)
class Kernels:
    """Flags by generation: behind DeepEP, and without an all-to-all. No entry: none runs there."""

    name: str
    source: str
    deep: Mapping[int, Flags]
    gather: Mapping[int, Flags]
    why: str = ""  # why none runs behind DeepEP where there is no entry
    deep_phases: tuple[str, ...] = ("decode", "prefill")


def _both(flags: Flags) -> dict[int, Flags]:
    return {SM90: flags, SM100: flags}


_NO_DEEPEP: dict[int, Flags] = {}
_FORWARD = "layers/moe/ep_moe/layer.py:291,301, run"
_FUSED = "layers/moe/moe_runner/runner.py:179, run"
_ONLY_FUSED = "has no path from DeepEP's batches (NotImplementedError)"
BF16 = Kernels(
    "16-bit experts",
    f"{_FORWARD}; layers/moe/topk.py:419 for the map without an all-to-all",
    _both(_runner("deep_gemm")),
    {SM90: AUTO, SM100: ROUTED},
)
KERNELS = {  # by weight dtype and quant_method
    ("bf16", ""): BF16,
    ("fp8", "fp8"): Kernels(
        "fp8 experts", "layers/quantization/fp8.py:1521, run", _both(AUTO), {SM90: AUTO, SM100: ROUTED}
    ),
    ("fp8", "compressed-tensors"): Kernels(
        "fp8 experts of compressed-tensors",
        "compressed_tensors_w8a8_fp8_moe.py:354, run",
        _NO_DEEPEP,
        _both(_runner("triton")),
        "its Triton path from DeepEP's batches is gone (AssertionError: deprecated)",
    ),
    ("fp8", "modelopt"): Kernels(
        "fp8 experts of ModelOpt",
        f"{_FUSED}; arg_groups/moe_hook.py:138",
        _NO_DEEPEP,
        _both(_runner("flashinfer_cutlass")),
        f"its CUTLASS runner {_ONLY_FUSED}",
    ),
    ("int4", "compressed-tensors"): Kernels(
        "int4 experts",
        f"compressed_tensors_wNa16_moe.py:424; {_FUSED}",
        _NO_DEEPEP,
        _both(_runner("marlin")),
        f"Marlin {_ONLY_FUSED}",
    ),
    ("int4", "gptq"): Kernels(
        "int4 experts of GPTQ",
        f"hardware_backend/gpu/quantization/gptq_kernels.py:309; {_FUSED}",
        _NO_DEEPEP,
        _both(AUTO),  # Marlin, and an assertion that nobody named it
        f"Marlin {_ONLY_FUSED}",
    ),
    ("int4", "awq"): Kernels(
        "int4 experts of AWQ",
        f"layers/quantization/awq/awq_moe.py:132; model_loader/loader.py:268; {_FUSED}",
        _NO_DEEPEP,
        _both(("--dtype", "float16")),
        f"its runner {_ONLY_FUSED}",
    ),
    ("mxfp4", "mxfp4"): Kernels(
        "mxfp4 experts",
        "layers/quantization/mxfp4.py:1116; layers/moe/topk.py:419, run",
        _NO_DEEPEP,
        _both(_runner("marlin")),
        f"Marlin {_ONLY_FUSED}",
    ),
    ("mxfp4", "fp8"): Kernels(
        "mxfp4 experts in an fp8 release",
        "sgl-deep-gemm 0.2.3.post2 has fp8 x fp4 kernels from SM100 on, read; humming-kernels 0.1.12, built",
        {SM90: _runner("humming"), SM100: AUTO},
        _both(AUTO),
    ),
    ("nvfp4", "modelopt"): Kernels(
        "NVFP4 experts",
        f"arg_groups/moe_hook.py:357-380; {_FUSED}",
        {SM100: _runner("flashinfer_cutedsl", "--quantization", "modelopt_fp4")},
        {SM90: _runner("marlin"), SM100: ROUTED},
        "CuteDSL, the one runner with a path from DeepEP's batches, has it on SM100 and in low latency mode",
        ("decode",),
    ),
}
NOT_GATED = "DeepGEMM, the runner behind DeepEP, computes gated experts only (AssertionError)"
NOT_GATED_SOURCE = "layers/moe/moe_runner/deep_gemm.py:353, run"


def kernels_of(model: ModelSpec) -> Kernels | None:
    """The row for the model's routed experts; None where nobody has looked."""
    if model.weight_dtype == "bf16":
        return BF16
    fp8_release = model.weight_dtype == "mxfp4" and model.architecture == "deepseek_v4"
    return KERNELS.get((model.weight_dtype, "fp8" if fp8_release else model.quantization))
