"""One HTTP server, the one whose URL was given: hangs, broken answers, redirects, bad addresses."""

import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from planner.base import BadInput
from planner.model import ModelSpec
from probes.routing import web
from probes.routing.server import record_server
from probes.routing.web import Server, fetch
from tests.probes.engine_server import Answer, Engine, serving
from tests.probes.routing.toy import PROMPTS


def test_server_that_hangs(engine: Engine, model: ModelSpec) -> None:
    """Left after the time limit."""
    release = threading.Event()

    def hang(_body: Any) -> Answer:
        release.wait(20)
        return 200, b"{}"

    engine.answers["/generate"] = hang
    started = time.monotonic()
    with pytest.raises(BadInput, match=r"no complete answer within 0\.3 s"):
        record_server(Server(engine.url, 0.3), "sglang", model, PROMPTS)
    assert time.monotonic() - started < 5
    release.set()


def raw_server(talk: Callable[[socket.socket], None]) -> str:
    """The address of a server that reads one request and then talks as it likes."""
    listener = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        with listener, listener.accept()[0] as client:
            client.recv(65536)
            try:
                talk(client)
            except OSError:
                return  # the client has left, as it should

    threading.Thread(target=run, daemon=True).start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_server_that_drips() -> None:
    """A byte now and then keeps a socket alive; the limit is on the whole answer."""

    def talk(client: socket.socket) -> None:
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
        for _ in range(100):
            client.sendall(b" ")
            time.sleep(0.05)

    with pytest.raises(BadInput, match=r"no complete answer within 0\.4 s"):
        fetch(Server(raw_server(talk), 0.4), "/")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}", "98 bytes are missing"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "no answer"),
        (b"SSH-2.0-OpenSSH_9.9\r\n", "no answer"),
        (b"", "no answer"),
    ],
)
def test_server_that_speaks_otherwise(said: bytes, told: str) -> None:
    """An answer cut short, a broken one, another protocol, a closed connection."""
    with pytest.raises(BadInput, match=told):
        fetch(Server(raw_server(lambda client: client.sendall(said)), 5), "/")


def test_answer_past_the_size_limit(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not read to its end."""
    monkeypatch.setattr(web, "LARGEST_ANSWER_BYTES", 1000)
    engine.answers["/big"] = (200, b"x" * 100_000)
    with pytest.raises(BadInput, match="larger than 1,000 bytes"):
        fetch(Server(engine.url, 5), "/big")


def test_nobody_listens(model: ModelSpec) -> None:
    """A port that was just closed."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(BadInput, match="is the server up"):
        record_server(Server(f"http://127.0.0.1:{port}", 5), "vllm", model, PROMPTS)


def test_redirect_is_not_followed(engine: Engine) -> None:
    """Only the address that was given is asked."""
    with serving(Engine()) as other:
        engine.answers["/v1/completions"] = (302, f"{other.url}/v1/completions".encode())
        with pytest.raises(BadInput, match="answered 302"):
            fetch(Server(engine.url, 5), "/v1/completions")
        assert other.asked == []


def test_proxy_of_the_environment_is_not_used(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """As above."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    assert fetch(Server(engine.url, 5), "/server_info")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:30000",
        "file:///etc/passwd",
        "ftp://h/x",
        "http://",
        "http://u:p@h",
        "http://h?x=1",
        "http://h:x",
        "http://h/\n",
    ],
)
def test_address_that_is_none(url: str) -> None:
    """Only http and https, with a host and nothing after the path."""
    with pytest.raises(BadInput, match="--server"):
        Server(url)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 1e6])
def test_time_limit_that_is_none(seconds: float) -> None:
    """A limit is never absent."""
    with pytest.raises(BadInput, match="timeout"):
        Server("http://h", seconds)
