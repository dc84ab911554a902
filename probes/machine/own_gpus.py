"""A person's own GPU models, out of a file: memory and compute as in a topology file, and their links.

H100-SXM-96GB:
  names: [NVIDIA H100 96GB HBM3]   # as nvidia-smi prints it; optional
  memory: 96 GB
  memory_rate: 3350 GB/s
  flops: {bf16: 989 TFLOP/s, fp8: 1979 TFLOP/s}
  nvlinks: 18                      # with their rate; optional, none
  nvlink_rate: 25 GB/s             # of one link, one direction
  pcie_rate: 64 GB/s               # one direction
  evidence: preset
  source: the data sheet of the card
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from planner.base import BadInput, check_keys, parse_bandwidth, read_json, read_yaml
from planner.topology import gpu_model_from_dict
from probes.machine.gpu_names import key_of
from probes.machine.gpu_table import GpuLinks

_FIGURES = {"memory": str, "memory_rate": str, "flops": dict, "evidence": str, "source": str}
_LINKS: dict[str, type | tuple[type, ...]] = {"names": list, "nvlinks": int, "nvlink_rate": str}
MOST_LINKS = 144


def read_gpu_models(path: Path) -> tuple[GpuLinks, ...]:
    """The models of a YAML or JSON file, in its order. BadInput names what is missing or cannot be."""
    data = read_json(path) if path.suffix.lower() == ".json" else read_yaml(path)
    if not isinstance(data, dict) or not data:
        example = "a mapping of model names to memory, memory_rate, flops, pcie_rate, evidence, source"
        raise BadInput(f"{path}: expected {example}; got {type(data).__name__}")
    return tuple(_model(str(name), entry, f"{path}: {name}") for name, entry in data.items())


def _model(name: str, entry: Any, where: str) -> GpuLinks:
    check_keys(entry, where, {**_FIGURES, "pcie_rate": str}, _LINKS)
    figures = gpu_model_from_dict({key: entry[key] for key in _FIGURES}, name, where)
    names = entry.get("names", [])
    if not all(isinstance(one, str) and one.strip() for one in names):
        raise BadInput(f"{where}: names: {str(names)[:60]} is not a list of texts, as nvidia-smi prints them")
    links = entry.get("nvlinks", 0)
    if not 0 <= links <= MOST_LINKS or (links > 0) != ("nvlink_rate" in entry):
        both = "give the number of links and nvlink_rate of one, or neither"
        raise BadInput(f"{where}: nvlinks: {links}; {both}")
    keys = dict.fromkeys(map(key_of, (name, *names)))
    told = f"{where}: {entry['source']}"
    rates = _rate(entry, "nvlink_rate", where) if links else 0.0, _rate(entry, "pcie_rate", where)
    return GpuLinks(name, links, *rates, tuple(keys), optional=True, figures=figures, told_by=told)


def _rate(entry: Mapping[str, Any], key: str, where: str) -> float:
    try:
        rate = parse_bandwidth(entry[key])
    except BadInput as error:
        raise BadInput(f"{where}: {key}: {error}") from error
    if not 0 < rate < 1e15:
        raise BadInput(f"{where}: {key}: {entry[key]!r} is no rate of a link")
    return rate
