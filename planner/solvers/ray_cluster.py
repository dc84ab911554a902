"""A Ray cluster as joblib's workers. Owns ray.

The cluster's machines need moeplan installed, in the same version.
"""

import importlib.util
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from planner.base import BadInput, is_whole

ANSWER_SECONDS = 10.0  # for a port to open
JOIN_SECONDS = 60.0  # for the cluster to take us in


@contextmanager
def joined(
    address: str | None, *, answer_seconds: float = ANSWER_SECONDS, join_seconds: float = JOIN_SECONDS
) -> Iterator[int | None]:
    """CPUs of the cluster while it is ours to use; None without an address.

    BadInput where ray is not installed or nothing answers.
    """
    if address is None:
        yield None
        return
    if importlib.util.find_spec("ray") is None:
        raise BadInput(f"--ray {address}: ray is not installed; pip install 'ray[client]'")
    if address != "auto":
        _knock(address, answer_seconds)
    import ray

    logging.getLogger("ray").setLevel(logging.ERROR)  # its import sets another
    _connect(address, join_seconds)
    try:
        from ray.util.joblib import register_ray

        register_ray()
        yield max(int(ray.cluster_resources().get("CPU", 1)), 1)
    finally:
        ray.shutdown()


def _knock(address: str, seconds: float) -> None:
    """Refuse an address that is none, or at which no port is open."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not (host and colon and is_whole(port) and 0 < int(port) < 1 << 16):
        raise BadInput(
            f"--ray {address}: give HOST:PORT of the cluster's head (6379 by default), ray://HOST:PORT of "
            "its client server, or auto"
        )
    try:
        socket.create_connection((host, int(port)), timeout=seconds).close()
    except OSError as error:
        raise BadInput(
            f"--ray {address}: nothing answers there ({error}); start the cluster with 'ray start --head', "
            "or leave --ray out"
        ) from error


def _connect(address: str, seconds: float) -> None:
    """In a thread that we do not wait for beyond the limit.

    Ray waits long for a port that is open but not its own, and is not to be interrupted.
    """
    import ray

    failure: list[BaseException] = []

    def connect() -> None:
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", configure_logging=False)
        except BaseException as error:  # noqa: BLE001 - handed to the thread that asked
            failure.append(error)

    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise BadInput(f"--ray {address}: no Ray cluster answered in {seconds:.0f} s")
    if failure:
        error, text = failure[0], " ".join(str(failure[0]).split())[:300]
        raise BadInput(f"--ray {address}: {type(error).__name__}: {text}") from error
