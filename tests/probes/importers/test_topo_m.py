"""`nvidia-smi topo -m`: whole tables, every kind of damage, and a property over machines that are rendered, damaged and read back."""

import contextlib
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.base import BadInput
from probes.base.facts import HostFacts
from probes.importers import topo_m
from tests.places import SHARED

FOLDER = SHARED / "data/topology"

BRIDGED = """\
\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tNV4\tSYS\tSYS\tPIX\tSYS\t0-15\t0\t\tN/A
GPU1\tNV4\t X \tSYS\tSYS\tNODE\tSYS\t0-15\t0\t\tN/A
GPU2\tSYS\tSYS\t X \tNV4\tSYS\tPIX\t16-31\t1\t\tN/A
GPU3\tSYS\tSYS\tNV4\t X \tSYS\tNODE\t16-31\t1\t\tN/A
NIC0\tPIX\tNODE\tSYS\tSYS\t X \tSYS\t\t\t\t
NIC1\tSYS\tSYS\tPIX\tNODE\tSYS\t X \t\t\t\t

Legend:

  X    = Self
  NV#  = Connection traversing a bonded set of # NVLinks

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_3
"""


def read(text: str) -> HostFacts:
    (host,) = topo_m.read(text.encode(), "paste")
    return host


def told(host: HostFacts) -> str:
    return " | ".join((*host.unknown, *host.warnings))


def essence(host: HostFacts) -> tuple[object, ...]:
    numa = [gpu.numa for gpu in host.gpus]
    return (
        len(host.gpus),
        host.domains,
        host.nvlink_kind,
        [nic.name for nic in host.nics],
        dict(host.gpu_paths),
        dict(host.nic_paths),
        numa,
    )


class TestWhole:
    def test_counts_domains_paths_numa_and_device_names(self) -> None:
        """Everything that the table says, and nothing to complain of."""
        host = read(BRIDGED)
        assert [nic.device for nic in host.nics] == ["mlx5_0", "mlx5_3"]
        assert host.domains == ((0, 1), (2, 3))
        assert host.nvlink_kind == "bridge"
        assert host.gpu_paths[0, 1] == "NV4"
        assert host.nic_paths[1, 0] == "NODE"
        assert [gpu.numa for gpu in host.gpus] == [0, 0, 1, 1]
        assert told(host) == ""

    def test_old_driver_says_soc_and_names_devices(self) -> None:
        """Names in the header are kept in their order, SOC is SYS, and there is no NUMA column to read."""
        host = read(
            "\tGPU0\tGPU1\tmlx4_1\tmlx4_0\tCPU Affinity\nGPU0\t X \tSOC\tPHB\tSOC\t0-5\nGPU1\tSOC\t X \tSOC\tPHB\t6-11\n"
        )
        assert [nic.name for nic in host.nics] == ["mlx4_1", "mlx4_0"]
        assert host.gpu_paths == {(0, 1): "SYS"}
        assert [gpu.numa for gpu in host.gpus] == [None, None]

    def test_list_of_numa_nodes_gives_the_first(self) -> None:
        """On Grace the list holds the GPU's own memory too."""
        host = read("\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-71\t1,3-9,11-17\t\t2\n")
        assert host.gpus[0].numa == 1
        assert "several NUMA nodes" in told(host)

    def test_degraded_gpu_is_named(self) -> None:
        """A GPU without links beside seven with all of theirs is a fault."""
        rows = [
            " ".join(
                [
                    f"GPU{i}",
                    *("X" if i == j else "NODE" if 2 in {i, j} else "NV18" for j in range(8)),
                    "0-9",
                    "0",
                ]
            )
            for i in range(8)
        ]
        host = read(
            " "
            + " ".join(f"GPU{i}" for i in range(8))
            + " CPU Affinity NUMA Affinity\n"
            + "\n".join(rows)
            + "\n"
        )
        assert host.domains == ((0, 1, 3, 4, 5, 6, 7), (2,))
        assert host.nvlink_kind == "switch"
        assert "GPU 2 has no active NVLink" in told(host)


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


class TestRefused:
    @pytest.mark.parametrize(
        ("text", "part"),
        [
            ("\tGPU0\tGPU1\tCPU Affinity\n", "no row"),
            (" \tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tOK\tX\n", "topo -p2p"),
            ("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tWARP\t0-3\nGPU1\tWARP\t X \t0-3\n", "line 2: 'WARP'"),
            ("\tGPU0\tGPU1\tCPU Affinity\nGPU999\t X \tPIX\t0-3\n", "GPUs"),
        ],
    )
    def test_one_line_that_names_the_place(self, text: str, part: str) -> None:
        """A header alone, another table, a word that is no link, a count that no host has."""
        with pytest.raises(BadInput) as caught:
            read(text)
        assert part in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_other_texts_are_not_recognised(self) -> None:
        """Logs that speak of GPUs are no matrix."""
        for text in (
            b"GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n",
            b"GPU0 temperature 40 C\n",
            b"\0" * 100,
            b"<system></system>",
        ):
            assert not topo_m.recognise(text, "x")

    def test_name_that_only_begins_like_a_gpu(self) -> None:
        """'GPU_0' has no number: its row is not one."""
        assert essence(read(BRIDGED.replace("\nGPU2\t", "\nGPU_2\t")))[:4] == essence(read(BRIDGED))[:4]

    def test_large_files_end_quickly(self) -> None:
        """Sixty megabytes of near misses are looked at for no more than a moment."""
        content = b"GPU1\tGPU2 GPU3 NV18 SYSX PIX 0-15,16\n" * (60_000_000 // 38)
        start = time.monotonic()
        topo_m.recognise(content, "x")
        assert time.monotonic() - start < 5


@dataclass(frozen=True)
class Machine:
    """A machine to render: labels between GPUs, distances to NICs, NUMA nodes."""

    links: list[list[str]]
    nics: list[list[str]]
    numa: list[int]
    gpu_numa_column: bool

    def text(self) -> str:
        gpus, nics = len(self.links), len(self.nics[0]) if self.nics else 0
        names = [*(f"GPU{i}" for i in range(gpus)), *(f"NIC{i}" for i in range(nics))]
        last = ["CPU Affinity", "NUMA Affinity", *(["GPU NUMA ID"] if self.gpu_numa_column else [])]
        lines = ["\t" + "\t".join([*names, *last])]
        for i in range(gpus):
            cells = [" X " if i == j else self.links[i][j] for j in range(gpus)] + self.nics[i]
            tail = [
                f"{16 * self.numa[i]}-{16 * self.numa[i] + 15}",
                str(self.numa[i]),
                *(["", "N/A"] if self.gpu_numa_column else []),
            ]
            lines.append("\t".join([f"GPU{i}", *cells, *tail]))
        for i in range(nics):
            cells = [self.nics[gpu][i] for gpu in range(gpus)] + [
                " X " if i == j else "SYS" for j in range(nics)
            ]
            lines.append("\t".join([f"NIC{i}", *cells]) + "\t\t\t\t")
        legend = [
            "",
            "Legend:",
            "",
            "  X    = Self",
            "  NV#  = Connection traversing a bonded set of # NVLinks",
            "",
        ]
        return (
            "\n".join(
                [*lines, *legend, "NIC Legend:", "", *(f"  NIC{i}: mlx5_{nics - i}" for i in range(nics))]
            )
            + "\n"
        )


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    gpus, nics = draw(st.integers(1, 16)), draw(st.integers(0, 12))
    shape = draw(st.sampled_from(["switch", "mesh", "bridge", "none"]))
    rng = random.Random(draw(st.integers(0, 1 << 30)))
    numa = [i * 2 // max(gpus, 1) for i in range(gpus)]
    links = [["" for _ in range(gpus)] for _ in range(gpus)]
    for i in range(gpus):
        for j in range(i):
            far = "SYS" if numa[i] != numa[j] else rng.choice(["PIX", "PXB", "PHB", "NODE"])
            label = {
                "switch": "NV18",
                "mesh": rng.choice(["NV1", "NV2", far]),
                "bridge": "NV12" if i == j + 1 and i % 2 else far,
                "none": far,
            }[shape]
            links[i][j] = links[j][i] = label
    distances = [[rng.choice(["PIX", "PXB", "PHB", "NODE", "SYS"]) for _ in range(nics)] for _ in range(gpus)]
    return Machine(links, distances, numa, draw(st.booleans()))


def spaced(text: str, rng: random.Random) -> str:
    return re.sub(r"\t+", lambda _: " " * rng.randint(2, 9), text)


def ansi(text: str, rng: random.Random) -> str:
    return "\x1b[4m" + text.replace("\n", "\x1b[0m\n", 1)


def quoted(text: str, rng: random.Random) -> str:
    mark = rng.choice(["> ", "    ", "* ", "\t"])
    return "\n".join(mark + line for line in text.split("\n"))


def logged(text: str, rng: random.Random) -> str:
    return "PyTorch version: 2.6\nGPU models: some\n" * rng.randint(1, 3) + text + "\nversions: numpy 2.1\n"


def glued(text: str, rng: random.Random) -> str:
    """A random tab between two cells is lost."""
    places = [match.start() for match in re.finditer(r"(?<=[A-Z0-9 ])\t(?=[A-Z ])", text)]
    lost = rng.choice(places) if places else None
    return text if lost is None else text[:lost] + text[lost + 1 :]


def cut(text: str, rng: random.Random) -> str:
    return text[: rng.randint(1, len(text))]


def beheaded(text: str, rng: random.Random) -> str:
    return text[rng.randint(0, len(text) - 1) :]


def line_lost(text: str, rng: random.Random) -> str:
    lines = text.split("\n")
    del lines[rng.randrange(len(lines))]
    return "\n".join(lines)


Damage = Callable[[str, random.Random], str]
DAMAGES: tuple[Damage, ...] = (spaced, ansi, quoted, logged, glued, cut, beheaded, line_lost)


def check_honest(machine: Machine, text: str) -> None:
    """Either equal facts, or the incompleteness is said; counts that are wrong are said to be unproven. Nothing at all may also be said."""
    whole = read(machine.text())
    if not topo_m.recognise(text.encode(), "paste"):
        return
    try:
        host = read(text)
    except BadInput:
        return
    if (len(host.gpus), len(host.nics)) != (len(whole.gpus), len(whole.nics)):
        assert host.unknown, f"{len(host.gpus)} GPUs and {len(host.nics)} NICs in silence:\n{text}"
    elif essence(host) != essence(whole) or [nic.device for nic in host.nics] != [
        nic.device for nic in whole.nics
    ]:
        assert host.unknown or host.warnings or devices_missing(host, whole), (
            f"something is lost in silence:\n{text}"
        )
    for pair, path in host.gpu_paths.items():
        if len(host.gpus) == len(whole.gpus):
            assert path == whole.gpu_paths[pair], f"a wrong link {pair}:\n{text}"


def devices_missing(host: HostFacts, whole: HostFacts) -> bool:
    """A legend that is cut off leaves device names None, which says so itself."""
    same = essence(host) == essence(whole)
    return same and all(
        mine.device in {None, other.device} for mine, other in zip(host.nics, whole.nics, strict=True)
    )


@given(machines(), st.lists(st.sampled_from(DAMAGES[:4]), max_size=3), st.integers(0, 1 << 30))
def test_harmless_damage_gives_equal_facts(machine: Machine, damages: list[Damage], seed: int) -> None:
    """Spaces, colours, quotes and text around lose nothing."""
    text = machine.text()
    for damage in damages:
        text = damage(text, random.Random(seed))
    assert essence(read(text)) == essence(read(machine.text()))


@given(machines(), st.lists(st.sampled_from(DAMAGES), min_size=1, max_size=3), st.integers(0, 1 << 30))
def test_any_damage_is_read_right_or_said(machine: Machine, damages: list[Damage], seed: int) -> None:
    """Rendered, damaged, imported: equal facts or the incompleteness said; never a wrong count or link in silence."""
    text = machine.text()
    for damage in damages:
        text = damage(text, random.Random(seed)) or " "
    check_honest(machine, text)


@given(st.binary(max_size=200), st.integers(0, 400))
def test_only_bad_input_leaves(junk: bytes, place: int) -> None:
    """Junk in the middle of a table is refused or read, never a crash."""
    content = BRIDGED.encode()[:place] + junk + BRIDGED.encode()[place:]
    topo_m.recognise(content, "x")
    with contextlib.suppress(BadInput):
        topo_m.read(content, "x")


# GPUs, NICs, domains, kind, and a word that `unknown` or `warnings` must hold; from the index of the recordings.
EIGHT = (tuple(range(8)),)
ALONE8 = tuple((gpu,) for gpu in range(8))
RECORDINGS = {
    "topo_2gpu_nv1_litgpt": (2, 0, ((0, 1),), "bridge", ""),
    "topo_4gpu_phb_litgpt": (4, 0, ALONE8[:4], "none", ""),
    "topo_a100x8_mleng": (8, 0, EIGHT, "switch", ""),
    "topo_h100x8_smt_mleng": (8, 0, EIGHT, "switch", ""),
    "topo_dgx1v_4ib_msccl": (8, 4, EIGHT, "mesh", ""),
    "topo_dgx1_ucxpy_indented": (8, 4, EIGHT, "mesh", ""),
    "topo_v100x8_oneflow_mixed_tabs": (8, 2, EIGHT, "mesh", ""),
    "topo_h100x8_roce_numaoff_gluedcells": (8, 12, EIGHT, "switch", ""),
    "topo_aws_p3_8xl_v100x4": (4, 0, (tuple(range(4)),), "mesh", ""),
    "topo_dgx1_pytorch_readme_indented": (8, 0, EIGHT, "mesh", ""),
    "topo_a800x8_8nic_truncated": (8, 8, EIGHT, "switch", "NIC4 is cut"),
    "topo_dgxa100_mlx5_header_truncated": (8, 12, EIGHT, "switch", "filled"),
    "topo_azure_nc96ads_a100pcie_x4": (4, 0, ((0, 1), (2, 3)), "bridge", ""),
    "topo_a100x8_4nic": (8, 4, EIGHT, "switch", ""),
    "topo_h20x8_sglang_envprefix": (8, 8, EIGHT, "switch", ""),
    "topo_gb200_tray_x4_truncated": (4, 6, (tuple(range(4)),), "switch", "GPU3 is cut"),
    "topo_b200x8_degraded_gpu2_noheader": (
        8,
        12,
        ((0, 1, 3, 4, 5, 6, 7), (2,)),
        "switch",
        "GPU 2 has no active NVLink",
    ),
    "topo_b200x8_snc_gluedheader_truncated": (8, 12, EIGHT, "switch", "GPU4 is cut"),
    "topo_2gpu_nv12_8nic_blankcpu": (2, 8, ((0, 1),), None, ""),
    "topo_2x5090_with_p2p_matrix": (2, 0, ALONE8[:2], "none", "topo -p2p"),
    "topo_h100x4_nv6_mesh_4nic": (4, 4, (tuple(range(4)),), "mesh", ""),
    "topo_8gpu_pcieswitch_pix_node": (8, 0, ALONE8, "none", ""),
    "topo_8gpu_nv18_8nic_pxb": (8, 8, EIGHT, "switch", ""),
    "topo_8gpu_nv18_9nic_4numa_truncated": (8, 9, EIGHT, "switch", "GPU6 is cut"),
    "topo_k80_legacy_soc": (4, 1, ALONE8[:4], "none", ""),
    "topo_2gpu_ansi_colour": (2, 2, ((0, 1),), None, ""),
    "topo_dgx1v_nic0_gpunumaid": (8, 1, EIGHT, "mesh", ""),
    "topo_2gpu_markdown_quote_cpulist": (2, 2, ((0, 1),), None, ""),
    "topo_1gpu_p4_numa_na": (1, 0, ((0,),), "none", ""),
}


@pytest.mark.skipif(
    not FOLDER.is_dir(), reason=f"recordings of other machines are not beside this checkout: {FOLDER}"
)
class TestRecordings:
    @pytest.mark.parametrize("name", sorted(RECORDINGS))
    def test_facts(self, name: str) -> None:
        """Counts, domains and kind of published pastes."""
        (host,) = topo_m.read((FOLDER / f"{name}.txt").read_bytes(), name)
        gpus, nics, domains, kind, sentence = RECORDINGS[name]
        assert (len(host.gpus), len(host.nics), host.domains, host.nvlink_kind) == (gpus, nics, domains, kind)
        assert sentence in told(host)

    def test_every_recording_is_checked(self) -> None:
        """A recording that is added must be added here."""
        assert {path.stem for path in FOLDER.glob("topo_*.txt")} == set(RECORDINGS)

    def test_numa_and_links(self) -> None:
        """NUMA nodes as published, also numa=off and SNC; links of a cube mesh add up to six."""
        numa = {
            "topo_dgxa100_mlx5_header_truncated": [3, 3, 1, 1, 7, 7, 5, 5],
            "topo_azure_nc96ads_a100pcie_x4": [0, 1, 2, 3],
            "topo_h100x8_roce_numaoff_gluedcells": [0] * 8,
            "topo_8gpu_nv18_9nic_4numa_truncated": [0, 0, 0, 1, 2, 2, None, None],
            "topo_h100x4_nv6_mesh_4nic": [3, 1, 7, 5],
        }
        for name, nodes in numa.items():
            (host,) = topo_m.read((FOLDER / f"{name}.txt").read_bytes(), name)
            assert [gpu.numa for gpu in host.gpus] == nodes, name
        (cube,) = topo_m.read((FOLDER / "topo_dgx1v_4ib_msccl.txt").read_bytes(), "dgx1")
        assert [gpu.nvlinks for gpu in cube.gpus] == [6] * 8
        (four,) = topo_m.read((FOLDER / "topo_aws_p3_8xl_v100x4.txt").read_bytes(), "p3")
        assert [gpu.nvlinks for gpu in four.gpus] == [4, 4, 5, 5]
