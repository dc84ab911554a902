"""A probe of an emulated cluster that is stopped in the middle leaves no process, namespace or folder."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from probes.emulation.flat import flat_cluster
from probes.emulation.namespaces import unavailable
from tests.places import ROOT

NO_CLUSTER = unavailable()
pytestmark = [
    pytest.mark.skipif(NO_CLUSTER is not None, reason=f"no emulated cluster here: {NO_CLUSTER}"),
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
]
MARK = "MOEPLAN_TEST_LEFT_OVER"  # in the environment of the probe, and so of all that it starts


def ours(mark: str) -> list[str]:
    """Command lines of the processes that live and carry the mark, helper of the namespaces included."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment, words = (folder / "environ").read_bytes(), (folder / "cmdline").read_bytes()
        except OSError:  # ended meanwhile
            continue
        if f"{MARK}={mark}".encode() in environment.split(b"\0"):
            found.append(words.replace(b"\0", b" ").decode().strip())
    return found


def await_true(condition: Callable[[], bool], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def measuring(folder: Path) -> bool:
    """A rank has begun to check links."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return any(b"check of" in path.read_bytes() for path in files)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_of_a_probe_that_is_stopped(number: signal.Signals, tmp_path: Path) -> None:
    """Within seconds, however it is ended. Links are slow, so that it is not over before."""
    cluster, temporary = tmp_path / "cluster.json", tmp_path / "temporary"
    cluster.write_text(json.dumps(flat_cluster(2, 1, 1e6, 2e5).to_dict()))
    temporary.mkdir()
    mark = str(tmp_path)
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(ROOT), MARK: mark}
    argv = ["-m", "planner", "probe", "--measure", "--emulate", str(cluster)]
    probe = subprocess.Popen(
        [sys.executable, *argv], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        await_true(lambda: measuring(temporary) or probe.poll() is not None, 120, "no rank has begun")
        assert probe.poll() is None, probe.communicate()
        assert any("cat" in words.split() for words in ours(mark)), "the helper is not seen"
        probe.send_signal(number)
        probe.communicate(timeout=20)
    finally:
        probe.kill()
        probe.wait(10)
    assert probe.returncode in (-number, 128 + number)
    await_true(lambda: not ours(mark), 20, f"still there: {ours(mark)}")
    await_true(lambda: not list(temporary.iterdir()), 5, f"still there: {list(temporary.iterdir())}")
