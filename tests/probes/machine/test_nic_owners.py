"""NICs that sit beside no GPU are not planned with where others do, and GPUs without any share all."""

from dataclasses import replace

from probes.base.facts import HostFacts, NicFact
from probes.machine.assemble import assemble
from tests.probes.machine.told import HINTS, matrix, said, topology


def beside(paths: dict[tuple[int, int], str], nics: int, gpus: int = 4) -> HostFacts:
    """A host whose NICs are so far from its GPUs; SYS where nothing is given."""
    every = {(gpu, nic): paths.get((gpu, nic), "SYS") for gpu in range(gpus) for nic in range(nics)}
    return replace(matrix(gpus), nics=tuple(NicFact(f"NIC{nic}") for nic in range(nics)), nic_paths=every)


def pools(facts: HostFacts) -> list[tuple[tuple[int, ...], str]]:
    node = topology(assemble([facts], HINTS)).nodes[0]
    return [
        (node.nics[pool[0]].gpus, "+".join(node.nics[nic].name for nic in pool)) for pool in node.nic_pools
    ]


def test_a_nic_of_no_gpu_does_not_count() -> None:
    """Socket 0 has NICs 0 to 2, of which 0 is beside GPU 1 and the others beside none."""
    near = {(gpu, nic): "NODE" for gpu in (0, 1) for nic in (0, 1, 2)} | {(1, 0): "PIX"}
    near |= {(2, 3): "PXB", (3, 3): "PXB"}
    facts = beside(near, 4)
    assert pools(facts) == [((0, 1), "NIC0"), ((2, 3), "NIC3")]
    assert "being the nearest of no GPU (storage or management?): NIC1, NIC2" in said(
        assemble([facts], HINTS)
    )


def test_where_no_nic_is_beside_a_gpu_all_of_the_socket_count() -> None:
    """As on machines whose NICs hang on the CPU."""
    near = {(gpu, nic): "NODE" for gpu in range(4) for nic in (0, 1)}
    assert pools(beside(near, 2)) == [((0, 1, 2, 3), "NIC0+NIC1")]


def test_the_only_nic_of_a_socket_counts() -> None:
    """GPU 2 has nothing but a NIC on its socket, though others sit beside theirs."""
    near = {(0, 0): "PIX", (1, 0): "PIX", (2, 1): "NODE", (3, 1): "NODE"}
    assert pools(beside(near, 2)) == [((0, 1), "NIC0"), ((2, 3), "NIC1")]


def test_a_gpu_without_a_nic_shares_those_of_all() -> None:
    """Two NICs, each beside one GPU; GPU 2 and 3 reach both across sockets. It is said what that means."""
    facts = beside({(0, 0): "PIX", (1, 1): "PIX"}, 2)
    assert pools(facts) == [((0, 1, 2, 3), "NIC0+NIC1")]
    assert "all GPUs are planned as sharing these" in said(assemble([facts], HINTS))


def test_where_all_paths_cross_sockets_all_share_all() -> None:
    """As virtual machines show it: one pool, and it is said."""
    facts = beside({}, 2)
    assert pools(facts) == [((0, 1, 2, 3), "NIC0+NIC1")]
    assert "--nic-of 0=NIC" in said(assemble([facts], HINTS))
