"""The tokens of one rank, the records made of them, and the experts that work on what arrives. Imports torch.

An expert is one square matrix of small whole numbers (it stands for gate, up and down), then a remainder (it
stands for the activation and keeps every sum a whole number below 256, which bf16 holds exactly). The CUDA
path was not run on a GPU when this was written.

Shapes: T tokens of this rank, K = top_k, R records, M received records, n assignments a record, H hidden, P
slots, Z slots of this GPU.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from probes.dispatch.job import RECORD_INTS, DispatchJob
from probes.dispatch.transport import HOPS, Hop, headers, open_hop, pack, vectors
from probes.ranks.wire import Wire

# what a slot does: its expert's matrix, the received rows it works on, their gate weights
SlotTask = tuple[Tensor, Tensor, Tensor]
RESULT_VALUES = 4  # an expert's outputs are 0..3; gate weights are 1..3


@dataclass(frozen=True, eq=False)
class Tokens:
    """One layer's tokens of this rank, and what must come back for them."""

    vectors_TH: Tensor
    experts_TK: Tensor
    gates_TK: Tensor
    reference_TH: Tensor


@dataclass(frozen=True, eq=False)
class Batch:
    """One layer under one placement, on this rank: what it sends, how, and what its slots do with the rest.

    `misplaced` is the first assignment that came to a GPU or slot which does not hold its expert; empty where
    there is none.
    """

    records_RB: Tensor
    token_R: Tensor
    entries: int
    hops: tuple[Hop, ...]
    rows: tuple[int, ...]  # records held before each hop
    tasks: tuple[SlotTask, ...]
    received: list[list[int]]  # source, expert, assignments
    misplaced: str


def expert_matrix(layer_id: int, expert: int, hidden: int, device: torch.device) -> Tensor:
    """weight_HH of -1, 0 and 1: the same on every rank that asks for this expert."""
    generator = torch.Generator(device).manual_seed(layer_id * 1_000_003 + expert)
    dtype = torch.float32 if device.type == "cuda" else torch.float64
    return torch.randint(-1, 2, (hidden, hidden), generator=generator, device=device).to(dtype)


def apply_expert(vectors_XH: Tensor, weight_HH: Tensor) -> Tensor:
    return torch.remainder(vectors_XH @ weight_HH, RESULT_VALUES)


def make_tokens(job: DispatchJob, wire: Wire, row: int) -> Tokens:
    """Vectors of -2..2, and the weighted sum that must come back.

    It is computed here from expert ids, without slots, ranks or messages.
    """
    rng = np.random.default_rng([job.seed, job.layer_ids[row], wire.rank, 2])
    whole_TH = rng.integers(-2, 3, (job.tokens_per_rank, job.width))
    vectors_TH = torch.as_tensor(whole_TH, device=wire.device).to(torch.bfloat16)
    experts_TK = torch.as_tensor(job.experts_TK(row, wire.rank), device=wire.device)
    gates_TK = torch.as_tensor(rng.integers(1, 4, experts_TK.shape), device=wire.device)
    reference_TH = torch.zeros_like(vectors_TH)
    for expert in experts_TK.unique().tolist():
        token_X, k_X = (experts_TK == expert).nonzero(as_tuple=True)
        weight_HH = expert_matrix(job.layer_ids[row], expert, job.width, wire.device)
        output_XH = apply_expert(vectors_TH[token_X].to(weight_HH.dtype), weight_HH)
        output_XH *= gates_TK[token_X, k_X, None]
        reference_TH.index_add_(0, token_X, output_XH.to(reference_TH.dtype))
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
    entries = 1 if job.transport == "slot" else job.top_k
    hops: list[Hop] = []
    rows = []
    held_XB = records_RB
    for reach in HOPS[job.transport]:
        gpu_Xn = headers(held_XB, entries)[1][:, :, 0].long() // len(mine_Z)
        hops.append(open_hop(wire, reach, gpu_Xn))
        rows.append(len(held_XB))
        held_XB = hops[-1].send(wire, held_XB)
    origin_M2, entry_Mn3 = headers(held_XB, entries)
    received, misplaced = _arrivals(wire.rank, origin_M2, entry_Mn3, mine_Z)
    tasks = tuple(_tasks(job, wire, row, mine_Z, entry_Mn3))
    return Batch(records_RB, token_R, entries, tuple(hops), tuple(rows), tasks, received, misplaced)


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


def compute(batch: Batch, arrived_MB: Tensor) -> Tensor:
    """results_MH: for each received record the weighted sum of this GPU's experts among those it selects."""
    arrived_MH = vectors(arrived_MB, batch.entries)
    exact_MH = arrived_MH.to(batch.tasks[0][0].dtype)
    sums_MH = torch.zeros_like(exact_MH)
    for weight_HH, row_X, gate_X1 in batch.tasks:
        sums_MH.index_add_(0, row_X, apply_expert(exact_MH[row_X], weight_HH) * gate_X1)
    return sums_MH.to(arrived_MH.dtype)


def _records(job: DispatchJob, rank: int, tokens: Tokens, slots_TK: Tensor) -> tuple[Tensor, Tensor]:
    """Packed records and the token of each.

    One a token with all its assignments, or for the slot transport one an assignment.
    """
    token_T = torch.arange(len(slots_TK), device=slots_TK.device)
    entry_TK3 = torch.stack([slots_TK, tokens.experts_TK, tokens.gates_TK], dim=2)
    if job.transport == "slot":
        token_R, entry_Ri = token_T.repeat_interleave(job.top_k), entry_TK3.flatten(0, 1)
    else:
        token_R, entry_Ri = token_T, entry_TK3.flatten(1)
    origin_R2 = torch.stack([torch.full_like(token_R, rank), token_R], dim=1)
    assert origin_R2.shape[1] == RECORD_INTS
    return pack(torch.cat([origin_R2, entry_Ri], dim=1).to(torch.int32), tokens.vectors_TH[token_R]), token_R


def _arrivals(rank: int, origin_M2: Tensor, entry_Mn3: Tensor, mine_Z: Tensor) -> tuple[list[list[int]], str]:
    """What this GPU was sent, counted from the records' own headers, and the first that it does not hold.

    A row of what was sent is [source, expert, assignments].
    """
    slot_Mn, first = entry_Mn3[:, :, 0], rank * len(mine_Z)
    row_X, n_X = ((slot_Mn >= first) & (slot_Mn < first + len(mine_Z))).nonzero(as_tuple=True)
    source_X, slot_X, expert_X = origin_M2[row_X, 0], slot_Mn[row_X, n_X], entry_Mn3[row_X, n_X, 1]
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
