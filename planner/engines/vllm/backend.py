"""How a launch moves tokens, by DeepEP or by all-gather, and whether vLLM's balancer may move experts."""

from dataclasses import dataclass

from planner.engines.common import deepep
from planner.engines.common.capability import SM90, SM100, generation, nearest_generation
from planner.engines.vllm.kernels import Flags, kernels_of
from planner.engines.vllm.models import BALANCED
from planner.model import ModelSpec
from planner.topology import Topology

WHEEL = "vLLM 0.33.0"
LOW_LATENCY, NORMAL = "deepep_low_latency", "deepep_high_throughput"
GATHER = "allgather_reducescatter"  # vLLM's default
_ALL_TO_ALL = "vLLM's all2all_utils.py and the layer's kernel, run"
_MEMORY = "DeepEP dd758ca, csrc/legacy/buffer.hpp:107-116, :233-247; vLLM's all2all.py:280-287, read"


@dataclass(frozen=True)
class Backend:
    """An all-to-all of vLLM, with what follows for its balancer."""

    name: str
    source: str
    why: str = ""  # why not DeepEP; empty where it is
    kernels: Flags = ()
    unbalanced: str = ""  # why the balancer moves no experts; empty where it does
    unknown: bool = False  # whether nobody has looked which kernels run these weights

    @property
    def deep(self) -> bool:
        return not self.why

    @property
    def eplb(self) -> bool:
        return not self.unbalanced


def backend_of(phase: str, topology: Topology, model: ModelSpec) -> Backend:
    """What serves a phase: DeepEP where machine, model and weights allow it, else the gathering one."""
    kernels, major = kernels_of(model), generation(topology)
    if kernels is None:
        kind = f"{model.weight_dtype} experts of quant_method {model.quantization!r}"
        return Backend(GATHER, WHEEL, f"no kernel is known for {kind}", unbalanced="unknown", unknown=True)
    why, source = _why_not(phase, topology, model)
    if not why and phase == "decode" and major not in kernels.low_latency:
        why = f"{kernels.name} have no kernel for the batches of DeepEP's low latency mode on SM{major}x"
    low = phase == "decode" and not why
    name = GATHER if why else LOW_LATENCY if low else NORMAL
    balanced = kernels.balanced_low if low else kernels.balanced
    if model.architecture not in BALANCED:
        return Backend(name, source, why, unbalanced=f"has no expert balancer for {model.architecture}")
    if nearest_generation(topology) in balanced:
        return Backend(name, source, why, () if low else kernels.flags)
    mode = f"{name} on SM{major}x"
    return Backend(name, source, why, unbalanced=f"has no expert balancer for {kernels.name} with {mode}")


def transport(phase: str, topology: Topology, model: ModelSpec | None = None) -> str:
    """As the launch moves tokens; without a model, where nothing but the machine decides."""
    why = (_why_not_here(phase, topology) if model is None else backend_of(phase, topology, model).why) != ""
    return "allgather" if why else deepep.transport(phase, topology)


def _why_not(phase: str, topology: Topology, model: ModelSpec) -> tuple[str, str]:
    """What stands in DeepEP's way, and its source: the machine, else the kernels' sizes."""
    why = _why_not_here(phase, topology)
    if why:
        return why, _MEMORY
    refused = deepep.kernel_limits(phase, topology.gpu_count, model, pads_hidden=True)
    return (refused[0].text, f"{deepep.UPSTREAM.name}, read") if refused else ("", _ALL_TO_ALL)


def _why_not_here(phase: str, topology: Topology) -> str:
    major = generation(topology)
    if major < SM90:
        return "DeepEP's low-latency and network kernels need SM90"
    if major > SM100:
        return f"nobody has looked which kernels run behind DeepEP on SM{major}x"
    if phase == "decode":
        return ""
    if topology.node_count > 1 and topology.gpu_count <= deepep.NVLINK_PEERS:
        return "vLLM opens the buffers of DeepEP's normal mode by CUDA IPC, which reaches no other host"
    return deepep.why_not_normal(topology)
