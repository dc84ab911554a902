"""Importing is silent and cheap: the command line answers before any heavy library is loaded."""

import subprocess
import sys

HEAVY = (
    *("joblib", "networkx", "numpy", "ortools", "pandas", "plotly", "pynvml"),
    *("ray", "rich", "safetensors", "torch", "transformers", "yaml"),
)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=60, check=False
    )


def test_command_line_imports_nothing_heavy() -> None:
    """`import planner.cli` may bring click and the standard library, and prints nothing."""
    done = run("-c", f"import sys, planner.cli; print([name for name in {HEAVY} if name in sys.modules])")
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "[]", "")


def test_help_answers() -> None:
    """`moeplan --help`, started as a person would, exits 0 and shows the usage."""
    done = run("-m", "planner", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: ")


def test_packages_are_silent() -> None:
    """Importing the two packages prints nothing and warns of nothing."""
    done = run("-W", "error", "-c", "import planner, probes")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
