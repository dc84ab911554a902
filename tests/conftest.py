"""Hypothesis profiles: in CI the same examples every time, elsewhere new ones.

Never a deadline, since the machine is shared. And no COLUMNS of whoever runs the tests, xdist among them:
what a test reads is what a pipe gets, unless it sets a width itself.
"""

import os

from hypothesis import settings

from tests.skips import pytest_sessionfinish, pytest_terminal_summary

__all__ = ["pytest_sessionfinish", "pytest_terminal_summary"]  # hooks: what a run leaves out

os.environ.pop("COLUMNS", None)

# CI has 25 minutes on two cores: half the tries of a developer's run, unless a test states its own number.
settings.register_profile("ci", derandomize=True, deadline=None, database=None, max_examples=50)
settings.register_profile("dev", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "dev")
