"""The registry of importers: what is found, in which order, and what is said of a file that nobody knows."""

import time
from pathlib import Path

import pytest

from planner.base import BadInput
from probes.base.facts import HostFacts
from probes.importers import nvidia_smi, topo_m
from probes.importers import registry as importers
from tests.places import SHARED

MATRIX = b"\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV18\t0-9\t0\nGPU1\tNV18\t X \t0-9\t0\n"
LIST = b"GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-1111-2222-3333-444444444444)\n"
RECORDINGS = SHARED / "data/topology"


def test_every_module_is_an_importer() -> None:
    """Each has both functions, and helpers (without `recognise`) are not tried."""
    found = importers.importers()
    assert [module.__name__ for module in found] == sorted(module.__name__ for module in found)
    assert {topo_m, nvidia_smi} <= set(found)
    for module in found:
        assert callable(module.recognise)
        assert callable(module.read)
        assert not module.__name__.rpartition(".")[2].startswith("_")


def test_one_paste_with_two_outputs() -> None:
    """A bug report holds the list and the matrix: both are read."""
    facts = importers.read_facts(LIST + b"\n" + MATRIX, "report.txt")
    assert {fact.kind for fact in facts if isinstance(fact, HostFacts)} == {"nvidia-smi-list", "topo-m"}


def test_failure_of_one_is_a_warning_of_the_others() -> None:
    """The list is read, the header without rows is told."""
    facts = importers.read_facts(LIST + b"\n\tGPU0\tGPU1\tCPU Affinity\n", "report.txt")
    assert [fact.kind for fact in facts if isinstance(fact, HostFacts)] == ["nvidia-smi-list"]
    assert any("no row below" in sentence for sentence in facts[0].warnings)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"\0\1\2" * 100, "a binary file"),
        (b"hello\nworld", "begins 'hello"),
        (b"\xff\xfe\xfd", "of no kind"),
    ],
)
def test_unknown_content(content: bytes, part: str) -> None:
    """One line that says what it looks like and what is known."""
    with pytest.raises(BadInput) as caught:
        importers.read_facts(content, "x")
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "nvidia-smi topo -m" in str(caught.value)


def test_files(tmp_path: Path) -> None:
    """A readable one, a missing one, a directory, and one of more bytes than are read: without waiting for
    them.
    """
    paste = tmp_path / "topo.txt"
    paste.write_bytes(MATRIX)
    assert len(importers.read_file(paste)) == 1
    large = tmp_path / "large.bin"
    with large.open("wb") as out:
        out.truncate(100_000_000)
    for path, part in ((tmp_path / "none", "No such file"), (tmp_path, "directory"), (large, "more than")):
        start = time.monotonic()
        with pytest.raises(BadInput) as caught:
            importers.read_file(path)
        assert part in str(caught.value)
        assert time.monotonic() - start < 2


@pytest.mark.parametrize(
    "filler", [b"\0", b"a", b"GPU0 ", b"<system><cpu>", b"{", b"\n", b"CA 'x'\n", b"nccl", b"[1]", b"# "]
)
def test_twenty_megabytes_of_anything_end_quickly(filler: bytes) -> None:
    """No importer takes more than a moment to say that it is not its own, or that it is broken."""
    content = filler * (20_000_000 // len(filler))
    start = time.monotonic()
    with pytest.raises(BadInput):
        importers.read_facts(content, "x")
    assert time.monotonic() - start < 30  # on a busy machine


@pytest.mark.skipif(
    not RECORDINGS.is_dir(), reason=f"recordings of other machines are not beside this checkout: {RECORDINGS}"
)
def test_every_recording_of_this_folder_is_recognised_once_or_refused() -> None:
    """No file is taken for two kinds: its facts are all of one source kind."""
    for path in sorted(RECORDINGS.glob("topo_*.txt")) + sorted(RECORDINGS.glob("xml_*.xml")):
        kinds = {getattr(fact, "kind", None) for fact in importers.read_file(path)}
        assert kinds in ({"topo-m"}, {"nccl-xml"}), path.name
