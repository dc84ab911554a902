"""Why a rank could not go on, where that is no fault of ours: memory, disk, what it was given. No torch."""

import errno
import re
import traceback

from planner.base import BadInput

_OF_THE_MACHINE = (errno.ENOMEM, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.EAGAIN)
# torch has no exception of its own for memory of the CPU, and gloo none for threads that cannot be started
_NO_MEMORY = ("can't allocate memory", "out of memory", "std::bad_alloc", "Resource temporarily unavailable")


def reason_of(error: BaseException) -> str | None:
    """One line for a person; None where it is a bug, which keeps its traceback."""
    said = said_of(error)
    if isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in _NO_MEMORY)
    ):
        return f"out of memory ({said}): take fewer ranks, tokens or layers, or a larger machine"
    if isinstance(error, OSError) and error.errno in _OF_THE_MACHINE:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}"
    if isinstance(error, ImportError) and (error.name or "").startswith("torch"):
        return f"torch cannot be imported ({said})"
    return str(error) if isinstance(error, BadInput) else None


def said_of(error: BaseException) -> str:
    """Its first sentence, without the line of C++ it is from.

    >>> said_of(RuntimeError("[/a/pair.cc:5] Connection closed by peer [::1]:908. Check the logs."))
    'Connection closed by peer [::1]:908'
    """
    line = (str(error).strip().splitlines() or [""])[0]
    return re.sub(r"^\[\S+:\d+\] ", "", line).split(". ")[0].rstrip(".") or type(error).__name__


def account_of(error: BaseException) -> str:
    """The whole traceback, as text."""
    return "".join(traceback.format_exception(error))
