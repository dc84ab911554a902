"""Arrays out of .npy and .npz files: nothing is unpickled, and what is damaged is one line."""

import io
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.base.errors import BadInput
from planner.base.files import LARGEST_FILE_BYTES, read_bytes

if TYPE_CHECKING:  # NumPy loads when an array is read
    import numpy.typing as npt

    Arrays = dict[str, npt.NDArray[Any]]

# What NumPy and zipfile raise at damaged files, found by flipping bytes.
# TokenError and SyntaxError: the header of an array is parsed as a literal.
DAMAGED_NPZ = (
    ValueError,
    TypeError,
    LookupError,
    OSError,
    EOFError,
    RuntimeError,
    MemoryError,
    OverflowError,
    SyntaxError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


def read_npz(path: str | Path, largest: int = LARGEST_FILE_BYTES) -> "Arrays":
    """The arrays of an .npz, or the one array of an .npy under the name 'array'.

    Never unpickles; refuses an archive that unfolds past `largest`.
    """
    return parse_npz(read_bytes(path, largest), path, largest)


def parse_npz(content: bytes, path: str | Path, largest: int = LARGEST_FILE_BYTES) -> "Arrays":
    """The same of bytes. `path` is used in messages."""
    import numpy as np

    try:
        if content[:2] == b"PK":
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                unfolded = sum(entry.file_size for entry in archive.infolist())
            if unfolded > largest:
                raise BadInput(f"{path}: unfolds to {unfolded:,} bytes, more than the {largest:,} we read")
        loaded = np.load(io.BytesIO(content), allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return {"array": loaded}
        arrays = {name: loaded[name] for name in loaded.files}
        return {name: array for name, array in arrays.items() if isinstance(array, np.ndarray)}
    except DAMAGED_NPZ as error:
        raise BadInput(
            f"{path}: not a readable NumPy file ({error}); pickled arrays are not loaded"
        ) from error
