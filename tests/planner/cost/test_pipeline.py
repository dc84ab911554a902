"""Hops that overlap: between the busiest resource of all and one hop after the other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from planner.cost.hops import allgather
from planner.cost.pipeline import pipelined_seconds

SECONDS_HR = arrays(np.float64, (2, 3), elements=st.floats(0, 100))


def stepwise_seconds(over: float, inside: float, chunks: int) -> float:
    """Two links, one a hop: chunk by chunk, the second hop of each begins when its first has ended."""
    crossed = arrived = 0.0
    for _ in range(chunks):
        crossed += over / chunks
        arrived = max(arrived, crossed) + inside / chunks
    return arrived


@given(over=st.floats(0, 100), inside=st.floats(0, 100), chunks=st.integers(1, 20))
def test_chunks_over_two_links_take_as_long_as_step_by_step(over: float, inside: float, chunks: int) -> None:
    """The pipeline fills by one chunk of the shorter hop, whichever that is."""
    found = pipelined_seconds(np.array([[over, 0.0], [0.0, inside]]), chunks)
    assert found == pytest.approx(stepwise_seconds(over, inside, chunks))


@given(seconds_HR=SECONDS_HR, chunks=st.integers(1, 20))
def test_more_chunks_take_no_longer(seconds_HR: np.ndarray, chunks: int) -> None:
    """One chunk is hop after hop; without end it is the resource that has most to carry."""
    one, some, more, endless = (pipelined_seconds(seconds_HR, n) for n in (1, chunks, chunks + 1, None))
    assert one == pytest.approx(seconds_HR.max(axis=1).sum())
    assert endless == pytest.approx(seconds_HR.sum(axis=0).max())
    assert one >= some - 1e-9 >= more - 2e-9 >= endless - 3e-9


def test_a_resource_of_both_hops_gains_nothing() -> None:
    """What all bytes have to cross twice is not made shorter by overlap."""
    both_HR = np.array([[3.0, 1.0], [2.0, 1.0]])
    assert {pipelined_seconds(both_HR, chunks) for chunks in (1, 2, None)} == {5.0}


def test_no_chunk_is_a_bug() -> None:
    """There is no exchange of none."""
    with pytest.raises(ValueError, match="0 chunks"):
        pipelined_seconds(np.ones((1, 1)), 0)


@pytest.mark.parametrize("units", [2, 3, 5])
def test_a_ring_in_steps_is_a_pipeline_of_as_many_chunks_as_units(units: int) -> None:
    """Where passing on takes longer than spreading, as over NICs: every step passes one rank's tokens on, the
    last ones are spread after it.
    """
    pass_seconds, spread_seconds, tokens = 3.0, 1.0, 1
    over_GG, inside_GG = allgather(np.repeat(np.arange(units), 2), tokens)
    by_link_HR = np.array(
        [[over_GG.sum(axis=1).max() * pass_seconds, 0.0], [0.0, inside_GG.sum(axis=1).max() * spread_seconds]]
    )
    assert pipelined_seconds(by_link_HR, units) == (units - 1) * pass_seconds + spread_seconds
