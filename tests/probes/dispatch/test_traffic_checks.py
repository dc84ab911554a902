"""Traffic that all ranks agree on and is wrong all the same: each kind is caught, right traffic passes."""

from dataclasses import replace

import numpy as np
import pytest

from planner.replica import CHOICES
from probes.dispatch import sent
from probes.dispatch.drawn import draw_by_inclusion
from probes.dispatch.traffic_checks import (
    Matrix,
    TrafficLaw,
    deviates,
    share_SGE,
    wrong_load,
    wrong_matrices,
    wrong_replicas,
    wrong_results,
    wrong_tokens,
)

GPUS, EXPERTS, TOP_K, TOKENS, WIDTH = 4, 8, 2, 64, 64
EXPERT_P = np.array([0, 1, 2, 3, 4, 0, 5, 6, 1, 7, 2, 0])  # expert 0 three times, 1 and 2 twice
SHARE_P = 1 / np.bincount(EXPERT_P)[EXPERT_P]
CHANCE_E = np.array([0.6, 0.4, 0.3, 0.2, 0.2, 0.1, 0.1, 0.1])
LAW = TrafficLaw(TOKENS, WIDTH, CHANCE_E, share_SGE(SHARE_P[None, :], EXPERT_P, GPUS, EXPERTS), cells=8)


def received(seed: int, rule: str = "") -> sent.Counts:
    """What GPUs get of tokens drawn with the load's chances, replicas by even shares or by a rule."""
    rng = np.random.default_rng(seed)
    experts = [draw_by_inclusion(CHANCE_E, TOKENS, TOP_K, rng) for _ in range(GPUS)]
    slots_STK = np.stack(
        [
            CHOICES[rule](one, EXPERT_P, source, GPUS)
            if rule
            else sent.choose_slots(one, SHARE_P, EXPERT_P, rng)
            for source, one in enumerate(experts)
        ]
    )
    return sent.assignments(slots_STK, EXPERT_P, GPUS, 3, EXPERTS)


@pytest.mark.parametrize("rule", ["", "hashed", "round-robin", "row-index"])
def test_right_traffic_passes(rule: str) -> None:
    """60 draws of each rule, without one false alarm."""
    for seed in range(60):
        received_SGE = received(seed, rule)
        assert not list(wrong_load(LAW, received_SGE))
        assert not list(wrong_replicas(LAW, received_SGE))


def test_a_rule_that_picks_the_first_replica_always_is_caught() -> None:
    """Expert 0's assignments all go to GPU 0, where a third was to."""
    right_SGE = received(0)
    first_SGE = np.zeros_like(right_SGE)
    first_G = [next(slot // 3 for slot in range(12) if EXPERT_P[slot] == expert) for expert in range(EXPERTS)]
    for expert, gpu in enumerate(first_G):
        first_SGE[:, gpu, expert] = right_SGE[:, :, expert].sum(axis=1)
    asked = int(first_SGE[0, :, 0].sum())
    said = (
        f"rank 0 sent {asked} of its {asked} assignments for expert 0 to GPU 0; the replica rule gives that"
    )
    assert next(wrong_replicas(LAW, first_SGE)) == f"{said} 33 %"
    assert not list(wrong_load(LAW, first_SGE))


def test_a_load_that_is_flattened_is_caught() -> None:
    """Experts asked for evenly, and tokens that all ask for the same two."""
    rng = np.random.default_rng(0)
    for chance_E in (np.full(EXPERTS, TOP_K / EXPERTS), np.array([1.0, 1.0, 0, 0, 0, 0, 0, 0])):
        slots_STK = np.stack(
            [
                sent.choose_slots(draw_by_inclusion(chance_E, TOKENS, TOP_K, rng), SHARE_P, EXPERT_P, rng)
                for _ in range(GPUS)
            ]
        )
        wrong = list(wrong_load(LAW, sent.assignments(slots_STK, EXPERT_P, GPUS, 3, EXPERTS)))
        assert wrong[0].endswith("tokens asked for expert 0; by the load 153.6 were to be expected")


def test_tokens_that_are_all_equal_are_caught() -> None:
    """And narrow vectors, which are alike by chance, are not."""
    assert list(wrong_tokens(LAW, 2, 1)) == ["64 of 64 tokens of rank 2 are the same vector"]
    assert not list(wrong_tokens(LAW, 2, TOKENS))
    assert not list(wrong_tokens(replace(LAW, width=2), 2, 20))


def test_results_that_are_all_equal_are_caught() -> None:
    assert list(wrong_results(LAW, 1, 1)) == ["of 64 tokens of rank 1 only 1 came back different"]
    assert not list(wrong_results(LAW, 1, TOKENS - 1))


def test_an_expert_of_zeros_or_of_another_is_caught() -> None:
    """A third of an expert's elements are zeros, and no two experts are the same."""
    elements = WIDTH**2
    right = [Matrix(3, elements // 3, 11), Matrix(4, elements // 3 + 40, 12), Matrix(3, elements // 3, 11)]
    assert not list(wrong_matrices(LAW, 0, right))
    zeros = next(wrong_matrices(LAW, 0, [replace(right[0], zeros=elements)]))
    assert zeros.startswith("the matrix of expert 3 on rank 0 has 4096 zeros of 4096 elements")
    ones = next(wrong_matrices(LAW, 0, [replace(right[0], zeros=0)]))
    assert " has 0 zeros of 4096 elements" in ones
    alike = list(wrong_matrices(LAW, 0, [right[0], replace(right[1], checksum=11)]))
    assert alike == ["experts 3 and 4 of rank 0 are the same matrix"]


def test_the_bound_is_what_it_says() -> None:
    """At an alpha of 1 %, less than that of fair draws are called wrong; certain things may not miss once."""
    rng = np.random.default_rng(0)
    counts = rng.binomial(100, 0.3, 20_000)
    assert np.mean([deviates(count, 100, 0.3, 0.01) for count in counts.tolist()]) < 0.01
    assert deviates(60, 100, 0.3, 1e-6)
    assert deviates(99, 100, 1.0, 1e-6)
    assert deviates(1, 100, 0.0, 1e-6)
    assert not deviates(100, 100, 1.0, 1e-6)
    assert not deviates(0, 0, 0.5, 1e-6)
