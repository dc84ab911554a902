"""The same GPUs as groups side by side: which sizes divide a machine, and what each group is made of."""

from dataclasses import replace

import pytest

from planner.base import BadInput
from planner.planning.groups import ep_sizes, groups_of, with_full_fabric, with_nics_at
from planner.planning.lookup import find_topology
from planner.topology import read_topology
from tests.strategies import cluster, machine_of


@pytest.mark.parametrize(
    ("sizes", "divides"),
    [([8, 8], (1, 2, 4, 8, 16)), ([4] * 6, (1, 2, 4, 8, 12, 24)), ([2, 4], (1, 2, 6)), ([3, 2], (1, 5))],
)
def test_sizes_divide_nodes_or_are_whole_nodes(sizes: list[int], divides: tuple[int, ...]) -> None:
    """Groups are of one size; a group of several nodes holds all GPUs of each."""
    assert ep_sizes(machine_of(sizes)) == divides


@pytest.mark.parametrize("text", ["hgx-h100:2", "gb200-nvl72", "dgx-1v:2", "l40s-pcie:2"])
def test_the_first_group_is_what_solve_takes_for_ep(text: str) -> None:
    """So a row of a sweep and `solve --ep` are about the same machine."""
    topology = read_topology(text)
    for ep in ep_sizes(topology):
        assert groups_of(topology, ep)[0] == find_topology(text, ep)[0]


def test_groups_that_are_alike_are_one_and_a_slow_gpu_makes_another() -> None:
    """Whatever hosts are called."""
    named = [replace(node, name=f"host{n}") for n, node in enumerate(cluster(3, 4).nodes)]
    topology = replace(cluster(3, 4), nodes=tuple(named))
    assert len(groups_of(topology, 4)) == 1
    slow = topology.with_speeds({9: 0.5})
    assert len(groups_of(slow, 4)) == 2
    assert len(groups_of(slow, 2)) == len(groups_of(topology, 2)) + 1


def test_a_size_that_divides_nothing_is_refused_with_those_that_do() -> None:
    with pytest.raises(BadInput, match=r"EP3.* 1, 2, 4, 8, 16 GPUs"):
        groups_of(read_topology("hgx-h100:2"), 3)


def test_nics_at_half_halve_the_uplinks_too_and_nothing_else() -> None:
    topology = read_topology("hgx-h100:2")
    rate = {one.name: one.rate.bytes_per_s for one in topology.resources}
    for one in with_nics_at(topology, 0.5).resources:
        factor = 1.0 if one.tier in ("nvlink", "pcie", "host") else 0.5
        assert one.rate.bytes_per_s == pytest.approx(rate[one.name] * factor), one.name


def test_a_full_fabric_has_no_oversubscription() -> None:
    topology = read_topology("hgx-h100:2")
    thin = replace(topology, fabric=replace(topology.fabric, oversubscription=4.0))
    assert with_full_fabric(thin).fabric == replace(topology.fabric, oversubscription=1.0)
