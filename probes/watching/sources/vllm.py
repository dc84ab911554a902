"""vLLM 0.33.0: the folder of load windows that the plugin of a plan writes, a file a rearrangement."""

from collections.abc import Iterator
from pathlib import Path

from planner.base import BadInput, read_npz
from planner.load import Heard, Known, Window, placed_counts
from planner.model import ModelSpec
from probes.watching.place import Place
from probes.watching.sources.folder import Folder

NAME = "vllm"
NEEDS = ("folder",)
AT_ONCE = 64  # windows in one piece of news
PATTERN = "window-moe-*.npz"
LARGEST_BYTES = 64 << 20


def source(place: Place, model: ModelSpec) -> "PluginWindows":
    return PluginWindows(place.the_folder(), model)


class PluginWindows:
    def __init__(self, folder: Path, model: ModelSpec) -> None:
        self._folder, self._model = Folder(folder, (PATTERN,)), model

    def poll(self, known: Known) -> Iterator[Heard]:
        fresh, present = self._folder.new(known)
        for first in range(0, len(fresh), AT_ONCE):
            yield self._heard(fresh[first : first + AT_ONCE])
        yield Heard(present=present)

    def _heard(self, files: list[tuple[str, Path]]) -> Heard:
        """Windows of an idle server are none."""
        found = [(key, self._read(key, path)) for key, path in files]
        windows = tuple(one for _, one in found if isinstance(one, Window) and one.tokens_LE.any())
        keys = tuple(key for key, one in found if isinstance(one, Window))
        return Heard(windows, keys, said=tuple(one for _, one in found if isinstance(one, str)))

    def _read(self, key: str, path: Path) -> Window | str:
        try:
            return self._window(path)
        except BadInput as fault:
            return self._folder.spoilt(key, fault)

    def _window(self, path: Path) -> Window:
        arrays = read_npz(path, LARGEST_BYTES)
        counts, ids = arrays.get("counts"), arrays.get("layer_ids")
        if counts is None or ids is None or counts.ndim != 2 or ids.ndim != 1 or ids.dtype.kind not in "iu":
            raise BadInput(
                f"{path}: no window of the plugin: it holds no 'counts' [layer, expert] with 'layer_ids'"
            )
        tokens_WLE, layer_ids = placed_counts(counts, self._model, str(path), tuple(ids.tolist()))
        return Window(tokens_WLE[0], layer_ids, str(arrays.get("map_sha256", "")))
