"""`--from` a placement on other GPUs: what the GPUs planned for hold of it, and what they need.

Slots a GPU stay what they were, as in every engine that changes its size while it serves; so R follows from
the number of GPUs.
"""

from dataclasses import replace

from planner.base import BadInput, Infeasible
from planner.cost import refilled
from planner.engines import check_resize, elastic_of, find_engine
from planner.load import LoadProfile
from planner.model import ModelSpec
from planner.plan import Resize, after_losing, grown, moves_L, shrunk
from planner.planning.lookup import find_topology
from planner.planning.machine import Machine, same_ranks
from planner.planning.replanning.current import Running, parse_moves, read_running
from planner.planning.request import PlanRequest
from planner.solvers import CurrentPlacement


def find_current(
    request: PlanRequest, model: ModelSpec, machine: Machine, load: LoadProfile
) -> CurrentPlacement | None:
    """The placement that runs, where the question names one, on the GPUs planned for."""
    if request.previous is None:
        if request.most_moves is not None:
            raise BadInput(
                f"--max-moves {request.most_moves}: moves are counted from a placement that runs; "
                "name it with --from PLAN"
            )
        return None
    if request.survive or request.resplittable:
        limit = "--survive" if request.survive else "--resplittable"
        raise BadInput(
            f"--from {request.previous}: a re-plan within few moves cannot promise {limit}; "
            f"plan without --from, or leave {limit} out"
        )
    running = read_running(request.previous, model, machine.whole.gpu_count)
    placement, gpus = running.placement, machine.topology.gpu_count
    _refuse_other_r(request, model, placement.slots_per_gpu, gpus, running)
    slots = placement.slots_per_gpu * gpus * len(placement.layer_ids)
    most = None if request.most_moves is None else parse_moves(request.most_moves, slots)
    resize = _resize(request, model, machine, running)
    if resize is None:
        return CurrentPlacement(placement, str(request.previous), most)
    return _refilled(CurrentPlacement(placement, str(request.previous), most, resize), load)


def _resize(request: PlanRequest, model: ModelSpec, machine: Machine, running: Running) -> Resize | None:
    """None where the placement is on the GPUs planned for already."""
    placement, gpus = running.placement, machine.topology.gpu_count
    assert request.previous is not None
    old = running.topology
    if placement.gpus == gpus:
        if old is not None:
            same_ranks(request.previous, old, machine.topology)
        return None
    if machine.lost:
        if placement.gpus != machine.whole.gpu_count:
            raise BadInput(
                f"--from {request.previous}: it is for {placement.gpus} GPUs; --without takes some of "
                f"{machine.whole.gpu_count}, which leaves {gpus}: name the machine that it runs on"
            )
        if old is not None:
            same_ranks(request.previous, old, machine.whole)
        return after_losing(machine.whole, placement, machine.lost)
    if old is not None:
        same_ranks(request.previous, old, machine.topology)
    if request.engine is not None:
        check_resize(
            find_engine(request.engine).TITLE,
            elastic_of(request.engine),
            placement.gpus,
            gpus,
            experts=model.experts,
            slots_per_gpu=placement.slots_per_gpu,
        )
    if placement.gpus < gpus:
        return grown(machine.topology, placement)
    whole = old or find_topology(request.topology, placement.gpus, request.calibrations)[0]
    return shrunk(whole, placement, gpus)


def _refilled(current: CurrentPlacement, load: LoadProfile) -> CurrentPlacement:
    """With every expert in a slot and no slot empty; those moves are needed, the others allowed."""
    assert current.resize is not None
    left = current.resize.left
    whole = replace(left, expert_LP=refilled(left.expert_LP, load.shares_LE, left.gpus))
    needed, most = int(moves_L(left, whole).sum()), current.most_moves
    if most is not None and most < needed:
        raise Infeasible(
            f"--max-moves {most}: {current.resize.text()}, and {needed:,} slots must get an expert for every "
            f"expert to have one and no slot to be empty; allow at least {needed}"
        )
    spare = None if most is None else most - needed
    return replace(current, placement=whole, most_moves=spare, needed_moves=needed)


def _refuse_other_r(
    request: PlanRequest, model: ModelSpec, slots_per_gpu: int, gpus: int, running: Running
) -> None:
    """BadInput where --redundant asks for other slots a GPU; Infeasible where these hold too few experts."""
    has, asked = slots_per_gpu * gpus - model.experts, request.redundant
    if has < 0:
        least = -(-model.experts // slots_per_gpu)
        raise Infeasible(
            f"--from {request.previous}: its {slots_per_gpu} slots a GPU hold too few experts on {gpus} GPUs "
            f"({slots_per_gpu * gpus} slots for {model.experts}); it takes {least} GPUs, or a plan without "
            "--from, with more slots a GPU, and a restart"
        )
    if asked is None or asked == has:
        return
    needs = "slots to be given up"
    if asked > has:
        fewest = (asked - has) // gpus * gpus * len(running.placement.layer_ids)
        needs = f"at least {fewest:,} moves to fill the new slots, and new memory"
    raise BadInput(
        f"--from {request.previous}: it has {slots_per_gpu} slots a GPU (R = {has} on {gpus} GPUs), "
        f"and --redundant {asked} is another size: that takes {needs}, "
        f"which no engine does while it serves; use --redundant {has}, or plan without --from"
    )
