"""Labels of clouds: chains of network layers for each host."""

import json
from typing import Any

import pytest

from planner.base import BadInput
from probes.base.facts import FabricFacts
from probes.importers import cloud_labels

AWS = "topology.k8s.aws/network-node-layer-"
GCP = "cloud.google.com/gce-topology-"
OCI = "oci.oraclecloud.com/rdma."


def read(value: Any) -> FabricFacts:
    content = json.dumps(value).encode()
    assert cloud_labels.recognise(content, "nodes.json")
    (facts,) = cloud_labels.read(content, "nodes.json")
    return facts


def kubernetes(labels: dict[str, dict[str, str]]) -> dict[str, Any]:
    """What `kubectl get nodes -o json` prints, of the parts that matter."""
    return {
        "kind": "List",
        "items": [
            {"kind": "Node", "metadata": {"name": name, "labels": own}} for name, own in labels.items()
        ],
    }


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (
            {f"{AWS}1": "top", f"{AWS}2": "mid", f"{AWS}3": "low1"},
            {f"{AWS}1": "top", f"{AWS}2": "mid", f"{AWS}3": "low2"},
        ),
        (
            {f"{GCP}block": "mid", f"{GCP}subblock": "low1", f"{GCP}host": "h1"},
            {f"{GCP}block": "mid", f"{GCP}subblock": "low2", f"{GCP}host": "h2"},
        ),
        (
            {f"{OCI}hpc_island_id": "top", f"{OCI}network_block_id": "mid", f"{OCI}local_block_id": "low1"},
            {f"{OCI}hpc_island_id": "top", f"{OCI}network_block_id": "mid", f"{OCI}local_block_id": "low2"},
        ),
        (
            {"fabric.topograph.run/tier-0": "low1", "fabric.topograph.run/tier-1": "mid"},
            {"fabric.topograph.run/tier-0": "low2", "fabric.topograph.run/tier-1": "mid"},
        ),
    ],
)
def test_closest_layer_is_the_leaf(one: dict[str, str], two: dict[str, str]) -> None:
    """AWS counts layers from the top, topograph from the host, Google and Oracle name them."""
    facts = read(kubernetes({"n1": one, "n2": two}))
    assert [(port.host, port.leaf) for port in facts.ports] == [("n1", "low1"), ("n2", "low2")]
    assert {("low1", "mid"), ("low2", "mid")} <= set(facts.uplinks)


def test_instances_of_aws_are_read_from_the_top_down() -> None:
    """DescribeInstanceTopology lists network nodes from the top; four layers where there are four.

    The capacity block is an UltraServer.
    """
    instance = {
        "InstanceId": "i-1",
        "NetworkNodes": ["nn-a", "nn-b", "nn-c", "nn-d"],
        "CapacityBlockId": "ultra-1",
    }
    facts = read({"Instances": [instance]})
    assert facts.ports[0].leaf == "nn-d"
    assert set(facts.uplinks) == {("nn-d", "nn-c"), ("nn-c", "nn-b"), ("nn-b", "nn-a")}
    assert facts.blocks == {"ultra-1": ("i-1",)}


def test_cliques_are_blocks() -> None:
    """The GPU clique label names the NVLink domain, alone or beside network labels."""
    facts = read(kubernetes({"n1": {"nvidia.com/gpu.clique": "u.1"}, "n2": {"nvidia.com/gpu.clique": "u.1"}}))
    assert facts.blocks == {"u.1": ("n1", "n2")}
    assert facts.ports == ()


def test_host_without_labels_is_said() -> None:
    """It is not hung anywhere, and not lost without a word."""
    facts = read(kubernetes({"n1": {f"{GCP}subblock": "s"}, "n2": {f"{GCP}subblock": "no-imds-data"}}))
    assert len(facts.ports) == 1
    assert facts.unknown[0].startswith("1 hosts have no network label: n2")


def test_one_name_in_two_places_is_two_switches() -> None:
    """Sub-blocks that are only numbered inside their blocks are not one switch."""
    facts = read(
        kubernetes(
            {
                "n1": {f"{GCP}block": "b1", f"{GCP}subblock": "1"},
                "n2": {f"{GCP}block": "b2", f"{GCP}subblock": "1"},
            }
        )
    )
    assert [port.leaf for port in facts.ports] == ["b1/1", "b2/1"]
    assert any("told apart by path" in warning for warning in facts.warnings)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (kubernetes({"n1": {"nvidia.com/gpu.clique": ""}}), "none of the 1 hosts has a network label"),
        ({"items": 3, "x": f"{AWS}1"}, "expected a list"),
        ({"items": [3, f"{AWS}1"]}, "entry 0: '3' is not a node"),
        ({"items": [{"metadata": {"labels": {f"{AWS}1": "x"}}}]}, "entry 0: has no name"),
        ({"items": [{"metadata": {"name": "n", "labels": [f"{AWS}1"]}}]}, "the labels are"),
        ({"Instances": [{"InstanceId": "i", "NetworkNodes": "x"}]}, "NetworkNodes is 'x'"),
        ({"Instances": [{"InstanceId": "i", "NetworkNodes": ["x"]}] * 2}, "'i' appears twice"),
    ],
)
def test_broken_source_is_refused_with_place_and_reason(value: Any, message: str) -> None:
    """One line that names the place and the value."""
    with pytest.raises(BadInput, match=message):
        read(value)
