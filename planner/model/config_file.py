"""A config.json on disk, or a folder that holds one."""

from pathlib import Path
from typing import Any

from planner.base import BadInput, flat, read_json
from planner.model.config_json import spec_from_config
from planner.model.model import ModelSpec

LARGEST_CONFIG_BYTES = 64 << 20  # mixed-precision releases list every quantized layer: megabytes, not more


def existing(text: str) -> Path | None:
    """Whatever the text is: too long, with a null byte, or ~nobody's."""
    try:
        path = Path(text).expanduser()
        return path if text.strip() and path.exists() else None
    except (OSError, ValueError, RuntimeError):
        return None


def read_config(path: Path) -> ModelSpec:
    """A config.json, with the quantization that some releases state in a file beside it."""
    path = path / "config.json" if path.is_dir() else path
    config = read_json(path, LARGEST_CONFIG_BYTES)
    beside = path.with_name("hf_quant_config.json")
    silent = isinstance(config, dict) and not config.get("quantization_config")
    if silent and path != beside and beside.exists():
        config = {**config, "quantization_config": _quantization(beside)}
    name = path.resolve().parent.name if path.name == "config.json" else path.stem
    return spec_from_config(config, flat(name), flat(str(path)))


def _quantization(path: Path) -> Any:
    stated = read_json(path, LARGEST_CONFIG_BYTES)
    if not isinstance(stated, dict) or not isinstance(stated.get("quantization"), dict):
        asked = "give the release's own file or take it away"
        raise BadInput(f"{path}: the mapping 'quantization' is missing; {asked}")
    return stated["quantization"]
