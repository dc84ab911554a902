"""iblinkinfo: links with rates, in blocks and in single lines."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from planner.base import BadInput
from probes.base.facts import FabricFacts
from probes.importers import iblinkinfo, ibnetdiscover
from tests.probes.ib_text import SmallFabric
from tests.probes.ib_text import iblinkinfo as text_of
from tests.probes.ib_text import ibnetdiscover as discovered

UP = "Gbps Active/  LinkUp)==> 0x00000000000000a1 1"
FASTER = "( Could be 106.25 Gbps)"
LINES = f"""\
0x00000000000000b1 "node1 mlx5_0"      4    1[  ] ==( 2X        106.25 {UP}    7[  ] "MF0;leaf" ( )
0x00000000000000b2 "node2 mlx5_0"      5    1[  ] ==( 4X      25.78125 {UP}    8[  ] "MF0;leaf" {FASTER}
0x00000000000000a1 "MF0;leaf"  1    9[  ] ==(                Down/ Polling)==>             [  ] "" ( )
"""


def read(text: str) -> FabricFacts:
    assert iblinkinfo.recognise(text.encode(), "links.txt")
    (facts,) = iblinkinfo.read(text.encode(), "links.txt")
    return facts


def test_blocks_tell_the_same_fabric_as_ibnetdiscover() -> None:
    """Two tools on one subnet: the same hosts, leaves, cables and rates."""
    fabric = SmallFabric(groups=2, hosts=3, rails=2, spines=2, cables=2)
    facts, (other,) = read(text_of(fabric)), ibnetdiscover.read(discovered(fabric).encode(), "net.txt")
    assert facts.ports == other.ports
    assert facts.uplinks == other.uplinks
    assert facts.uplink_bytes_per_s == other.uplink_bytes_per_s
    assert facts.unknown == ()


def test_single_lines_give_rates_by_lanes_and_signal() -> None:
    """2 lanes at 106.25 Gbps carry 200 Gb/s, 4 at 25.78125 carry 100.

    A port that could be faster is named, a down port is no link.
    """
    facts = read(LINES)
    assert [(port.host, port.rate_bytes_per_s) for port in facts.ports] == [
        ("node1", 25e9),
        ("node2", 12.5e9),
    ]
    assert facts.warnings == (
        "node2 mlx5_0 port 1 to MF0;leaf: runs at 4X 25.78125 Gbps and could be 106.25 Gbps",
    )


def test_neighbour_without_a_block_is_counted_and_said() -> None:
    """A host that only its switch names is a host; that its own block is missing is said."""
    text = text_of(SmallFabric(groups=1, hosts=2, rails=1, spines=1))
    facts = read(text[text.index("CA: node0001") :])
    assert [port.host for port in facts.ports] == ["node0000", "node0001"]
    assert "node0000 mlx5_0" in facts.unknown[0]


def test_no_active_link_is_refused() -> None:
    """A subnet that is down has no fabric."""
    with pytest.raises(BadInput, match="no active link"):
        read(LINES.splitlines()[2])


@settings(max_examples=60)
@given(
    st.builds(
        SmallFabric,
        groups=st.integers(1, 2),
        hosts=st.integers(1, 3),
        rails=st.integers(1, 2),
        spines=st.integers(1, 2),
    ),
    st.floats(0, 1),
)
def test_a_cut_text_never_gives_a_wrong_count_in_silence(fabric: SmallFabric, share: float) -> None:
    """Cut within a line: refused, equal, or said to be incomplete. Fewer whole lines may be all there is."""
    text = text_of(fabric)
    whole, kept = read(text), text[: int(share * len(text))]
    whole_lines = {text[:end].rstrip("( )") for end, byte in enumerate(text) if byte == "\n"}
    assume(kept.rstrip("( )\n") not in whole_lines)
    try:
        (cut,) = iblinkinfo.read(kept.encode(), "links.txt")
    except BadInput:
        return
    assert (cut.ports, cut.uplinks, cut.uplink_bytes_per_s) == (
        whole.ports,
        whole.uplinks,
        whole.uplink_bytes_per_s,
    ) or cut.unknown
