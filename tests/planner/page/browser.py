"""A real Chromium without a window, driven through its own pipe: no network, no package.

It speaks the DevTools protocol: JSON messages that end in a zero byte, over the descriptors 3 and 4.
"""

import base64
import fcntl
import json
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"),
    *("--no-first-run", "--disable-extensions", "--disable-background-networking", "--mute-audio"),
    *("--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe"),
)


def chromium() -> str:
    """Its path; the test is skipped where there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("Chromium is not installed")
    return found


class Browser:
    """One page. Every method waits for its answer."""

    def __init__(self, into: int, out_of: int) -> None:
        self._into, self._out_of, self._rest, self._count = into, out_of, b"", 0
        self.events: list[dict[str, Any]] = []
        self.session = ""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self._into, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") != self._count:
                self.events.append(answer)
                continue
            assert "error" not in answer, answer["error"]
            found: dict[str, Any] = answer["result"]
            return found

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._out_of, 1 << 16)
            assert more, "Chromium ended"
            self._rest += more
        first, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(first)
        return found

    def open(self, path: Path, width: int = 1200, *, dark: bool = False, media: str = "screen") -> None:
        """The page, loaded; with the events from then on."""
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.events.clear()
        self.ask("Page.navigate", url=path.resolve().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def value(self, script: str) -> Any:
        """What an expression comes to; an exception in it fails the test."""
        found = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, key: str) -> None:
        codes = {"Tab": 9, "Enter": 13, "ArrowRight": 39, "ArrowLeft": 37, "ArrowDown": 40, "ArrowUp": 38}
        named = {"key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
        if key == "Enter":
            named["text"] = "\r"
        self.ask("Input.dispatchKeyEvent", type="keyDown", **named)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **named)

    def picture(self, path: Path, *, whole: bool = True) -> None:
        found = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))

    def faults(self) -> list[str]:
        """What the browser complained of, and every request beyond the page itself."""
        said = [json.dumps(event["params"]) for event in self.events if event.get("method") in _COMPLAINTS]
        sent = [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]
        return said + [url for url in sent if not url.startswith("file:")]


_COMPLAINTS = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Chromium with a home of its own in `folder`; gone afterwards."""
    path = chromium()
    (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
    arguments = [path, *FLAGS, f"--user-data-dir={folder / 'home'}", "about:blank"]
    ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (theirs_in, theirs_out)]
    silent = (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)
    wired = [(os.POSIX_SPAWN_DUP2, end, number) for end, number in zip(ends, (3, 4), strict=True)]
    process = os.posix_spawn(path, arguments, os.environ, file_actions=[silent, *wired])
    for end in (theirs_in, theirs_out, *ends):
        os.close(end)
    try:
        yield Browser(ours_out, ours_in)
    finally:
        os.close(ours_out)  # which ends it
        os.close(ours_in)
        os.kill(process, signal.SIGTERM)
        os.waitpid(process, 0)
