"""For vllm_resolver.py: vLLM on a machine without a GPU sees one, with the packages that a CUDA machine has.

The platform is vLLM's own CudaPlatformBase with the answers of a GPU that is not there; compiled modules and
packages are empty stand-ins, and DeepEP's buffer size is its formula. Everything that decides is vLLM's.
"""

import importlib
import importlib.abc
import importlib.machinery
import sys
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

GPUS = {  # capability, name, memory in GiB
    "h100": ((9, 0), "NVIDIA H100 80GB HBM3", 79.6),
    "b200": ((10, 0), "NVIDIA B200", 178.4),
    "gb200": ((10, 0), "NVIDIA GB200", 184.0),
    "a100": ((8, 0), "NVIDIA A100-SXM4-80GB", 79.3),
}
COMPILED = (
    "_C_stable_libtorch", "_moe_C_stable_libtorch", "_qutlass_C", "_flashmla_C", "_flashmla_extension_C",
    "_deepselect_C", "_flashkda_C", "vllm_flash_attn._vllm_fa2_C", "vllm_flash_attn._vllm_fa3_C",
    "cumem_allocator",
)  # fmt: skip
ABSENT = frozenset(
    ("loguru", "orjson", "deep_ep", "nixl_ep", "flashinfer", "deep_gemm", "cutlass", "humming")
)
LATER = frozenset(("torchvision", "torchaudio", "cuda", "quack", "tilelang"))  # transformers asks versions
GPU: dict[str, Any] = {"kind": "h100", "count": 8}  # what the launch at hand runs on
LEAST = {  # torch.ops._C's questions of capability, as its C++ answers them for CUDA 13
    "cutlass_scaled_mm_supports_fp8": 89,
    "cutlass_scaled_mm_supports_block_fp8": 90,
    "cutlass_scaled_mm_supports_fp4": 100,
    "cutlass_group_gemm_supported": 90,
    "mxfp4_experts_quant_supported": 100,
}


def low_latency_bytes(
    num_max_dispatch_tokens_per_rank: int, hidden: int, num_ranks: int, num_experts: int
) -> int:
    """DeepEP dd758ca, csrc/legacy/config.hpp:131-187."""
    del num_ranks
    tokens, experts = num_max_dispatch_tokens_per_rank, num_experts
    dispatch, combine = 16 + max(2 * hidden, hidden + hidden // 32), hidden // 32 + 2 * hidden
    send, receive = (
        max(tokens * dispatch, experts * tokens * combine),
        experts * tokens * max(dispatch, combine),
    )
    return (2 * (send + receive + -(-4 * experts // 128) * 128) // 128 + 1) * 128


class Anything(ModuleType):
    """A package that is there: any name in it is."""

    __version__ = "99.0"
    __path__: list[str] = []  # noqa: RUF012 - as a package has it

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or (self.__name__ == "deep_ep" and name == "ElasticBuffer"):  # DeepEP V1
            raise AttributeError(name)
        made = MagicMock(name=f"{self.__name__}.{name}")
        setattr(self, name, made)
        return made


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the stand-ins."""

    exact = frozenset(f"vllm.{name}" for name in COMPILED)

    def __init__(self) -> None:
        self.roots = set(ABSENT)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        del path, target
        if name.split(".", maxsplit=1)[0] in self.roots or name in self.exact:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> ModuleType:
        return Anything(spec.name)

    def exec_module(self, module: Any) -> None:
        if module.__name__ in ("deep_ep", "nixl_ep"):
            module.topk_idx_t = importlib.import_module("torch").int64
        if module.__name__ == "deep_ep":
            module.Buffer = SimpleNamespace(get_low_latency_rdma_size_hint=low_latency_bytes)


class Kernels:
    """torch.ops._C without its library."""

    building = False  # a model takes its operations as attributes when it is made; none is called

    def __getattr__(self, name: str) -> Any:
        if name in LEAST:
            return lambda capability: capability >= LEAST[name]
        if self.building and not name.startswith("__"):
            return MagicMock(name=name)
        raise AttributeError(name)


def capability() -> tuple[int, int]:
    found: tuple[int, int] = GPUS[GPU["kind"]][0]
    return found


def memory_bytes() -> int:
    return int(GPUS[GPU["kind"]][2] * 2**30)


def claim_cuda() -> None:
    """Imports vLLM as on a machine with CUDA 13."""
    finder = Finder()
    sys.meta_path.insert(0, finder)
    torch: Any = importlib.import_module("torch")
    torch.version.cuda, torch.ops._C = "13.0", Kernels()
    register = torch.library.register_fake

    def register_fake(op: Any, *args: Any, **named: Any) -> Any:
        ours = isinstance(op, str) and op.startswith("_C")
        return (lambda function: function) if ours else register(op, *args, **named)

    torch.library.register_fake = register_fake
    importlib.import_module("vllm.platforms")._current_platform = _platform()  # type: ignore[attr-defined]
    _device(torch)
    _registry()
    for name in ("entrypoints.cli.serve", "model_executor.layers.fused_moe.layer"):
        importlib.import_module(f"vllm.{name}")
    importlib.import_module("transformers.models.auto.processing_auto")
    finder.roots |= LATER


def _platform() -> Any:
    interface: Any = importlib.import_module("vllm.platforms.interface")
    answers: dict[str, Any] = {
        "get_device_capability": lambda: interface.DeviceCapability(*capability()),
        "get_device_name": lambda: GPUS[GPU["kind"]][1],
        "get_device_total_memory": memory_bytes,
        "is_fully_connected": lambda: True,
        "device_count": lambda: int(GPU["count"]),
        "num_compute_units": lambda: 132,
        "is_integrated_gpu": lambda: False,
        "is_pin_memory_available": lambda: False,
    }
    members: dict[str, Any] = {name: classmethod(_ignoring(answer)) for name, answer in answers.items()}
    return type("Claimed", (importlib.import_module("vllm.platforms.cuda").CudaPlatformBase,), members)()


def _ignoring(answer: Any) -> Any:
    return lambda *_args, **_named: answer()


def _device(torch: Any) -> None:
    def properties(*_: Any) -> Any:
        major, minor = capability()
        return SimpleNamespace(
            multi_processor_count=132, is_integrated=False, total_memory=memory_bytes(), name="made",
            shared_memory_per_block_optin=232448, major=major, minor=minor,
        )  # fmt: skip

    torch.cuda.get_device_properties = properties
    torch.cuda.get_device_capability = _ignoring(capability)
    torch.cuda.current_device = torch.accelerator.current_device_index = lambda: 0
    torch.accelerator.current_stream = MagicMock()
    torch.cuda.Stream = torch.cuda.Event = MagicMock
    triton: Any = importlib.import_module("vllm.triton_utils").triton
    triton.Config = lambda kwargs=None, num_warps=4, num_stages=2, **_: SimpleNamespace(
        kwargs=kwargs, num_warps=num_warps, num_stages=num_stages
    )


def _registry() -> None:
    """Models are looked at in this process, and nothing is kept on the disk."""
    registry: Any = importlib.import_module("vllm.model_executor.models.registry")
    registry._run_in_subprocess = lambda function: function()
    registry._LazyRegisteredModel._load_modelinfo_from_cache = lambda *_: None
    registry._LazyRegisteredModel._save_modelinfo_to_cache = lambda *_: None
