"""Results of ucc_perftest, made for these tests after what its source prints."""

import pytest

from planner.base import BadInput
from probes.importers.registry import read_facts
from probes.importers.ucc_perftest import recognise

HEAD = """Collective:             Alltoallv
Memory type:            cuda
Datatype:               int32
Reduction:              N/A
Inplace:                0
Warmup:
  small                 10
  large                 10
Iterations:
  small                 50
  large                 50
Iteration mode:         isolated

       Count        Size                Time, us{bandwidth}
                                 avg         min         max{columns}
"""
SHORT = HEAD.format(bandwidth="", columns="")
FULL = HEAD.format(
    bandwidth="                       Bus Bandwidth, GB/s", columns="         avg         max         min"
)
ROW = "      789504     3158016      201.25      150.50      250.75"
WIDE = f"{ROW}       13.73       18.36       11.02"
END = "Total time: 0.25 ms\n"


def test_a_row_is_the_slowest_ranks_time() -> None:
    (found,) = read_facts(f"{SHORT}{ROW}\n{END}".encode(), "ucc.log")
    (sample,) = found.samples  # type: ignore[union-attr]
    assert (sample.size_bytes, sample.seconds) == (3158016, pytest.approx(250.75e-6))
    assert (found.collective, found.ranks, found.warnings) == ("alltoallv", 0, ())  # type: ignore[union-attr]
    assert "over how many ranks" in found.unknown[0]


def test_the_full_print_has_the_bandwidth_of_that_time() -> None:
    (found,) = read_facts(f"{FULL}{WIDE}\n{END}".encode(), "ucc.log")
    assert found.samples[0].busbw_bytes_per_s == pytest.approx(11.02e9)  # type: ignore[union-attr]


def test_several_runs_in_one_file_stay_apart() -> None:
    text = (
        f"{SHORT}{ROW}\n{END}" + f"noise of a launcher\n{SHORT.replace('Alltoallv', 'Alltoall')}{ROW}\n{END}"
    )
    found = read_facts(text.encode(), "ucc.log")
    assert [one.collective for one in found] == ["alltoallv", "alltoall"]  # type: ignore[union-attr]


def test_a_cut_never_gives_a_wrong_figure() -> None:
    """Cut anywhere, the row is read whole or not at all, and a run without its end says so."""
    whole = f"{FULL}{WIDE}\n{END}"
    for length in range(len(whole)):
        content = whole[:length].encode()
        if not recognise(content, ""):
            continue
        try:
            (found,) = read_facts(content, "ucc.log")
        except BadInput:
            continue
        (sample,) = found.samples  # type: ignore[union-attr]
        assert (sample.size_bytes, sample.seconds) == (3158016, pytest.approx(250.75e-6))
        assert ("the run did not come to its end" in found.warnings) == ("Total time:" not in whole[:length])


@pytest.mark.parametrize("text", [SHORT, f"{FULL}{ROW}\n", f"{SHORT}{ROW.replace('789504', 'N/A')}\n"])
def test_a_run_without_a_whole_row_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match=r"ucc\.log: ucc_perftest printed no whole row"):
        read_facts(text.encode(), "ucc.log")
