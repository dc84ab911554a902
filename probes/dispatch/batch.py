"""The tokens of one rank, the records made of them, and the experts that work on what arrives. Imports torch.

An expert is one square matrix of small whole numbers (it stands for gate, up and down), then a remainder (it
stands for the activation and keeps every sum a whole number that the dtype of the results holds exactly). The
CUDA path was not run on a GPU when this was written.

Shapes: T tokens of this rank, K = top_k, R records, M received records, n assignments a record, H hidden, P
slots, Z slots of this GPU, B bytes of a record, A = T * K assignments.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from probes.dispatch import flow
from probes.dispatch.job import DispatchJob
from probes.dispatch.records import HEADER_BYTES, pack_records, pack_vectors, unpack_headers, unpack_vectors
from probes.dispatch.transport import open_leg, steps
from probes.ranks.wire import Wire

KEPT_HIDDEN = 128  # matrices up to this width are kept: 64 MB of them at most

# what a slot does: its expert's matrix, the received rows it works on, their gate weights
SlotTask = tuple[Tensor, Tensor, Tensor]


@dataclass(frozen=True, eq=False)
class Tokens:
    """One layer's tokens of this rank, and what must come back for them."""

    vectors_TH: Tensor
    experts_TK: Tensor
    gates_TK: Tensor
    reference_TH: Tensor


@dataclass(frozen=True, eq=False)
class Batch:
    """One row under one side, on this rank: what it sends, how, and what its slots do with the rest.

    `misplaced` is the first assignment that came to a GPU or slot which does not hold its expert; empty where
    there is none.
    """

    job: DispatchJob
    records_RB: Tensor
    token_R: Tensor
    flow: flow.Flow
    tasks: tuple[SlotTask, ...]
    received: list[list[int]]  # source, expert, assignments
    misplaced: str
    matrices: list[list[int]]  # of each slot: expert, zeros, checksum


def expert_matrix(layer_id: int, expert: int, hidden: int, device: torch.device) -> Tensor:
    """weight_HH of -1, 0 and 1: the same on every rank that asks for this expert."""
    return (_kept_matrix if hidden <= KEPT_HIDDEN else _new_matrix)(layer_id, expert, hidden, device)


def _new_matrix(layer_id: int, expert: int, hidden: int, device: torch.device) -> Tensor:
    generator = torch.Generator(device).manual_seed(layer_id * 1_000_003 + expert)
    dtype = torch.float32 if device.type == "cuda" else torch.float64
    return torch.randint(-1, 2, (hidden, hidden), generator=generator, device=device).to(dtype)


_kept_matrix = lru_cache(maxsize=512)(_new_matrix)  # virtual ranks ask for the same ones


def apply_expert(job: DispatchJob, vectors_XH: Tensor, weight_HH: Tensor) -> Tensor:
    return torch.remainder(vectors_XH @ weight_HH, job.sums.results)


def make_tokens(job: DispatchJob, wire: Wire, row: int) -> Tokens:
    """Vectors of -2..2, and the weighted sum that must come back.

    It is computed here from expert ids, without slots, ranks or messages.
    """
    rng = np.random.default_rng([job.seed, row, wire.rank, 2])
    whole_TH = rng.integers(-2, 3, (job.tokens_per_rank, job.width))
    exact = torch.float32 if wire.device.type == "cuda" else torch.float64
    vectors_TH = torch.as_tensor(whole_TH, device=wire.device).to(exact)
    experts_TK = torch.as_tensor(job.experts_TK(row, wire.rank), device=wire.device)
    gates_TK = torch.as_tensor(rng.integers(1, job.sums.gates + 1, experts_TK.shape), device=wire.device)
    reference_TH = torch.zeros_like(vectors_TH)
    order_A = experts_TK.flatten().argsort(stable=True)  # assignments, those of one expert together
    token_A, gate_A1 = order_A // job.top_k, gates_TK.flatten()[order_A, None]
    wanted_X, count_X = experts_TK.unique(return_counts=True)  # in the same order
    parts = zip(token_A.split(count_X.tolist()), gate_A1.split(count_X.tolist()), strict=True)
    for expert, (token_X, gate_X1) in zip(wanted_X.tolist(), parts, strict=True):
        weight_HH = expert_matrix(job.layer_ids[row], expert, job.width, wire.device)
        output_XH = apply_expert(job, vectors_TH[token_X], weight_HH)
        reference_TH.index_add_(0, token_X, output_XH * gate_X1)
    return Tokens(vectors_TH, experts_TK, gates_TK, reference_TH)


def prepare(job: DispatchJob, wire: Wire, tokens: Tokens, row: int, side_name: str) -> Batch:
    """Build the records, and send them once for real while sizes are exchanged.

    What arrived says which slot works on what.
    """
    expert_P = torch.as_tensor(job.sides[side_name].expert_LP[row].astype(np.int64), device=wire.device)
    mine_Z = expert_P.reshape(wire.gpus, -1)[wire.rank]
    slots_TK = torch.as_tensor(job.slots_TK(side_name, row, wire.rank), device=wire.device)
    if job.is_faulty("wrong-slot", wire.rank, row, side_name):
        _send_wrongly(slots_TK, tokens.experts_TK, expert_P, len(mine_Z))
    records_RB, token_R = _records(job, wire.rank, tokens, slots_TK)
    legs: list[flow.Leg] = []
    arrived: list[Tensor] = []
    ends: list[int] = []
    for number, step in enumerate(steps(job.transport, wire, len(records_RB), job.chunks)):
        held_XB = records_RB if step.source is None else arrived[step.source]
        gpu_Xn = unpack_headers(held_XB[step.first : step.end], job.entries)[1][:, :, 0].long() // len(mine_Z)
        legs.append(open_leg(wire, step, gpu_Xn))
        arrived.append(wire.exchange(held_XB[legs[-1].row_M], legs[-1].sent_G, legs[-1].received_G))
        ends += [number] if step.ends else []
    origin_M, entry_Mn3 = unpack_headers(torch.cat([arrived[end] for end in ends]), job.entries)
    source_M = torch.div(origin_M, job.tokens_per_rank, rounding_mode="floor")
    received, misplaced = _arrivals(wire.rank, source_M, entry_Mn3, mine_Z)
    tasks = tuple(_tasks(job, wire, row, mine_Z, entry_Mn3))
    way = flow.Flow(tuple(legs), tuple(ends), len(records_RB))
    matrices = [[expert, *looks(task[0])] for expert, task in zip(mine_Z.tolist(), tasks, strict=True)]
    return Batch(job, records_RB, token_R, way, tasks, received, misplaced, matrices)


def _send_wrongly(slots_TK: Tensor, experts_TK: Tensor, expert_P: Tensor, slots_per_gpu: int) -> None:
    """For tests: the first assignment goes to another GPU's slot that holds another expert."""
    elsewhere_P = torch.arange(len(expert_P)) // slots_per_gpu != slots_TK[0, 0] // slots_per_gpu
    slots_TK[0, 0] = ((expert_P != experts_TK[0, 0]) & elsewhere_P).nonzero()[0, 0]


def _tasks(job: DispatchJob, wire: Wire, row: int, mine_Z: Tensor, entry_Mn3: Tensor) -> Iterator[SlotTask]:
    first = wire.rank * len(mine_Z)
    for slot, expert in enumerate(mine_Z.tolist(), first):
        row_X, n_X = (entry_Mn3[:, :, 0] == slot).nonzero(as_tuple=True)
        weight_HH = expert_matrix(job.layer_ids[row], expert, job.width, wire.device)
        yield weight_HH, row_X, entry_Mn3[row_X, n_X, 2:]


def looks(weight_HH: Tensor) -> tuple[int, int]:
    """Zeros, and a sum in which each element counts by its place: whole numbers, exact in any order."""
    place_H = torch.arange(len(weight_HH), device=weight_HH.device)
    row_H, column_H = (31 * place_H % 97).to(weight_HH.dtype), (17 * place_H % 89).to(weight_HH.dtype)
    checksum = (row_H.double() * (weight_HH @ column_H).double()).sum()
    return int((weight_HH == 0).sum()), int(checksum)


def dispatch(wire: Wire, batch: Batch) -> Tensor:
    """arrived_MB: the records this rank gets."""
    return flow.there(wire, batch.flow, batch.records_RB)


def compute(batch: Batch, arrived_MB: Tensor) -> Tensor:
    """results_MH: for each received record the weighted sum of this GPU's experts among those it selects."""
    job = batch.job
    arrived_MH = unpack_vectors(arrived_MB[:, HEADER_BYTES * job.entries :], job.dispatch_dtype, job.width)
    sums_MH = torch.zeros_like(arrived_MH)
    for weight_HH, row_X, gate_X1 in batch.tasks:
        sums_MH.index_add_(0, row_X, apply_expert(job, arrived_MH[row_X], weight_HH) * gate_X1)
    return sums_MH


def combine(wire: Wire, batch: Batch, results_MH: Tensor) -> Tensor:
    """sums_TH: the legs backwards, adding up at each, and at the source over each token's records."""
    job, size = batch.job, batch.job.record_bytes[1]
    sums_RH = flow.back(
        wire,
        batch.flow,
        results_MH,
        lambda sums_XH: pack_vectors(sums_XH, job.combine_dtype, size),
        lambda bytes_XB: unpack_vectors(bytes_XB, job.combine_dtype, job.width),
    )
    sums_TH = sums_RH.new_zeros((job.tokens_per_rank, job.width))
    return sums_TH.index_add_(0, batch.token_R, sums_RH)


def _records(job: DispatchJob, rank: int, tokens: Tokens, slots_TK: Tensor) -> tuple[Tensor, Tensor]:
    """Packed records and the token of each.

    One a token with all its assignments, or for the slot transport one an assignment.
    """
    token_R = torch.arange(len(slots_TK), device=slots_TK.device)
    entry_Rn3 = torch.stack([slots_TK, tokens.experts_TK, tokens.gates_TK], dim=2)
    if job.transport == "slot":
        token_R, entry_Rn3 = token_R.repeat_interleave(job.top_k), entry_Rn3.reshape(-1, 1, 3)
    origin_R = rank * job.tokens_per_rank + token_R
    vectors_RH = tokens.vectors_TH[token_R]
    return pack_records(entry_Rn3, origin_R, vectors_RH, job.dispatch_dtype, job.record_bytes[0]), token_R


def _arrivals(rank: int, source_M: Tensor, entry_Mn3: Tensor, mine_Z: Tensor) -> tuple[list[list[int]], str]:
    """What this GPU was sent, counted from the records' own headers, and the first that it does not hold.

    A row of what was sent is [source, expert, assignments].
    """
    slot_Mn, first = entry_Mn3[:, :, 0], rank * len(mine_Z)
    row_X, n_X = ((slot_Mn >= first) & (slot_Mn < first + len(mine_Z))).nonzero(as_tuple=True)
    source_X, slot_X, expert_X = source_M[row_X], slot_Mn[row_X, n_X], entry_Mn3[row_X, n_X, 1]
    counts = Counter(zip(source_X.tolist(), expert_X.tolist(), strict=True))
    wrong = (mine_Z[slot_X.long() - first] != expert_X).nonzero().flatten()
    misplaced = ""
    if len(wrong):
        source, expert, slot = (int(values_X[wrong[0]]) for values_X in (source_X, expert_X, slot_X))
        misplaced = (
            f"rank {source} sent expert {expert} to slot {slot} of GPU {rank}, "
            f"which holds expert {int(mine_Z[slot - first])}"
        )
    return [[source, expert, count] for (source, expert), count in sorted(counts.items())], misplaced
