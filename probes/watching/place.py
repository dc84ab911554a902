"""Where the load is told: addresses of servers, a folder, and what a server asks for."""

from dataclasses import dataclass, field
from pathlib import Path

from planner.base import BadInput


@dataclass(frozen=True)
class Place:
    """What a person gave. `urls`: of every rank that is asked, in order."""

    urls: tuple[str, ...] = ()
    folder: Path | None = None
    timeout_seconds: float = 30.0
    api_key: str = field(default="", repr=False)

    def the_folder(self) -> Path:
        if self.folder is None:
            raise BadInput("the load is in a folder that the server writes; name it with --folder")
        return self.folder

    def the_url(self) -> str:
        if len(self.urls) != 1:
            raise BadInput(f"one server is asked, and {len(self.urls)} were given; name it with --server URL")
        return self.urls[0]
