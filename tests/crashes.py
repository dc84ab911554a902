"""Ends of a writer at every step that it takes: killed there, or refused by the system there.

A step is a call of the operating system that makes, fills, links, renames or removes a file. The writer runs
in a child of ours, which ends itself like SIGKILL would before its n-th step.
"""

import ctypes
import errno
import os
import shutil
import traceback
from collections.abc import Callable
from pathlib import Path

STEPS = ("open", "write", "fsync", "link", "rename", "replace", "mkdir", "unlink", "rmdir", "chmod")
KILLED = 77


def steps_of(write: Callable[[], object]) -> int:
    """How many steps the writer takes."""
    return _in_child(write, lambda _: None)


def killed_before(step: int, write: Callable[[], object]) -> None:
    """The writer, ended at once before that step: nothing of it unwinds."""

    def end(now: int) -> None:
        if now == step:
            os._exit(KILLED)

    _in_child(write, end)


def refused_at(step: int, write: Callable[[], object]) -> bool:
    """The writer, whose step is refused for want of space. True where it ended as it does with bad input."""

    def refuse(now: int) -> None:
        if now == step:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return _in_child(write, refuse) == -1


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file below the folder, but half-written ones that a killed writer left beside their place."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".plan.json.")
    }


def fresh(folder: Path, of: Path | None) -> None:
    """The folder as it was in `of`, with nothing beside it of earlier writers."""
    for left in folder.parent.glob(f".{folder.name}.*"):
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    if folder.exists():
        shutil.rmtree(folder)
    if of is not None:
        shutil.copytree(of, folder)


def _in_child(write: Callable[[], object], at: Callable[[int], None]) -> int:
    """Steps taken; -1 where the writer ended in BadInput. A traceback is an AssertionError."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        status = 99
        try:
            status = _counted(write, at, writing)
        except BaseException:  # noqa: BLE001 - told to the parent
            os.write(writing, traceback.format_exc().encode())
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        steps = told.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 2, KILLED), f"the writer ended with {code}: {steps.decode()}"
    return -1 if code == 2 else int(steps or 0)


def _counted(write: Callable[[], object], at: Callable[[int], None], out: int) -> int:
    import io

    from planner.base import BadInput

    count = 0

    def wrapped(call: Callable[..., object]) -> Callable[..., object]:
        def step(*args: object, **kwargs: object) -> object:
            nonlocal count
            count += 1
            at(count)
            return call(*args, **kwargs)

        return step

    for name in STEPS:
        setattr(os, name, wrapped(getattr(os, name)))
    opened, written = io.open, wrapped(io.open)

    def open_(file: object, mode: str = "r", *rest: object, **named: object) -> object:
        call = opened if mode in ("r", "rb") else written
        return call(file, mode, *rest, **named)  # type: ignore[call-overload]  # whatever a writer gives it

    io.open = open_  # type: ignore[assignment]  # Path.open
    ctypes.CDLL = wrapped(ctypes.CDLL)  # type: ignore[assignment,misc]  # before both folders change places
    try:
        write()
    except BadInput:
        return 2
    _tell(out, count)
    return 0


def _tell(out: int, count: int) -> None:
    with os.fdopen(out, "wb", closefd=False) as told:
        told.write(str(count).encode())
