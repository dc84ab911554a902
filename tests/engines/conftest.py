"""What the engines answered over the matrix, in a few lines at the end of the run."""

from collections.abc import Callable
from typing import Any

import pytest

PROGRAMS = ("_oracle.py", "_recorder.py", "_resolver.py", "_experts.py", "_gpu.py")
# Run by an engine's own interpreter, whose packages are not here: no place to look for doctests.
collect_ignore_glob = [f"*{ending}" for ending in PROGRAMS]

SAID = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def tell(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Takes a line for the end of the run."""
    return pytestconfig.stash.setdefault(SAID, []).append


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process of several hands what it was told to the one that prints."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["said"] = session.config.stash.get(SAID, [])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    node.config.stash.setdefault(SAID, []).extend(getattr(node, "workeroutput", {}).get("said", []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    said = terminalreporter.config.stash.get(SAID, [])
    if said:
        terminalreporter.section("what the engines answered")
        for line in said:
            terminalreporter.write_line(line)
