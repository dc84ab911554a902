"""One HTTP server, the one whose URL was given, and one line for each fault.

No redirects, no proxies, a time limit, a size limit.
"""

import http.client
import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from planner.base import BadInput, parse_json
from probes.routing.in_time import HttpInTime, HttpsInTime

LARGEST_ANSWER_BYTES = 256 << 20
CHUNK_BYTES = 1 << 16


class NoAnswer(BadInput):
    """The server answered with a status that is not 200: `status`."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Server:
    """Where a server listens. `timeout_seconds` bounds one answer."""

    url: str
    timeout_seconds: float = 120.0
    api_key: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not _is_plain(self.url):
            given = f"--server {self.url[:100]!r}"
            raise BadInput(f"{given}: give the server's address like http://127.0.0.1:30000")
        if not 0 < self.timeout_seconds <= 86400:
            raise BadInput(f"a timeout of {self.timeout_seconds} seconds; give more than 0 and at most 86400")
        if not self.api_key.isascii() or not self.api_key.isprintable():
            raise BadInput("the API key holds characters that no HTTP header can carry")

    def at(self, path: str) -> str:
        return self.url.rstrip("/") + path


def _is_plain(url: str) -> bool:
    """Whether it is the address of an HTTP server, without user, query or fragment."""
    try:
        parts = urlsplit(url)
        is_server = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number
        return False
    more = parts.username is not None or parts.query or parts.fragment
    return is_server and not more and url.isprintable() and " " not in url


def get_json(server: Server, path: str) -> Any:
    return _parsed(server, path, fetch(server, path))


def post_json(server: Server, path: str, body: dict[str, Any]) -> Any:
    return _parsed(server, path, fetch(server, path, body))


def fetch(server: Server, path: str, body: dict[str, Any] | None = None) -> bytes:
    """The body of the answer: a GET, or a POST of JSON.

    NoAnswer where the status is not 200, BadInput where none comes in time or it is too large.
    """
    url, timeout_seconds = server.at(path), server.timeout_seconds
    headers = {"Content-Type": "application/json"}
    if server.api_key:
        headers["Authorization"] = f"Bearer {server.api_key}"
    content = None if body is None else json.dumps(body).encode()
    # Server has checked the scheme
    request = urllib.request.Request(url, data=content, headers=headers)  # noqa: S310
    until = time.monotonic() + timeout_seconds
    try:
        with _OPENER.open(request, timeout=timeout_seconds) as answer:
            return _read(answer, url, until, timeout_seconds)
    except urllib.error.HTTPError as error:
        with error:
            said = f"the server answered {error.code} ({_excerpt(error)})"
            raise NoAnswer(f"{url}: {said}", error.code) from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, TimeoutError) or time.monotonic() >= until:
            raise BadInput(_late(url, timeout_seconds)) from error
        why = _plain(str(reason) or type(error).__name__)
        raise BadInput(f"{url}: no answer ({why}); is the server up, and the address right?") from error


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is a fault: another address is not the one that was given."""

    def redirect_request(self, *_args: Any, **_kwargs: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(
    urllib.request.ProxyHandler({}), _NoRedirect(), HttpInTime(), HttpsInTime()
)


def _read(answer: Any, url: str, until: float, seconds: float) -> bytes:
    """All of the body, in pieces, so that a server that drips bytes is left in time."""
    content = bytearray()
    while piece := answer.read1(CHUNK_BYTES):
        content += piece
        if len(content) > LARGEST_ANSWER_BYTES:
            raise BadInput(
                f"{url}: the answer is larger than {LARGEST_ANSWER_BYTES:,} bytes; record shorter sequences"
            )
        if time.monotonic() > until:
            raise BadInput(_late(url, seconds))
    if time.monotonic() > until:  # its headers were cut off
        raise BadInput(_late(url, seconds))
    if answer.length:  # bytes that were announced and did not come
        raise BadInput(f"{url}: the answer was cut short, {answer.length:,} bytes are missing; try again")
    return bytes(content)


def _parsed(server: Server, path: str, content: bytes) -> Any:
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{server.at(path)}: the answer is not JSON; is this the server of an engine?"
        ) from error
    return parse_json(text, f"{server.at(path)}, its answer")


def _late(url: str, seconds: float) -> str:
    return f"{url}: no complete answer within {seconds:g} s; is the server busy? --timeout gives it longer"


def _excerpt(error: urllib.error.HTTPError) -> str:
    try:
        told = error.read1(2000).decode(errors="replace")  # once: it may drip too
    except (OSError, http.client.HTTPException):
        told = ""
    return _plain(told) or str(error.reason)


def _plain(text: str) -> str:
    """One short line without control characters: what a server says goes to a terminal."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())[:200]
