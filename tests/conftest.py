"""Hypothesis profiles: in CI the same examples every time, elsewhere new ones.

Never a deadline, since the machine is shared.
"""

import os

from hypothesis import settings

from tests.skips import pytest_sessionfinish, pytest_terminal_summary

__all__ = ["pytest_sessionfinish", "pytest_terminal_summary"]  # hooks: what a run leaves out

settings.register_profile("ci", derandomize=True, deadline=None, database=None)
settings.register_profile("dev", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "dev")
