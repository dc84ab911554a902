"""How long ranks take to begin on this machine, as busy as it is now."""

import subprocess
import sys
import time

import pytest


@pytest.fixture
def enough_seconds() -> float:
    """A time limit within which ranks come to their work: several imports of torch."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", "import torch.distributed"], check=True, timeout=120)
    return round(3 + 4 * (time.monotonic() - began), 1)
