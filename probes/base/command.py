"""Run another program with a time limit and take what it printed, also where it failed after good output."""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass

LARGEST_OUTPUT_BYTES = 64 << 20
_AFTER_KILL_SECONDS = 2.0  # for what the pipe still holds


@dataclass(frozen=True)
class Output:
    """What a program printed.

    `exit_code` is None where it never started or was killed; `fault` is what went wrong, a sentence, else
    None.
    """

    stdout: str
    exit_code: int | None
    fault: str | None = None


def run(argv: Sequence[str], timeout_seconds: float) -> Output:
    """The program's output.

    A missing tool, a hang and a failure are faults, not exceptions; stdout that came before stays usable.
    """
    try:
        process = _started(argv)
    except FileNotFoundError:
        return Output("", None, f"'{argv[0]}' is not installed (not found on PATH)")
    except OSError as error:
        return Output("", None, f"'{argv[0]}' cannot be started ({error.strerror or error})")
    try:
        out, err, ended = _collect(process, time.monotonic() + timeout_seconds)
    finally:
        _end(process)
    stdout = out.decode("utf-8", "replace")
    command = " ".join(argv)
    if ended == "timeout":
        return Output(stdout, None, f"'{command}' did not end within {timeout_seconds:g} s and was killed")
    if ended == "flood":
        flood = f"'{command}' printed more than {LARGEST_OUTPUT_BYTES:,} bytes and was killed"
        return Output(stdout, None, flood)
    if process.returncode:
        return Output(stdout, process.returncode, f"'{command}' ended with {_how(process.returncode, err)}")
    return Output(stdout, 0)


def _started(argv: Sequence[str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        list(argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "LC_ALL": "C"},
    )


def _how(returncode: int, stderr: bytes) -> str:
    said = stderr.decode("utf-8", "replace").strip().splitlines()
    how = f"signal {-returncode}" if returncode < 0 else f"exit code {returncode}"
    return how + (f": {said[-1][:200]}" if said else "")


def _collect(process: "subprocess.Popen[bytes]", deadline: float) -> tuple[bytes, bytes, str]:
    """stdout, stderr, and how it ended: 'closed', 'timeout' or 'flood'.

    Waits for the exit too: a program may close its pipes and hang.
    """
    assert process.stdout is not None
    assert process.stderr is not None
    chunks: dict[int, list[bytes]] = {process.stdout.fileno(): [], process.stderr.fileno(): []}
    size, ended = 0, "closed"
    with selectors.DefaultSelector() as selector:
        for pipe in chunks:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map() and ended != "flood":
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                if ended == "timeout":
                    break
                ended, deadline = "timeout", time.monotonic() + _AFTER_KILL_SECONDS
                _kill(process)
            for key, _ in ready:
                chunk = os.read(key.fd, 1 << 16)
                chunks[key.fd].append(chunk)
                size += len(chunk)
                if not chunk:
                    selector.unregister(key.fd)
            if size > LARGEST_OUTPUT_BYTES:
                ended = "flood"
    if ended == "closed":
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            ended = "timeout"
    out, err = (b"".join(part) for part in chunks.values())
    return out, err, ended


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Its whole process group, while the leader is not waited for: after that the number may be another's."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Nothing of it is left, whatever stopped us.

    A process stuck in the kernel ignores even SIGKILL: then it is left, since to wait is to hang too.
    """
    _kill(process)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_AFTER_KILL_SECONDS)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
