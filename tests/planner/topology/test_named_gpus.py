"""GPUs by rank and by node, and one line for what is neither."""

from dataclasses import replace

import pytest

from planner.base import BadInput
from planner.topology import Topology, ranks_named
from tests.strategies import machine_of


def named() -> Topology:
    """Nodes of two, three and one GPU; the last is called node0, as a host may be."""
    topology = machine_of([2, 3, 1])
    names = ("alpha", "", "node0")
    nodes = tuple(replace(node, name=name) for node, name in zip(topology.nodes, names, strict=True))
    return replace(topology, nodes=nodes)


@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        ("3", (3,)),
        ("4,0", (0, 4)),
        ("1-3, 2", (1, 2, 3)),
        ("alpha", (0, 1)),
        ("node1", (2, 3, 4)),
        ("node0", (5,)),  # a name goes before a number
        ("node2,alpha", (0, 1, 5)),
    ],
)
def test_ranks_and_nodes(text: str, ranks: tuple[int, ...]) -> None:
    """In rising order, each once."""
    assert ranks_named(named(), text, "--without") == ranks


@pytest.mark.parametrize("text", ["6", "", "3-1", "-1", "node7", "beta", "1.5", "2,,3", "0-9"])
def test_what_is_none(text: str) -> None:
    """The word, and what there is."""
    with pytest.raises(BadInput, match=r"is no GPU or node of .*its GPUs are 0 to 5, its nodes alpha, node1"):
        ranks_named(named(), text, "--without")
