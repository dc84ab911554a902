"""DeepEP: which GPUs its normal mode takes for NVLink peers, and what is said where they are none."""

from dataclasses import replace
from itertools import combinations

import pytest

from planner.base import Evidence, Rate
from planner.engines.common import deepep
from planner.topology import NvLink, PairLink, Pcie, Topology
from tests.planner.engines.examples import TINY, machine, question

RATE = Rate(50e9, Evidence("assumed", "made for tests"))


def linked(*pairs: tuple[int, int], nics: bool = True) -> Topology:
    """Four GPUs on PCIe with these direct NVLinks."""
    whole = machine(4)
    node = replace(
        whole.nodes[0],
        nvlink=NvLink("bridge", (), tuple(PairLink(pair, RATE) for pair in pairs)),
        pcie=Pcie((RATE,) * 4, (0,) * 4),
    )
    return replace(whole, nodes=(node if nics else replace(node, nics=()),))


@pytest.mark.parametrize(
    ("topology", "pair"),
    [
        (machine(8), None),
        (machine(8, 8), None),
        (machine(4, 4), (0, 4)),
        (machine(4, 4, nodes_per_domain=2), None),
        (machine(1, 1), (0, 1)),
        (linked((0, 1), (2, 3)), (0, 2)),
        (linked(*combinations(range(4), 2)), None),
        (linked(*list(combinations(range(4), 2))[:-1]), (2, 3)),
    ],
)
def test_each_eight_ranks_must_be_joined_pair_by_pair(
    topology: Topology, pair: tuple[int, int] | None
) -> None:
    """By one switch or a link of their own: a way through a third GPU is none.

    The first pair that has neither is named.
    """
    assert deepep.apart(topology) == pair
    assert deepep.split(topology) is None
    assert deepep.serves("prefill", topology) == (pair is None)
    assert deepep.serves("decode", topology)
    assert (deepep.transport("prefill", topology) == "allgather") == (pair is not None)


@pytest.mark.parametrize(
    ("topology", "pair"),
    [
        (machine(4, 4, 4, 4, nodes_per_domain=4), (0, 4)),
        (machine(4, 4, nodes_per_domain=2), None),
        (machine(8, 8, nodes_per_domain=2), None),
        (machine(8, 4, 4, nodes_per_domain=3), (8, 12)),
    ],
)
def test_a_group_of_eight_must_not_span_nodes(topology: Topology, pair: tuple[int, int] | None) -> None:
    """Trays of four in one NVLink domain: normal mode takes eight ranks in a row for one node as soon as
    there are several such groups. Low latency takes them.
    """
    assert deepep.apart(topology) is None
    assert deepep.split(topology) == pair
    assert deepep.serves("prefill", topology) == (pair is None)
    assert deepep.serves("decode", topology)
    assert (deepep.transport("prefill", topology) == "allgather") == (pair is not None)
    (said,) = deepep.notes(topology, "prefill", "another") or [""]
    assert (f"GPUs {pair[0]} and {pair[1]} are on two: the launch uses another" in said) if pair else not said


def test_builds_differ_in_their_kernels() -> None:
    """SGLang's build has one for width 3584 and for 16 experts a token; the upstream one has neither."""
    model = replace(TINY, dispatch_width=3584, hidden=3584, top_k=16)
    problem = question(model, machine(8), 0)
    assert deepep.limits(problem, pads_hidden=False, build=deepep.SGLANG) == []
    found = deepep.limits(problem, pads_hidden=False)
    assert {limit.rule for limit in found} == {"deepep-hidden", "deepep-top-k"}


def test_low_latency_is_warned_of_where_no_way_is_known() -> None:
    """GPUs of one node without NVLink and NIC; a NIC is a way, and GPUs of two nodes have one in every
    topology.
    """
    assert deepep.notes(linked((0, 1), (2, 3)), "decode", "another") == []
    assert deepep.notes(machine(4, 4), "decode", "another") == []
    (note,) = deepep.notes(linked((0, 1), (2, 3), nics=False), "decode", "another")
    assert note.startswith("WARNING: DeepEP's low latency mode")
    assert "GPUs 0 and 2 have no NVLink" in note
