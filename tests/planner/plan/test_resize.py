"""Moves over a change of GPUs: what the ranks afterwards hold is what was sent to them, read, or theirs."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner.cost import EMPTY, refilled
from planner.placement import Placement
from planner.plan import Resize, after_losing, aligned, grown, moves_L, plan_moves, shrunk
from planner.plan.moves import replayed
from planner.topology import Topology
from tests.planner.small import random_row
from tests.strategies import cluster, machine_of, problem_of

EXPERTS = 4


def random_placement(draw: np.random.Generator, gpus: int) -> Placement:
    rows = [random_row(draw, EXPERTS, gpus, 2) for _ in range(2)]
    return Placement(np.array(rows), (0, 1), gpus)


def change(kind: str, topology: Topology, draw: np.random.Generator) -> tuple[Resize, Topology, Placement]:
    """On six GPUs: two are lost, go, or come."""
    if kind == "grown":
        old = random_placement(draw, 4)
        return grown(topology, old), topology, old
    old = random_placement(draw, 6)
    if kind == "shrunk":
        return shrunk(topology, old, 4), topology.without((4, 5)), old
    lost = tuple(sorted(draw.choice(6, 2, replace=False).tolist()))
    return after_losing(topology, old, lost), topology.without(lost), old


@given(kind=st.sampled_from(["lost", "grown", "shrunk"]), seed=st.integers(0, 999))
def test_transfers_and_reads_lead_to_the_new_placement(kind: str, seed: int) -> None:
    """Replayed on what all GPUs held; nobody lost or new sends; disk is read for what no GPU holds, alone."""
    draw = np.random.default_rng(seed)
    resize, topology, old = change(kind, cluster(3, 2), draw)
    problem = replace(problem_of([[4, 3, 2, 1]] * 2, 6, 2), topology=topology)
    new = aligned(resize.left, random_placement(draw, topology.gpu_count))
    moves = plan_moves(problem, old, new, "old.json", resize=resize)
    found, wanted = replayed(resize.old, moves.transfers), resize.spread(new)
    held = wanted.expert_LP != EMPTY
    assert (found.expert_LP[held] == wanted.expert_LP[held]).all()
    assert moves.moved == int(moves_L(resize.left, new).sum())
    senders = set(moves.transfers.source_T.tolist())
    assert kind == "shrunk" or not senders & set(resize.changed)
    for row, expert in zip(moves.transfers.reads.row_D, moves.transfers.reads.expert_D, strict=True):
        assert expert not in resize.old.expert_LP[row]
    assert moves.read_bytes == len(moves.transfers.reads) * problem.model.expert_bytes
    for source, row, expert in zip(
        moves.transfers.source_T, moves.transfers.row_T, moves.transfers.expert_T, strict=True
    ):
        assert expert in resize.old.expert_LP[row].reshape(6, -1)[source]


def test_by_hand() -> None:
    """Of three GPUs with [0 1][2 0][3 1] the last is lost: 3 has no copy and is read; 1 stays where it is."""
    topology = machine_of([1, 1, 1])
    old = Placement(np.array([[0, 1, 2, 0, 3, 1]]), (0,), 3)
    resize = after_losing(topology, old, (2,))
    assert resize.text() == "3 GPUs to 2 (GPU 2 lost)"
    assert resize.left.expert_LP.tolist() == [[0, 1, 2, 0]]
    whole = refilled(resize.left.expert_LP, np.array([[0.4, 0.3, 0.2, 0.1]]), 2)
    assert whole.tolist() == [[3, 1, 2, 0]]  # the busier GPU gives its copy of 0 up
    problem = replace(problem_of([[4, 3, 2, 1]], 3, 2), topology=topology.without((2,)))
    new = Placement(np.array([[1, 3, 0, 2]]), (0,), 2)
    moves = plan_moves(problem, old, aligned(resize.left, new), "old.json", resize=resize)
    assert (len(moves.transfers), len(moves.transfers.reads)) == (0, 1)
    assert (moves.transfers.reads.expert_D.tolist(), moves.transfers.reads.slot_D.tolist()) == ([3], [0])


def test_new_gpus_are_filled_by_the_old_ones() -> None:
    """Two GPUs with [0 1][2 3] take in a third: its two slots are transfers, and nothing else moves."""
    topology = machine_of([1, 1, 1])
    old = Placement(np.array([[0, 1, 2, 3]]), (0,), 2)
    resize = grown(topology, old)
    whole = refilled(resize.left.expert_LP, np.array([[0.4, 0.3, 0.2, 0.1]]), 3)
    assert whole.tolist() == [[0, 1, 2, 3, 0, 1]]
    problem = replace(problem_of([[4, 3, 2, 1]], 3, 2), topology=topology)
    new = Placement(whole, (0,), 3)
    moves = plan_moves(problem, old, new, "old.json", resize=resize)
    assert sorted(zip(moves.transfers.source_T, moves.transfers.target_T, strict=True)) == [(0, 2), (0, 2)]
    assert resize.text() == "2 GPUs to 3 (GPU 2 taken in)"
