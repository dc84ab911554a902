"""vLLM 0.33.0: the folder of load windows that the plugin of a plan writes, a file a rearrangement."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from planner.base import BadInput, read_npz
from planner.load import Heard, Known, Window, placed_counts
from planner.model import ModelSpec
from probes.watching.place import Place
from probes.watching.sources.folder import Folder

NAME = "vllm"
NEEDS = ("folder",)
AT_ONCE = 128  # windows in one piece of news
PATTERN = "window-moe-*.npz"
LARGEST_BYTES = 64 << 20


def source(place: Place, model: ModelSpec) -> "PluginWindows":
    return PluginWindows(place.the_folder(), model)


class Raw(NamedTuple):
    """What a file holds, before it is held against the model."""

    counts: npt.NDArray[Any]
    layer_ids: tuple[int, ...]
    map_sha256: str

    @property
    def like(self) -> tuple[object, ...]:
        return self.counts.shape, self.counts.dtype.str, self.layer_ids


class PluginWindows:
    def __init__(self, folder: Path, model: ModelSpec) -> None:
        self._folder, self._model = Folder(folder, (PATTERN,)), model

    def poll(self, known: Known) -> Iterator[Heard]:
        fresh, present = self._folder.new(known)
        for first in range(0, len(fresh), AT_ONCE):
            yield self._heard(fresh[first : first + AT_ONCE], max(len(fresh) - first - AT_ONCE, 0))
        yield Heard(present=present)

    def _heard(self, files: list[tuple[str, Path]], more: int) -> Heard:
        """Windows of an idle server are none."""
        read = [(key, path, self._read(key, path)) for key, path in files]
        said = [one for _, _, one in read if isinstance(one, str)]
        found = self._placed([(key, path, one) for key, path, one in read if not isinstance(one, str)], said)
        windows = tuple(one for _, one in found if one.tokens_LE.any())
        return Heard(windows, tuple(key for key, _ in found), said=tuple(said), more=more)

    def _placed(self, read: "list[tuple[str, Path, Raw]]", said: list[str]) -> list[tuple[str, Window]]:
        """Those of one shape together, for the checks of one take as long as those of many; where one of them
        is none, each by itself.
        """
        found: list[tuple[str, Window]] = []
        for _, group in groupby(read, key=lambda one: one[2].like):
            some = list(group)
            counts = np.stack([raw.counts for _, _, raw in some])
            raw, where = some[0][2], str(some[0][1])
            try:
                tokens_WLE, layer_ids = placed_counts(counts, self._model, where, raw.layer_ids)
            except BadInput as fault:
                if len(some) == 1:
                    said.append(self._folder.spoilt(some[0][0], fault))
                for one in some if len(some) > 1 else ():
                    found += self._placed([one], said)
                continue
            served = zip(some, tokens_WLE, strict=True)
            found += [(key, Window(own_LE, layer_ids, raw.map_sha256)) for (key, _, raw), own_LE in served]
        return found

    def _read(self, key: str, path: Path) -> "Raw | str":
        """What is in a file, or the line that says why there is nothing."""
        try:
            return _raw(path)
        except BadInput as fault:
            return self._folder.spoilt(key, fault)


def _raw(path: Path) -> Raw:
    arrays = read_npz(path, LARGEST_BYTES)
    counts, ids = arrays.get("counts"), arrays.get("layer_ids")
    if counts is None or ids is None or (counts.ndim, ids.ndim) != (2, 1) or ids.dtype.kind not in "iu":
        raise BadInput(f"{path}: no window of the plugin, 'counts' [layer, expert] and 'layer_ids'")
    return Raw(counts, tuple(ids.tolist()), str(arrays.get("map_sha256", "")))
