"""A person at the command line: one line asked, and what comes back."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from planner.cli import main

FOUR_GPUS = "--topology hgx-h100:1x4"
V3_LIKE = {"num_hidden_layers": 61, "first_k_dense_replace": 3, "num_nextn_predict_layers": 1}
Made = Callable[..., Path]


def run(line: str) -> Result:
    return CliRunner().invoke(main, shlex.split(line))


def told(line: str) -> Any:
    """What `--json` prints."""
    result = run(f"{line} --json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def solved(path: Path, flags: str) -> Path:
    """A plan file; by the quickest method where the flags name none."""
    result = run(f"solve --method linear {flags} -o {path}")
    assert result.exit_code == 0, result.output
    return path


def refusal(line: str) -> str:
    """The one line on stderr of an exit 2."""
    result = run(line)
    assert result.exit_code == 2, result.output
    (said,) = result.stderr.strip().splitlines()
    return said
