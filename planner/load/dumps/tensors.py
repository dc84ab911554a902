"""Files of tensors to NumPy arrays: PyTorch's, without running what is in them, and safetensors.

Their libraries are imported here alone.
"""

import io
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.base import LARGEST_FILE_BYTES, BadInput, one_line, read_bytes

DAMAGED_ZIP = (
    zipfile.BadZipFile,
    ValueError,
    OSError,
    NotImplementedError,
)  # a bad directory, another version
INSTALL = "install it: pip install torch safetensors"


def read_torch(path: Path) -> Any:
    """The tree that `torch.save` wrote, its tensors as arrays.

    BadInput where the file is damaged, holds anything but data, or PyTorch is absent.
    """
    content = read_bytes(path)
    try:
        import torch  # heavy: imported where it is used
    except ImportError as error:
        raise BadInput(f"{path}: reading it takes PyTorch; {INSTALL}") from error
    _refuse_bomb(path, content)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch warns of what it then refuses
            tree = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
            return _as_arrays(tree, path, torch)
    except BadInput:
        raise
    except Exception as error:  # a damaged file makes PyTorch raise nearly anything
        reason = one_line(error)
        raise BadInput(
            f"{path}: not a readable file of tensors ({type(error).__name__}: {reason}); "
            "it is damaged, cut short, or holds code"
        ) from error


def read_safetensors(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a .safetensors file by name."""
    content = read_bytes(path)
    try:
        from safetensors.numpy import load
    except ImportError as error:
        raise BadInput(f"{path}: reading it takes safetensors; {INSTALL}") from error
    try:
        return dict(load(content))
    except Exception as error:  # a damaged file makes it raise its own error, KeyError or ValueError
        raise BadInput(
            f"{path}: not a readable safetensors file ({one_line(error)}); it may be cut short"
        ) from error


def _as_arrays(value: Any, path: Path, torch: Any) -> Any:
    """Tensors become arrays, at any depth of mappings and lists."""
    if isinstance(value, dict):
        return {key: _as_arrays(entry, path, torch) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_as_arrays(entry, path, torch) for entry in value]
    if not isinstance(value, torch.Tensor):
        return value
    if value.numel() * 8 > LARGEST_FILE_BYTES:  # a stride of zero makes a small file claim any shape
        raise BadInput(
            f"{path}: a tensor of shape {list(value.shape)} is larger than the {LARGEST_FILE_BYTES:,} bytes "
            "we read; record fewer steps"
        )
    if value.dtype == torch.bfloat16:
        raise BadInput(
            f"{path}: a tensor is bfloat16, which holds whole numbers only up to 256; save counts as int64"
        )
    return np.array(value.detach().numpy())


def _refuse_bomb(path: Path, content: bytes) -> None:
    if not content.startswith(b"PK"):
        return
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            unfolded = sum(entry.file_size for entry in archive.infolist())
    except DAMAGED_ZIP as error:
        raise BadInput(
            f"{path}: not a readable file of tensors ({one_line(error)}); it is damaged or cut short"
        ) from error
    if unfolded > LARGEST_FILE_BYTES:
        raise BadInput(f"{path}: unfolds to {unfolded:,} bytes, more than the {LARGEST_FILE_BYTES:,} we read")
