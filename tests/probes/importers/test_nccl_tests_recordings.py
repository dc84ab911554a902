"""Real output of nccl-tests from twelve machines and seven generations, where the recordings are here."""

import pytest

from planner.base import BadInput
from probes.importers.nccl_tests import read, recognise
from tests.places import SHARED
from tests.probes.importers.nccl_runs import one

RECORDINGS = SHARED / "data/topology"
GB300 = ("NVIDIA GB300",)
# file: collective, ranks, hosts, GPU models, rows used,
# busbw of the largest size out of place and in place, average (GB/s)
RECORDED: dict[str, tuple[str, int, int, tuple[str, ...], int, float, float, float | None]] = {
    "superbench_alltoall.txt": ("alltoall", 8, 1, ("A100-SXM4-40GB",), 29, 224.31, 226.16, 58.6481),
    "superbench_allgather.txt": ("allgather", 8, 1, ("A100-SXM4-40GB",), 29, 223.39, 230.07, 58.2651),
    "json_v3_gb300_g4.json": ("alltoall", 4, 1, GB300, 2, 627.69, 680.70, 381.478),
    "text_2196_gb300_g4.txt": ("alltoall", 4, 1, GB300, 2, 627.69, 680.70, 381.478),
    "oci_gb300_1h4g_alltoall.txt": ("alltoall", 4, 1, GB300, 2, 627.69, 680.70, 381.478),
    "oci_gb300_16h64g_alltoall.txt": ("alltoall", 64, 16, GB300, 2, 666.92, 661.51, 370.718),
    "aws_p5_2n_allreduce_srun_l.txt": ("allreduce", 16, 0, (), 32, 487.09, 487.26, None),
    "coreweave_h100_64_kubectl.txt": (
        "allreduce",
        96,
        0,
        (),
        5,
        386.56,
        385.56,
        373.187,
    ),  # called 64 GPUs where it was published; its busbw / algbw is 96's
    "coreweave_gb200_144_2racks.txt": (
        "allreduce",
        144,
        0,
        ("NVIDIA Graphics Device",),
        6,
        810.41,
        820.36,
        688.487,
    ),
    "mi300x_2n_alltoall.txt": ("alltoall", 16, 2, ("AMD Instinct MI300X",), 1, 91.09, 91.10, 36.0754),
    "mpirun_tag_in_row.txt": ("alltoall", 16, 0, (), 2, 44.37, 44.44, 44.2675),
    "text_2200_gb10_2n_newheader.txt": ("allreduce", 2, 2, ("NVIDIA GB10",), 4, 0.96, 1.01, None),
}


@pytest.mark.skipif(
    not RECORDINGS.is_dir(), reason="recordings of real runs are not here (../shared/data/topology)"
)
class TestRecordings:
    """Real output of twelve machines and seven generations."""

    @pytest.mark.parametrize("file", RECORDED)
    def test_a_recording_gives_its_figures(self, file: str) -> None:
        """Collective, ranks, hosts, models, rows, and the largest size's busbw."""
        collective, ranks, hosts, gpus, rows, busbw, in_place, average = RECORDED[file]
        facts = one((RECORDINGS / f"nccltests_{file}").read_text(), file)
        assert (facts.collective, facts.ranks, len(set(facts.hosts)), facts.gpu_names) == (
            collective,
            ranks,
            hosts,
            gpus,
        )
        for place, expected in ((False, busbw), (True, in_place)):
            samples = [sample for sample in facts.samples if sample.in_place is place]
            assert len(samples) == rows
            assert max(samples, key=lambda sample: sample.size_bytes).busbw_bytes_per_s == pytest.approx(
                expected * 1e9
            )
        assert facts.average_busbw_bytes_per_s == (None if average is None else pytest.approx(average * 1e9))

    def test_a_list_of_devices_against_the_figures_is_said(self) -> None:
        """Rank 143 is listed; the figures are those of 128 ranks."""
        facts = one((RECORDINGS / "nccltests_coreweave_gb200_144_2racks.txt").read_text())
        assert any("goes to rank 143, busbw / algbw says 128 ranks" in warning for warning in facts.warnings)

    def test_a_row_split_by_log_lines(self) -> None:
        """'413.6 0.00 0.00 2e-07' is found again 47 lines later; what is missing is said."""
        facts = one((RECORDINGS / "nccltests_3090x32_info_interleaved_midrow.txt").read_text())
        (sample,) = facts.samples
        assert sample.seconds == pytest.approx(413.6e-6)
        assert (facts.ranks, len(set(facts.hosts))) == (32, 4)
        assert any("put together" in warning for warning in facts.warnings)
        assert any("one measurement is missing" in warning for warning in facts.warnings)

    def test_a_run_that_failed_in_its_first_row(self) -> None:
        """No usable row."""
        with pytest.raises(
            BadInput,
            match=r"line 10: Test CUDA failure common.cu:389 'an illegal memory access was encountered'",
        ):
            read((RECORDINGS / "nccltests_h800_2n_alltoall_cudafail.txt").read_bytes(), "x")

    def test_no_other_recording_is_taken_for_one(self) -> None:
        """Topologies, fabrics and states."""
        others = [file for file in RECORDINGS.iterdir() if not file.name.startswith("nccltests_")]
        assert len(others) > 50
        assert [file.name for file in others if recognise(file.read_bytes(), file.name)] == []
