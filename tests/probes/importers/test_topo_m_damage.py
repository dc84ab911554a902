"""`nvidia-smi topo -m`: every kind of damage that pastes suffer, one at a time."""

import re
from collections.abc import Callable

import pytest

from tests.probes.importers.topo_pastes import BRIDGED, essence, read, told


class TestDamage:
    """Each kind of damage of real pastes, on the table above."""

    @pytest.mark.parametrize(
        "damage",
        [
            lambda text: re.sub(r"\t+", "      ", text),
            lambda text: "\n".join("> " + line for line in text.split("\n")),
            lambda text: "\n".join("    " + line for line in text.split("\n")),
            lambda text: text.replace("\n", "\r\n"),
            lambda text: "\x1b[4m" + text.replace("ID\n", "ID\x1b[0m\n", 1),
            lambda text: "driver 570.86\nGPU topology:\n" + text + "\nulimit soft: 1024\nGPU memory: 80 GB\n",
            lambda text: text.replace("NIC1\tCPU", "NIC1CPU", 1),
            lambda text: text.replace("NIC0\tNIC1", "NIC0NIC1", 1).replace("GPU2\tGPU3", "GPU2GPU3", 1),
            lambda text: text.replace("PIX\tSYS", "PIXSYS").replace(" X \tNV4", "X NV4"),
            lambda text: "\n".join("node07: " + line for line in text.split("\n")),
            lambda text: text.replace("\t", " | "),
        ],
        ids=[
            "spaces",
            "quoted",
            "indented",
            "crlf",
            "ansi",
            "log around",
            "glued header",
            "glued names",
            "glued cells",
            "host prefix",
            "markdown table",
        ],
    )
    def test_repaired_without_loss(self, damage: Callable[[str], str]) -> None:
        """These lose nothing, so the facts are equal."""
        assert essence(read(damage(BRIDGED))) == essence(read(BRIDGED))

    def test_missing_row_is_filled_from_its_column(self) -> None:
        """The matrix is symmetric; which rows were filled is said."""
        host = read(
            re.sub(r"GPU2.*\n", "", BRIDGED, count=0).replace(
                "\tGPU0\tGPU1\t", "\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\n", 1
            )
        )
        assert len(host.gpus) == 4
        assert host.gpu_paths[2, 3] == "NV4"
        assert "GPU2" in told(host)

    def test_two_halves_that_differ_take_the_lower(self) -> None:
        """A link that only one side sees is not planned with."""
        host = read(BRIDGED.replace("GPU1\tNV4", "GPU1\tNV2"))
        assert host.gpu_paths[0, 1] == "NV2"
        assert "differ (NV4 and NV2)" in told(host)

    def test_second_table_is_not_merged(self) -> None:
        """The table of `topo -p2p` below would turn every link into none."""
        host = read(BRIDGED + " \tGPU0\tGPU1\t\n GPU0\tX\tGNS\t\n GPU1\tGNS\tX\t\n")
        assert essence(host) == essence(read(BRIDGED))
        assert "topo -p2p" in told(host)

    def test_matrix_of_another_host_is_said(self) -> None:
        """One file, one host: the second matrix is not read in silence."""
        host = read(BRIDGED + BRIDGED.replace("NV4", "NV2"))
        assert any("another matrix" in sentence for sentence in host.unknown)

    def test_link_glued_to_cpu_list_is_not_read_as_a_number(self) -> None:
        """'NV40-15' may be 4 links and CPUs 0-15, or 40 links: the other half of the matrix tells."""
        rows = "GPU0\t X \tNV40-15\t0\nGPU1\tNV4\t X \t0-15\t0\n"
        host = read("\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\n" + rows)
        assert host.gpu_paths == {(0, 1): "NV4"}
        assert "lost a cell" in told(host)

    def test_glued_affinity_columns_are_dropped(self) -> None:
        """'0-150N/A' cannot be split for certain, so the NUMA node is not used."""
        host = read(BRIDGED.replace("0-15\t0\t\tN/A", "0-15 0N/A"))
        assert [gpu.numa for gpu in host.gpus] == [None, None, 1, 1]
        assert "run into each other" in told(host)

    def test_row_that_lost_a_cell_is_not_shifted(self) -> None:
        """X out of its column betrays a lost cell; the row is taken from its column."""
        host = read(BRIDGED.replace("GPU2\tSYS\tSYS", "GPU2\tSYS"))
        assert essence(host)[4:6] == essence(read(BRIDGED))[4:6]
        assert "no X in its own column" in told(host)

    def test_row_without_x_is_not_used(self) -> None:
        """X overwritten: which cell is whose cannot be told any more."""
        host = read(BRIDGED.replace("GPU2\tSYS\tSYS\t X ", "GPU2\tNV2\tSYS\tSYS"))
        assert host.gpu_paths[0, 2] == "SYS"
        assert "row GPU2 has 6 cells and no X" in told(host)

    def test_number_cut_at_the_end_of_a_line_is_not_a_smaller_number(self) -> None:
        """'NV1' where the paste stops may be what is left of 'NV18', also with a log behind it."""
        head = "\tGPU0\tGPU1\tGPU2\tCPU Affinity\nGPU0\t X \tNV1"
        for rest in ("", "\nversions of the libraries\n"):
            host = read(head + rest)
            assert host.gpu_paths == {}
            assert "GPU0 is cut after 1 cells" in told(host)
            assert any("0-1" in sentence for sentence in host.unknown)

    def test_missing_header_with_all_rows_is_proven(self) -> None:
        """A row for every column, X on the diagonal: the counts hold without the header."""
        host = read(BRIDGED.split("\n", 1)[1])
        assert (len(host.gpus), len(host.nics)) == (4, 2)
        assert not host.unknown
        assert "header is missing" in told(host)

    def test_missing_header_and_rows_is_not_proven(self) -> None:
        """Columns without rows could be GPUs or NICs: said, not guessed in silence."""
        rows = BRIDGED.split("\n")[1:4]
        host = read("\n".join(rows) + "\n")
        assert any("not proven" in sentence for sentence in host.unknown)

    def test_header_cut_on_the_right_is_not_proven(self) -> None:
        """A narrow terminal cuts header and rows at the same column."""
        host = read("\n".join(line[:28] for line in re.sub(r"\t", "       ", BRIDGED).split("\n")[:5]) + "\n")
        assert any("header is cut" in sentence for sentence in host.unknown)
