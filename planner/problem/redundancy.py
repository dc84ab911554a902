"""Redundant experts: how many divide over the GPUs, survive a loss or join them, and the nearest that do."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from planner.base import Infeasible
from planner.model import ModelSpec
from planner.problem.survival import Survival, least_slots_per_gpu, least_slots_replaced
from planner.topology import Topology

LARGEST_NAMED_EP = 512  # EP sizes beyond this are not worth naming in a message


def check_slots(model: ModelSpec, gpus: int, redundant: int, ep_sizes: Collection[int] | None = None) -> int:
    """Slots a GPU for R redundant experts on G GPUs.

    Infeasible with the nearest feasible R where the slots do not divide or cannot all differ, and with the EP
    sizes over which they do: those of `ep_sizes`, where it is known which the machine has.
    """
    experts, slots = model.experts, model.experts + redundant
    least, most = -experts % gpus, experts * (gpus - 1)
    if redundant < 0:
        raise Infeasible(
            f"{slots} slots cannot hold {experts} experts; "
            f"the fewest redundant experts on {gpus} GPUs are {least}"
        )
    if redundant > most:
        raise Infeasible(
            f"{redundant} redundant experts give more than {experts} slots a GPU, but {model.name} has "
            f"{experts} experts and none may sit twice on one GPU; at most {most} are of use on {gpus} GPUs"
        )
    if slots % gpus:
        nearest = range(max(least, redundant - slots % gpus), most + 1, gpus)[:3]
        sizes = _dividing_gpus(slots, experts)
        sizes = [size for size in sizes if ep_sizes is None or size in ep_sizes]
        raise Infeasible(
            f"{experts} experts + {redundant} redundant = {slots} slots do not divide over {gpus} GPUs; "
            f"use --redundant {_one_of(nearest)}" + (f", or --ep {_one_of(sizes)}" if sizes else "")
        )
    return slots // gpus


def _one_of(numbers: Sequence[int]) -> str:
    """
    >>> _one_of([0, 4, 8]), _one_of([4])
    ('0, 4 or 8', '4')
    """
    *most, last = map(str, numbers)
    return f"{', '.join(most)} or {last}" if most else last


def _dividing_gpus(slots: int, experts: int) -> list[int]:
    """Numbers of GPUs over which so many slots divide, none of them with more slots than experts."""
    sizes = range(1, min(slots, LARGEST_NAMED_EP) + 1)
    return [size for size in sizes if slots % size == 0 and slots <= size * experts]


def least_redundant(
    model: ModelSpec, topology: Topology, survive: Survival | None, *, replaced: bool = False
) -> int:
    """The fewest redundant experts with which slots divide over the GPUs and the losses can be survived.

    `replaced`: by an engine that places experts anew after a loss. Infeasible where no number does.
    """
    gpus = topology.gpu_count
    least = -model.experts % gpus
    if survive is None:
        return least
    least_slots = least_slots_replaced if replaced else least_slots_per_gpu
    slots_per_gpu = least_slots(survive, model.experts, topology.node_G)
    return max(least, slots_per_gpu * gpus - model.experts)


@dataclass(frozen=True)
class LeastRedundant:
    """The fewest redundant experts that survive the losses. None where no number does."""

    kept: int | None  # where the engine leaves experts where they are: copies at one place more than are lost
    replaced: int | None  # where it places them anew on the GPUs left: a slot there for every expert


def fewest_redundant(model: ModelSpec, topology: Topology, survive: Survival) -> LeastRedundant:
    """Both figures for a model on a machine."""

    def fewest(*, replaced: bool) -> int | None:
        try:
            return least_redundant(model, topology, survive, replaced=replaced)
        except Infeasible:  # too few places, whatever R
            return None

    return LeastRedundant(kept=fewest(replaced=False), replaced=fewest(replaced=True))


def joinable(gpus: int, redundant: int) -> bool:
    """Whether so few redundant experts can join all GPUs: each joins one more."""
    return redundant >= gpus - 1


def check_joins(model: ModelSpec, gpus: int, redundant: int) -> None:
    """Infeasible where so few redundant experts cannot join all GPUs."""
    if joinable(gpus, redundant):
        return
    least = gpus - 1 + (-model.experts - gpus + 1) % gpus
    raise Infeasible(
        f"R = {redundant} cannot join {gpus} GPUs through shared experts: each redundant expert joins one "
        f"more, so --resplittable needs R >= {gpus - 1}; the smallest that divides is --redundant {least}"
    )
