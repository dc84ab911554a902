"""The network environment of a launch: which cards NCCL and NVSHMEM may use, from the topology's NIC names.

NVSHMEM's GPU-initiated transport is what DeepEP's low-latency kernels send with across nodes (llm-d's wide-EP
guide sets the same two variables). Read in documentation, not run: no machine with such cards was at hand.
"""

import re

from planner.launch.job import Job
from planner.topology import Node

_UNSET = "# NCCL_IB_HCA and NVSHMEM_HCA_LIST are not set"
_VERBS_DEVICE = re.compile(r"(mlx[45]_|bnxt_re|irdma|rocep|ibp|hfi1_)[A-Za-z0-9_]*")
PORT = 1  # assumed: compute cards with several ports are rare, and the topology does not tell


def network_lines(job: Job) -> list[str]:
    """Bash lines that set the environment; none where one node needs no network.

    A value that is already set is kept.
    """
    if not _has_network(job):
        return []
    lines = []
    if job.transport == "slot":
        lines += [_export("NVSHMEM_REMOTE_TRANSPORT", "ibgda"), _export("NVSHMEM_IB_ENABLE_IBGDA", "true")]
    cards = [_verbs_names(node) for node in job.topology.nodes]
    if not all(cards):
        return [*lines, f"{_UNSET}: the topology does not name every node's RDMA devices"]
    if len(set(cards)) == 1:
        return [*lines, *_card_lines(cards[0])]
    if job.per_gpu:
        return [*lines, f"{_UNSET}: the nodes' RDMA devices have different names"]
    arms = [f"{node}) {'; '.join(_card_lines(names))} ;;" for node, names in enumerate(cards)]
    return [*lines, 'case "${NODE_RANK:-}" in', *arms, "esac"]


def network_notes(job: Job) -> tuple[str, ...]:
    if not _has_network(job) or all(_verbs_names(node) for node in job.topology.nodes):
        return ()
    unnamed = (
        "the topology names no RDMA device of some node, so NCCL and NVSHMEM choose their cards themselves"
    )
    return (f"{unnamed}; `moeplan probe` on each host records the names",)


def _has_network(job: Job) -> bool:
    return job.nodes > 1 and job.accelerator == "nvidia"


def _verbs_names(node: Node) -> tuple[str, ...]:
    names = tuple(nic.name for nic in node.nics)
    return names if names and all(_VERBS_DEVICE.fullmatch(name) for name in names) else ()


def _card_lines(names: tuple[str, ...]) -> list[str]:
    """'=' asks NCCL for exact names: without it mlx5_1 also takes mlx5_10."""
    ports = ",".join(f"{name}:{PORT}" for name in names)
    return [_export("NCCL_IB_HCA", f"={','.join(names)}"), _export("NVSHMEM_HCA_LIST", ports)]


def _export(name: str, value: str) -> str:
    return f'export {name}="${{{name}:-{value}}}"'
