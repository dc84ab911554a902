"""Map files as they stand: parsed by content, and the format found."""

from pathlib import Path
from typing import Any

from planner.base import BadInput, parse_yaml, read_json, read_npz, read_text
from planner.engines import MapFile, find_format, map_formats

LARGEST_MAP_BYTES = 64 << 20  # 61 layers of 4096 slots are 1.5 MB


def read_value(path: str | Path) -> Any:
    """JSON, YAML or .npz, by content.

    A flow mapping in YAML begins like JSON, so the suffix decides between the two.
    """
    if Path(path).suffix == ".npz":
        arrays = {name: array.tolist() for name, array in read_npz(path, LARGEST_MAP_BYTES).items()}
        # with layer_ids, if only none, it is taken for EPLB's tensors
        return {"layer_ids": None, **arrays} if "physical_to_logical_map" in arrays else arrays
    text = read_text(path, LARGEST_MAP_BYTES)
    if text.lstrip()[:1] in {"{", "["} and Path(path).suffix not in {".yaml", ".yml"}:
        return read_json(path, LARGEST_MAP_BYTES)
    return parse_yaml(text, str(path))


def find_map(value: Any, where: str, prefer: str | None = None) -> tuple[str, MapFile]:
    """The map in a parsed file and the name of its format.

    The tensors of a balancer look like SGLang's map: they are taken for one where `prefer` says so.
    """
    last = "eplb"
    for name in sorted(map_formats(), key=lambda name: (name != prefer, name == last, name)):
        found = find_format(name).read_map(value)
        if found is not None:
            return name, found
    held = f"a {type(value).__name__}"
    if isinstance(value, dict):
        held = f"the keys {', '.join(repr(key)[:40] for key in list(value)[:5]) or 'none'}"
    raise BadInput(f"{where}: not a map we know, it holds {held}; expected one of {', '.join(_titles())}")


def _titles() -> list[str]:
    return sorted(find_format(name).TITLE for name in map_formats())
