"""HTTP connections whose answer must begin in time: a server may drip its very headers, byte by byte."""

import contextlib
import http.client
import socket
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any


class _Http(http.client.HTTPConnection):
    """Shut when the time for the headers is over; each byte of them would begin a socket's own time anew."""

    def getresponse(self) -> http.client.HTTPResponse:
        with _shut_after(self.timeout or 0.0, self.sock):
            return super().getresponse()


class _Https(http.client.HTTPSConnection):
    def getresponse(self) -> http.client.HTTPResponse:
        with _shut_after(self.timeout or 0.0, self.sock):
            return super().getresponse()


class HttpInTime(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_Http, req)


class HttpsInTime(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_Https, req)


@contextlib.contextmanager
def _shut_after(seconds: float, sock: socket.socket) -> Iterator[None]:
    limit = threading.Timer(seconds, _shut, (sock,))
    limit.daemon = True
    limit.start()
    try:
        yield
    finally:
        limit.cancel()


def _shut(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it was closed meanwhile
        sock.shutdown(socket.SHUT_RDWR)
