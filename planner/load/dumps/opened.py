"""A file or folder that may be an engine's dump, opened once by its suffix; the readers tell whose it is."""

import base64
import binascii
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.base import BadInput, parse_npz, read_bytes, read_npz
from planner.load.dumps.tensors import read_torch

TORCH_SUFFIXES = (".pt", ".pth")
RAW_SUFFIXES = (".bin", ".raw", ".int32", ".i32", ".dat")
TEXT_SUFFIXES = (".log", ".txt", ".out")
SAFETENSORS = ".safetensors"
NUMPY_MAGIC = b"\x93NUMPY"


@dataclass(frozen=True, eq=False)
class Opened:
    """`kind` says what `value` is: torch (a tree with arrays), array, raw (bytes) or text.

    Of a folder or a name nothing is read yet.
    """

    path: Path
    kind: str
    value: Any = None

    def holds(self, *keys: str) -> bool:
        """Whether this is a tree with any of these keys."""
        return isinstance(self.value, dict) and bool(set(keys) & set(self.value))


def open_file(path: Path) -> Opened | None:
    """The file's content where its suffix is one that engines write; None where it is not."""
    suffix = path.suffix.lower()
    if path.is_dir():
        return Opened(path, "folder")
    if suffix in TORCH_SUFFIXES:
        return Opened(path, "torch", read_torch(path))
    if suffix == ".npy":
        return Opened(path, "array", read_npz(path).get("array"))
    if suffix in RAW_SUFFIXES:
        return _by_content(path, read_bytes(path))
    if suffix == ".b64":
        return _by_content(path, _unwrapped(path))
    if suffix in TEXT_SUFFIXES:
        return Opened(path, "text", read_bytes(path).decode("utf-8", errors="replace"))
    if suffix in (SAFETENSORS, ".json", ".parquet", ".pq"):
        return Opened(path, "name")
    return None


def _by_content(path: Path, content: bytes) -> Opened:
    if content.startswith(NUMPY_MAGIC):
        return Opened(path, "array", parse_npz(content, path).get("array"))
    return Opened(path, "raw", content)


def _unwrapped(path: Path) -> bytes:
    """The bytes behind base64 text, as the engines' HTTP answers carry them."""
    try:
        content = base64.b64decode(re.sub(rb"\s", b"", read_bytes(path)), validate=True)
    except binascii.Error as error:
        raise BadInput(
            f"{path}: not base64 text ({error}); "
            "a .b64 file holds one 'routed_experts' of the engine's answer, without quotes"
        ) from error
    if not content:
        raise BadInput(f"{path}: holds no bytes behind its base64 text")
    return content
