"""vLLM 0.33.0 with a plan's plugin: the map file that it reads before each rearrangement, replaced whole."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from planner.base import BadInput, parse_json, read_bytes, write_atomic
from probes.watching.place import Place

ENGINE = "vllm"
MAP_NAME = "plan_map.json"
SAME = ("experts", "slots", "ranks", "layer_ids")  # of the map in place and the new one: else vLLM ignores it

Files = Mapping[str, str]


def swapper(place: Place, map_file: Path | None) -> "MapFile":
    """The map beside the folder of windows, where none is named."""
    path = map_file or place.the_folder().parent / MAP_NAME
    if not path.is_file():
        raise BadInput(f"{path}: no map is there that vLLM's plugin reads; name it with --map ({MAP_NAME})")
    return MapFile(path)


class MapFile:
    engine, plugin = ENGINE, True

    def __init__(self, path: Path) -> None:
        self.path = path

    def digest(self, files: Files) -> str:
        return hashlib.sha256(_text(files).encode()).hexdigest()

    def in_place(self, files: Files) -> bool:
        return bool(self._held() == parse_json(_text(files), MAP_NAME))

    def hand_over(self, files: Files) -> bool:
        """Never known to serve by it at once: the windows say so later."""
        text = _text(files)
        held, new = self._held(), parse_json(text, MAP_NAME)
        for key in SAME:
            if held.get(key) != new[key]:
                raise BadInput(
                    f"{self.path}: the map in place is of other {key.replace('_', ' ')} than the plan's"
                )
        write_atomic(self.path, text)
        return False

    def _held(self) -> dict[str, Any]:
        value = parse_json(read_bytes(self.path).decode("utf-8", "replace"), str(self.path))
        if not isinstance(value, dict):
            raise BadInput(f"{self.path}: no map of the plugin is in it")
        return value


def _text(files: Files) -> str:
    return next(text for name, text in files.items() if name.endswith(MAP_NAME))
