"""The network between hosts: leaves, rails, oversubscription, and what is said of odd ones."""

from dataclasses import replace

from probes.base.facts import FabricFacts, Facts, PortFact
from probes.machine.assemble import assemble
from tests.probes.machine.told import HINTS, matrix, said, topology


def rails(hosts: list[str], uplinks: int, host_rate: float = 50e9) -> FabricFacts:
    """Eight leaves, one for each NIC of every host."""
    cables = tuple(
        PortFact(host, f"mlx5_{nic}", f"leaf{nic}", host_rate) for host in hosts for nic in range(8)
    )
    pairs = {(f"leaf{nic}", "spine"): uplinks for nic in range(8)}
    rates = {pair: count * 50e9 for pair, count in pairs.items()}
    return FabricFacts("ibnet.txt", "ibnetdiscover", "imported", cables, pairs, rates)


class TestFabric:
    def hosts(self, count: int) -> list[Facts]:
        return [matrix(host=f"n{number}") for number in range(count)]

    def test_rails_and_oversubscription(self) -> None:
        """NIC i of every host is on leaf i; four hosts over two uplinks are 2 : 1."""
        fabric = topology(assemble([*self.hosts(4), rails([f"n{n}" for n in range(4)], 2)], HINTS)).fabric
        assert (fabric.kind, fabric.nodes_per_leaf, fabric.oversubscription, fabric.evidence.kind) == (
            "rail",
            4,
            2.0,
            "imported",
        )

    def test_leaf_by_leaf_order_of_hosts(self) -> None:
        """The planner counts consecutive hosts, so the ranks follow the leaves."""
        cables = tuple(PortFact(f"n{n}", None, f"leaf{n % 2}") for n in range(4))
        uplinks = {("leaf0", "s"): 0, ("leaf1", "s"): 0}
        slurm = FabricFacts("topology.conf", "slurm", "imported", cables, uplinks)
        found = assemble([*self.hosts(4), slurm], HINTS)
        assert found.hosts == ("n0", "n2", "n1", "n3")
        assert (topology(found).fabric.kind, topology(found).fabric.nodes_per_leaf) == ("leaf-spine", 2)
        assert "--oversubscription" in said(found)
        assert topology(found).fabric.evidence.kind == "assumed"

    def test_unequal_leaves_are_said(self) -> None:
        """1 and 3 hosts cannot be described as so many a leaf."""
        cables = tuple(PortFact(f"n{n}", None, "leaf0" if n == 0 else "leaf1") for n in range(4))
        found = assemble([*self.hosts(4), FabricFacts("topology.conf", "slurm", "imported", cables)], HINTS)
        assert topology(found).fabric.kind == "none"
        assert "unequal leaves" in said(found)

    def test_one_host_stands_for_the_others(self) -> None:
        """Leaves are as full as the fabric shows; how many hosts there are is asked."""
        shown = rails([f"n{n}" for n in range(4)], 4)
        one = assemble([matrix(host="n0"), shown], HINTS)
        assert topology(one).fabric.nodes_per_leaf == 4
        assert "--nodes 4" in said(one)
        four = topology(assemble([matrix(host="n0"), shown], replace(HINTS, nodes=4)))
        assert (four.node_count, four.fabric.kind, four.fabric.nodes_per_leaf) == (4, "rail", 4)

    def test_fabric_of_other_hosts_is_not_used(self) -> None:
        """No cable of the host by name or GUID: said, and nothing is taken from it.

        A GUID joins a host without a name.
        """
        stranger = rails(["x1", "x2"], 2)
        found = assemble([matrix(), stranger], HINTS)
        assert topology(found).fabric.kind == "none"
        assert "no cable of" in said(found)
        host = replace(
            matrix(), nics=tuple(replace(nic, guid=f"{i + 1:016x}") for i, nic in enumerate(matrix().nics))
        )
        joined = replace(
            stranger,
            ports=tuple(
                replace(port, guid=f"{i % 8 + 1:016x}") if port.host == "x1" else port
                for i, port in enumerate(stranger.ports)
            ),
        )
        assert topology(assemble([host, joined], HINTS)).fabric.kind == "rail"

    def test_stated_oversubscription_is_an_assumption(self) -> None:
        """Without a fabric source it holds for every host's own uplink."""
        fabric = topology(assemble(self.hosts(2), replace(HINTS, oversubscription=4.0))).fabric
        assert (fabric.oversubscription, fabric.evidence.kind) == (4.0, "assumed")
