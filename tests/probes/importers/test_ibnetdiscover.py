"""ibnetdiscover: what a subnet says of itself, and that damage never gives a wrong count in silence."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.base import BadInput
from probes.base.facts import FabricFacts
from probes.importers import ibnetdiscover
from tests.probes.ib_text import SmallFabric
from tests.probes.ib_text import ibnetdiscover as text_of


def read(text: str) -> FabricFacts:
    content = text.encode()
    assert ibnetdiscover.recognise(content, "net.txt")
    (facts,) = ibnetdiscover.read(content, "net.txt")
    return facts


def test_hosts_leaves_and_cables_are_counted_once() -> None:
    """Each cable is told by both ends and counted once, with its rate.

    A cable between switches points to the root.
    """
    facts = read(text_of(SmallFabric(groups=2, hosts=3, rails=2, spines=2, cables=2)))
    assert len(facts.ports) == 2 * 3 * 2
    assert facts.ports[0].host == "node0000"
    assert facts.ports[0].nic == "mlx5_0"
    assert facts.ports[0].leaf == "leaf-0-0"
    assert facts.ports[0].rate_bytes_per_s == 50e9
    assert facts.uplinks == {
        (f"leaf-{g}-{r}", f"spine-{s}"): 2 for g in range(2) for r in range(2) for s in range(2)
    }
    assert set(facts.uplink_bytes_per_s.values()) == {100e9}
    assert facts.unknown == ()


def test_aggregation_units_are_no_hosts() -> None:
    """The SHARP unit of a switch is left out and counted in a warning."""
    text = text_of(SmallFabric()).replace('"node0000 mlx5_0"', '"Mellanox Technologies Aggregation Node"')
    facts = read(text)
    assert len(facts.ports) == 7
    assert facts.warnings == ("1 aggregation units (SHARP) inside switches are no hosts: left out",)


@pytest.mark.parametrize("description", ["MT4129 ConnectX7   Mellanox Technologies", "localhost mlx5_0", ""])
def test_host_without_a_name_stands_alone_by_guid(description: str) -> None:
    """A factory name, 'localhost' or nothing names no host: its GUID stands for it, and the facts say so."""
    facts = read(text_of(SmallFabric()).replace('"node0000 mlx5_0"', f'"{description}"'))
    unnamed = [port for port in facts.ports if port.host.startswith("guid:")]
    assert len(unnamed) == 1
    assert unnamed[0].host == f"guid:{unnamed[0].guid}"
    assert "1 adapters name no host" in facts.unknown[0]


def test_two_hosts_of_one_name_are_not_one_host() -> None:
    """Two machines called 'ubuntu' with an mlx5_0 each are told apart by GUID, with a warning."""
    facts = read(text_of(SmallFabric()).replace("node0000 ", "ubuntu ").replace("node0001 ", "ubuntu "))
    assert len({port.host for port in facts.ports if port.host.startswith("guid:")}) == 4
    assert any("ubuntu" in warning for warning in facts.warnings)


def test_director_is_one_chassis_of_several_switches() -> None:
    """Switches with one system image GUID are one machine; each keeps its own name and cables."""
    fabric = SmallFabric(groups=1, hosts=1, rails=1, spines=2)
    guids = fabric.guids()
    text = text_of(fabric)
    for number in range(2):
        text = text.replace(f"MF0;spine-{number}:MQM9700/U1", f"MF0;core:MCS8500/S0{number}/U1")
        text = text.replace(f"sysimgguid=0x{guids[f'spine-{number}']}", "sysimgguid=0xc0de")
    facts = read(text)
    assert facts.chassis == {"core": ("core/S00", "core/S01")}
    assert set(facts.uplinks) == {("leaf-0-0", "core/S00"), ("leaf-0-0", "core/S01")}


def test_switches_that_share_a_name_are_told_apart() -> None:
    """Two leaves of one name keep their GUIDs in their names: their hosts are not added up."""
    facts = read(text_of(SmallFabric(groups=2, rails=1)).replace("leaf-1-0", "leaf-0-0"))
    assert len({port.leaf for port in facts.ports}) == 2


def test_subnet_manager_on_a_spine_does_not_make_it_a_leaf() -> None:
    """A spine with one host below it stays a spine where its leaves have many more, and that is said."""
    fabric = SmallFabric(groups=2, hosts=4, rails=1, spines=1)
    links = fabric.links()
    links[0] = (links[0][0], 1, "spine-0", 40)
    facts = read(text_of(fabric, links).replace("node0000 ", "manager "))
    assert all(high == "spine-0" for _, high in facts.uplinks)
    assert not any(
        "spine-0 is taken" in warning for warning in facts.warnings
    )  # 1 against 3 hosts is too near to say
    wide = SmallFabric(groups=2, hosts=8, rails=1, spines=1)
    links = [*wide.links()[1:], (wide.links()[0][0], 1, "spine-0", 40)]
    facts = read(text_of(wide, links))
    assert all(high == "spine-0" for _, high in facts.uplinks)
    assert any(warning.startswith("spine-0 is taken for a spine") for warning in facts.warnings)


def test_ends_that_differ_in_rate_give_the_lower() -> None:
    """A link cannot be faster than its slower end, and the difference is said."""
    text = text_of(SmallFabric())
    at = text.index("4xNDR")
    facts = read(f"{text[:at]}4xHDR{text[at + 5 :]}")
    assert min(port.rate_bytes_per_s or 0 for port in facts.ports) == 25e9
    assert any("lower is taken" in warning for warning in facts.warnings)


def test_rate_of_no_known_lane_is_unknown() -> None:
    """A lane type we do not know gives no number."""
    facts = read(text_of(SmallFabric(rate="4xZDR")))
    assert all(port.rate_bytes_per_s is None for port in facts.ports)
    assert facts.uplink_bytes_per_s == {}
    assert any("rate that cannot be read" in sentence for sentence in facts.unknown)


def test_quoted_and_annotated_lines_are_read() -> None:
    """Speeds in ' s=4 w=2 ...' after the rate, external ports of directors and Windows line ends change
    nothing.
    """
    text = (
        text_of(SmallFabric())
        .replace("4xNDR", "4xNDR s=4 w=2 v=4 e=4")
        .replace("\n", "\r\n")
        .replace("[100]", "[100][ext 3]")
    )
    assert read(text).ports == read(text_of(SmallFabric())).ports


def test_lone_adapter_is_refused_with_the_reason() -> None:
    """A run on a host whose port is not connected finds itself alone."""
    with pytest.raises(
        BadInput, match=r"net.txt: line 1: adapters \('gpu1 mlx5_0' first of 1\) and no switch"
    ):
        read('Ca\t1 "H-00000000000000b1"\t\t# "gpu1 mlx5_0"\n')


def test_switch_without_a_cable_is_refused() -> None:
    """A text that ends before the first cable says nothing."""
    with pytest.raises(BadInput, match="no cable"):
        read('Switch\t65 "S-00000000000000a1"\t\t# "MF0;leaf:MQM9700/U1"\n')


def test_two_runs_in_one_file_are_said() -> None:
    """The same switch twice is named; cables that agree are not counted twice."""
    text = text_of(SmallFabric())
    facts = read(text + text)
    assert facts.ports == read(text).ports
    assert any("two blocks" in sentence for sentence in facts.unknown)


@settings(max_examples=60)
@given(
    st.builds(
        SmallFabric,
        groups=st.integers(1, 2),
        hosts=st.integers(1, 3),
        rails=st.integers(1, 2),
        spines=st.integers(1, 2),
        cables=st.integers(1, 2),
    ),
    st.floats(0, 1),
)
def test_a_cut_text_never_gives_a_wrong_count_in_silence(fabric: SmallFabric, share: float) -> None:
    """Cut at any byte: refused, equal, or said to be incomplete."""
    text = text_of(fabric)
    whole = read(text)
    try:
        (cut,) = ibnetdiscover.read(text[: int(share * len(text))].encode(), "net.txt")
    except BadInput:
        return
    assert (cut.ports, cut.uplinks, cut.uplink_bytes_per_s) == (
        whole.ports,
        whole.uplinks,
        whole.uplink_bytes_per_s,
    ) or cut.unknown
