"""Slurm's topology.conf and topology.yaml."""

import pytest

from planner.base import BadInput
from probes.base.facts import FabricFacts
from probes.importers import slurm

TREE = """\
# two racks
switchname=root Switches=leaf[1-2]   # the core
SwitchName=leaf1 Nodes=node[01-03] LinkSpeed=4
SwitchName=leaf2 \\
  Nodes = node[04,06]
"""
YAML = """\
- topology: racks
  block:
    block_sizes: [2, 4]
    blocks:
      - {block: b1, nodes: "n[1-2]"}
      - {block: b2, nodes: "n[3-4]"}
- topology: net
  cluster_default: true
  tree:
    switches:
      - {switch: top, children: "s[1-2]"}
      - {switch: s1, nodes: "n[1-2]"}
      - {switch: s2, nodes: "n[3-4]"}
"""


def read(text: str) -> FabricFacts:
    assert slurm.recognise(text.encode(), "topology")
    (facts,) = slurm.read(text.encode(), "topology")
    return facts


def test_tree_gives_leaves_and_the_switches_above() -> None:
    """Keys in any case, comments, joined lines and spaces around '='; no number of cables and no rate."""
    facts = read(TREE)
    assert [(port.host, port.leaf) for port in facts.ports] == [
        ("node01", "leaf1"),
        ("node02", "leaf1"),
        ("node03", "leaf1"),
        ("node04", "leaf2"),
        ("node06", "leaf2"),
    ]
    assert facts.uplinks == {("leaf1", "root"): 0, ("leaf2", "root"): 0}
    assert facts.uplink_bytes_per_s == {}
    assert facts.unknown == ()
    assert all(port.rate_bytes_per_s is None for port in facts.ports)


def test_blocks_give_hosts_and_sizes() -> None:
    """Blocks are kept apart from leaves: Slurm does not say that a block is an NVLink domain."""
    facts = read("BlockName=b1 Nodes=n[01-04]\nBlockName=b2 Nodes=n[05-06]\nBlockSizes=4,8\n")
    assert facts.kind == "slurm-block"
    assert facts.blocks == {"b1": ("n01", "n02", "n03", "n04"), "b2": ("n05", "n06")}
    assert facts.block_sizes == (4, 8)
    assert facts.ports == ()
    assert any("NVLink domain is not told" in sentence for sentence in facts.unknown)
    assert any("fewer hosts than the smallest block size 4: b2" in warning for warning in facts.warnings)


def test_yaml_takes_the_default_and_names_the_others() -> None:
    """One topology is used; which, and which not, is said."""
    facts = read(YAML)
    assert [port.leaf for port in facts.ports] == ["s1", "s1", "s2", "s2"]
    assert (
        facts.warnings[0]
        == "of 2 topologies 'net' is taken (the cluster's default); not taken: racks (block)"
    )


def test_yaml_without_a_default_takes_the_first() -> None:
    """Said too."""
    facts = read(YAML.replace("cluster_default: true", "cluster_default: false"))
    assert facts.blocks == {"b1": ("n1", "n2"), "b2": ("n3", "n4")}
    assert "the first, none is marked" in facts.warnings[0]


def test_yaml_of_a_flat_topology_tells_nothing() -> None:
    """A flat topology is a topology without leaves; keys of a newer Slurm are passed over with a warning."""
    facts = read("- topology: t\n  flat: true\n  future: 3\n")
    assert facts.ports == ()
    assert "tells no leaves" in facts.unknown[0]
    assert "'future'" in facts.warnings[0]


def test_several_roots_are_said() -> None:
    """Two trees are two parts as far as the file tells."""
    facts = read("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2\n")
    assert "2 switches have none above them (a, b)" in facts.warnings[0]


def test_switch_that_is_not_described_is_said() -> None:
    """The file names leaf2 and ends: its hosts are missing."""
    facts = read("SwitchName=root Switches=leaf[1-2]\nSwitchName=leaf1 Nodes=n1\n")
    assert any("leaf2" in sentence and "cut short" in sentence for sentence in facts.unknown)


def test_host_on_two_leaves_is_said() -> None:
    """Both places are kept."""
    facts = read("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n[1-2]\n")
    assert len(facts.ports) == 3
    assert any("n1" in warning and "several leaves" in warning for warning in facts.warnings)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SwitchName=a Nodes=n[1-", r"topology: line 1: the bracket of 'n\[1-' is not closed"),
        ("SwitchName=a Nodes=n[5-1]", "line 1: the range '5-1' cannot be read"),
        ("SwitchName=a Nodes=n[1-999999999]", "more than 200,000"),
        ("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2", "line 2: 'a' is described a second time"),
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a", "is below itself"),
        ("SwitchName=a Nodes", "line 1: 'Nodes' is not 'Key=Value'"),
        ("Nodes=n1\nSwitchName=a Nodes=n1", "without 'SwitchName='"),
        ("include other.conf\nSwitchName=a Nodes=n1", "'Include' is not followed"),
        ("- topology: t\n  tree:\n    switches: 3\n", "'switches' must be a list"),
        ("- topology: t\n  tree:\n    switches: [{switch: 3}]\n", "'switch' is 3"),
    ],
)
def test_broken_file_is_refused_with_place_and_reason(text: str, message: str) -> None:
    """One line that names the place, the value and what is wrong."""
    with pytest.raises(BadInput, match=message):
        read(text)


def test_what_scontrol_shows() -> None:
    """It names all hosts below a switch: they are on the leaves; one that is on none of them stays."""
    facts = read(
        "SwitchName=a Level=0 LinkSpeed=1 Nodes=n[1-2]\nSwitchName=b Level=0 LinkSpeed=1 Nodes=n[3-4]\n"
        "SwitchName=top Level=1 LinkSpeed=1 Nodes=n[1-5] Switches=a,b\n"
    )
    assert [(port.host, port.leaf) for port in facts.ports] == [
        ("n1", "a"),
        ("n2", "a"),
        ("n3", "b"),
        ("n4", "b"),
        ("n5", "top"),
    ]
    assert facts.warnings == ()
    blocks = read(
        "BlockName=b1 BlockIndex=0 Nodes=n[1-4] BlockSize=4\n"
        "BlockName=b2 BlockIndex=1 Nodes=n[5-8] BlockSize=4\n"
        "AggregatedBlock=b[1-2] BlockIndex=2 Nodes=n[1-8] BlockSize=8\n"
    )
    assert list(blocks.blocks) == ["b1", "b2"]
    pasted = read("[me@head ~]$ scontrol show topology\r\nSwitchName=a Nodes=n[1-2]\r\n[me@head ~]$ \r\n")
    assert [port.host for port in pasted.ports] == ["n1", "n2"]
