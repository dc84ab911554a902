"""How TensorRT-LLM's WIDEEP backend moves tokens, and the environment that fixes it.

Left to itself it asks whether NVLink is up, and then takes its NVLink kernels also over several nodes that no
NVLink joins, where opening their memory fails (1.2); without TRTLLM_CAN_USE_DEEP_EP=1 it gathers. A launch
names the method instead: the server moves tokens as the plan was priced, or does not start. Source:
fused_moe_wide_ep.py, select_alltoall_method_type, five copies of 2025-07 to 2026-02; #18785; read, not run.
"""

from planner.engines.common import deepep
from planner.engines.common.releases import Release
from planner.engines.trtllm.releases import NVLINK_TWO_SIDED, X86_NVLINK
from planner.model import ModelSpec
from planner.topology import Topology, gpu_names

GATHER, NVLINK, DEEPEP, LOW_LATENCY = "NotEnabled", "NVLinkTwoSided", "DeepEP", "DeepEPLowLatency"
TRANSPORTS = {GATHER: "allgather", NVLINK: "rank", DEEPEP: "node", LOW_LATENCY: "slot"}
FORCE, ALLOW, LIMIT = "TRTLLM_FORCE_ALLTOALL_METHOD", "TRTLLM_CAN_USE_DEEP_EP", "TRTLLM_DEEP_EP_TOKEN_LIMIT"
NORMAL_NODES = (2, 4, 8, 16)  # of eight GPUs each: is_deepep_feasible
# Upstream on 2025-08-12 and 2025-09-27, the days of the forks that 1.0 and 1.2 build (edf3ea2, 5be51b2).
BUILD = deepep.Build("DeepEP of 2025-08", (2048, 2560, 4096, 5120, 6144, 7168, 8192), 9)


def method_of(
    phase: str, topology: Topology, model: ModelSpec | None, release: Release | None = None
) -> tuple[str, str]:
    """The method for a phase, and why it is not the usual one; `release`: None for the newest."""
    gpus = topology.gpu_count
    if model is not None and gpus <= model.top_k:
        return GATHER, f"EP size {gpus} is no more than top_k {model.top_k}: the all-to-all is off"
    if topology.domain_count == 1:
        return _within_nvlink(topology, release)
    if topology.node_count == 1:
        return GATHER, "no NVLink joins all GPUs of the node, which its kernels and DeepEP's need"
    if phase == "decode":
        broken = [] if model is None else _kernel_limits(gpus, model)
        if not broken:
            return LOW_LATENCY, ""
        return (DEEPEP, broken[0]) if not _why_not_normal(topology) else (GATHER, broken[0])
    why = _why_not_normal(topology)
    return (GATHER, why) if why else (DEEPEP, "")


def environment(method: str, tokens: int, release: Release) -> list[str]:
    """NAME=value of what fixes the method; `tokens`: what the low-latency buffer holds for each rank."""
    name = "MNNVL" if method == NVLINK and NVLINK_TWO_SIDED not in release.flags else method
    allowed = [f"{ALLOW}=1"] if method in (DEEPEP, LOW_LATENCY) else []
    held = [f"{LIMIT}={tokens}"] if method == LOW_LATENCY else []
    return [*allowed, f"{FORCE}={name}", *held]


def _within_nvlink(topology: Topology, release: Release | None) -> tuple[str, str]:
    pair = deepep.apart(topology)
    if pair is not None:
        return (
            GATHER,
            f"its NVLink kernels reach every GPU at once, and no NVLink joins {pair[0]} and {pair[1]}",
        )
    on_arm = all(name.startswith(("GB", "GH")) for name in gpu_names(topology))
    if on_arm or release is None or X86_NVLINK in release.flags:
        return NVLINK, ""
    return GATHER, f"{release.version} has its NVLink kernels on GB200 and the like alone"


def _kernel_limits(gpus: int, model: ModelSpec) -> list[str]:
    broken = deepep.kernel_limits("decode", gpus, model, pads_hidden=False, build=BUILD)
    return [violation.text for violation in broken]


def _why_not_normal(topology: Topology) -> str:
    nodes, gpus = topology.node_count, topology.gpu_count
    if nodes not in NORMAL_NODES or gpus != nodes * deepep.NVLINK_PEERS:
        takes = ", ".join(map(str, NORMAL_NODES))
        return f"TensorRT-LLM has DeepEP's normal mode on {takes} nodes of 8 GPUs, not {gpus} on {nodes}"
    return deepep.why_not_normal(topology)
