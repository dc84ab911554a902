"""Metrics at a port: the newest text, for whoever asks; a port that is taken is one line."""

import socket

import pytest

from planner.base import BadInput
from probes.routing.web import NoAnswer, Server, fetch
from probes.watching.exporter import exporter


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def test_the_newest_text_is_told() -> None:
    port = free_port()
    server = Server(f"http://127.0.0.1:{port}", 5)
    with exporter(str(port)) as publish:
        publish("one 1\n")
        publish("two 2\n")
        assert fetch(server, "/metrics") == b"two 2\n"
        with pytest.raises(NoAnswer, match="/metrics"):
            fetch(server, "/secret")


@pytest.mark.parametrize("target", ["99999999", "nowhere/file.prom"])
def test_a_place_that_cannot_be(target: str) -> None:
    with pytest.raises(BadInput, match="--metrics"), exporter(target):
        pass


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(BadInput, match="cannot be listened on"), exporter(f"127.0.0.1:{port}"):
            pass
