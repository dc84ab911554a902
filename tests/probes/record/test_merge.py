"""Probe files of several hosts: one cluster, or one line that says why not."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from planner.base import BadInput
from probes.base.facts import HostFacts
from probes.ranks.launch import Launch
from probes.record.file import ProbeRecord, write_record
from probes.record.merge import merge, merge_records
from tests.probes.records import FABRIC, LATER, TAKEN, record


def files(*records: ProbeRecord) -> list[tuple[str, ProbeRecord]]:
    return [(f"{index}.json", one) for index, one in enumerate(records)]


def names(hosts: Sequence[HostFacts]) -> list[str | None]:
    return [host.host for host in hosts]


def test_hosts_in_the_order_of_their_numbers() -> None:
    """node7 before node66, in whatever order the files are given; each says when it was probed."""
    merged = merge_records(files(record(66), record(8), record(70), record(7)))
    assert names(merged) == ["node7", "node8", "node66", "node70"]
    assert merged[0].source.endswith(f"probed {TAKEN}")
    assert (merged[0].unknown, merged[0].warnings) == (("GPUDirect",), ("node7 is warm",))


def test_hosts_in_the_order_of_the_launcher() -> None:
    """The launcher's node numbers come before names."""
    launched = [
        record(number, launch=Launch("srun", 4 * node, 8, 0, 4, node, 2, "j"))
        for node, number in ((1, 7), (0, 66))
    ]
    assert names(merge_records(files(*launched))) == ["node66", "node7"]


def test_the_rack_of_72() -> None:
    """Eighteen trays that say the same fabric: eighteen hosts, one fabric, 72 GPUs."""
    merged = merge_records(files(*(record(host, gpus=4) for host in range(18))))
    assert len(merged) == 18
    assert {gpu.fabric for host in merged for gpu in host.gpus} == {FABRIC}
    assert len({gpu.uuid for host in merged for gpu in host.gpus}) == 72


def test_two_hosts_called_localhost() -> None:
    """Both are kept, under names of their own, and that is said."""
    merged = merge_records(
        files(
            record(1, "localhost", machine="aaaa1111aaaa1111"),
            record(2, "localhost", machine="bbbb2222bbbb2222"),
        )
    )
    assert names(merged) == ["localhost-aaaa11", "localhost-bbbb22"]
    assert (
        merged[0].warnings[0]
        == "2 different hosts are called localhost: the one of 0.json is called localhost-aaaa11 here"
    )


def test_the_same_host_twice() -> None:
    """The later probe counts, whichever file comes first, and both files are named."""
    for order in ((TAKEN, LATER), (LATER, TAKEN)):
        (host,) = merge_records(files(*(record(7, taken=taken) for taken in order)))
        assert host.source.endswith(LATER)
        later = f"{order.index(LATER)}.json of {LATER}"
        assert host.warnings[0] == f"0.json and 1.json are both of node7: the later one, {later}, is used"


def test_a_host_probed_again_after_a_reboot() -> None:
    """Another running kernel, the same GPUs and name: the same host."""
    assert len(merge_records(files(record(7), record(7, machine="f" * 16, taken=LATER)))) == 1


def test_one_gpu_in_two_hosts() -> None:
    """Cannot be, and is refused with both files."""
    with pytest.raises(
        BadInput, match=r"^0.json \(node7\) and 1.json \(other\): GPU GPU-00000007-.* is in both"
    ):
        merge_records(files(record(7), record(7, "other", machine="f" * 16)))


def test_two_views_of_one_machine() -> None:
    """Two containers with some of its GPUs each are not two hosts."""
    with pytest.raises(BadInput, match=r"different GPUs of one machine; probe it once"):
        merge_records(files(record(7, machine="a" * 16), record(8, machine="a" * 16)))


def test_a_host_that_did_not_report() -> None:
    """Named by the launcher's count: the cluster is larger than the files."""
    launched = [
        record(number, launch=Launch("torchrun", 8 * number, 32, 0, 8, number, 4, "j"))
        for number in (0, 1, 3)
    ]
    assert merge_records(files(*launched))[0].unknown[0] == (
        "node 2 of 4 that were started has no probe file (there are those of node0, node1, node3): "
        "the cluster is larger"
    )


def test_ranks_that_did_not_report() -> None:
    """A launcher that does not count nodes tells ranks."""
    launched = [record(number, launch=Launch("mpirun", 8 * number, 24, 0, 8)) for number in (0, 1)]
    assert (
        merge_records(files(*launched))[0].unknown[0]
        == "the probe files speak for 16 of 24 ranks (hosts node0, node1): the cluster is larger"
    )


def test_files_of_several_launches() -> None:
    """Said, and no host is called missing on that ground."""
    merged = merge_records(
        files(
            *(
                record(number, launch=Launch("srun", 0, 4, 0, None, number, 4, f"job {number}"))
                for number in (0, 1)
            )
        )
    )
    assert merged[0].warnings[0].startswith("the probe files are of several launches")
    assert merged[0].unknown == ("GPUDirect",)


def test_merging_files(tmp_path: Path) -> None:
    """From disk; none at all is one line."""
    assert names(merge([write_record(record(number), tmp_path) for number in (1, 0)])) == ["node0", "node1"]
    with pytest.raises(BadInput, match=r"^no probe file is given"):
        merge([])
