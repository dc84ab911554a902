"""Labels of clouds: chains of network layers for each host."""

import json
from typing import Any

import pytest

from planner.base import BadInput
from probes.base.facts import FabricFacts
from probes.importers import cloud_labels
from probes.importers.registry import read_facts
from probes.machine.assemble import assemble
from probes.machine.hints import Hints
from tests.probes.importers.smi_texts import matrix

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


GFD = "nvidia.com/gpu."


def nodes(count: int, cpu_nodes: int = 0) -> dict[str, dict[str, str]]:
    """GPU hosts, two to a switch, and hosts without GPUs on the same switches."""
    own = {f"{GFD}product": "NVIDIA-H200", f"{GFD}count": "8"}
    gpu = {f"gpu{at}": {f"{AWS}3": f"leaf{at // 2}", f"{AWS}2": "top", **own} for at in range(count)}
    return gpu | {f"cpu{at}": {f"{AWS}3": f"leaf{at // 2}", f"{AWS}2": "top"} for at in range(cpu_nodes)}


def as_yaml(labels: dict[str, dict[str, str]]) -> str:
    """What `kubectl get nodes -o yaml` prints."""
    lines = ["apiVersion: v1", "items:"]
    for name, own in labels.items():
        lines += ["- apiVersion: v1", "  kind: Node", "  metadata:", "    labels:"]
        lines += [f'      {key}: "{value}"' for key, value in own.items()]
        lines += [f"    name: {name}", "  spec: {}"]
    return "\n".join([*lines, "kind: List", 'metadata: {resourceVersion: ""}']) + "\n"


def as_table(labels: dict[str, dict[str, str]]) -> str:
    """What `kubectl get nodes --show-labels` prints."""
    rows = [
        f"{name}   Ready    <none>   3d    v1.31.0   {','.join('='.join(one) for one in own.items())}"
        for name, own in labels.items()
    ]
    return "\n".join(["NAME   STATUS   ROLES    AGE   VERSION   LABELS", *rows]) + "\n"


@pytest.mark.parametrize("render", [as_yaml, as_table, lambda labels: json.dumps(kubernetes(labels))])
def test_yaml_and_the_table_tell_the_same(render: Any) -> None:
    """Hosts without GPUs, where others' labels tell of GPUs, are none of the machine; the model is named."""
    content = render(nodes(4, cpu_nodes=3)).encode()
    assert cloud_labels.recognise(content, "x")
    (facts,) = cloud_labels.read(content, "x")
    assert [(port.host, port.leaf) for port in facts.ports] == [
        (f"gpu{at}", f"leaf{at // 2}") for at in range(4)
    ]
    assert facts.gpu_names == ("NVIDIA-H200",)
    assert "3 nodes without a GPU's labels are left out" in facts.warnings[0]


def test_labels_make_a_cluster_of_one_described_host() -> None:
    """Model and hosts to a leaf out of the labels; rates are still asked for."""
    content = as_yaml(nodes(4)).encode()
    facts = (*read_facts(matrix(8).encode(), "topo.txt"), *read_facts(content, "nodes.yaml"))
    found = assemble(facts, Hints(nic_bytes_per_s=50e9, nodes=4))
    assert found.topology is not None, found.unknown
    assert (found.topology.fabric.nodes_per_leaf, found.topology.nodes[0].gpus[0].name) == (
        2,
        "H200-SXM-141GB",
    )


def test_models_alone_and_a_cut_table() -> None:
    """Where no label tells of switches the model still counts; a row that is cut is refused."""
    (facts,) = cloud_labels.read(as_table({"n1": {f"{GFD}product": "NVIDIA-H200"}}).encode(), "x")
    assert (facts.gpu_names, facts.ports) == (("NVIDIA-H200",), ())
    glued = as_table(nodes(2)).replace("VERSION   LABELS", "VERSIONLABELS").encode()
    assert len(cloud_labels.read(glued, "x")[0].ports) == 2
    with pytest.raises(BadInput, match="no whole row"):
        cloud_labels.read(as_table(nodes(2)).encode()[:-190], "x")
