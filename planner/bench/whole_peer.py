"""AIConfigurator's own prediction of measured steps, by its installed package. Nothing where it is absent."""

import logging
import os
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from importlib.util import find_spec
from io import StringIO
from typing import Any

from planner.bench.whole_rows import Row

SIZES = ("tp_size", "pp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size", "batch_size")
DISAGGREGATED = tuple(f"{phase}_{key}" for phase in ("prefill", "decode") for key in (*SIZES, "num_workers"))


def peer_found() -> bool:
    """Whether aiconfigurator itself is installed beside its core."""
    return find_spec("aiconfigurator") is not None


def peer_tpot_seconds(row: Row) -> float | None:
    """Seconds a token that AIConfigurator predicts from its tables; None where it has none for the row."""
    os.environ.setdefault("AIC_ALLOW_UNLISTED_VERSIONS", "1")
    logging.disable(logging.CRITICAL)  # it tells of every estimate
    from aiconfigurator.cli.api import cli_estimate

    version = _newest_tables(row.system, row.engine)
    try:
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            return float(cli_estimate(**asked(row.listed, version)).tpot) / 1e3
    except Exception:  # noqa: BLE001 - whatever it cannot answer is a row without its answer
        return None
    finally:
        logging.disable(logging.NOTSET)


def asked(listed: Mapping[str, str], version: str | None) -> dict[str, Any]:
    """What its `cli_estimate` is asked for a row of the list."""
    disaggregated = listed["mode"] == "disagg"
    sizes = DISAGGREGATED if disaggregated else SIZES
    return {
        "model_path": listed["model_path"],
        "system_name": listed["system"],
        "mode": listed["mode"],
        "backend_name": listed["backend"],
        "backend_version": version,
        "database_mode": "SILICON",
        "isl": int(float(listed["isl"])),
        "osl": int(float(listed["osl"])),
        "gemm_quant_mode": listed["gemm_quant_mode"] or None,
        "moe_quant_mode": listed["moe_quant_mode"] or None,
        **{key: int(float(listed[key])) for key in sizes if listed.get(key)},
    }


@cache
def _newest_tables(system: str, engine: str) -> str | None:
    """The version it would choose itself; asked once, for each time it reads hundreds of files."""
    from aiconfigurator_core.sdk.perf_database import get_latest_database_version

    version: str | None = get_latest_database_version(system=system, backend=engine)
    return version
