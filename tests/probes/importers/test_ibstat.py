"""ibstat and ibstatus: adapters with states and rates, whatever surrounds them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.base import BadInput
from probes.base.facts import HostFacts
from probes.importers import ibstat


def block(
    name: str,
    rate: int,
    state: str = "Active",
    physical: str = "LinkUp",
    model: str = "MT4129",
    layer: str = "InfiniBand",
    ports: str = "1",
) -> str:
    """One adapter as ibstat prints it; GUIDs follow from the name."""
    number = f"{sum(map(ord, name)):016x}"
    lines = [
        f"CA '{name}'",
        f"\tCA type: {model}",
        f"\tNumber of ports: {ports}",
        f"\tNode GUID: 0x{number}",
        f"\tSystem image GUID: 0x{number}",
        "\tPort 1:",
        f"\t\tState: {state}",
        f"\t\tPhysical state: {physical}",
        f"\t\tRate: {rate}",
        f"\t\tPort GUID: 0x{number}",
        f"\t\tLink layer: {layer}",
    ]
    return "\n".join(lines) + "\n"


def status(name: str, rate: str, layer: str = "InfiniBand", state: str = "4: ACTIVE", port: int = 1) -> str:
    """One port as ibstatus prints it."""
    return (
        f"Infiniband device '{name}' port {port} status:\n"
        "\tdefault gid:\t fe80:0000:0000:0000:0015:5dff:fd34:11eb\n\tbase lid:\t 0x1\n"
        f"\tsm lid:\t\t 0x1\n\tstate:\t\t {state}\n\tphys state:\t 5: LinkUp\n"
        f"\trate:\t\t {rate}\n\tlink_layer:\t {layer}\n\n"
    )


def read(text: str) -> HostFacts:
    assert ibstat.recognise(text.encode(), "ibstat.txt")
    (facts,) = ibstat.read(text.encode(), "ibstat.txt")
    return facts


def test_adapter_has_rate_layer_guid_and_model() -> None:
    """The order of the source is kept; 400 is Gb/s, 50 GB/s."""
    facts = read(block("mlx5_10", 400) + block("mlx5_2", 400))
    assert [nic.name for nic in facts.nics] == ["mlx5_10", "mlx5_2"]
    nic = facts.nics[1]
    assert (nic.rate_bytes_per_s, nic.link_layer, nic.up, nic.model, nic.compute) == (
        50e9,
        "InfiniBand",
        True,
        "MT4129",
        None,
    )
    assert nic.guid == nic.card == f"{sum(map(ord, 'mlx5_2')):016x}"
    assert facts.unknown == facts.warnings == ()


def test_rate_of_a_port_that_is_down_is_no_fact() -> None:
    """A down port says 10 or 40 whatever it is: no rate, and the reason is a fault of that NIC."""
    nic = read(block("mlx5_0", 400) + block("mlx5_1", 40, "Down", "Polling")).nics[1]
    assert (nic.up, nic.rate_bytes_per_s, nic.compute) == (False, None, None)
    assert nic.faults == ("mlx5_1: the port is not active (Down, Polling)",)


def test_ethernet_beside_infiniband_is_not_for_expert_traffic() -> None:
    """The front-end adapter is listed, marked, and named in a warning."""
    facts = read(
        "".join(block(f"mlx5_{n}", 200) for n in range(4))
        + block("mlx5_an0", 40, layer="Ethernet", model="MT4120")
    )
    assert [nic.compute for nic in facts.nics] == [None] * 4 + [False]
    assert facts.warnings == (
        "not counted for expert traffic: mlx5_an0 (40 Gb/s Ethernet beside 200 Gb/s InfiniBand)",
    )


def test_slower_port_of_the_same_model_is_a_fault_not_a_front_end() -> None:
    """A 400G card that came up at 200 is more likely a bad cable; it is not dropped."""
    facts = read("".join(block(f"mlx5_{n}", 400) for n in range(4)) + block("mlx5_9", 200))
    assert facts.nics[4].compute is None
    assert "runs at 200 Gb/s where others of its model (MT4129) run at 400 Gb/s" in facts.nics[4].faults[0]


def test_down_port_of_a_front_end_model_is_not_of_the_fabric() -> None:
    """What every active card of its model is ruled out of, a down one is too."""
    text = (
        "".join(block(f"mlx5_{n}", 400) for n in range(4))
        + block("eth0", 100, model="MT4125")
        + block("eth1", 40, "Down", "Disabled", model="MT4125")
    )
    assert [nic.compute for nic in read(text).nics] == [None] * 4 + [False, False]


def test_two_groups_of_one_bandwidth_are_not_decided() -> None:
    """2 x 200 beside 1 x 400: which is the fabric is not guessed."""
    facts = read(block("a0", 200, model="A") + block("a1", 200, model="A") + block("b0", 400, model="B"))
    assert [nic.compute for nic in facts.nics] == [None] * 3
    assert "cannot be told" in facts.warnings[0]


def test_ibpanic_after_good_output_is_said() -> None:
    """Ibstat that stops at a broken device has printed the others; the broken one is named."""
    facts = read(
        block("mlx5_0", 200)
        + "ibpanic: [42] main: stat of IB device 'mlx5_8' failed: No such file or directory\n"
    )
    assert len(facts.nics) == 1
    assert facts.unknown[0].endswith("mlx5_8 is not shown")


def test_ibstatus_is_read_too() -> None:
    """States by number, rates with lanes, the port's GUID out of its GID."""
    facts = read(
        status("mlx5_0", "200 Gb/sec (4X HDR)")
        + status("mlx5_1", "40 Gb/sec (4X QDR)", "Ethernet")
        + status("mlx5_2", "10 Gb/sec (4X SDR)", state="1: DOWN")
    )
    assert facts.kind == "ibstatus"
    assert [(nic.rate_bytes_per_s, nic.up) for nic in facts.nics] == [
        (25e9, True),
        (5e9, True),
        (None, False),
    ]
    assert facts.nics[0].guid == "00155dfffd3411eb"


def test_ports_of_one_device_are_named_apart() -> None:
    """A device with two ports gives two NICs that know their device."""
    facts = read(status("mlx5_0", "100 Gb/sec (4X EDR)") + status("mlx5_0", "100 Gb/sec (4X EDR)", port=2))
    assert [(nic.name, nic.device) for nic in facts.nics] == [("mlx5_0:1", "mlx5_0"), ("mlx5_0:2", "mlx5_0")]


def test_logs_quotes_and_indentation_around_change_nothing() -> None:
    """A paste in a forum: '> ' before each line, a shell prompt above, spaces for tabs, a BOM."""
    plain = block("mlx5_0", 400) + block("mlx5_1", 400)
    quoted = (
        "\ufeff$ ibstat\n"
        + "".join(f"> {line.replace(chr(9), '        ')}\n" for line in plain.splitlines())
        + "done\n"
    )
    assert read(quoted).nics == read(plain).nics


def test_pdsh_output_is_one_value_for_each_host() -> None:
    """Lines of several hosts, interleaved behind 'host: '."""
    one, two = block("mlx5_0", 400).splitlines(), block("mlx5_0", 200).splitlines()
    text = "".join(f"node1: {a}\nnode2: {b}\n" for a, b in zip(one, two, strict=True))
    facts = ibstat.read(text.encode(), "all.txt")
    assert [(host.host, host.nics[0].rate_bytes_per_s) for host in facts] == [
        ("node1", 50e9),
        ("node2", 25e9),
    ]


def test_two_machines_without_names_are_refused() -> None:
    """Two outputs one after the other must not become one host with more NICs."""
    with pytest.raises(BadInput, match="line 12: mlx5_0 appears twice"):
        ibstat.read((block("mlx5_0", 400) * 2).encode(), "two.txt")


def test_missing_port_is_said() -> None:
    """A device that says it has two ports and shows one."""
    assert any(
        "says it has 2 ports" in sentence for sentence in read(block("mlx5_0", 400, ports="2")).unknown
    )


@pytest.mark.parametrize("damage", ["", "CA 'mlx5_1", "\0CA 'mlx5_1'"])
def test_lost_device_line_is_said(damage: str) -> None:
    """Without the line that begins it an adapter must not vanish into the one before."""
    facts = read((block("mlx5_0", 400) + block("mlx5_1", 400)).replace("CA 'mlx5_1'", damage))
    assert len(facts.nics) == 1
    assert facts.unknown


def test_list_of_host_names_and_guids_is_read() -> None:
    """Pairs of a host's name and its port GUID: they name hosts in a fabric, and tell nothing else."""
    facts = ibstat.read(
        b"VM_hostname vm1\n00000000000000b1\nVM_hostname vm2\n00000000000000B2\n", "guids.txt"
    )
    assert [(host.host, host.nics[0].guid) for host in facts] == [
        ("vm1", "00000000000000b1"),
        ("vm2", "00000000000000b2"),
    ]
    with pytest.raises(BadInput, match="2 lines 'VM_hostname NAME' have 1 GUIDs"):
        ibstat.read(b"VM_hostname vm1\n00000000000000b1\nVM_hostname vm2\n", "guids.txt")


@given(st.integers(1, 4), st.floats(0, 1))
def test_a_cut_inside_an_adapter_is_said(count: int, share: float) -> None:
    """Cut within any adapter: every whole one is as before, the broken one has no rate that may be 40 of 400,
    and it is said.
    """
    blocks = [block(f"mlx5_{n}", 400) for n in range(count)]
    text = "".join(blocks)
    cut = text[: int(share * len(text))]
    try:
        facts = ibstat.read(cut.encode(), "cut.txt")[0] if ibstat.recognise(cut.encode(), "cut.txt") else None
    except BadInput:
        return
    if facts is not None:
        whole = read(text)
        for nic, other in zip(facts.nics, whole.nics, strict=False):
            assert nic.rate_bytes_per_s in (None, other.rate_bytes_per_s)
        complete = any(cut.rstrip() == "".join(blocks[: n + 1]).rstrip() for n in range(count))
        assert complete or facts.unknown
