"""Hypothesis profiles: in CI the same examples every time, elsewhere new ones; never a deadline, since the machine is shared."""

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None, database=None)
settings.register_profile("dev", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "dev")
