"""How many ranks nccl-tests ran over, and which collective: told, found by figures, or unknown."""

import pytest

from tests.probes.importers.nccl_runs import EXPECTED, SIZES, devices, figures, one, output, row


class TestRanks:
    """How many ranks it was: never a wrong number in silence."""

    def test_without_a_list_of_devices_an_alltoall_tells_them(self) -> None:
        """By size / (count x element)."""
        text = output([row(size, ranks=16) for size in SIZES]).replace("#  Rank", "#  Omitted")
        facts = one(text)
        assert (facts.ranks, facts.hosts) == (16, ())
        assert any(
            "no list of devices; size / (count x element) says 16 ranks" in warning
            for warning in facts.warnings
        )

    def test_a_list_cut_short_is_noticed(self) -> None:
        """Two of four ranks are listed."""
        facts = one(output([row(size) for size in SIZES], devices()[:2]))
        assert (facts.ranks, facts.hosts) == (4, ())
        assert any(
            "the list of devices goes to rank 1" in warning and "4 are taken" in warning
            for warning in facts.warnings
        )
        assert any("host of each rank" in unknown for unknown in facts.unknown)

    def test_an_allreduce_tells_them_by_its_busbw(self) -> None:
        """2(n-1)/n to two decimals, at a rate where that is exact enough."""
        text = output([row(1 << 30, 200.0, "allreduce", ranks=16)], name="all_reduce_perf").replace(
            "#  Rank", "#  Omitted"
        )
        assert one(text).ranks == 16

    def test_where_several_numbers_fit_none_is_taken(self) -> None:
        """At 2 GB/s two decimals cannot tell 60 ranks from 64."""
        text = output([row(1 << 30, 2.0, "allreduce", ranks=64)], name="all_reduce_perf").replace(
            "#  Rank", "#  Omitted"
        )
        facts = one(text)
        assert facts.ranks == 0
        assert any(
            "nothing says for certain over how many ranks it ran; busbw / algbw fits any of" in warning
            for warning in facts.warnings
        )

    def test_processes_that_each_ran_alone_are_seen_through(self) -> None:
        """Built without MPI: every process is rank 0 of 1 and the busbw is 0."""
        listed = [line.replace("Rank  1", "Rank  0") for line in devices(2, 1)]
        facts = one(output([row(size, ranks=1) for size in SIZES], listed))
        assert facts.ranks == 1
        assert any("2 processes ran alone" in warning and "MPI=1" in warning for warning in facts.warnings)

    def test_split_by_host_is_a_measurement_of_domains(self) -> None:
        """NCCL_TESTS_SPLIT='DIV 4': two groups, one host each."""
        facts = one(output([row(size) for size in SIZES], devices(8, 4, lambda rank: rank // 4)))
        assert (facts.ranks, facts.groups, facts.scope) == (8, 2, "domain")
        assert facts.samples[0].wire_bytes_per_s == pytest.approx(30e9, rel=1e-3)

    def test_split_by_index_is_a_measurement_of_rails(self) -> None:
        """NCCL_TESTS_SPLIT='MOD 4': four groups of the same GPU of each host."""
        facts = one(output([row(size, ranks=2) for size in SIZES], devices(8, 4, lambda rank: rank % 4)))
        assert (facts.ranks, facts.groups, facts.scope) == (8, 4, "rail")


class TestCollective:
    """Which collective it was."""

    def test_rows_alone_are_enough_for_an_alltoall(self) -> None:
        """No header, no name: what only an all-to-all prints."""
        facts = one("\n".join(row(size) for size in SIZES), "paste.txt")
        assert (facts.collective, facts.ranks) == ("alltoall", 4)
        assert figures(facts) == EXPECTED

    def test_the_command_line_names_it(self) -> None:
        """Also where it ran over two GPUs, where nothing else tells."""
        rows = [row(size, collective="allreduce", ranks=2) for size in SIZES]
        text = "$ mpirun -np 2 ./build/all_reduce_perf -b 1M -e 256M -f 2\n" + output(
            rows, devices(2), name=None
        )
        assert one(text).collective == "allreduce"

    def test_the_file_name_is_asked_last(self) -> None:
        """All-gather looks like several others."""
        text = output([row(size, collective="allgather") for size in SIZES], name=None)
        assert one(text, "x/run-all_gather-1.txt").collective == "allgather"

    def test_an_unknown_one_is_asked_for(self) -> None:
        """It is not guessed."""
        facts = one(output([row(size, collective="allgather") for size in SIZES], name=None), "x/run.txt")
        assert facts.collective == "unknown"
        assert any(
            "which collective this is; put it into the file's name" in unknown for unknown in facts.unknown
        )
