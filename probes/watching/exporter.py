"""Where the text of metrics goes: to whoever asks a port, or into a file that is replaced whole."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from planner.base import BadInput, write_atomic

HERE = "127.0.0.1"
Publish = Callable[[str], None]


@contextlib.contextmanager
def exporter(target: str) -> Iterator[Publish]:
    """Takes the text of each round. `target`: PORT of this host alone, HOST:PORT, or a file.

    BadInput where the port is taken, or the file's folder is not there.
    """
    host, _, port = target.rpartition(":")
    if not port.isdecimal():
        path = Path(target)
        if not path.parent.is_dir():
            raise BadInput(f"--metrics {target}: the folder {path.parent} is not there; make it first")
        yield lambda text: _written(path, text)
        return
    held = {"text": ""}
    try:
        server = ThreadingHTTPServer((host or HERE, int(port)), _handler(held))
    except (OSError, OverflowError) as error:
        raise BadInput(f"--metrics {target}: the port cannot be listened on ({error})") from error
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield lambda text: held.update(text=text)
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)


def _written(path: Path, text: str) -> None:
    write_atomic(path, text)


def _handler(held: dict[str, str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10  # of one who asks slowly

        def do_GET(self) -> None:
            found = self.path.split("?")[0] in {"/", "/metrics"}
            content = held["text"].encode() if found else b"not found; the metrics are at /metrics\n"
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_args: Any) -> None:
            """No line a request."""

    return Handler
