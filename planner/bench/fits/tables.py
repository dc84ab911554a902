"""Measured seconds of dispatch, combine and grouped GEMMs by chip, out of tables that others have published.

From a wheel of aiconfigurator-core (its tables are Parquet: pyarrow reads them), or a folder of CSVs with the
same columns. Seconds and bytes; a row with an empty or zero figure is left out.

Shapes: N rows.
"""

import csv
import importlib
import io
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.base import BadInput

Columns = Mapping[str, npt.NDArray[Any]]  # column name -> value_N

CHIPS = {
    "a100_sxm": "A100",
    "h100_sxm": "H100",
    "h200_sxm": "H200",
    "b200_sxm": "B200",
    "b300_sxm": "B300",
    "gb200": "GB200",
    "gb300": "GB300",
    "l40s": "L40S",
    "rtx_pro_6000_server": "RTX PRO 6000",
}
DATA = "aiconfigurator_core/systems/data"
# Which of a wheel's tables: of several releases the one named. {} is the system.
LOW_LATENCY = (
    "{}/comm/sglang/0.5.12/wideep_deepep_ll_perf",
    "{}/comm/sglang/0.5.6.post2/wideep_deepep_ll_perf",
)
NORMAL = ("{}/comm/sglang/0.5.12/wideep_deepep_normal_perf",)
COLLECTIVES = ("{}/comm/nccl/2.29.2/nccl_perf", "{}/comm/nccl/2.27.3/nccl_perf")
MASKED = ("{}/moe/sglang/0.5.10/wideep_generation_moe_perf",)
FUSED = ("{}/moe/vllm/0.24.0/moe_perf", "{}/moe/sglang/0.5.10/moe_perf")


@dataclass(frozen=True)
class Tables:
    """What was found of each kind, by chip; a chip without such a table is absent.

    `low_latency` and `normal` are DeepEP's kernels, `collectives` NCCL's, `masked` SGLang's low-latency
    grouped GEMM, `fused` vLLM's fused MoE layer.
    """

    low_latency: Mapping[str, Columns]
    normal: Mapping[str, Columns]
    collectives: Mapping[str, Columns]
    masked: Mapping[str, Columns]
    fused: Mapping[str, Columns]


def read_tables(path: Path) -> Tables:
    """The tables of a wheel or a folder; BadInput for anything else."""
    if path.is_dir():
        return _from_folder(path)
    try:
        with zipfile.ZipFile(path) as archive:
            return _from_wheel(archive, path)
    except (OSError, zipfile.BadZipFile) as error:
        raise BadInput(
            f"{path}: neither a wheel of aiconfigurator-core nor a folder of CSVs ({error})"
        ) from error


def _from_wheel(archive: zipfile.ZipFile, path: Path) -> Tables:
    names = set(archive.namelist())
    if not any(name.startswith(DATA) for name in names):
        raise BadInput(f"{path}: holds no {DATA}; give a wheel of aiconfigurator-core")

    def kind(tables: tuple[str, ...], *, merged: bool = False) -> dict[str, Columns]:
        found: dict[str, Columns] = {}
        for system, chip in CHIPS.items():
            there = [
                name for name in (f"{DATA}/{one.format(system)}.parquet" for one in tables) if name in names
            ]
            if there:
                read = [_parquet(archive.read(name), path) for name in there[: None if merged else 1]]
                found[chip] = _joined(read)
        return found

    return Tables(kind(LOW_LATENCY, merged=True), kind(NORMAL), kind(COLLECTIVES), kind(MASKED), kind(FUSED))


def _parquet(content: bytes, path: Path) -> Columns:
    try:
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise BadInput(f"{path}: reading its tables takes pyarrow: pip install pyarrow") from error
    columns = parquet.ParquetFile(io.BytesIO(content)).read().to_pydict()
    return {name: np.array(values) for name, values in columns.items()}


def _joined(parts: Iterable[Columns]) -> Columns:
    """The rows of all, in the columns that they share."""
    parts = list(parts)
    return {
        name: np.concatenate([part[name] for part in parts])
        for name in parts[0]
        if all(name in part for part in parts)
    }


def _from_folder(folder: Path) -> Tables:
    """deepep_low_latency.csv, and the rows of grouped_gemm_sglang.csv for generation."""
    low_latency = _csv_by_chip(folder / "deepep_low_latency.csv")
    masked = {
        chip: select(rows, rows["phase"] == "generation")
        for chip, rows in _csv_by_chip(folder / "grouped_gemm_sglang.csv").items()
    }
    renamed = {chip: {**rows, "latency": rows["latency_ms"]} for chip, rows in masked.items()}
    return Tables(low_latency, {}, {}, renamed, {})


def _csv_by_chip(path: Path) -> dict[str, Columns]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror})") from error
    columns = {name: _numbers([row[name] for row in rows]) for name in rows[0]} if rows else {}
    found = {}
    for system in dict.fromkeys(row["system"] for row in rows):
        found[CHIPS[system]] = select(columns, columns["system"] == system)
    return found


def _numbers(cells: list[str]) -> npt.NDArray[Any]:
    """As numbers where all are numbers or empty; empty is NaN."""
    try:
        return np.array([float(cell) if cell else np.nan for cell in cells])
    except ValueError:
        return np.array(cells)


def select(rows: Columns, kept_N: npt.NDArray[np.bool_]) -> Columns:
    """The rows that are kept."""
    return {name: values[kept_N] for name, values in rows.items()}


def numbers(rows: Columns, *names: str) -> list[npt.NDArray[np.float64]]:
    """These columns as floats."""
    return [np.asarray(rows[name], dtype=np.float64) for name in names]
