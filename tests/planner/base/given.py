"""Files as a test gives them, and their refusal in one line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner.base import BadInput


def saved(folder: Path, content: bytes | str, name: str = "file") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refused(reader: Callable[[Path], Any], path: Path) -> str:
    """The refusal: one line that begins with the path."""
    with pytest.raises(BadInput) as caught:
        reader(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    return text
