"""Figures of planner/data/constants.yaml by chip, and what is said of them: whose they are, and their error.

A chip without figures of its own takes those of the nearest chip that has some, and its error is unknown.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from planner.base import data_file, read_yaml

KIN = {"A800": "A100", "A30": "A100", "H20": "H200", "GH200": "H200", "L40": "L40S"}  # else H100
USUAL = "H100"
KERNELS = {  # what was measured, by transport; `node` has the kernels of `rank`
    "slot": "DeepEP low latency",
    "rank": "DeepEP normal mode",
    "allgather": "NCCL all-gather and reduce-scatter",
    "masked": "DeepGEMM's masked fp8 grouped GEMM",
    "fused": "fused MoE layers of vLLM or SGLang",
}
MASKED_WIDTH = 7168  # the one hidden size of its rows
RATES = {"fp8": "fp8", "nvfp4": "fp8"}  # the peak that products of a weight dtype count against; else bf16
NEXT_DTYPE = {
    "fp8": "bf16",
    "nvfp4": "int4",
    "mxfp4": "int4",
    "int4": "bf16",
}  # where a chip has no rows of it


@dataclass(frozen=True)
class Figures:
    """One line of the file, with a sentence for its source and one for its error."""

    values: Mapping[str, Any]
    source: str
    error: str
    rate: str = ""
    held_out: float | None = None  # mean error where a group was left out; None where nothing was judged


@lru_cache(maxsize=1)
def _file() -> Mapping[str, Any]:
    return dict(read_yaml(data_file("constants.yaml")))


def phase_figures(direction: str, transport: str, chip: str, gpus: int, *, several: bool) -> Figures:
    """Of dispatch or combine; `several`: the GPUs are in several NVLink domains."""
    kind = "rank" if transport == "node" else transport
    known = _file()[direction][kind]
    own, values = _nearest(known, chip)
    error = _error(values, chip, own)
    if own == chip:
        error += _reach(kind, values, gpus, several=several)
    held_out = _judged(values, gpus, several=several) if own == chip else None
    return Figures(values, _source(kind, own), error, held_out=held_out)


def compute_figures(transport: str, dtype: str, chip: str, width: int) -> Figures:
    """Of expert compute, by the weights' dtype: low-latency dispatch feeds its own kernels. `width`: elements
    of a token's vector.
    """
    known = _file()["compute"]
    kernel = "masked" if transport == "slot" and dtype in known["masked"] else "fused"
    if kernel == "masked" and chip not in known["masked"][dtype] and chip in known["fused"][dtype]:
        kernel = "fused"
    found = dtype
    while chip in _chips(known[kernel]) and chip not in known[kernel].get(found, {}):
        found = NEXT_DTYPE[found]
    own, values = _nearest(known[kernel].get(found) or known[kernel]["bf16"], chip)
    error = _error(values, chip, own)
    if own == chip and found != dtype:
        error = f"no figures of {dtype} on {chip}: those of {found} used, error unknown"
    elif own == chip and kernel == "masked" and width != MASKED_WIDTH:
        error += f"; rows of hidden size {MASKED_WIDTH} alone, {width} is not judged"
    held_out = values["held_out"] if own == chip and found == dtype else None
    source = f"{_source(kernel, own)}, {found} weights"
    return Figures(values, source, error, RATES.get(found, "bf16"), held_out)


def _chips(by_dtype: Mapping[str, Mapping[str, Any]]) -> set[str]:
    return {chip for chips in by_dtype.values() for chip in chips}


def _nearest(known: Mapping[str, Any], chip: str) -> tuple[str, Mapping[str, Any]]:
    """Whose figures, and the figures."""
    for name in (chip, KIN.get(chip, USUAL), USUAL):
        if name in known:
            return name, known[name]
    name = next(iter(known))
    return name, known[name]


def _source(kind: str, own: str) -> str:
    return f"fitted to {own}, {KERNELS[kind]} ({_file()['source']}, {_file()['date']})"


def _error(values: Mapping[str, Any], chip: str, own: str) -> str:
    if own != chip:
        return f"no figures of {chip}: those of {own} used, error unknown"
    group = ("an " if values["group"].startswith("EP") else "a ") + values["group"]
    return f"mean error on {own} {values['error']:.1%}, leaving {group} out {values['held_out']:.1%}"


def _judged(values: Mapping[str, Any], gpus: int, *, several: bool) -> float | None:
    """The mean error on what was left out, where as many GPUs were judged."""
    if not values["least"] <= gpus <= values["ranks"]:
        return None
    return values.get("held_out_nodes") if several else values["held_out"]


def _reach(kind: str, values: Mapping[str, Any], gpus: int, *, several: bool) -> str:
    """What is said where more GPUs take part than in the rows of one node."""
    if gpus < values["least"]:
        return f"; fewer than {values['least']} GPUs: start-up of {values['least']}, not judged"
    if "error_nodes" in values:
        if not several:
            return ""
        nodes = f"; on several nodes {values['error_nodes']:.1%}, leaving a node count out"
        return f"{nodes} {values['held_out_nodes']:.1%}" + _beyond(gpus, values["ranks"])
    if several:
        return f"; over several NVLink domains not judged: {_nic(kind)}"
    return _beyond(gpus, values["ranks"])


def _nic(kind: str) -> str:
    """Where the share of a NIC comes from that no rows of this chip show."""
    return f"growth and share of the NIC are {USUAL}'s" if kind == "slot" else "85 % of the NIC assumed"


def _beyond(gpus: int, ranks: int) -> str:
    return f"; extrapolated from {ranks} GPUs to {gpus}, not judged" if gpus > ranks else ""
