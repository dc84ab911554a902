"""NVLink domains: from labels between GPUs, from counted links, and from the fabric that spans hosts."""

from itertools import combinations

import pytest

from probes.machine.nvlink_domains import Domains, components, domains_from_links, links_of, lost_gpus
from probes.machine.nvlink_fabric import fabric_faults, fabric_key
from probes.machine.nvlink_labels import domains_from_paths

CUBE = {  # NVLinks of a DGX-1V: each GPU has six
    (0, 1): 1, (0, 2): 1, (0, 3): 2, (0, 4): 2, (1, 2): 2, (1, 3): 1, (1, 5): 2, (2, 3): 2,
    (2, 6): 1, (3, 7): 1, (4, 5): 1, (4, 6): 1, (4, 7): 2, (5, 6): 2, (5, 7): 1, (6, 7): 2,
}  # fmt: skip


def labels(count: int, linked: dict[tuple[int, int], int], far: str = "SYS") -> dict[tuple[int, int], str]:
    return {pair: f"NV{linked[pair]}" if pair in linked else far for pair in combinations(range(count), 2)}


def full(members: range, links: int) -> dict[tuple[int, int], int]:
    return dict.fromkeys(combinations(members, 2), links)


@pytest.mark.parametrize(
    ("count", "linked", "kind", "domains"),
    [
        (8, full(range(8), 18), "switch", 1),
        (8, full(range(8), 12), "switch", 1),
        (8, full(range(8), 8), "switch", 1),
        (16, full(range(16), 6), "switch", 1),
        (4, full(range(4), 18), "switch", 1),
        (4, full(range(4), 6), "mesh", 1),
        (4, full(range(4), 4), "mesh", 1),
        (8, CUBE, "mesh", 1),
        (6, {(0, 1): 4, (2, 3): 4, (4, 5): 4}, "bridge", 3),
        (4, {(0, 1): 12, (2, 3): 12}, "bridge", 2),
        (2, {(0, 1): 1}, "bridge", 1),
        (8, full(range(4), 18) | full(range(4, 8), 18), "switch", 2),
        (3, {}, "none", 3),
        (1, {}, "none", 1),
    ],
    ids=[
        "H100",
        "A100",
        "A800",
        "DGX-2",
        "tray",
        "H100 x4",
        "A100 x4",
        "DGX-1V",
        "pairs",
        "NVL pairs",
        "one link",
        "islands",
        "PCIe",
        "alone",
    ],
)
def test_arithmetic_tells_switches_from_cables(
    count: int, linked: dict[tuple[int, int], int], kind: str, domains: int
) -> None:
    """More links than a GPU has can only be a switch."""
    found = domains_from_paths(count, labels(count, linked))
    assert (found.kind, len(found.domains), found.unknown, found.warnings) == (kind, domains, (), ())


def test_links_of_each_gpu() -> None:
    """A switch shows the same links to every peer, cables add up."""
    assert domains_from_paths(8, labels(8, full(range(8), 18))).links == (18,) * 8
    assert domains_from_paths(8, labels(8, CUBE)).links == (6,) * 8
    assert domains_from_paths(3, labels(3, {(0, 1): 4})).links == (4, 4, 0)


def test_what_looks_the_same_is_settled_by_the_model() -> None:
    """Three GPUs with NV6: part of a DGX-2 (6 links each), or three of four H100 (18)."""
    three = labels(3, full(range(3), 6))
    unsettled = domains_from_paths(3, three)
    assert unsettled.kind is None
    assert "name the GPU model" in unsettled.ambiguous[0]
    assert domains_from_paths(3, three, 6).kind == "switch"
    assert domains_from_paths(3, three, 18).kind == "mesh"


def test_missing_pair_is_not_a_pair_without_links() -> None:
    """A cut matrix: nothing is missing behind one switch, everything may be in a mesh."""
    whole = labels(8, full(range(8), 18))
    assert domains_from_paths(
        8, {pair: label for pair, label in whole.items() if pair[0] < 4}
    ) == domains_from_paths(8, whole)
    cut = domains_from_paths(8, {pair: label for pair, label in labels(8, CUBE).items() if pair != (6, 7)})
    assert cut.kind is None
    assert "6-7" in cut.unknown[0]
    assert cut.links[6] is None


def test_gpu_without_links_among_many_is_lost() -> None:
    """It is a fault and named; a bare third GPU beside a bridged pair is none."""
    degraded = domains_from_paths(
        8, labels(8, {pair: 18 for pair in combinations(range(8), 2) if 2 not in pair})
    )
    assert degraded.domains == ((0, 1, 3, 4, 5, 6, 7), (2,))
    assert "GPU 2 has no active NVLink" in degraded.warnings[0]
    assert lost_gpus(degraded.domains, degraded.links) == {2}
    assert domains_from_paths(3, labels(3, {(0, 1): 4})).warnings == ()


def test_pair_without_nvlink_behind_one_switch_is_said() -> None:
    """Peer access may be off; the domain stays, the pair is named."""
    found = domains_from_paths(8, {**labels(8, full(range(8), 18)), (0, 1): "SYS"})
    assert (found.kind, len(found.domains)) == ("switch", 1)
    assert "GPUs 0-1" in found.warnings[0]


class TestCountedLinks:
    def test_switch_ids_tell_islands_apart(self) -> None:
        """Disjoint switches are islands; one shared switch joins."""
        apart = domains_from_links(
            {}, [12] * 4, [frozenset("ab"), frozenset("ab"), frozenset("c"), frozenset("c")]
        )
        assert (apart.kind, apart.domains) == ("switch", ((0, 1), (2, 3)))
        assert domains_from_links(
            {}, [12] * 3, [frozenset("ab"), frozenset("bc"), frozenset("c")]
        ).domains == ((0, 1, 2),)

    def test_unreadable_switches_are_one_domain(self) -> None:
        """Virtual machines show no ids."""
        assert domains_from_links({}, [18] * 8, [frozenset()] * 8).domains == (tuple(range(8)),)

    def test_direct_links(self) -> None:
        """Pairs are bridges, more is a mesh; both kinds at once cannot be planned for."""
        assert domains_from_links({(0, 1): 4}, [0] * 3, [frozenset()] * 3) == Domains(
            "bridge", ((0, 1), (2,)), (4, 4, 0)
        )
        assert domains_from_links(CUBE, [0] * 8, [frozenset()] * 8).kind == "mesh"
        assert domains_from_links({(0, 1): 4}, [0, 0, 9, 9], [frozenset()] * 4).unknown

    def test_gpu_with_fewer_links_is_named(self) -> None:
        """Sixteen of eighteen: it works, at a lower rate."""
        assert (
            "GPU 3 has 16"
            in domains_from_links({}, [18] * 3 + [16] + [18] * 4, [frozenset("s")] * 8).warnings[0]
        )


class TestFabric:
    UUID = bytes.fromhex("123456781234123412341234567890ab")

    def test_ready_fabric_is_uuid_and_clique(self) -> None:
        """The text form that Kubernetes labels use; padding of the state is ignored."""
        assert fabric_key(self.UUID, 32766, 0xFF00 | 3, 0) == (
            "12345678-1234-1234-1234-1234567890ab.32766",
            None,
        )

    @pytest.mark.parametrize(
        ("state", "status", "said"),
        [(0, 0, None), (1, 0, "has not started"), (2, 0, "in progress"), (3, 999, "999"), (7, 0, "state 7")],
    )
    def test_fabric_that_is_not_ready_joins_nothing(self, state: int, status: int, said: str | None) -> None:
        """Not supported is no fabric; everything else is said."""
        key, why = fabric_key(self.UUID, 1, state, status)
        assert key is None
        assert (said or "") in (why or "")
        assert (why is None) == (said is None)

    def test_zeros_join_nothing(self) -> None:
        """H200 hosts: completed, UUID 0, clique 0. Two of them are two domains."""
        assert fabric_key(bytes(16), 0, 3, 0) == (None, None)

    def test_health_is_decoded_by_field(self) -> None:
        """0xaa is four times 'false', which is healthy; configuration 1 is good."""
        assert fabric_faults(0xAA) == ()
        assert fabric_faults(0x1AA) == ()
        assert fabric_faults(0xA9) == ("NVLink bandwidth is degraded",)
        assert "too few NVLinks" in fabric_faults(0x5AA)[0]


def test_components_and_labels() -> None:
    """Groups in order of first member; a PCIe label has no links."""
    assert components(5, [(3, 1), (4, 3)]) == ((0,), (1, 3, 4), (2,))
    assert [links_of(label) for label in ("NV18", "PIX", None, "NVX", "NV4 ")] == [18, 0, 0, 0, 0]
