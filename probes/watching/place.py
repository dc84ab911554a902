"""Where the load is told: addresses of servers, a folder, and what a server asks for."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from planner.base import BadInput
from probes.routing.web import Server


@dataclass(frozen=True)
class Place:
    """What a person gave. `urls`: of every rank that is asked, in order."""

    urls: tuple[str, ...] = ()
    folder: Path | None = None
    remove_read: bool = False  # dump files, once what is in them is kept
    timeout_seconds: float = 30.0
    api_key: str = field(default="", repr=False)

    def the_folder(self) -> Path:
        if self.folder is None:
            raise BadInput("the load is in a folder that the server writes; name it with --folder")
        return self.folder

    def the_server(self) -> Server:
        if len(self.urls) != 1:
            raise BadInput(f"one server is asked, and {len(self.urls)} were given; name it with --server URL")
        return next(self.servers())

    def servers(self) -> Iterator[Server]:
        """In the order given. BadInput where there is none, or one is given twice."""
        if not self.urls:
            raise BadInput("the load is told by the server; name it with --server URL")
        if len(set(self.urls)) < len(self.urls):
            raise BadInput("a --server was given twice: its counts would be summed with themselves")
        return (Server(url, self.timeout_seconds, self.api_key) for url in self.urls)
