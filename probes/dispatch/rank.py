"""One rank of a validation run: dispatch, expert compute and combine of each layer. Imports torch.

Each layer is checked token by token, and timed. The CUDA and NCCL paths were not run on a GPU when this was
written.

Shapes: T tokens of this rank, H hidden.
"""

import os
import signal
import time
from typing import Any

import torch
from torch import Tensor

from probes.dispatch.batch import Tokens, make_tokens
from probes.dispatch.job import PLAN, DispatchJob
from probes.dispatch.memory import check_fits, needed
from probes.dispatch.passes import Pass, open_sender
from probes.dispatch.seen import PHASES, Seen
from probes.dispatch.timing import alone, timing_of
from probes.ranks.wire import Wire


def work(job: DispatchJob, wire: Wire) -> tuple[list[Seen], tuple[str, ...]]:
    """Every row: its sides are prepared, checked once, then timed in turns (A, B, A, B, ...). And notes."""
    if wire.device.type == "cuda":
        free_bytes = float(torch.cuda.mem_get_info(wire.device)[0])
        check_fits(needed(job, wire.rank), free_bytes, wire.rank)
    sender, notes = open_sender(job, wire)
    seen: list[Seen] = []
    for row, layer_id in enumerate(job.layer_ids):
        wire.status.enter(f"preparation of layer {layer_id}")
        tokens = make_tokens(job, wire, row)
        passes = {name: sender.prepare(tokens, row, name) for name in job.sides}
        checked = {name: _checked(job, wire, tokens, one, row, name) for name, one in passes.items()}
        time_row = _time_alone if job.virtual else _time_in_turns
        notes += time_row(job, wire, passes, checked, tokens)
        seen += [entry for entry, _ in checked.values()]
    sender.close()
    return seen, tuple(dict.fromkeys(notes))


Checked = dict[str, tuple[Seen, Any]]  # by side; with what arrived


def _time_in_turns(
    job: DispatchJob, wire: Wire, passes: dict[str, Pass], checked: Checked, tokens: Tokens
) -> tuple[str, ...]:
    """Seconds of every phase, and the tokens that came back, into what was seen; notes."""
    notes: tuple[str, ...] = ()
    timings = {}
    for name, one in passes.items():
        timings[name], more = timing_of(job, wire, one)
        notes += more
    for _ in range(job.repeats):
        for name, timing in timings.items():
            entry = checked[name][0]
            result_TH = timing.once(wire, f"of {job.where(entry.row, name)}")
            entry.wrong_sums.extend(_wrong_sums(wire.rank, result_TH, tokens))
    for name, timing in timings.items():
        checked[name][0].seconds.update(timing.seconds())
    return notes


def _time_alone(
    job: DispatchJob, wire: Wire, passes: dict[str, Pass], checked: Checked, tokens: Tokens
) -> tuple[str, ...]:
    """Seconds of expert compute; exchanges in memory have none that mean anything."""
    del tokens
    notes: tuple[str, ...] = ()
    for name, (entry, arrived) in checked.items():
        seconds, more = alone(job, wire, passes[name], arrived)
        entry.seconds.update({phase: [float("nan")] * job.repeats for phase in PHASES} | {"compute": seconds})
        notes += more
    return notes


def _checked(
    job: DispatchJob, wire: Wire, tokens: Tokens, one: Pass, row: int, side_name: str
) -> tuple[Seen, Any]:
    """One pass with its bytes counted, which also warms up what is timed afterwards; and what arrived."""
    wire.status.enter(f"check of {job.where(row, side_name)}")
    if (row, side_name) == (0, PLAN):
        _misbehave(job, wire.rank)
    wire.tally.start()
    arrived = one.dispatch()
    there = wire.tally.stop() if one.counts_bytes else ([], [])
    results = one.compute(arrived)
    if job.is_faulty("corrupt", wire.rank, row, side_name):
        results[0, 0] += 1
    wire.tally.start()
    sums_TH = one.combine(arrived, results)
    back = wire.tally.stop() if one.counts_bytes else ([], [])
    received, misplaced = one.received(arrived)
    entry = Seen(
        rank=wire.rank,
        side=side_name,
        row=row,
        sent_bytes_G=there[0],
        received_bytes_G=there[1],
        sent_back_bytes_G=back[0],
        received_back_bytes_G=back[1],
        received=received,
        distinct_tokens=len(tokens.vectors_TH.unique(dim=0)),
        distinct_results=len(sums_TH.unique(dim=0)),
        matrices=one.matrices,
        misplaced=misplaced,
        wrong_sums=_wrong_sums(wire.rank, sums_TH, tokens),
        seconds={phase: [] for phase in PHASES},
    )
    return entry, arrived


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
