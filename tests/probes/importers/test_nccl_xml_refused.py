"""NCCL's topology XML: what is refused, and that junk is borne."""

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.base import BadInput
from probes.importers import nccl_xml
from tests.probes.importers.nccl_topology import SWITCHED, bridge, gpu, link, net, system


class TestRefused:
    @pytest.mark.parametrize(
        ("text", "part"),
        [
            ("<graphs version='1'></graphs>", "graph dump"),
            ("<topology></topology>", "<topology>"),
            (system("")[:-9], "cut short"),
            (system(""), "no GPU"),
            ("<!DOCTYPE s [<!ENTITY a 'aaaa'>]>" + system(gpu("0000:01:00.0", 0)), "DTD"),
            (system(gpu("0000:01:00.0", 0) + gpu("0000:01:00.0", 1)), "twice"),
            (system(gpu("0000:01:00.0", 0, link("0000:1a:00.0", 99))), "99"),
            ("<system><cpu>" + "<pci>" * 5000 + "</pci>" * 5000 + "</cpu></system>", "no real machine"),
        ],
    )
    def test_one_line_that_names_the_fault(self, text: str, part: str) -> None:
        """Other XML, cut XML, entities, a GPU twice, impossible counts, absurd depth."""
        with pytest.raises(BadInput) as caught:
            nccl_xml.read(text.encode(), "x.xml")
        assert part in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_entities_in_another_encoding_do_not_slip_through(self) -> None:
        """A DTD in UTF-16 is not seen as bytes, so only UTF-8 is read."""
        with pytest.raises(BadInput, match="UTF-8"):
            nccl_xml.read(("<!DOCTYPE s>" + system(gpu("0000:01:00.0", 0))).encode("utf-16"), "x.xml")

    def test_large_files_end_quickly(self) -> None:
        """A hundred megabytes are refused by their size alone."""
        start = time.monotonic()
        with pytest.raises(BadInput, match="more than"):
            nccl_xml.read(b"<system><cpu>" + b" " * 100_000_000, "x.xml")
        assert time.monotonic() - start < 2

    @given(st.integers(0, 2000), st.binary(max_size=8))
    def test_only_bad_input_leaves(self, place: int, junk: bytes) -> None:
        """Any bytes at any place: refused or read."""
        content = system(
            bridge("0000:01:00.0", gpu("0000:02:00.0", 0, SWITCHED) + net("a", "0000:03:00.0")), net("b")
        ).encode()
        place %= len(content)
        content = content[:place] + junk + content[place + len(junk) :]
        nccl_xml.recognise(content, "x")
        with contextlib.suppress(BadInput):
            nccl_xml.read(content, "x")


# From the index of the recordings: GPUs, NICs, kind, NVLinks of each GPU, rate of the first NIC.
