"""How a launch moves tokens: through DeepEP or without an all-to-all, and which kernels compute experts."""

from dataclasses import dataclass

from planner.engines.common import deepep
from planner.engines.common.capability import SM90, SM100, generation, nearest_generation
from planner.engines.sglang.kernels import NOT_GATED, NOT_GATED_SOURCE, Flags, kernels_of
from planner.engines.sglang.models import NO_DEEPEP, OWN_RUNNER
from planner.model import ModelSpec
from planner.topology import Topology

WHEEL = "SGLang 0.5.23"
GATHER = "--moe-a2a-backend none"
GATED_MATRICES = 3  # gate, up, down


@dataclass(frozen=True)
class Backend:
    """DeepEP or none, with the flags of the expert kernels."""

    runner: Flags
    source: str
    why: str = ""  # why not DeepEP; empty where it is
    unknown: bool = False  # whether nobody has looked which kernels run these weights

    @property
    def deep(self) -> bool:
        return not self.why


def backend_of(phase: str, topology: Topology, model: ModelSpec) -> Backend:
    """What serves a phase: DeepEP where machine, model and weights allow it, else none."""
    kernels, major = kernels_of(model), generation(topology)
    if kernels is None:
        kind = f"{model.weight_dtype} experts of quant_method {model.quantization!r}"
        return Backend((), WHEEL, f"no kernel is known for {kind}", unknown=True)
    why, source = _why_not(phase, topology, model)
    if not why and (phase not in kernels.deep_phases or major not in kernels.deep):
        why, source = kernels.why or f"no kernel for {kernels.name} runs behind DeepEP", kernels.source
    if not why:
        return Backend(kernels.deep[major], f"{WHEEL}: {kernels.source}")
    runner = () if model.architecture in OWN_RUNNER else kernels.gather[nearest_generation(topology)]
    return Backend(runner, f"{WHEEL}: {source}", why)


def _why_not(phase: str, topology: Topology, model: ModelSpec) -> tuple[str, str]:
    """What stands in DeepEP's way, and its source: the machine, the kernels' sizes, the model, the GPU."""
    normal = deepep.why_not_normal(topology) if phase != "decode" else ""
    if normal:
        return normal, f"{deepep.SGLANG.name}, deep_ep/buffers/legacy.py, read"
    refused = deepep.kernel_limits(phase, topology.gpu_count, model, pads_hidden=False, build=deepep.SGLANG)
    if model.architecture in NO_DEEPEP:
        return NO_DEEPEP[model.architecture]
    if refused:
        return refused[0].text, f"{deepep.SGLANG.name}, read"
    if model.expert_matrices != GATED_MATRICES:
        return NOT_GATED, NOT_GATED_SOURCE
    if generation(topology) < SM90:
        return (
            "DeepGEMM, the runner behind DeepEP, needs SM90",
            "layers/deep_gemm_wrapper/configurer.py:42, read",
        )
    if generation(topology) > SM100:
        found = f"SM{generation(topology)}x"
        return f"nobody has looked which kernels run behind DeepEP on {found}", "not looked at"
    return "", ""
