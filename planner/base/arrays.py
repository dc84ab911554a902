"""Arrays out of .npy and .npz files: nothing is unpickled, and what is damaged is one line."""

import io
import math
import struct
import tokenize
import warnings
import zipfile
import zlib
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.base.errors import BadInput
from planner.base.files import LARGEST_FILE_BYTES, read_bytes
from planner.base.shown import one_line, shown

if TYPE_CHECKING:  # NumPy loads when an array is read
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[Any]
    Arrays = dict[str, Array]

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
MAGIC = b"\x93NUMPY"
_LENGTHS = {(1, 0): (8, 2), (2, 0): (8, 4)}  # by version: where the header's length stands, and its bytes


def read_npz(path: str | Path, largest: int = LARGEST_FILE_BYTES) -> "Arrays":
    """The arrays of an .npz, or the one array of an .npy under the name 'array'.

    Never unpickles; refuses an archive that unfolds past `largest`, and an array that is longer or shorter
    than its header says.
    """
    return parse_npz(read_bytes(path, largest), path, largest)


def parse_npz(content: bytes, path: str | Path, largest: int = LARGEST_FILE_BYTES) -> "Arrays":
    """The same of bytes. `path` is used in messages."""
    try:
        return _unzipped(content, path, largest) if content[:2] == b"PK" else {"array": _array(content, path)}
    except DAMAGED_NPZ as error:
        why = one_line(error) or type(error).__name__
        raise BadInput(f"{path}: not a readable NumPy file ({why}); pickled arrays are not loaded") from error


def _unzipped(content: bytes, path: str | Path, largest: int) -> "Arrays":
    found: Arrays = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = archive.infolist()
        unfolded = sum(entry.file_size for entry in entries)
        if unfolded > largest:
            raise BadInput(f"{path}: unfolds to {unfolded:,} bytes, more than the {largest:,} we read")
        for entry in entries:
            name = entry.filename.removesuffix(".npy")
            if name in found:
                raise BadInput(f"{path}: holds the array {shown(name)} twice; which one counts is not known")
            with archive.open(entry) as member:
                inside = member.read(entry.file_size + 1)
            if inside[: len(MAGIC)] == MAGIC:
                found[name] = _array(inside, f"{path}: {shown(name)}")
    return found


@lru_cache(maxsize=64)
def _header(head: bytes, version: tuple[int, int]) -> "tuple[tuple[int, ...], bool, np.dtype[Any]]":
    """(shape, whether it is stored by columns, dtype): files of one kind have one header, parsed once."""
    import numpy as np

    formats = np.lib.format
    read = formats.read_array_header_1_0 if version == (1, 0) else formats.read_array_header_2_0
    file = io.BytesIO(head)
    formats.read_magic(file)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # that a header is of Python 2, or damaged to look so: it is read all the same
        shape, by_columns, dtype = read(file)
    return shape, by_columns, dtype


def _array(content: bytes, where: str | Path) -> "Array":
    """One .npy. Nothing is reserved before its length is known to be what its header says."""
    import numpy as np

    version = np.lib.format.read_magic(io.BytesIO(content))
    if version not in _LENGTHS:
        raise BadInput(f"{where}: not a readable NumPy file (version {version}); save it as .npz anew")
    first, size = _LENGTHS[version]
    begins = first + size + int.from_bytes(content[first : first + size], "little")
    shape, by_columns, dtype = _header(content[:begins], version)
    if dtype.hasobject:
        raise BadInput(
            f"{where}: not a readable NumPy file (it holds objects); pickled arrays are not loaded"
        )
    there, needed = len(content) - begins, math.prod(shape) * dtype.itemsize
    if there != needed or any(length < 0 for length in shape):
        raise BadInput(
            f"{where}: {there:,} bytes follow a header that promises {needed:,}: the file is "
            f"{'cut short' if there < needed else 'too long'}, so no number in it can be believed"
        )
    flat = np.frombuffer(content, dtype=dtype, offset=begins, count=math.prod(shape)) if needed else None
    if flat is None:
        return np.empty(shape, dtype=dtype)
    return flat.reshape(shape, order="F" if by_columns else "C").copy()
