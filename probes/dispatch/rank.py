"""One rank of a validation run: dispatch, expert compute and combine of each layer. Imports torch.

Each layer is checked token by token, and timed. The CUDA and NCCL paths were not run on a GPU when this was
written.

Shapes: T tokens of this rank, M received records, G GPUs, H hidden.
"""

import os
import signal
import time

import torch
from torch import Tensor

from probes.dispatch.batch import Batch, Tokens, combine, compute, dispatch, make_tokens, prepare
from probes.dispatch.job import PLAN, DispatchJob
from probes.dispatch.seen import PHASES, Seen
from probes.ranks.wire import Wire


def work(job: DispatchJob, wire: Wire) -> list[Seen]:
    """Every row: its sides are prepared, checked once, then timed in turns (A, B, A, B, ...)."""
    seen: list[Seen] = []
    for row, layer_id in enumerate(job.layer_ids):
        wire.status.enter(f"preparation of layer {layer_id}")
        tokens = make_tokens(job, wire, row)
        batches = {name: prepare(job, wire, tokens, row, name) for name in job.sides}
        checked = {name: _checked(job, wire, tokens, batch, row, name) for name, batch in batches.items()}
        for _ in range(job.repeats):
            for name, batch in batches.items():
                seconds, result_TH = one_pass(wire, batch, f"of {job.where(row, name)}")
                for phase in PHASES:
                    checked[name].seconds[phase].append(seconds[phase])
                checked[name].wrong_sums.extend(_wrong_sums(wire.rank, result_TH, tokens))
        seen += checked.values()
    return seen


def one_pass(wire: Wire, batch: Batch, where: str) -> tuple[dict[str, float], Tensor]:
    """Seconds of each phase on this rank, and the tokens that came back.

    Every phase is begun by all ranks together.
    """
    arrived_MB = results_MH = sums_TH = batch.records_RB
    seconds = {}
    for phase in PHASES:
        wire.status.enter(f"{phase} {where}")
        wire.barrier()
        start = wire.settle()
        if phase == "dispatch":
            arrived_MB = dispatch(wire, batch)
        elif phase == "compute":
            results_MH = compute(batch, arrived_MB)
        else:
            sums_TH = combine(wire, batch, results_MH)
        seconds[phase] = wire.settle() - start
    return seconds, sums_TH


def _checked(job: DispatchJob, wire: Wire, tokens: Tokens, batch: Batch, row: int, side_name: str) -> Seen:
    """One pass with its bytes counted, which also warms up what is timed afterwards."""
    wire.status.enter(f"check of {job.where(row, side_name)}")
    if (row, side_name) == (0, PLAN):
        _misbehave(job, wire.rank)
    wire.tally.start()
    arrived_MB = dispatch(wire, batch)
    sent_G, received_G = wire.tally.stop()
    results_MH = compute(batch, arrived_MB)
    if job.is_faulty("corrupt", wire.rank, row, side_name):
        results_MH[0, 0] += 1
    wire.tally.start()
    sums_TH = combine(wire, batch, results_MH)
    sent_back_G, received_back_G = wire.tally.stop()
    return Seen(
        rank=wire.rank,
        side=side_name,
        row=row,
        sent_bytes_G=sent_G,
        received_bytes_G=received_G,
        sent_back_bytes_G=sent_back_G,
        received_back_bytes_G=received_back_G,
        received=batch.received,
        distinct_tokens=len(tokens.vectors_TH.unique(dim=0)),
        distinct_results=len(sums_TH.unique(dim=0)),
        matrices=batch.matrices,
        misplaced=batch.misplaced,
        wrong_sums=_wrong_sums(wire.rank, sums_TH, tokens),
        seconds={phase: [] for phase in PHASES},
    )


def _wrong_sums(rank: int, result_TH: Tensor, tokens: Tokens) -> list[str]:
    """A sentence about the first token that came back wrong; none where all are right."""
    reference_TH = tokens.reference_TH
    if torch.equal(result_TH, reference_TH):
        return []
    wrong_X2 = (result_TH != reference_TH).nonzero()
    token, element = wrong_X2[0].tolist()
    got, expected = float(result_TH[token, element]), float(reference_TH[token, element])
    wrong = f"{len(wrong_X2[:, 0].unique())} of {len(result_TH)} tokens of rank {rank}"
    has = f"has {got:g} where {expected:g} is right (element {element})"
    return [f"{wrong}; the first, token {token}, {has}"]


def _misbehave(job: DispatchJob, rank: int) -> None:
    """The faults of a process, for tests."""
    kind = job.fault.kind if job.fault and job.fault.rank == rank else ""
    if kind == "exit":
        os.kill(os.getpid(), signal.SIGKILL)
    elif kind == "hang":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif kind == "slow":
        time.sleep(10 * job.timeout_seconds)
    elif kind == "raise":
        raise ArithmeticError("raised on purpose by a test")
