"""Traffic: how many messages a dispatch sends from each GPU to each other one, by transport.

A message carries one token's vector once. Combine is the same messages backwards.

Shapes: S source ranks (1 where all behave alike, else G), P slots, G GPUs, U units (NVLink domains or nodes).
"""

import numpy as np

from planner.cost.hits import hit_share_SX
from planner.cost.hops import allgather, two_hops
from planner.cost.routing import Floats, Ints, Routing, assignments_SP
from planner.problem import BYTES_PER_ELEMENT, Problem, Workload


def messages_GG(problem: Problem, routing: Routing, sent_SP: Floats | None = None) -> Floats:
    """Expected messages per step from source GPU (row) to destination GPU (column), the diagonal included.

    `sent_SP`: its assignments, where known.
    """
    hops = hop_messages(problem, routing, sent_SP)
    return hops[0] if len(hops) == 1 else hops[0] + hops[1]


def hop_messages(problem: Problem, routing: Routing, sent_SP: Floats | None = None) -> tuple[Floats, ...]:
    """The same, apart for each hop: one, or for `node` and `allgather` over units and inside them."""
    transport, gpus, tokens = problem.workload.transport, problem.gpus, problem.workload.tokens_per_rank
    if transport == "allgather":
        return allgather(units(problem), tokens)
    if transport == "slot":
        sent_SP = assignments_SP(problem, routing) if sent_SP is None else sent_SP
        return (np.broadcast_to(sent_SP.reshape(len(routing.share_SP), gpus, -1).sum(axis=2), (gpus, gpus)),)
    gpu_P = np.arange(problem.slots) // problem.slots_per_gpu
    hits_GG = np.broadcast_to(tokens * hit_share_SX(problem, routing, gpu_P), (gpus, gpus))
    if transport == "rank":
        return (hits_GG,)
    unit_G = units(problem)
    hits_SU = tokens * hit_share_SX(problem, routing, unit_G[gpu_P])
    return two_hops(hits_GG, np.broadcast_to(hits_SU, (gpus, hits_SU.shape[1])), unit_G)


def message_bytes(problem: Problem) -> tuple[float, float]:
    """Bytes of one dispatch and of one combine message."""
    return bytes_of_messages(problem.workload, problem.model.dispatch_width, problem.model.top_k)


def bytes_of_messages(workload: Workload, width: int, top_k: int) -> tuple[float, float]:
    """The same for vectors of `width` elements.

    Sources: DeepEP's low-latency and normal kernels (headers, scales, top-k ids and weights), and what vLLM's
    AgRsAll2AllManager gathers.
    """
    dispatch = width * BYTES_PER_ELEMENT[workload.dispatch_dtype]
    combine = width * BYTES_PER_ELEMENT[workload.combine_dtype]
    if workload.transport == "slot":
        return dispatch + 16, combine
    if workload.transport == "rank":
        return dispatch + 4 + 12 * top_k, combine + 4 + 4 * top_k
    if workload.transport == "allgather":  # ids and weights of the top-k are gathered beside the vectors
        return dispatch + 8 * top_k, combine
    return _align16(dispatch + 8 + 8 * top_k), _align16(combine + 8 + 4 * top_k)


def units(problem: Problem) -> Ints:
    """unit_G: what transport `node` crosses with one message: an NVLink domain that spans nodes, else the
    node.
    """
    topology = problem.topology
    return topology.domain_G if topology.domain_count < topology.node_count else topology.node_G


def _align16(size: float) -> float:
    return float(-(-int(np.ceil(size)) // 16) * 16)
