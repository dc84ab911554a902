"""Facts of several hosts: which are of one, how many there are, and what joins them."""

from dataclasses import replace

import pytest

from planner.base import BadInput
from probes.base.facts import Facts, MeasureFacts, Sample
from probes.machine.assemble import assemble
from probes.machine.hints import Hints
from tests.probes.machine.told import HINTS, matrix, named, ports, said, topology


def run_on(*hosts: str, gpus: int = 8) -> MeasureFacts:
    """An all-to-all on so many GPUs of each."""
    samples = tuple(
        Sample(size, size / 40e9, 40e9, 35e9, 35e9, in_place=False) for size in (1 << 26, 1 << 27, 1 << 28)
    )
    ranks = tuple(host for host in hosts for _ in range(gpus))
    return MeasureFacts("run.log", "nccl-tests", "alltoall", len(ranks), ranks, samples=samples)


UUID = "12345678-1234-1234-1234-1234567890ab.1"


class TestSeveralHosts:
    def test_names_make_nodes(self) -> None:
        """Facts of one name are one host; two names are two nodes."""
        facts = [
            fact
            for host, first in (("n1", 0), ("n2", 8))
            for fact in (matrix(host=host), named(host=host, first=first), ports(host=host))
        ]
        found = assemble(facts)
        assert found.hosts == ("n1", "n2")
        assert found.nvlink_domains == (tuple(range(8)), tuple(range(8, 16)))
        assert topology(found).gpu_count == 16
        assert found.affinity[9] == ("NIC1",)
        assert "taken as flat" in said(found)

    def test_two_unnamed_files_alike_are_two_hosts_and_said(self) -> None:
        """Never two nodes in silence; --nodes says it. One file given twice is one host."""
        twice = [matrix(source="a.txt"), matrix(source="b.txt")]
        found = assemble(twice, HINTS)
        assert found.gpus == 16
        assert any("taken as two hosts alike" in sentence for sentence in found.unknown)
        stated = assemble(twice, replace(HINTS, nodes=2))
        assert stated.gpus == 16
        assert not any("two hosts alike" in sentence for sentence in stated.unknown)
        assert assemble(twice, replace(HINTS, nodes=1)).gpus == 8
        assert assemble(twice, replace(HINTS, nodes=5)).gpus == 40
        assert assemble([twice[0], twice[0]], HINTS).gpus == 8

    @pytest.mark.parametrize("hosts", [("A", "B"), ("B", "A"), ("A", "B", "C")])
    def test_facts_of_one_file_stay_together(self, hosts: tuple[str, ...]) -> None:
        """A list of GPUs and a matrix in each file: matrices are alike, UUIDs are not."""
        facts = [
            replace(fact, source=f"host{host}.txt")
            for number, host in enumerate(hosts)
            for fact in (named(first=8 * number), matrix())
        ]
        found = assemble(facts, HINTS)
        assert topology(found).node_count == len(hosts)
        assert "taken as" not in said(found).replace("taken as one flat network", "").replace(
            "taken as flat", ""
        )

    @pytest.mark.parametrize("form", ["host{}_{}.txt", "{}/{}.txt", "{1}-{0}.log"])
    def test_files_named_alike_are_of_one_host(self, form: str) -> None:
        """hostA_topo.txt and hostA_smi.txt beside those of hostB, in whatever order."""
        told = [
            replace(fact, source=form.format(host, kind))
            for host, first in (("A", 0), ("B", 8))
            for kind, fact in (("smi", named(first=first)), ("topo", matrix()))
        ]
        for facts in (told, told[::-1], [told[1], told[3], told[0], told[2]]):
            assert topology(assemble(facts, HINTS)).node_count == 2

    def test_a_file_goes_whole_to_the_host_of_its_gpus(self) -> None:
        """A list and a matrix in one file; the host is named, or known, by another file with those UUIDs."""
        file = [replace(fact, source="a.txt") for fact in (named(), matrix())]
        for other in (named(host="n1"), replace(named(), kind="nvidia-smi-query", source="b.csv")):
            found = assemble([other, *file], HINTS)
            assert topology(found).node_count == 1
            assert found.gpus == 8

    def test_files_of_any_name_are_dealt_to_hosts_that_lack_them(self) -> None:
        """Two lists and two matrices, all of other names: two hosts, not three."""
        lists = [replace(named(first=8 * number), source=f"list{number}x.txt") for number in (0, 1)]
        matrices = [replace(matrix(), source=f"m{number}y.txt") for number in (0, 1)]
        for facts in (
            [lists[0], matrices[0], lists[1], matrices[1]],
            [*lists, *matrices],
            [*matrices, *lists],
        ):
            assert topology(assemble(facts, HINTS)).node_count == 2

    def test_a_benchmark_says_how_many_hosts_there_are(self) -> None:
        """One host is described, the log ran on three with as many GPUs: three alike, and said."""
        log = run_on("n1", "n2", "n3")
        found = assemble([matrix(), named(), log], HINTS)
        assert topology(found).node_count == 3
        assert any("run.log ran on 3 hosts (n1, n2, n3)" in sentence for sentence in found.warnings)
        assert topology(assemble([matrix(), named(), log], replace(HINTS, nodes=4))).node_count == 4

    def test_a_benchmark_of_other_hosts_or_part_of_them_says_nothing(self) -> None:
        """Four ranks a host, of eight GPUs; one host; two hosts that are both described."""
        assert topology(assemble([matrix(), named(), run_on("n1", "n2", gpus=4)], HINTS)).node_count == 1
        assert topology(assemble([matrix(), named(), run_on("n1")], HINTS)).node_count == 1
        two: list[Facts] = [matrix(host="n1"), matrix(host="n2"), run_on("n1", "n2", "n3")]
        assert topology(assemble(two, HINTS)).node_count == 2

    def test_a_benchmark_without_host_names_asks(self) -> None:
        """Sixteen ranks, eight GPUs."""
        log = replace(run_on("n1", "n2"), hosts=())
        assert any("--nodes 2" in sentence for sentence in assemble([matrix(), named(), log], HINTS).unknown)

    def test_two_unnamed_files_that_differ_are_two_hosts_and_said(self) -> None:
        """They cannot be one matrix; that they are two hosts is still an assumption."""
        found = assemble([matrix(source="a.txt"), matrix(4, source="b.txt")], HINTS)
        assert found.gpus == 12
        assert any("taken as two hosts" in sentence for sentence in found.unknown)

    def test_localhost_is_no_name(self) -> None:
        """Two hosts that call themselves localhost are told apart by their GPUs."""
        one, other = (replace(named(host="localhost", first=first), kind=f"nvml{first}") for first in (0, 8))
        assert assemble([one, other]).gpus == 16

    def test_one_name_for_two_hosts_is_said(self) -> None:
        """The UUIDs differ, so these are two hosts whatever they are called."""
        found = assemble([named(host="node", first=0), named(host="node", first=8)])
        assert found.gpus == 16
        assert "other UUIDs" in said(found)

    def test_one_gpu_on_two_hosts_is_said(self) -> None:
        """The same UUID under two names is counted twice, and that is told."""
        assert "counted twice" in said(assemble([named(host="n1"), named(host="n2")]))

    def test_unnamed_part_joins_the_only_host_or_none(self) -> None:
        """An ibstat without a name belongs to the one host there is; with two hosts it is not used."""
        (node,) = topology(assemble([matrix(host="n1"), named(host="n1"), ports()])).nodes
        assert node.nics[0].rate.bytes_per_s == 50e9
        found = assemble([matrix(host="n1"), matrix(host="n2"), ports()], Hints(gpu="H100"))
        assert found.nics == 16
        assert any("not used" in sentence for sentence in found.unknown)

    def test_fabric_of_the_gpus_joins_hosts(self) -> None:
        """Eight trays of one fabric are one domain of 32; without a common key they are eight."""
        trays = [matrix(4, host=f"t{n}") for n in range(8)]
        joined = [replace(tray, gpus=tuple(replace(gpu, fabric=UUID) for gpu in tray.gpus)) for tray in trays]
        found = assemble(joined, replace(HINTS, gpu="GB200"))
        assert found.nvlink_domains == (tuple(range(32)),)
        assert topology(found).domain_count == 1
        assert len(assemble(trays, HINTS).nvlink_domains) == 8

    def test_stated_number_must_fit_the_sources(self) -> None:
        """Two hosts are described, four are stated: which are they?"""
        with pytest.raises(BadInput, match="--nodes 4"):
            assemble([matrix(host="n1"), matrix(host="n2")], replace(HINTS, nodes=4))


def test_one_paste_stands_for_every_named_host() -> None:
    """Adapters of three hosts by name, one matrix without: as of each, but for UUIDs."""
    hosts = [ports(host=f"n{number}") for number in range(3)]
    found = assemble([named(host=None), matrix(), *hosts], HINTS)
    assert found.hosts == ("n0", "n1", "n2")
    assert topology(found).node_count == 3
    assert "taken as of each of n0, n1, n2" in said(found)
    other = assemble([matrix(4), *(matrix(host=f"n{number}") for number in range(2))], HINTS)
    assert len(other.hosts) == 3
