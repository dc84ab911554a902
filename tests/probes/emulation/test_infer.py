"""Rates and switches out of what patterns took, where the truth is known. No namespaces."""

import numpy as np
import pytest

from planner.base import Evidence
from planner.topology import Topology
from probes.emulation.infer import infer
from probes.emulation.observe import Observation
from probes.emulation.patterns import patterns
from probes.emulation.trials import trials_of
from probes.emulation.unknown import before_measuring
from tests.probes.emulation.shapes import SHAPES

SEEN = Evidence("measured", "made up for tests")


def probed(true: Topology, noise: float = 0.0) -> Topology:
    """What is found of it where every pattern takes what the cost model says, more or less."""
    seen = before_measuring(true)
    rng = np.random.default_rng(3)
    sent = patterns(seen)
    took = {name: (true.resource_bytes(one) / true.capacity_R).max() for name, one in sent.items()}
    observations = [
        Observation(name, float(seconds * rng.uniform(1 - noise, 1 + noise)), 0.0)
        for name, seconds in took.items()
    ]
    return infer(seen, sent, observations, SEEN).topology


def in_use(topology: Topology) -> dict[str, float]:
    count = topology.gpu_count
    used = {one for i in range(count) for j in range(count) for one in topology.route(i, j)}
    return {topology.resources[one].name: float(topology.capacity_R[one]) for one in sorted(used)}


def skewed_GG(count: int) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    bytes_GG = np.random.default_rng(7).lognormal(0, 1, (count, count))
    np.fill_diagonal(bytes_GG, 0.0)
    return bytes_GG


@pytest.mark.parametrize("true", SHAPES.values(), ids=SHAPES)
def test_a_probed_cluster_takes_as_long_as_the_true_one(true: Topology) -> None:
    """For traffic that was never sent while it was measured."""
    found = probed(true)
    for sent_GG in (skewed_GG(true.gpu_count), skewed_GG(true.gpu_count).T):
        seconds = [(one.resource_bytes(sent_GG) / one.capacity_R).max() for one in (true, found)]
        assert seconds[1] == pytest.approx(seconds[0], rel=1e-6)


@pytest.mark.parametrize("name", [name for name in SHAPES if "PCIe" not in name])
def test_rates_of_links_come_out(name: str) -> None:
    """Those of all links that are in use; PCIe that is never the slowest has a lower bound alone."""
    assert in_use(probed(SHAPES[name])) == pytest.approx(in_use(SHAPES[name]), rel=1e-6)


@pytest.mark.parametrize("name", ["switch", "leaves of two hosts", "rails", "leaves and spines"])
def test_switches_are_found_through_noise(name: str) -> None:
    """Each exchange up to 3 % off: the same kind of network, of the same size."""
    true, found = SHAPES[name].fabric, probed(SHAPES[name], noise=0.03).fabric
    assert (found.kind, found.nodes_per_leaf, found.nodes_per_pod) == (
        true.kind,
        true.nodes_per_leaf,
        true.nodes_per_pod,
    )
    assert found.oversubscription == pytest.approx(true.oversubscription, rel=0.1)


def test_nothing_of_the_truth_is_known_but_what_hosts_show() -> None:
    """Rates, uplinks and speeds of a cluster that differs in them alone change nothing."""
    slow, fast = (SHAPES[name] for name in ("leaves of two hosts", "switch of four hosts"))
    assert before_measuring(slow).nodes == before_measuring(fast).nodes
    assert before_measuring(slow).fabric == before_measuring(fast).fabric
    assert {one.rate.evidence.kind for one in before_measuring(slow).resources} == {"assumed"}


def test_every_link_that_can_be_a_bottleneck_is_tried() -> None:
    """By traffic that waits for it, for as long as was asked."""
    for true in SHAPES.values():
        trials = trials_of(true, 0.5)
        for trial in trials:
            seconds_R = true.resource_bytes(trial.bytes_GG) / true.capacity_R
            assert seconds_R[trial.resource] == pytest.approx(0.5, rel=2e-3)
            assert seconds_R.max() == pytest.approx(0.5, rel=1e-9)
        tried = {true.resources[trial.resource].name for trial in trials}
        assert tried <= set(in_use(true))
        assert len(tried) == len(trials)
