"""Standard streams as shells and services hand them over: closed, of another encoding, full."""

import errno
import os
import sys

# What the system lacks, in words that say what to do.
LACKS = {
    errno.EMFILE: "this process may not open more files; raise `ulimit -n`",
    errno.ENFILE: "the system may not open more files; end other programs",
    errno.ENOMEM: "there is not enough memory; take a smaller question, or another machine",
    errno.EAGAIN: "the system starts no more processes; raise `ulimit -u`, or take fewer --workers",
}


def ready_streams() -> None:
    """No file of ours takes the number of a closed stream, and what an encoding lacks is spelt out."""
    while (number := os.open(os.devnull, os.O_RDWR)) < 3:  # the lowest that is free
        os.set_inheritable(number, True)  # noqa: FBT003 - os names no argument
    os.close(number)
    # ours and libraries' that flush it: nobody hears what is written
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - stays open
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - stays open
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def of_the_system(fault: OSError) -> str:
    """A refusal by the operating system as a line. A fault that nobody but we can mend is raised again."""
    if fault.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS):
        return f"the output cannot be written ({fault.strerror})"
    if fault.errno in LACKS:
        return LACKS[fault.errno]
    raise fault
