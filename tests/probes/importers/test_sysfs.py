"""Copies of sysfs in archives and directories; an archive is hostile until read."""

import gzip
import io
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.base import BadInput
from probes.host.rdma import read_rdma
from probes.importers import sysfs
from tests.probes.sysfs_files import Adapter, packed, write

ADAPTERS = [Adapter("mlx5_0"), Adapter("mlx5_1", "0000:2b:00.0")]
FILES = {path: content for adapter in ADAPTERS for path, content in adapter.files().items()}
LINKS = {path: target for adapter in ADAPTERS for path, target in adapter.links().items()}
ARCHIVE = packed(FILES, LINKS)


@pytest.mark.parametrize("compression", ["", "gz"])
def test_archive_tells_what_the_machine_tells(tmp_path: Path, compression: str) -> None:
    """The same adapters from a directory as from a .tar or .tar.gz of it.

    An archive is imported, not read.
    """
    content = packed(FILES, LINKS, compression)
    assert sysfs.recognise(content, "host.tar.gz")
    (facts,) = sysfs.read(content, "host.tar.gz")
    assert facts.nics == read_rdma(write(tmp_path, ADAPTERS)).nics
    assert facts.evidence == "imported"
    assert not any("cut short" in sentence for sentence in facts.unknown)


def test_copy_of_the_class_alone_says_what_it_lacks() -> None:
    """Only device folders, below some name: adapters are read, places are unknown."""
    files: dict[str, str | bytes] = {
        path.partition("infiniband/")[2]: text
        for path, text in ADAPTERS[0].files().items()
        if "infiniband/" in path
    }
    (facts,) = sysfs.read(packed({f"copy/{path}": text for path, text in files.items()}), "copy.tar.gz")
    assert [(nic.name, nic.rate_bytes_per_s, nic.pci) for nic in facts.nics] == [("mlx5_0", 50e9, None)]
    assert "PCI paths, NUMA nodes and GPUDirect are not told" in facts.unknown[0]


def test_hosts_side_by_side_are_several_hosts(tmp_path: Path) -> None:
    """One folder for each host, in an archive or a directory; never one host with all NICs."""
    files = {f"{host}/{path}": content for host in ("node1", "node2") for path, content in FILES.items()}
    links = {f"{host}/{path}": target for host in ("node1", "node2") for path, target in LINKS.items()}
    from_archive = sysfs.read(packed(files, links), "all.tar.gz")
    write(tmp_path / "node1", ADAPTERS)
    write(tmp_path / "node2", ADAPTERS)
    for facts in (from_archive, sysfs.read_directory(tmp_path)):
        assert [(host.host, len(host.nics)) for host in facts] == [("node1", 2), ("node2", 2)]


def test_files_padded_with_zeros_are_read() -> None:
    """Tar fills a sysfs file up to the 4096 bytes that the kernel claims."""
    padded: dict[str, str | bytes] = {
        path: content.encode().ljust(4096, b"\0")
        for path, content in FILES.items()
        if isinstance(content, str)
    }
    assert sysfs.read(packed(padded, LINKS), "x")[0].nics == sysfs.read(ARCHIVE, "x")[0].nics


def test_links_without_targets_are_said() -> None:
    """`tar` of /sys/class/infiniband alone holds links only: the devices are named, their ports are not."""
    (facts,) = sysfs.read(
        packed({}, {path: target for path, target in LINKS.items() if path.startswith("sys/class")}),
        "links.tar.gz",
    )
    assert [(nic.name, nic.up, nic.pci) for nic in facts.nics] == [
        ("mlx5_0", None, "0000:1b:00.0"),
        ("mlx5_1", None, "0000:2b:00.0"),
    ]
    assert sum("no ports" in sentence for sentence in facts.unknown) == 2


def test_members_that_climb_out_are_passed_over() -> None:
    """Names with '..' or an absolute path stay in memory and inside the tree; nothing is written anywhere."""
    hostile: dict[str, str | bytes] = {
        "../../etc/passwd": "x",
        "/sys/class/infiniband/mlx5_7/ports/1/state": "4: ACTIVE",
    }
    (facts,) = sysfs.read(
        packed({**FILES, **hostile}, {**LINKS, "sys/class/infiniband/mlx5_8": "/etc"}), "x.tar.gz"
    )
    assert [nic.name for nic in facts.nics] == ["mlx5_0", "mlx5_1", "mlx5_7", "mlx5_8"]
    assert facts.nics[3].up is None


def test_bomb_is_refused_quickly() -> None:
    """A gigabyte of zeros in a megabyte."""
    out = io.BytesIO()
    with gzip.open(out, "wb", compresslevel=1) as bomb:
        for _ in range(80):
            bomb.write(bytes(1 << 20))
    with pytest.raises(BadInput, match="unfolds to more than the 67,108,864 bytes"):
        sysfs.read(out.getvalue(), "bomb.tar.gz")


def test_too_many_members_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members are counted."""
    monkeypatch.setattr("probes.host.archive.LARGEST_MEMBERS", 5)
    with pytest.raises(BadInput, match="more than 5 files"):
        sysfs.read(ARCHIVE, "x.tar.gz")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (packed({"readme": "infiniband"}), "holds no sys/class/infiniband"),
        (b"\x1f\x8b" + bytes(40), "not a readable gzip"),
        (gzip.compress(b"infiniband" * 300), "not a readable tar"),
    ],
    ids=["empty", "no gzip", "no tar"],  # of their content they would differ with the clock
)
def test_other_archives_are_refused_with_the_reason(content: bytes, message: str) -> None:
    """One line each."""
    with pytest.raises(BadInput, match=message):
        sysfs.read(content, "x.tar.gz")


@settings(max_examples=60)
@given(st.floats(0, 1), st.booleans())
def test_a_cut_archive_is_refused_or_said(share: float, zipped: bool) -> None:
    """Cut at any byte: refused, or what came before with the cut said; a whole one is not called cut."""
    content = ARCHIVE if zipped else packed(FILES, LINKS, "")
    last = len(content) if zipped else len(content.rstrip(b"\0"))  # the zeros that end a tar may go
    try:
        facts = sysfs.read(content[: int(share * (last - 1))], "cut.tar.gz")
    except BadInput:
        return
    assert all(any("cut short" in sentence for sentence in host.unknown) for host in facts)


def test_member_of_odd_type_is_passed_over() -> None:
    """Devices, pipes and hard links in an archive are no files to open."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, kind, target in (
            ("sys/class/infiniband/mlx5_0/ports/1/rate", tarfile.FIFOTYPE, ""),
            ("x", tarfile.LNKTYPE, "x"),
            ("y", tarfile.CHRTYPE, ""),
        ):
            member = tarfile.TarInfo(path)
            member.type, member.linkname = kind, target
            tar.addfile(member)
    (facts,) = sysfs.read(out.getvalue(), "odd.tar")
    assert facts.nics[0].rate_bytes_per_s is None
