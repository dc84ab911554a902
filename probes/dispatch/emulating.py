"""Validate in an emulated cluster: which one, and tokens with which its phases stand far above noise."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from planner.base import BadInput
from planner.cost import cost
from planner.topology import Topology, read_topology
from probes.dispatch.contender import Contender
from probes.emulation.cluster import Emulation
from probes.emulation.namespaces import emulated
from probes.emulation.scale import as_shaped, scale_for

WIDTH = 512  # elements of a token, where nobody says: headers are then a small part of a message
LONG_ENOUGH_SECONDS = 0.25  # of a dispatch: a TCP start-up and a busy core are a small part of it
FEWEST_TOKENS, MOST_TOKENS = 16, 8192


@contextlib.contextmanager
def emulated_cluster(asked: str | None, planned: Topology) -> Iterator[Emulation | None]:
    """The cluster that was asked for: a topology with as many GPUs, or of an empty name the planned one.

    None where none was asked for. All its rates are divided by one number, which its topology tells.
    """
    if asked is None:
        yield None
        return
    topology = read_topology(asked) if asked else planned
    if topology.gpu_count != planned.gpu_count:
        has = f"it has {topology.gpu_count} GPUs, the plan is for {planned.gpu_count}"
        raise BadInput(f"--emulate {asked}: {has}; give the machine that was planned for")
    with emulated(topology, scale_for(topology)) as cluster:
        yield cluster


def in_cluster(one: Contender, cluster: Emulation) -> Contender:
    """The same question of the planned machine, its rates divided as those of the cluster are."""
    topology = as_shaped(one.problem.topology, cluster.scale)
    return replace(one, problem=replace(one.problem, topology=topology))


def long_enough(one: Contender, width: int) -> int:
    """Tokens a rank with which the plan's slowest dispatch is long enough to be told from noise."""
    problem = replace(one.problem, model=replace(one.problem.model, dispatch_width=width))
    few, many = (
        float(
            cost(
                replace(one, problem=problem).at_tokens(tokens).problem, one.placement
            ).dispatch_seconds_L.max()
        )
        for tokens in (FEWEST_TOKENS, 2 * FEWEST_TOKENS)
    )
    each = (many - few) / FEWEST_TOKENS
    return int(min(max(LONG_ENOUGH_SECONDS / each, FEWEST_TOKENS), MOST_TOKENS)) if each > 0 else MOST_TOKENS
