"""Sizes of a launch: one rule from tokens a rank to requests, graphs, chunk and buffer; GPUs by name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.engines.common.capability import capability, capability_of
from planner.engines.common.sizes import (
    AUTO,
    GATHER,
    LOW_LATENCY,
    MOST_BUFFER,
    NORMAL,
    PREFILL_TOKENS,
    Sizes,
    sizes_of,
)
from planner.topology import gpu_names, read_topology
from tests.planner.engines.examples import machine

MODES = (AUTO, GATHER, LOW_LATENCY, NORMAL)


@given(
    phase=st.sampled_from(["decode", "prefill"]),
    tokens=st.integers(1, MOST_BUFFER),
    alone=st.booleans(),
    mode=st.sampled_from(MODES),
    gpus=st.sampled_from([2, 8, 72, 512]),
    page=st.sampled_from([1, 64, 128, 256]),
)
def test_no_step_is_larger_than_the_buffer_it_goes_through(
    phase: str, tokens: int, alone: bool, mode: str, gpus: int, page: int
) -> None:
    """Whatever is planned and however it is served: decode, and prompts where they go through it too."""
    role = "mixed" if alone else phase
    found = sizes_of(phase, tokens, role, mode, gpus=gpus, page=page)
    assert found.chunk % page == 0
    assert (found.buffer > 0) == (mode in (AUTO, LOW_LATENCY))
    if found.buffer:
        through = [found.running, found.chunk if mode == LOW_LATENCY else 0]
        assert max(through) <= found.buffer <= MOST_BUFFER
        assert found.buffer % 4 == 0
    if phase == "decode":
        assert found.running == tokens
        assert found.chunk > 0 or role == "decode"
    else:
        assert role == "prefill" or found.running > 0


@pytest.mark.parametrize(
    ("phase", "tokens", "role", "mode", "sizes"),
    [
        ("decode", 128, "decode", LOW_LATENCY, Sizes(128, 0, 128)),
        ("decode", 37, "decode", LOW_LATENCY, Sizes(37, 0, 128)),
        ("decode", 130, "mixed", AUTO, Sizes(130, PREFILL_TOKENS, 132)),
        ("decode", 128, "mixed", LOW_LATENCY, Sizes(128, 256, 256)),
        ("decode", 800, "mixed", LOW_LATENCY, Sizes(800, 1024, 1024)),
        ("decode", 128, "mixed", GATHER, Sizes(128, 1024, 0)),
        ("prefill", 4096, "prefill", NORMAL, Sizes(0, 4096, 0)),
        ("prefill", 4100, "mixed", AUTO, Sizes(128, 4096, 128)),
        ("prefill", 63, "prefill", NORMAL, Sizes(0, 0, 0)),
    ],
)
def test_sizes_by_hand(phase: str, tokens: int, role: str, mode: str, sizes: Sizes) -> None:
    """16 ranks, pages of 64 tokens."""
    assert sizes_of(phase, tokens, role, mode, gpus=16, page=64) == sizes


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("H100-SXM-80GB", (9, 0)), ("H20-SXM-96GB", (9, 0)), ("NVIDIA H200", (9, 0)),
        ("GB200-186GB", (10, 0)),
        ("B300-SXM-288GB", (10, 3)), ("A100-SXM-80GB", (8, 0)), ("L40S-48GB", (8, 9)),
        ("RTX-PRO-6000-96GB", (12, 0)), ("V100-SXM2-32GB", (7, 0)), ("H1000", None), ("test-gpu", None),
    ],
)  # fmt: skip
def test_capability_by_name(name: str, found: tuple[int, int] | None) -> None:
    """A longer name is no other chip; an unknown one is not guessed."""
    assert capability_of(name) == found


def test_every_preset_has_a_known_capability() -> None:
    """The GPUs that ship with moeplan are all known; a made one is not."""
    for preset in ("hgx-h100", "gb300-nvl72", "hgx-h20", "dgx-1v", "l40s-pcie", "rtx-pro-6000-pcie"):
        topology = read_topology(preset)
        assert capability(topology) == capability_of(gpu_names(topology)[0]) is not None
    assert capability(machine(4, 4)) is None
