"""The figures of GPU models by name: those that ship in planner/data/gpus.yaml, or a topology file's own."""

from functools import lru_cache
from typing import Any

from planner.base import (
    BadInput,
    GpuModel,
    check_keys,
    data_file,
    nearest,
    parse_bandwidth,
    parse_bytes,
    parse_flops,
    read_yaml,
)
from planner.topology.figures_from_dict import evidence_of, quantity_of


def gpu_model(name: Any, where: str = "GPU model") -> GpuModel:
    """The figures of a GPU model by its name in planner/data/gpus.yaml."""
    shipped = _shipped()
    if not isinstance(name, str) or name not in shipped:
        meant = nearest(str(name), list(shipped))
        raise BadInput(
            f"{where}: GPU model {name!r} is not known; did you mean {meant}? or describe it under gpu_models"
        )
    return shipped[name]


@lru_cache(maxsize=1)
def _shipped() -> dict[str, GpuModel]:
    path = data_file("gpus.yaml")
    entries = read_yaml(path).items()
    return {name: gpu_model_from_dict(entry, name, f"{path.name}: {name}") for name, entry in entries}


def gpu_model_from_dict(entry: Any, name: Any, where: str) -> GpuModel:
    check_keys(
        entry, where, {"memory": str, "memory_rate": str, "flops": dict, "evidence": str, "source": str}
    )
    flops = {
        str(dtype): quantity_of(parse_flops, value, f"{where}: flops: {dtype}")
        for dtype, value in entry["flops"].items()
    }
    return GpuModel(
        name=str(name),
        memory_bytes=quantity_of(parse_bytes, entry["memory"], f"{where}: memory"),
        memory_bytes_per_s=quantity_of(parse_bandwidth, entry["memory_rate"], f"{where}: memory_rate"),
        flops_per_s=flops,
        evidence=evidence_of(entry, where),
    )
