"""A folder that load files come into, of any engine whose dumps moeplan reads; each is one recording."""

from collections.abc import Iterator
from pathlib import Path

from planner.base import BadInput
from planner.load import Heard, Known, Window, merge_windows, read_load
from planner.model import ModelSpec
from probes.watching.place import Place
from probes.watching.sources.folder import Folder

NAME = "dumps"
NEEDS = ("folder",)
PATTERNS = ("*.pt", "*.pth", "*.npz", "*.npy", "*.csv", "*.json", "*.parquet")
IDLE = ("steps are zero", "every count is zero")  # what is said of a recorder that saw nothing
WINDOWS_A_FILE = 4  # of a file with a window for every forward pass, neighbours summed


def source(place: Place, model: ModelSpec) -> "Dumps":
    return Dumps(place.the_folder(), model, remove_read=place.remove_read)


class Dumps:
    """What is asked on for has been kept, so its file may go."""

    def __init__(
        self,
        folder: Path,
        model: ModelSpec,
        patterns: tuple[str, ...] = PATTERNS,
        *,
        remove_read: bool = False,
    ) -> None:
        self._folder, self._model, self._remove_read = Folder(folder, patterns), model, remove_read

    def poll(self, known: Known) -> Iterator[Heard]:
        fresh, present = self._folder.new(known)
        for key, path in fresh:
            heard = self._heard(key, path)
            yield heard
            if self._remove_read and heard.keys:
                path.unlink(missing_ok=True)
        yield Heard(present=present)

    def there(self, known: Known) -> set[str]:
        """Keys of the files that are there."""
        return set(self._folder.new(known)[1])

    def _heard(self, key: str, path: Path) -> Heard:
        try:
            return Heard(windows_of(path, self._model), (key,))
        except BadInput as fault:
            if any(said in str(fault) for said in IDLE):
                return Heard(keys=(key,))
            return Heard(said=(self._folder.spoilt(key, fault),))


def windows_of(path: Path, model: ModelSpec) -> tuple[Window, ...]:
    """The measured layers of a load file, in a few windows."""
    load = read_load([path], model)
    measured = [row for row, layer in enumerate(load.layer_ids) if layer not in load.unmeasured_layer_ids]
    layer_ids = tuple(load.layer_ids[row] for row in measured)
    counts_WLE = merge_windows(load, WINDOWS_A_FILE).tokens_WLE[:, measured]
    return tuple(Window(counts_LE, layer_ids) for counts_LE in counts_WLE)
