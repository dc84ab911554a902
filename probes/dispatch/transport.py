"""How one rank sends: four transports as the steps of a flow, and who must get which record. Imports torch.

Shapes: R records held, M records of one leg, G GPUs (ranks), n assignments in a record's header.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from probes.dispatch.flow import Leg
from probes.ranks.wire import Wire

Reach = Callable[[Wire, Tensor], Tensor]


@dataclass(frozen=True)
class Step:
    """One leg, before it is known what it carries: rows `first` to `end` of what `source` brought."""

    source: int | None
    reach: Reach
    first: int
    end: int | None
    ends: bool  # whether what arrives is worked on


def steps(transport: str, wire: Wire, records: int, chunks: int) -> list[Step]:
    """The steps of a transport for so many records of this rank; `chunks`: parts that overlap."""
    if transport == "node":
        bounds = [records * chunk // chunks for chunk in range(chunks + 1)]
        over = [Step(None, to_units, first, end, ends=False) for first, end in pairwise(bounds)]
        return over + [Step(chunk, to_neighbours, 0, None, ends=True) for chunk in range(chunks)]
    if transport == "allgather":
        return _ring(len(wire.unit_G.unique()))
    return [Step(None, to_gpus, 0, None, ends=True)]


def _ring(units: int) -> list[Step]:
    """Each GPU passes blocks on to the same position of the next unit, and spreads them in its own."""
    found: list[Step] = []
    brought: int | None = None
    for step in range(units):
        source = brought
        if step + 1 < units:
            brought = len(found)
            found.append(Step(source, to_next_unit, 0, None, ends=False))
        found.append(Step(source, to_own_unit, 0, None, ends=True))
    return found


def open_leg(wire: Wire, step: Step, gpu_Xn: Tensor) -> Leg:
    """The leg that takes each record where the step says; ranks tell each other how many come."""
    gpu_M, row_M = step.reach(wire, gpu_Xn).T.nonzero(as_tuple=True)
    sent_G = torch.bincount(gpu_M, minlength=wire.gpus).tolist()
    return Leg(step.source, row_M + step.first, sent_G, wire.counts_from_G(sent_G))


def to_gpus(wire: Wire, gpu_Rn: Tensor) -> Tensor:
    """Each GPU that holds a selected slot, once. `gpu_Rn` is the GPU of each assignment's slot."""
    reach_RG = torch.zeros((len(gpu_Rn), wire.gpus), dtype=torch.bool, device=gpu_Rn.device)
    return reach_RG.scatter_(1, gpu_Rn, value=True)


def to_units(wire: Wire, gpu_Rn: Tensor) -> Tensor:
    """First hop: in each unit that holds a selected slot, the GPU with our own position there.

    In our own unit that is this GPU.
    """
    reach_RG = to_gpus(wire, gpu_Rn)
    first_RG = torch.zeros_like(reach_RG)
    for unit in wire.unit_G.unique():
        members = (wire.unit_G == unit).nonzero().flatten()
        first_RG[:, members[_position(wire)]] = reach_RG[:, members].any(dim=1)
    return first_RG


def to_neighbours(wire: Wire, gpu_Rn: Tensor) -> Tensor:
    """Second hop: a forwarder copies what it got to the GPUs of its unit that hold a selected slot."""
    return to_gpus(wire, gpu_Rn) & _own_unit(wire)


def to_own_unit(wire: Wire, gpu_Rn: Tensor) -> Tensor:
    return _own_unit(wire).expand(len(gpu_Rn), -1)


def to_next_unit(wire: Wire, gpu_Rn: Tensor) -> Tensor:
    units = wire.unit_G.unique()
    own = int((units == wire.unit_G[wire.rank]).nonzero())
    members = (wire.unit_G == units[(own + 1) % len(units)]).nonzero().flatten()
    reach_RG = torch.zeros((len(gpu_Rn), wire.gpus), dtype=torch.bool, device=gpu_Rn.device)
    reach_RG[:, members[_position(wire)]] = True
    return reach_RG


def _own_unit(wire: Wire) -> Tensor:
    return wire.unit_G == wire.unit_G[wire.rank]


def _position(wire: Wire) -> int:
    """Of this GPU in its unit."""
    return int((wire.unit_G[: wire.rank] == wire.unit_G[wire.rank]).sum())
