"""nccl-tests output of every generation: the right rows come out, or a sentence says what is missing."""

from collections.abc import Callable

import pytest

from planner.base import BadInput
from probes.importers.nccl_tests import read
from tests.probes.importers.nccl_runs import EXPECTED, OLD, WHOLE, figures, one, output, row


def test_a_whole_run_is_read_without_remark() -> None:
    """Every row, both halves, SI units, the ranks, hosts and models; the average is kept apart."""
    facts = one(WHOLE)
    assert figures(facts) == EXPECTED
    assert (facts.kind, facts.collective, facts.ranks, facts.groups, facts.scope) == (
        "nccl-tests",
        "alltoall",
        4,
        1,
        "all",
    )
    assert (facts.hosts, facts.gpu_names) == (("host0",) * 4, ("NVIDIA H100 80GB HBM3",))
    assert (facts.warnings, facts.unknown) == ((), ())
    assert facts.samples[0].seconds == pytest.approx((1 << 20) / 40e9, rel=1e-3)
    assert facts.samples[0].wire_bytes_per_s == pytest.approx(30e9, rel=1e-3)
    assert facts.average_busbw_bytes_per_s == pytest.approx(21.5e9)


def _interleaved(text: str) -> str:
    """A row cut in three by log lines of other ranks, one of them glued to it."""
    first, second = text.splitlines()[12].split("none", 1)
    noise = "host0:100:200 [3] NCCL INFO AllToAll: opCount 0 sendbuff 0x7f1d count 16 [nranks=4] stream 0x1"
    cut = f"{first}none{noise}\n{noise}\n{second[:40]}{noise}\n{second[40:]}\n{noise}"
    return text.replace(text.splitlines()[12], cut)


PREFIXED: dict[str, Callable[[str], str]] = {
    "srun -l": lambda text: "".join(f"0: {line}\n" for line in text.splitlines()),
    "mpirun --tag-output": lambda text: "".join(f"[1,0]<stdout>:{line}\n" for line in text.splitlines()),
    "a tag inside rows": lambda text: "".join(
        f"[0] {line.replace(' -1 ', ' -1[0]')}\n" for line in text.splitlines()
    ),
    "timestamps": lambda text: "".join(f"2026-01-15T10:00:00.123456Z {line}\n" for line in text.splitlines()),
    "a pod's name": lambda text: "".join(
        f"[pod/nccl-test-64-launcher-x/c] {line}\n" for line in text.splitlines()
    ),
    "colours": lambda text: text.replace("float", "\x1b[1mfloat\x1b[0m"),
    "Windows line ends": lambda text: text.replace("\n", "\r\n"),
    "a byte order mark": lambda text: "\ufeff" + text,
    "lines before": lambda text: "$ kubectl logs -f launcher\nWarning: Permanently added 'host0'\n" + text,
    "log lines": lambda text: text.replace(
        "\n#  Rank", "\nhost0:100:100 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\n#  Rank"
    ),
    "the new version line": lambda text: (
        "# nccl-tests version 2.20.0 (b4d5bee) nccl-headers=23102 nccl-library=23102\n"
        + text.replace("#wrong", " #wrong")
    ),
    "RCCL": lambda text: (
        text.replace("#\n#  ", "rccl-tests: Version develop:unknown\n#\n#  ", 1)
        + "# Errors with asterisks indicate errors\n"
    ),
}


@pytest.mark.parametrize("damage", PREFIXED)
def test_what_stands_around_the_rows_changes_nothing(damage: str) -> None:
    """Prefixes, colours, log lines and versions: the same figures, ranks and hosts, without a warning."""
    facts = one(PREFIXED[damage](WHOLE))
    assert figures(facts) == EXPECTED
    assert (facts.ranks, facts.hosts, facts.warnings) == (4, ("host0",) * 4, ())


def test_a_row_broken_by_log_lines_is_put_together_and_said() -> None:
    """Three pieces on three lines, between them what other ranks logged."""
    facts = one(_interleaved(WHOLE))
    assert figures(facts) == EXPECTED
    (warning,) = facts.warnings
    assert "the row of size 16777216 was broken by other output and has been put together" in warning


def test_a_glued_host_name_does_not_take_the_reduction_along() -> None:
    """'sum' and 'node7:...' run together."""
    whole = output([row(1 << 20, collective="allreduce")], name="all_reduce_perf")
    before, after = whole.splitlines()[-4].split("sum")
    broken = whole.replace(
        f"{before}sum{after}", f"{before}sumnode7:4:4 [5] NCCL INFO AllReduce: opCount 0\n{after}"
    )
    facts = one(broken)
    assert (facts.collective, len(facts.samples)) == ("allreduce", 2)


def test_rows_of_before_2022_have_no_root_and_an_error_column() -> None:
    """All-gather has no reduction either, and all-to-all leaves that cell blank."""
    lines = [
        "# nThread 1 nGpus 4 minBytes 1 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20 validation: 0",
        "# Using devices",
    ]
    lines += [
        f"#   Rank {rank:>2} Pid 1672{rank} on localhost device {rank:>2} [0x1b] A100-SXM4-40GB"
        for rank in range(4)
    ]
    halves = "   1189.1  225.75  169.31    N/A   1167.8  229.86  172.40    N/A"
    lines += [OLD, f"   268435456      16777216   float          {halves}", "# Avg bus bandwidth    : 58.6 "]
    text = "\n".join(lines)
    facts = one(text, "old-alltoall.log")
    assert (facts.collective, facts.ranks, facts.gpu_names) == ("alltoall", 4, ("A100-SXM4-40GB",))
    assert figures(facts) == [(268435456, False, 169.31), (268435456, True, 172.4)]


def test_an_error_of_an_old_version_is_not_a_count_of_wrong_elements() -> None:
    """2e-07 is the largest deviation."""
    text = output([row(1 << 20, collective="allreduce", wrong="2e-07")], name="all_reduce_perf")
    assert len(one(text).samples) == 2


def test_wrong_elements_are_never_used() -> None:
    """The row with #wrong 3 is left out of the figures and told."""
    facts = one(output([row(1 << 20), row(1 << 24, wrong="3")]))
    assert [(sample.size_bytes, sample.in_place) for sample in facts.samples] == [
        (1 << 20, False),
        (1 << 20, True),
        (1 << 24, True),
    ]
    assert any("wrong elements arrived" in warning and "16777216" in warning for warning in facts.warnings)


def test_values_out_of_bounds_are_told() -> None:
    """The tool's own verdict at the end."""
    facts = one(WHOLE.replace("values : 0 OK", "values : 7 FAILED"))
    assert any("7 values arrived wrong" in warning for warning in facts.warnings)


def test_a_row_whose_figures_contradict_each_other_is_left_out() -> None:
    """A digit of the time was lost in pasting: size / time is not algbw."""
    good = row(1 << 28)
    facts = one(output([row(1 << 20), good.replace("6710.89", "710.89")]))
    assert [sample.size_bytes for sample in facts.samples if not sample.in_place] == [1 << 20]
    assert any("size / time is not the algbw" in warning for warning in facts.warnings)


def test_a_redacted_row_is_left_out_and_told() -> None:
    """Figures replaced by stars."""
    facts = one(output([row(1 << 20), row(1 << 24).replace("419.43", "******")]))
    assert [sample.size_bytes for sample in facts.samples if not sample.in_place] == [1 << 20]
    assert any("row of size 16777216 is cut or unreadable" in warning for warning in facts.warnings)


def test_two_runs_in_one_log_are_two_facts() -> None:
    """An all-to-all, then an all-reduce."""
    first, second = read(
        (WHOLE + output([row(1 << 20, collective="allreduce")], name="all_reduce_perf")).encode(), "log.txt"
    )
    assert (first.collective, len(first.samples)) == ("alltoall", 6)
    assert (second.collective, len(second.samples), second.ranks) == ("allreduce", 2, 4)


def test_a_failed_run_before_a_good_one_is_not_forgotten() -> None:
    """Its failure is a warning of the other."""
    failed = (
        output([], name="all_gather_perf").split("# Out of")[0]
        + "host0: Test NCCL failure common.cu:1 'unhandled cuda error / '\n"
    )
    facts = one(failed + WHOLE)
    assert figures(facts) == EXPECTED
    assert any("unhandled cuda error" in warning for warning in facts.warnings)


def test_a_failure_after_good_rows_keeps_them_and_is_told() -> None:
    """The rows before it stand."""
    facts = one(
        WHOLE.split("# Out of")[0]
        + "host0: Test CUDA failure common.cu:389 'an illegal memory access was encountered'\n"
    )
    assert figures(facts) == EXPECTED
    assert any("illegal memory access" in warning for warning in facts.warnings)


def test_a_failure_in_the_first_row_is_an_error_with_its_line() -> None:
    """Nothing can be used: one line says where it broke and why."""
    failure = "host0: Test CUDA failure common.cu:389 'an illegal memory access was encountered'"
    broken = output([f"  2097152  131072  float  none  -1 {failure}"])
    why = r"\(line 12: Test CUDA failure .* 'an illegal memory access"
    with pytest.raises(BadInput, match=rf"run.txt: no row of results can be used {why}"):
        read(broken.encode(), "run.txt")
