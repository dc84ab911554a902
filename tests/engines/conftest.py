"""What the engines answered over the matrix, in a few lines at the end of the run."""

from collections.abc import Callable

import pytest

SAID = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def tell(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Takes a line for the end of the run."""
    return pytestconfig.stash.setdefault(SAID, []).append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    said = terminalreporter.config.stash.get(SAID, [])
    if said:
        terminalreporter.section("what the engines answered")
        for line in said:
            terminalreporter.write_line(line)
