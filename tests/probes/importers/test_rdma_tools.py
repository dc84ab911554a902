"""`ibv_devinfo`, `ibdev2netdev` and `show_gids`: the adapters of a host, beside its matrix."""

import pytest

from planner.base import BadInput
from probes.base.facts import HostFacts
from probes.importers.registry import read_facts
from probes.machine.assemble import assemble
from probes.machine.hints import Hints
from tests.probes.importers.smi_texts import behind, listed, matrix


def devinfo(device: int, state: str = "PORT_ACTIVE (4)", layer: str = "InfiniBand", speed: str = "") -> str:
    lanes = f"\t\t\tactive_width:\t\t4X (2)\n\t\t\tactive_speed:\t\t{speed}\n" if speed else ""
    return (
        f"hca_id:\tmlx5_{device}\n\ttransport:\t\t\tInfiniBand (0)\n\tfw_ver:\t\t\t\t28.39.1002\n"
        f"\tnode_guid:\t\t\t0c42:a103:0012:34{device:02x}\n\tsys_image_guid:\t\t\t0c42:a103:0012:34{device:02x}\n"
        "\tvendor_part_id:\t\t\t4129\n\tphys_port_cnt:\t\t\t1\n"
        f"\t\tport:\t1\n\t\t\tstate:\t\t\t{state}\n\t\t\tmax_mtu:\t\t4096 (5)\n{lanes}"
        f"\t\t\tlink_layer:\t\t{layer}\n\n"
    )


def read(text: str) -> HostFacts:
    (host,) = read_facts(text.encode(), "x")
    assert isinstance(host, HostFacts)
    return host


def ports(host: HostFacts) -> list[tuple[str, bool | None, float | None, str | None]]:
    rate = [None if nic.rate_bytes_per_s is None else nic.rate_bytes_per_s / 1e9 for nic in host.nics]
    return [(nic.name, nic.up, one, nic.link_layer) for nic, one in zip(host.nics, rate, strict=True)]


class TestIbvDevinfo:
    def test_states_and_rates(self) -> None:
        """A lane's speed times the width, with -v; a port that is down has none, and is a fault."""
        text = "".join(
            (
                devinfo(0, speed="100.0 Gbps (128)"),
                devinfo(1, "PORT_DOWN (1)", speed="2.5 Gbps (1)"),
                devinfo(2, layer="Ethernet", speed="25.0 Gbps (32)"),
            )
        )
        host = read(text)
        assert ports(host) == [
            ("mlx5_0", True, 50.0, "InfiniBand"),
            ("mlx5_1", False, None, "InfiniBand"),
            ("mlx5_2", True, 12.5, "Ethernet"),
        ]
        assert (host.nics[0].guid, host.nics[0].model) == ("0c42a10300123400", "MT4129")
        assert host.nics[2].compute is False

    def test_without_v_the_rates_are_asked_for(self) -> None:
        """The plain output has none."""
        host = read(devinfo(0))
        assert ports(host) == [("mlx5_0", True, None, "InfiniBand")]
        assert "ibv_devinfo -v" in host.unknown[0]

    def test_a_cut_text_says_so(self) -> None:
        """In whatever place: an adapter is whole, or missed."""
        whole = devinfo(0, speed="100.0 Gbps (128)") + devinfo(1, speed="100.0 Gbps (128)")
        for cut in range(20, len(whole) - 3, 7):
            host = read(whole[:cut])
            assert host.unknown or len(host.nics) == 1, whole[cut - 30 : cut]

    def test_two_hosts_behind_their_names(self) -> None:
        """And refused where both are in one text without."""
        facts = read_facts((behind("n1", devinfo(0)) + behind("n2", devinfo(0))).encode(), "x")
        assert [fact.host for fact in facts if isinstance(fact, HostFacts)] == ["n1", "n2"]
        with pytest.raises(BadInput, match="comes twice"):
            read(devinfo(0) + devinfo(0))


class TestIbdev2netdev:
    def test_plain_and_verbose(self) -> None:
        """Up, its interface and, with -v, PCI and card; of an interface that is down the port may be up."""
        host = read(
            "mlx5_0 port 1 ==> ibp27s0 (Up)\nmlx5_bond_0 port 1 ==> bond0 (Down)\n"
            "mlx5_2 port 1 ==> eth2 (Up)\n"
        )
        assert ports(host) == [
            ("mlx5_0", True, None, "InfiniBand"),
            ("mlx5_bond_0", None, None, None),
            ("mlx5_2", True, None, "Ethernet"),
        ]
        assert "bond0 is down" in host.nics[1].faults[0]
        verbose = (
            "0000:1b:00.0 mlx5_0 (MT4129 - MCX75310) ConnectX-7 fw 28.39 port 1 (ACTIVE) ==> ibs3 (Up)\n"
        )
        nic = read(verbose).nics[0]
        assert (nic.name, nic.pci, nic.model, nic.up) == ("mlx5_0", "0000:1b:00.0", "MT4129", True)

    def test_damage_is_said(self) -> None:
        """A line that cannot be read, and a port that comes twice."""
        assert "1 of its lines" in " ".join(
            read("mlx5_0 port 1 ==> ib0 (Up)\nmlx5_1 port 1 ==> ib1 (U").unknown
        )
        with pytest.raises(BadInput, match="comes twice"):
            read("mlx5_0 port 1 ==> ib0 (Up)\nmlx5_0 port 1 ==> ib0 (Up)\n")


GIDS = (
    "DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV\n"
    "---\t----\t-----\t---\t\t\t\t\t------------  \t---\t---\n"
    "mlx5_0\t1\t0\tfe80:0000:0000:0000:a288:c2ff:fe03:1234\t\t\tv1\trdma0\n"
    "mlx5_0\t1\t3\t0000:0000:0000:0000:0000:ffff:0a00:0001\t10.0.0.1  \tv2\trdma0\n"
    "mlx5_1\t1\t0\tfe80:0000:0000:0000:0c42:a103:0012:3401\t\t\tv1\t\n"
    "n_gids_found=3\n"
)


class TestShowGids:
    def test_layer_and_guid(self) -> None:
        """RoCE has an interface beside its GIDs; the link-local one ends in the port's GUID."""
        host = read(GIDS)
        assert [(nic.name, nic.link_layer, nic.guid) for nic in host.nics] == [
            ("mlx5_0", "Ethernet", "a288c2fffe031234"),
            ("mlx5_1", "InfiniBand", "0c42a10300123401"),
        ]
        assert len(host.unknown) == 1

    def test_a_cut_list_says_so(self) -> None:
        """By its last line."""
        assert "2 are shown" in read(GIDS.replace(GIDS.splitlines()[2] + "\n", "")).unknown[1]
        assert "n_gids_found is not in" in read(GIDS.partition("n_gids")[0]).unknown[1]


def test_a_host_of_four_tools() -> None:
    """The list, the matrix, the adapters with their rates and their interfaces in one paste: one machine."""
    rates = "".join(devinfo(nic, speed="100.0 Gbps (128)") for nic in range(4))
    netdevs = "".join(f"mlx5_{nic} port 1 ==> ib{nic} (Up)\n" for nic in range(4))
    text = f"$ nvidia-smi -L\n{listed()}$ nvidia-smi topo -m\n{matrix()}"
    text += f"$ ibv_devinfo -v\n{rates}$ ibdev2netdev\n{netdevs}"
    found = assemble(read_facts(text.encode(), "x"), Hints())
    assert found.topology is not None, found.unknown
    nics = found.topology.nodes[0].nics
    assert [(nic.name, nic.gpus, nic.rate.bytes_per_s, nic.rate.evidence.kind) for nic in nics] == [
        (f"mlx5_{at}", (at,), 50e9, "imported") for at in range(4)
    ]
