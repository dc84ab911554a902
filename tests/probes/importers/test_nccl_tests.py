"""nccl-tests output of every generation and with every damage that is seen in pastes: the right rows and ranks come out, or a sentence says what is missing."""

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.base import BadInput
from probes.base.facts import MeasureFacts
from probes.importers.nccl_tests import read, recognise
from tests.places import SHARED

RECORDINGS = SHARED / "data/topology"

NEW = "# {:>10} {:>12} {:>8} {:>7} {:>6} {:>7} {:>6} {:>6} {:>6} {:>7} {:>6} {:>6} {:>6}".format(
    *("size", "count", "type", "redop", "root"), *("time", "algbw", "busbw", "#wrong") * 2
)
OLD = NEW.replace("  root ", " ").replace("#wrong", " error")
FACTORS = {"alltoall": 3 / 4, "allreduce": 2 * 3 / 4, "allgather": 3 / 4}


def row(
    size: int,
    rate: float = 40.0,
    collective: str = "alltoall",
    ranks: int = 4,
    wrong: str = "0",
    root: str = "-1",
) -> str:
    """A row as the tool prints it, for `rate` GB/s of algbw and twice that in place."""
    count = size // 4 if collective == "allreduce" else size // 4 // ranks
    factor = {
        "alltoall": (ranks - 1) / ranks,
        "allgather": (ranks - 1) / ranks,
        "allreduce": 2 * (ranks - 1) / ranks,
    }[collective]
    redop = "sum" if collective == "allreduce" else "none"
    in_place = "N/A" if collective == "alltoall" else "0"
    halves = [
        f"{size / algbw / 1e3:8.2f} {algbw:6.2f} {algbw * factor:6.2f} {mark:>6}"
        for algbw, mark in ((rate, wrong), (2 * rate, in_place))
    ]
    return f"{size:12d} {count:12d} {'float':>8} {redop:>7} {root:>6} {halves[0]} {halves[1]}"


def devices(ranks: int = 4, per_host: int = 4, group: Callable[[int], int] = lambda rank: 0) -> list[str]:
    template = "#  Rank {:>2} Group {:>2} Pid {:>6} on {:>8} device {:>2} [0000:1b:00] NVIDIA H100 80GB HBM3"
    return [
        template.format(rank, group(rank), 100 + rank, f"host{rank // per_host}", rank % per_host)
        for rank in range(ranks)
    ]


def output(
    rows: Sequence[str], listed: Sequence[str] = (), name: str | None = "alltoall_perf", average: str = "21.5"
) -> str:
    start = [f"# Collective test starting: {name}"] if name else []
    settings_line = "# nThread 1 nGpus 4 minBytes 8 maxBytes 1024 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0"
    units = "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)"
    end = ["# Out of bounds values : 0 OK", f"# Avg bus bandwidth    : {average} ", "#"]
    return (
        "\n".join(
            [
                *start,
                settings_line,
                "#",
                "# Using devices",
                *(listed or devices()),
                "#",
                NEW,
                units,
                *rows,
                *end,
            ]
        )
        + "\n"
    )


SIZES = (1 << 20, 1 << 24, 1 << 28)
WHOLE = output([row(size) for size in SIZES])


def one(text: str, name: str = "run.txt") -> MeasureFacts:
    assert recognise(text.encode(), name)
    (facts,) = read(text.encode(), name)
    return facts


def attempt(content: bytes) -> tuple[MeasureFacts, ...]:
    """The facts; none where it is BadInput, which must be one line."""
    try:
        return read(content, "run.txt")
    except BadInput as error:
        if "\n" in str(error):
            raise AssertionError(str(error)) from error
        return ()


def figures(facts: MeasureFacts) -> list[tuple[int, bool, float]]:
    return [
        (sample.size_bytes, sample.in_place, round(sample.busbw_bytes_per_s / 1e9, 2))
        for sample in facts.samples
    ]


EXPECTED = [(size, in_place, 30.0 * (1 + in_place)) for size in SIZES for in_place in (False, True)]


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
    text = "\n".join(
        [
            *lines,
            OLD,
            f"   268435456      16777216   float          {halves}",
            "# Avg bus bandwidth    : 58.6 ",
        ]
    )
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
    broken = output(
        [
            "  2097152  131072  float  none  -1 host0: Test CUDA failure common.cu:389 'an illegal memory access was encountered'"
        ]
    )
    with pytest.raises(
        BadInput,
        match=r"run.txt: no row of results can be used \(line 12: Test CUDA failure .* 'an illegal memory access",
    ):
        read(broken.encode(), "run.txt")


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


def as_json(**changes: Any) -> dict[str, Any]:
    """What -J writes, version 3: one entry of devices a process, roots as padded text, truth values as text."""
    results = [
        {
            "size": size,
            "count": size // 16,
            "type": "float",
            "redop": "none",
            "root": "    -1",
            "actual_iterations": 20,
            "experiment_name": "",
            "out_of_place": {"time": size / 40e3, "alg_bw": 40.0, "bus_bw": 30.0, "nwrong": 0.0},
            "in_place": {"time": size / 80e3, "alg_bw": 80.0, "bus_bw": 60.0, "nwrong": None},
        }
        for size in SIZES
    ]
    device = {
        "rank": 0,
        "group": 0,
        "pid": 7,
        "hostname": "host0",
        "device": 0,
        "device_hex": "0000:1b:00",
        "device_info": "NVIDIA H100 80GB HBM3",
    }
    return {
        "version": 3,
        "start_time": "2026-01-15 10:34:05",
        "args": ["./build/alltoall_perf", "-g", "4"],
        "env": ["TOKEN=hunter2"],
        "nccl_version": 23007,
        "config": {"nthreads": 1, "ngpus": 4, "devices": [device]},
        "results": results,
        "out_of_bounds": {"count": 0, "okay": "true"},
        "average_bus_bandwidth": {"bandwidth": 21.5, "okay": "unchecked"},
        "errors": [""],
        "end_time": "2026-01-15 10:35:00",
        **changes,
    }


class TestJson:
    """The file that -J writes."""

    def test_it_says_the_same_as_the_text(self) -> None:
        """Figures, ranks, hosts and models, and the date besides."""
        facts = one(json.dumps(as_json()))
        assert figures(facts) == EXPECTED
        assert (facts.collective, facts.ranks, facts.hosts, facts.gpu_names) == (
            "alltoall",
            4,
            ("host0",) * 4,
            ("NVIDIA H100 80GB HBM3",),
        )
        assert (facts.warnings, facts.unknown, facts.date) == ((), (), "2026-01-15")

    @pytest.mark.parametrize(
        "damage",
        [{}, {"results": []}, {"results": "hunter2"}, {"env": {"A": "hunter2"}}, {"args": ["hunter2"]}],
    )
    def test_its_environment_is_never_shown(self, damage: dict[str, Any]) -> None:
        """Neither in the facts nor in a message."""
        content = json.dumps(as_json(**damage) | {"args": ["alltoall_perf"]}).encode()
        for text in (content, content[:-40]):
            try:
                shown = repr(read(text, "x.json"))
            except BadInput as error:
                shown = f"{error!r} {error.__cause__!r}"
            assert "hunter2" not in shown

    def test_an_aborted_run_says_so(self) -> None:
        """No average and no end."""
        data = as_json()
        del data["average_bus_bandwidth"], data["end_time"]
        assert any("did not come to its end" in warning for warning in one(json.dumps(data)).warnings)

    def test_cpu_time_is_a_time_too(self) -> None:
        """-C 1 reports the CPU's."""
        data = as_json()
        data["results"][0]["out_of_place"]["cpu_time"] = data["results"][0]["out_of_place"].pop("time")
        assert figures(one(json.dumps(data))) == EXPECTED

    @pytest.mark.parametrize(
        ("content", "says"),
        [
            (b'{"nccl_version": 1, "results": [', "not valid JSON"),
            (b'{"nccl_version": 1, "results": {}}', "no list 'results'"),
            (
                b'{"nccl_version": 1, "results": [{"size": true}, 7, {"size": 1, "count": 1}]}',
                "no row of results can be used",
            ),
            (b'{"bus_bw": ' + b"[" * 50_000, "not JSON as nccl-tests writes it|not valid JSON"),
            (b'{"bus_bw": ' + b"9" * 5_000 + b"}", "not JSON as nccl-tests writes it"),
        ],
    )
    def test_damage_is_one_line(self, content: bytes, says: str) -> None:
        """Cut, of another shape, nested without end, a number without end."""
        assert recognise(content, "x.json")
        with pytest.raises(BadInput, match=says) as caught:
            read(content, "x.json")
        assert "\n" not in str(caught.value)


def test_other_text_is_not_taken_for_it() -> None:
    """A topology listing, another JSON, prose, nothing."""
    for content in (
        b"\tGPU0\tGPU1\nGPU0\t X \tNV18\n",
        b'{"gpus": 8}',
        b"the busbw was fine",
        b"",
        b"\x00\xff" * 50,
    ):
        assert not recognise(content, "x")


@pytest.mark.parametrize(
    "filler",
    [
        b"\x00",
        b"7",
        b"7 ",
        b"float 1 ",
        b"a:1:1 [",
        b"# Rank 1 Pid 1 on ",
        b"busbw algbw\n",
        b"1048576 16384 float none -1 1 1 1 0\n",
    ],
)
def test_floods_end_soon(filler: bytes) -> None:
    """100 MB are refused by size; 4 MB of anything are through within seconds."""
    mark = b"algbw busbw\n"
    with pytest.raises(BadInput, match="too many for a result of nccl-tests"):
        read(mark + filler * (100_000_000 // len(filler)), "big.txt")
    start = time.monotonic()
    attempt(mark + filler * (4_000_000 // len(filler)))
    assert time.monotonic() - start < 10


@settings(max_examples=60)
@given(st.integers(0, len(WHOLE)), st.integers(0, len(WHOLE)), st.binary(max_size=12))
def test_a_part_cut_out_or_overwritten_gives_no_wrong_figure(start: int, length: int, junk: bytes) -> None:
    """Every figure that comes out was in the whole, for the right size; or it is BadInput. A number of ranks that differs is explained."""
    content = WHOLE.encode()
    damaged = content[:start] + junk + content[min(start + length // 8, len(content)) :]
    true = {(size, in_place): busbw for size, in_place, busbw in EXPECTED}
    for facts in attempt(damaged):
        assert facts.ranks == 4 or facts.warnings or facts.unknown
        for size, in_place, busbw in figures(facts):
            assert busbw == pytest.approx(true[size, in_place], rel=0.03)


PLACES = [
    ("results", 0, "out_of_place"),
    ("results", 0),
    ("results",),
    ("config", "devices", 0),
    ("config", "devices"),
    ("config",),
    ("average_bus_bandwidth",),
    (),
]
VALUES: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.floats()
    | st.integers()
    | st.text(max_size=5)
    | st.lists(st.integers(), max_size=2)
    | st.just({})
)


@settings(max_examples=100)
@given(st.sampled_from(PLACES), VALUES, st.data())
def test_any_value_anywhere_in_the_json_is_borne(
    path: tuple[Any, ...], value: Any, data: st.DataObject
) -> None:
    """Facts or BadInput, never another exception."""
    whole: Any = as_json()
    place = whole
    for key in path:
        place = place[key]
    place[data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))] = value
    attempt(json.dumps(whole).encode())


@settings(max_examples=100)
@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_junk_is_borne(junk: bytes) -> None:
    """Whatever it is: facts or BadInput."""
    for content in (junk, b"algbw busbw\n" + junk, NEW.encode() + b"\n" + junk):
        recognise(content, "x")
        attempt(content)


GB300 = ("NVIDIA GB300",)
# file: collective, ranks, hosts, GPU models, rows used, busbw of the largest size out of place and in place, average (GB/s)
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
