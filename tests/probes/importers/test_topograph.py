"""topograph's models and graphs."""

import json

import pytest

from planner.base import BadInput
from probes.base.facts import FabricFacts
from probes.importers import topograph

MODEL = """\
switches:
  core:
    switches: [leaf-1, leaf-2]
blocks:
- switch: leaf-1
  nodes: ["n[11-12]", n19]
  annotations: {accelerator.topology.test/domain: nvl-1, accelerator.topology.test/sub-domain: x}
- switch: leaf-2
  nodes: ["n[21-22]"]
  labels: {accelerated.topology.nvidia.com/level-0: nvl-2}
"""
OLD_MODEL = """\
switches:
- name: top
  switches: [s1, s2]
- name: s1
  capacity_blocks: [cb1]
- name: s2
  capacity_blocks: [cb2]
capacity_blocks:
- name: cb1
  nvlink: nv1
  nodes: [a, b]
- name: cb2
  nodes: [c]
"""
NODE_MODEL = """\
switches:
  s1:
    nodes: [a, b]
nodes:
  a: {attributes: {nvlink: nv1}}
  b: {type: H100}
"""


def read(text: str) -> FabricFacts:
    assert topograph.recognise(text.encode(), "model")
    (facts,) = topograph.read(text.encode(), "model")
    return facts


def test_model_gives_leaves_and_domains() -> None:
    """Blocks hang hosts on leaves; the accelerator domain names the NVLink domain."""
    facts = read(MODEL)
    assert [(port.host, port.leaf) for port in facts.ports] == [
        ("n11", "leaf-1"),
        ("n12", "leaf-1"),
        ("n19", "leaf-1"),
        ("n21", "leaf-2"),
        ("n22", "leaf-2"),
    ]
    assert facts.blocks == {"nvl-1": ("n11", "n12", "n19"), "nvl-2": ("n21", "n22")}
    assert facts.uplinks == {("leaf-1", "core"): 0, ("leaf-2", "core"): 0}


def test_older_models_are_read() -> None:
    """Lists with names, capacity blocks between switch and hosts, the domain at the block or at the node."""
    old, by_node = read(OLD_MODEL), read(NODE_MODEL)
    assert [(port.host, port.leaf) for port in old.ports] == [("a", "s1"), ("b", "s1"), ("c", "s2")]
    assert old.blocks == {"nv1": ("a", "b")}
    assert [port.host for port in by_node.ports] == ["a", "b"]
    assert by_node.blocks == {"nv1": ("a",)}


def test_graph_is_a_chain_of_switches_for_each_host() -> None:
    """Closest first; a host without layers is named as unknown."""
    instances = [
        {
            "id": "i1",
            "network_layers": ["leaf1", "spine"],
            "labels": {"accelerator.topograph.run/domain": "d1"},
        },
        {"id": "i2", "network_layers": ["leaf2", "spine"]},
        {"id": "i3"},
    ]
    facts = read(json.dumps({"instances": instances}))
    assert [(port.host, port.leaf) for port in facts.ports] == [("i1", "leaf1"), ("i2", "leaf2")]
    assert facts.uplinks == {("leaf1", "spine"): 0, ("leaf2", "spine"): 0}
    assert facts.blocks == {"d1": ("i1",)}
    assert facts.unknown[0].startswith("1 hosts have no network label: i3")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("switches:\n  a: {switches: [b]}\nblocks: []\n", "no switch has hosts"),
        (
            "switches:\n  a: {switches: [b]}\n  b: {switches: [a]}\nblocks: [{switch: a, nodes: [n]}]\n",
            "is below itself",
        ),
        ("switches:\n  a: {}\nblocks: [{nodes: [n]}]\n", "block 0: 'switch' is None"),
        ("switches:\n  a: {nodes: n1}\nnodes: {}\n", "is not a list of names"),
        ('{"instances": [{"id": "a", "network_layers": ["x"]}, {"id": "a"}]}', "instance 1: 'id' is 'a'"),
        ('{"instances": [{"id": "a", "network_layers": "x"}]}', "is not a list of names"),
        ('{"instances": [{"id": "a", "network_layers": ["x"]', "not valid JSON"),
    ],
)
def test_broken_source_is_refused_with_place_and_reason(text: str, message: str) -> None:
    """One line that names the place and the value."""
    with pytest.raises(BadInput, match=message):
        read(text)
