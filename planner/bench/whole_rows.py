"""Measured whole steps, with expert parallelism or without, read from an installed aiconfigurator-core.

Its systems/silicon_sample.csv lists measured TTFT and TPOT of servers. The rows stay where they are.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from planner.base import BadInput, read_csv
from planner.bench.whole_models import Models
from planner.model import ModelSpec

PACKAGE, ROWS = "aiconfigurator_core", "systems/silicon_sample.csv"
MACHINES = {  # of its systems: preset, GPUs of a node there, GPU model
    "b200_sxm": ("hgx-b200", 8, "B200-SXM-180GB"),
    "b300_sxm": ("hgx-b300", 8, "B300-SXM-288GB"),
    "gb200": ("gb200-nvl72", 4, "GB200-186GB"),
    "gb300": ("gb300-nvl72", 4, "GB300-278GB"),
    "h100_sxm": ("hgx-h100", 8, "H100-SXM-80GB"),
    "h200_sxm": ("hgx-h200", 8, "H200-SXM-141GB"),
}
MULTIPLIED = ("db-dump/2026-04-27", "source_file=2026-04-06")  # sources that list multiplied sizes
MOST_SLICED = 8  # GPUs without expert parallelism; wider entries are sums over servers
SAME_MEASUREMENT = 1.01  # listed twice: TPOT of one configuration within 1 %


@dataclass(frozen=True)
class Row:
    """One measurement. `requests` are those that decode at once in one attention group."""

    name: str
    system: str
    engine: str
    model: ModelSpec  # in the row's precision
    precision: str  # fp8 or fp4; bf16 and int4 too without expert parallelism
    disaggregated: bool
    prompt_tokens: int
    output_tokens: int
    attention_tp: int
    groups: int
    moe_tp: int
    workers: int  # that decode, each with all these groups
    requests: float
    tpot_seconds: float
    ttft_seconds: float
    listed: Mapping[str, str]  # the row as it is listed, repaired
    sliced: bool = False  # every GPU holds a slice of every expert: no expert parallelism

    @property
    def gpus(self) -> int:
        return self.attention_tp * self.groups

    @property
    def configuration(self) -> str:
        """What was measured, whoever measured it when; releases that differ in name alone are one."""
        model = self.model
        shape = (model.architecture, model.layers, model.experts, model.hidden, model.expert_intermediate)
        served = (self.disaggregated, self.prompt_tokens, self.output_tokens, self.requests, self.workers)
        sizes = (self.attention_tp, self.groups, self.moe_tp)
        return "|".join(map(str, (self.system, self.engine, self.precision, *shape, *served, *sizes)))


def rows_folder() -> Path | None:
    """Where aiconfigurator-core is installed; None where it is not. Nothing of it is imported."""
    found = find_spec(PACKAGE)
    folder = Path(found.origin).parent if found and found.origin else None
    return folder if folder and (folder / ROWS).is_file() else None


def read_rows(folder: Path, *, sliced: bool = False) -> list[Row]:
    """Rows with a stated batch, repaired, each measurement once, in a fixed order.

    Those with expert parallelism, or (`sliced`) those of one server of up to MOST_SLICED GPUs without.
    """
    path = folder / ROWS
    listed = read_csv(path)
    missing = {"silicon_tpot_ms", "moe_ep_size", "decode_moe_ep_size"} - set(listed[0] if listed else ())
    if missing:
        raise BadInput(f"{path}: the column {min(missing)} is missing; aiconfigurator-core 0.12 has it")
    models = Models(folder / "model_configs")
    return _once(row for entry in listed for row in _rows_of(entry, models, sliced=sliced))


def _rows_of(entry: Mapping[str, str], models: Models, *, sliced: bool) -> Iterator[Row]:
    """The row of an entry, if it has experts on several GPUs in this manner and says what was served."""
    disaggregated = entry["mode"] == "disagg"
    before = "decode_" if disaggregated else ""
    if entry["system"] not in MACHINES or not entry[before + "batch_size"]:
        return
    if not (_sliced(entry, models) if sliced else _number(entry, before + "moe_ep_size") > 1):
        return
    listed = entry if disaggregated else repaired(entry)
    tp, groups = (_number(listed, before + key) for key in ("tp_size", "attention_dp_size"))
    workers = _number(listed, "decode_num_workers") if disaggregated else 1
    yield Row(
        name=entry["id"],
        system=entry["system"],
        engine=entry["backend"],
        model=models.find(entry["model_path"], entry["precision"]),
        precision=entry["precision"],
        disaggregated=disaggregated,
        prompt_tokens=_number(entry, "isl"),
        output_tokens=_number(entry, "osl"),
        attention_tp=tp,
        groups=groups,
        moe_tp=_number(listed, before + "moe_tp_size"),
        workers=workers,
        requests=float(listed[before + "batch_size"]),
        tpot_seconds=float(entry["silicon_tpot_ms"]) / 1e3,
        ttft_seconds=float(entry["silicon_ttft_ms"]) / 1e3,
        listed=listed,
        sliced=sliced,
    )


def _sliced(entry: Mapping[str, str], models: Models) -> bool:
    """Whether one server slices every expert over all its GPUs."""
    keys = ("tp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size", "pp_size")
    tp, dp, moe_tp, ep, stages = (_number(entry, key) for key in keys)
    whole = entry["mode"] == "agg" and ep == stages == 1 and tp * dp == moe_tp
    return whole and 1 < moe_tp <= MOST_SLICED and models.has_experts(entry["model_path"])


def repaired(entry: Mapping[str, str]) -> Mapping[str, str]:
    """An entry whose parallel sizes were multiplied with each other (id: tp8_ep8, columns: 64 and 8) with its
    own sizes again; any other as it is. Three patterns leave no doubt.
    """
    tp, dp, moe_tp, ep = (
        _number(entry, key) for key in ("tp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size")
    )
    if not entry["silicon_data_source"].startswith(MULTIPLIED):
        return entry
    if moe_tp == ep > 1 and (tp, dp) == (ep * ep, 1):
        sizes = (ep, 1, ep)
    elif moe_tp == ep > 1 and (tp, dp) == (1, ep * ep):
        sizes = (1, ep, ep)
    elif entry["backend"] == "vllm" and (tp, dp, moe_tp, ep) == (4, 4, 1, 16):
        sizes = (4, 1, 4)
    else:
        return entry
    tp, dp, ep = sizes
    batch = -(-concurrency(entry) // dp)
    return {
        **entry,
        "tp_size": str(tp),
        "attention_dp_size": str(dp),
        "moe_tp_size": "1",
        "moe_ep_size": str(ep),
        "batch_size": str(batch),
    }


def concurrency(entry: Mapping[str, str]) -> int:
    """Requests that the clients kept open; 0 where the source does not say."""
    said = re.search(r"silicon_concurrency=(\d+)", entry["silicon_data_source"])
    return int(said[1]) if said else 0


def _number(entry: Mapping[str, str], key: str) -> int:
    return int(float(entry[key] or 1))


def _once(rows: Iterable[Row]) -> list[Row]:
    """Without measurements that are listed again, under another name or for another release of the model."""
    kept: list[Row] = []
    for row in sorted(rows, key=lambda row: (row.configuration, row.tpot_seconds, row.name)):
        last = kept[-1] if kept else None
        if (
            last is None
            or last.configuration != row.configuration
            or row.tpot_seconds > last.tpot_seconds * SAME_MEASUREMENT
        ):
            kept.append(row)
    return kept
