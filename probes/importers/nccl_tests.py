"""Results of nccl-tests (alltoall_perf and its kin): the text it prints, and the JSON that `-J` writes."""

import json
import re
from pathlib import PurePath
from typing import Any

from planner.base import BadInput
from probes.base.facts import MeasureFacts, noted
from probes.measure.nccl_facts import facts_of
from probes.measure.nccl_table import Device, Half, Row, Table
from probes.measure.nccl_text import tables_of

LARGEST_BYTES = 32 << 20
_MARKS = (
    b"# Collective test starting",
    b"# nccl-tests version",
    b"# Avg bus bandwidth",
    b"# Out of bounds values",
)
_BARE_ROW = re.compile(
    rb"\d{4,15} {1,20}\d{1,15} {1,20}(?:float|half|bfloat16|double|int8|uint8|int32)"
    rb" {1,20}(?:none|sum|max|min|prod|avg) {1,20}-1\b"
)


def recognise(content: bytes, name: str) -> bool:
    """Whether this is output of nccl-tests, whatever the file is called."""
    del name
    start = content[:1].strip() or content[:4096].lstrip()[:1]
    if start == b"{":
        return b'"bus_bw"' in content or (b'"nccl_version"' in content and b'"results"' in content)
    return (
        (b"algbw" in content and b"busbw" in content)
        or any(mark in content for mark in _MARKS)
        or bool(_BARE_ROW.search(content[: 1 << 20]))
    )


def read(content: bytes, name: str) -> tuple[MeasureFacts, ...]:
    """The runs in the file, in order. BadInput where none of their rows can be used: it says why."""
    if len(content) > LARGEST_BYTES:
        raise BadInput(
            f"{name}: {len(content):,} bytes are too many for a result of nccl-tests; "
            "run it with NCCL_DEBUG=WARN, or cut the log lines out"
        )
    text = content.decode("utf-8-sig", errors="replace")
    hint, failures = PurePath(name).name, tuple[str, ...]()
    if text.lstrip().startswith("{"):
        tables: tuple[Table, ...] = (_table(_parsed(text, name), name, hint),)
    else:
        tables, failures = tables_of(text, name, hint)
    facts = tuple(facts_of(table) for table in tables)
    usable = [one for one in facts if one.samples]
    lost = tuple(warning for one in facts if not one.samples for warning in one.warnings)
    if not usable:
        said = next(iter((*failures, *reversed(lost))), "it has no result rows")
        raise BadInput(
            f"{name}: no row of results can be used ({said}); run the test again and give its whole output"
        )
    return (noted(usable[0], warnings=lost), *usable[1:])


def _parsed(text: str, name: str) -> dict[str, Any]:
    """The JSON without `env`, which is the whole environment of the run, passwords included."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        where = f"{name}: line {error.lineno}, column {error.colno}"
        raise BadInput(f"{where}: not valid JSON ({error.msg}); the run may have been cut short") from None
    except (ValueError, RecursionError):
        raise BadInput(f"{name}: not JSON as nccl-tests writes it; run the test again with -J") from None
    if not isinstance(data, dict) or not isinstance(data.get("results"), list):
        raise BadInput(f"{name}: no list 'results' in the JSON; give what alltoall_perf -J wrote")
    return {key: value for key, value in data.items() if key != "env"}


def _table(data: dict[str, Any], name: str, hint: str) -> Table:
    found = {f"results[{index}]": entry for index, entry in enumerate(data["results"])}
    rows = {where: _row(entry, where) for where, entry in found.items()}
    incomplete = [f"{where} is incomplete and not used" for where, row in rows.items() if row is None]
    program = next((PurePath(str(word)).name for word in _sequence(data.get("args"))), None)
    devices = _devices(_mapping(data.get("config")))
    date = re.match(r"\d{4}-\d\d-\d\d", str(data.get("start_time")))
    return Table(
        name,
        hint,
        program,
        rows=tuple(row for row in rows.values() if row is not None),
        devices=devices,
        average_busbw_bytes_per_s=_times(_average(data), 1e9),
        date=date and date[0],
        warnings=(*incomplete, *_own_doubts(data)),
    )


def _average(data: dict[str, Any]) -> Any:
    return _mapping(data.get("average_bus_bandwidth")).get("bandwidth")


def _own_doubts(data: dict[str, Any]) -> list[str]:
    """What the run says against itself."""
    doubts = []
    if _average(data) is None or not data.get("end_time"):
        doubts.append("the run did not come to its end")
    if _mapping(data.get("out_of_bounds")).get("okay") in ("false", False):
        wrong = "the run itself says that values arrived wrong"
        doubts.append(f"{wrong}; do not plan with it before that is understood")
    if any(_sequence(data.get("errors"))):
        doubts.append("the run reports errors of its own")
    return doubts


def _row(entry: Any, where: str) -> Row | None:
    """None where a figure is missing or is none."""
    entry = _mapping(entry)
    size, count = entry.get("size"), entry.get("count")
    if not (_is_count(size) and _is_count(count)):
        return None
    out_of_place = _half(_mapping(entry.get("out_of_place")), in_place=False)
    in_place = _half(_mapping(entry.get("in_place")), in_place=True)
    halves = tuple(half for half in (out_of_place, in_place) if half is not None)
    kind, redop = str(entry.get("type")), str(entry.get("redop"))
    return Row(where, size, count, kind, redop, halves) if halves else None


def _half(entry: dict[str, Any], *, in_place: bool) -> Half | None:
    seconds = _times(entry.get("time", entry.get("cpu_time")), 1e-6)
    algbw, busbw = _times(entry.get("alg_bw"), 1e9), _times(entry.get("bus_bw"), 1e9)
    if seconds is None or algbw is None or busbw is None:
        return None
    wrong = _times(entry.get("nwrong"), 1)
    return Half(in_place, seconds, algbw, busbw, "N/A" if wrong is None else str(int(wrong)))


def _devices(config: dict[str, Any]) -> tuple[Device, ...]:
    """One entry stands for a process, which drives nthreads x ngpus GPUs of its host with ranks in a row."""
    each = [config.get(key, 1) for key in ("nthreads", "ngpus")]
    width = each[0] * each[1] if all(_is_count(value) and 1 <= value <= 256 for value in each) else 1
    devices = []
    for entry in map(_mapping, _sequence(config.get("devices"))):
        rank, group, index = (entry.get(key, 0) for key in ("rank", "group", "device"))
        if _is_count(rank) and _is_count(group) and _is_count(index):
            host, gpu = str(entry.get("hostname")), str(entry.get("device_info", ""))
            devices += [Device(rank + step, group, host, gpu, index + step) for step in range(width)]
    return tuple(devices)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _sequence(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 60


def _times(value: Any, scale: float) -> float | None:
    """A figure in SI, None where there is none."""
    is_figure = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value * scale if is_figure and 0 <= value < 1e15 else None
