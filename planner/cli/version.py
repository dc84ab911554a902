"""`moeplan --version`: the release, and the commit that it was built from or runs in."""

import subprocess
from pathlib import Path

import click

from planner import __version__
from planner.cli.console import tell

BUILT = Path(__file__).parent.parent / "data" / "commit"  # written by hatch_build.py
CHECKOUT = Path(__file__).parent.parent.parent
ASK = ["git", "describe", "--always", "--dirty=, with changes", "--abbrev=10", "--exclude=*"]
GIT_SECONDS = 5.0


def version_text() -> str:
    """
    >>> version_text().startswith("moeplan, version ")
    True
    """
    commit = BUILT.read_text(encoding="ascii").strip() if BUILT.is_file() else commit_of_checkout()
    return f"moeplan, version {__version__}" + (f", commit {commit}" if commit else "")


def tell_version(context: click.Context, _parameter: click.Parameter, asked: bool) -> None:
    """The callback of the option: it answers and ends."""
    if asked and not context.resilient_parsing:
        tell(version_text())
        context.exit()


def commit_of_checkout() -> str:
    """And whether the tree differs from it. Empty where there is none: a copy of the sources without git."""
    if not (CHECKOUT / ".git").exists():
        return ""
    try:
        asked = subprocess.run(
            ASK, cwd=CHECKOUT, capture_output=True, text=True, timeout=GIT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return asked.stdout.strip() if asked.returncode == 0 else ""
