"""Fixtures of the tests that write load files."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.planner.load.files import Saver


@pytest.fixture
def save(tmp_path: Path) -> Saver:
    """Write text, a JSON tree or arrays under a name; return the path."""

    def write(name: str, content: str | list[object] | dict[str, object] | None = None, **named: Any) -> Path:
        path = tmp_path / name
        if named:
            np.savez(path, **named)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    return write
