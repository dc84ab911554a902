"""Programs that end with us, however we end, and a folder that is gone with them.

Both are kept by a small process beside us, the guardian (`probes.ranks.guardian`). It hears us through a pipe
that the kernel closes when we die, by SIGKILL too; and it takes everything away on that, as it does when all
went well. Should it be killed itself, the programs that `die_with_guardian` die with it, and we remove the
folder. Only where both are killed at once does a folder stay, and the next run removes it.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from planner.base import BadInput

END_SECONDS = 10.0  # for the guardian to take everything away: more than it gives a process that does not die
_GUARDIAN = "MOEPLAN_GUARDIAN"  # in a program's environment: the process id of its guardian
_LOCK = "guarded"  # a file in the folder, with the machine's boot; locked while the guardian lives
_PR_SET_PDEATHSIG = 1  # Linux, sys/prctl.h


class GuardianLostError(Exception):
    """The guardian was killed."""


@dataclass(eq=False)
class Kept:
    """A folder, and the programs started in its name, by number.

    `codes` has those that ended: their exit code, or their signal below zero. `reasons` says why one could
    not be started.
    """

    folder: Path
    _guardian: "subprocess.Popen[bytes]"
    pids: dict[int, int] = field(default_factory=dict)
    codes: dict[int, int] = field(default_factory=dict)
    reasons: dict[int, str] = field(default_factory=dict)
    _heard: bytes = b""

    def start(self, number: int, argv: Sequence[str], environment: Mapping[str, str], output: Path) -> None:
        """Start a program, with what is added to our environment; what it prints goes into a file."""
        added = {**environment, _GUARDIAN: str(self._guardian.pid)}
        program = {"number": number, "argv": list(argv), "environment": added, "output": str(output)}
        assert self._guardian.stdin is not None
        try:
            self._guardian.stdin.write(json.dumps(program).encode() + b"\n")
            self._guardian.stdin.flush()
        except BrokenPipeError as error:
            raise GuardianLostError from error

    def look(self) -> None:
        """Take in what the guardian has told meanwhile. GuardianLostError where it is gone."""
        assert self._guardian.stdout is not None
        while chunk := self._guardian.stdout.read(1 << 16):
            *lines, self._heard = (self._heard + chunk).split(b"\n")
            for word in map(json.loads, lines):
                if "pid" in word:
                    self.pids[word["number"]] = word["pid"]
                else:
                    self.codes[word["number"]] = word["code"]
                    self.reasons |= {word["number"]: word["why"]} if "why" in word else {}
        if chunk == b"":  # closed; None says that there is nothing yet
            raise GuardianLostError


@contextlib.contextmanager
def kept(prefix: str) -> Iterator[Kept]:
    """A new folder and its guardian; after the block nothing is left of either, nor of the programs.

    BadInput where there is no place for a folder.
    """
    try:
        _remove_deserted(Path(tempfile.gettempdir()))
        folder = Path(tempfile.mkdtemp(prefix=prefix))
    except OSError as error:
        why = f"no folder for temporary files ({error.strerror})"
        raise BadInput(f"{why}; set TMPDIR to a folder that can be written") from error
    guardian = None
    try:
        guardian = _started(folder)
        yield Kept(folder, guardian)
    finally:
        _end(guardian, folder)


def die_with_guardian() -> None:
    """Linux ends this process with the guardian that started it, should that one be killed.

    Only after all that the kernel takes for a change of rights, which makes it forget.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.environ.get(_GUARDIAN, str(os.getppid())) != str(os.getppid()):
            os.kill(os.getpid(), signal.SIGKILL)  # it died before we asked


def _started(folder: Path) -> "subprocess.Popen[bytes]":
    lock = _locked(folder)
    try:
        guardian = subprocess.Popen(
            [sys.executable, "-E", "-S", str(Path(__file__).with_name("guardian.py")), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            pass_fds=(lock,),
        )
    finally:
        os.close(lock)
    assert guardian.stdout is not None
    os.set_blocking(guardian.stdout.fileno(), False)
    return guardian


def _end(guardian: "subprocess.Popen[bytes] | None", folder: Path) -> None:
    """Its input closes, and it takes everything away. Where it is gone or hangs, the rest is done here."""
    if guardian is not None:
        assert guardian.stdin is not None
        assert guardian.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            guardian.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            guardian.wait(END_SECONDS)
        if guardian.poll() is None:
            guardian.kill()  # its programs die with it
            guardian.wait()
        guardian.stdout.close()
    shutil.rmtree(folder, ignore_errors=True)


def _locked(folder: Path) -> int:
    """The lock's descriptor. The file appears locked: nobody takes a new folder for a deserted one."""
    made = folder / f"{_LOCK}.new"
    lock = os.open(made, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with contextlib.suppress(OSError):  # a file system without locks, or a full one: it will not be removed
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.write(lock, _boot())
        made.rename(folder / _LOCK)
    return lock


def _remove_deserted(parent: Path) -> None:
    """Folders of runs that were killed together with their guardians.

    Of this machine since it was started, for locks of other machines may not be seen here.
    """
    for file in parent.glob(f"moeplan-*/{_LOCK}"):
        with contextlib.suppress(OSError), file.open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if lock.read() == _boot() != b"":
                shutil.rmtree(file.parent, ignore_errors=True)


def _boot() -> bytes:
    """What tells this machine and its start from others; nothing where the system does not tell."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_bytes()
    return b""
