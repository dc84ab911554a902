"""For programs run by SGLang's interpreter without a GPU: its own code, told that it sits on one.

What is replaced: the facts of the device (kind, memory, count), torchvision, and packages that SGLang's image
has and this interpreter lacks (deep_ep, deep_gemm), which are taken as installed.
"""

import contextlib
import importlib
import logging
import sys
import types
from importlib.machinery import ModuleSpec
from typing import Any
from unittest.mock import MagicMock

TORCHVISION = ("", ".io", ".ops", ".transforms", ".transforms.functional", ".transforms.v2")
MODULES = (  # imported once, before any fork; those that import them by name are then seen by `on_gpu`
    *(
        "server_args",
        "runtime_context",
        "eplb.expert_location",
        "arg_groups.pipeline",
        "arg_groups.memory_hook",
    ),
    *("arg_groups.model_override_base", "layers.moe.utils", "layers.moe.ep_moe.layer"),
    *("layers.moe.fused_moe_triton.layer", "layers.moe.token_dispatcher.deepep", "model_loader.loader"),
    *(f"layers.moe.moe_runner.{name}" for name in ("deep_gemm", "marlin", "humming", "flashinfer_trtllm")),
    *(f"layers.moe.moe_runner.flashinfer_{name}" for name in ("cutlass", "cutedsl")),
    *(f"layers.quantization.{name}" for name in ("modelopt_quant", "mxfp4", "fp8", "unquant", "w4afp8")),
)


def sglang(module: str) -> Any:
    return importlib.import_module(f"sglang.srt.{module}")


def prepare() -> None:
    """Imports, which are most of the time of a process."""
    logging.disable(logging.WARNING)
    for auto in ("image_processing", "modeling", "processing", "video_processing"):
        importlib.import_module(f"transformers.models.auto.{auto}_auto")  # looks for torchvision itself
    for part in (*TORCHVISION, ".transforms.v2.functional"):
        module = MagicMock()
        module.__spec__, module.__path__ = ModuleSpec(f"torchvision{part}", None), []
        sys.modules[f"torchvision{part}"] = module
    for name in MODULES:
        with contextlib.suppress(Exception):  # what cannot be imported without a GPU is not asked about
            sglang(name)
    with contextlib.suppress(Exception):  # the classes that it could load by then are kept
        sglang("models.registry").ModelRegistry.get_supported_archs()
    quantization = sglang("layers.quantization")
    tables = [table for table in vars(quantization).values() if isinstance(table, dict) and "awq" in table]
    for table in tables:  # a method that is registered on CUDA alone
        table.setdefault("mxfp4", sglang("layers.quantization.mxfp4").Mxfp4Config)


def on_gpu(capability: tuple[int, int], memory_mib: int, devices: int) -> Any:
    """A context in which every reader of the machine's facts sees this GPU."""
    import torch

    major, minor = capability
    facts = {
        "is_sm80_supported": major == 8,
        "is_sm90_supported": major == 9,
        "is_sm100_supported": major == 10,
        "is_sm110_supported": major == 11,
        "is_sm120_supported": major == 12,
        "is_sm100_or_sm110_supported": major in (10, 11),
        "is_blackwell_supported": major in (10, 11, 12),
        "is_blackwell": major in (10, 11, 12),
        "is_hopper_with_cuda_12_3": major == 9,
        "is_ampere_with_cuda_12_3": major == 8,
        "is_flashinfer_available": True,
        "get_device_memory_capacity": memory_mib,
        "get_device_capability": capability,
        "get_device_sm": major * 10 + minor,
    }
    cuda = {"get_device_capability": capability, "device_count": devices, "get_device_name": "made"}
    vars(torch.cuda).update({name: _always(value) for name, value in cuda.items()}, current_device=_always(0))
    for module in _modules("sglang"):
        told = {name: _always(value) for name, value in facts.items() if callable(vars(module).get(name))}
        vars(module).update(told)
    sglang("model_executor.cuda_graph_config").default_prefill_backend = lambda: "breakable"  # as on CUDA
    sglang("eplb.expert_location").get_device = lambda: types.SimpleNamespace(device="cpu")
    return sglang("runtime_context").override_platform(
        is_cuda=True,
        is_sm90=major == 9,
        is_sm100=major == 10,
        is_sm110=major == 11,
        is_sm120=major == 12,
        is_sm100_or_sm110=major in (10, 11),
        is_blackwell=major in (10, 11, 12),
        is_hopper_with_cuda_12_3=major == 9,
        has_flashinfer=True,
        device_sm=major * 10 + minor,
        device_capability=capability,
    )


def with_kernels(major: int) -> None:
    """Layers see CUDA, DeepGEMM and DeepEP as installed."""
    sys.modules.setdefault("deep_gemm", MagicMock())
    for name in ("layers.deep_gemm_wrapper", "layers.deep_gemm_wrapper.configurer"):
        vars(sglang(name)).update(
            ENABLE_JIT_DEEPGEMM=major >= 9,
            DEEPGEMM_BLACKWELL=major == 10,
            DEEPGEMM_SCALE_UE8M0=major == 10,
            DEEPGEMM_NEED_TMA_ALIGNED_SCALES=major == 9,
        )
    for module in (*_modules("sglang.srt.layers.quantization"), *_modules("sglang.srt.layers.moe")):
        names = vars(module)
        names.update({flag: flag == "_is_cuda" for flag in ("_is_cuda", "_is_cpu") if flag in names})
        if callable(names.get("is_cuda")):
            names["is_cuda"] = _always(True)
    sglang("layers.moe.token_dispatcher.deepep").use_deepep = True


def _modules(beginning: str) -> list[Any]:
    named = [module for module in list(sys.modules.values()) if getattr(module, "__name__", None)]
    return [module for module in named if str(module.__name__).startswith(beginning)]


def _always(value: Any) -> Any:
    return lambda *_args, **_named: value
