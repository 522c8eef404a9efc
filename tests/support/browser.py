"""A page in headless Chromium, driven over the pipe of its debugging protocol: no package is needed, no port opened."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any, Final

from patience import PATIENCE_S

CHROMIUM: Final = os.environ.get("NODEWISE_CHROMIUM") or shutil.which("chromium") or ""
FLAGS: Final = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip


class Page:
    """One page, what it asked for, why that was refused, and what it complained of."""

    def __init__(self, write: int, read: FileIO) -> None:
        self._write, self._read, self._number, self._buffer = write, read, 0, b""
        self._session: str | None = None
        self.requests: list[str] = []
        self.refused: list[str] = []
        self.errors: list[str] = []
        self.loaded = False
        self.replies: dict[str, str] = {}
        """Bodies in base64 by the end of a URL, which the page gets in the place of replies of a server."""

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol, and hear what happens meanwhile."""
        number = self._send(method, parameters)
        while (answer := self._next()).get("id") != number:
            self._hear(answer)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    def _send(self, method: str, parameters: dict[str, Any]) -> int:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        return self._number

    def open(self, path: Path, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Open a file and wait until its scripts have run."""
        if self._session is None:
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Network", "Log"):
                self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = "dark" if dark else "light"
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.go(path.resolve().as_uri())

    def go(self, url: str) -> None:
        """Open a URL and wait until its scripts have run."""
        self.loaded = False
        self.call("Page.navigate", url=url)
        while not self.loaded:
            self._hear(self._next())

    def run(self, script: str) -> Any:
        """What a script of the test evaluates to."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def key(self, key: str, text: str = "", modifiers: int = 0) -> None:
        """Press a key."""
        known = {"key": key, "text": text, "modifiers": modifiers, "windowsVirtualKeyCode": _CODES.get(key, 0)}
        self.call("Input.dispatchKeyEvent", type="keyDown", **known)
        self.call("Input.dispatchKeyEvent", type="keyUp", **known)

    def picture(self, path: Path, *, whole: bool = True, element: str = "") -> None:
        """Keep what is seen as a PNG; ``element`` (a CSS selector) = only the first of these, 1.5 times as large."""
        clip = self.run(_BOX % json.dumps(element)) | {"scale": 1.5} if element else self._all() if whole else None
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole, **({"clip": clip} if clip else {}))
        path.write_bytes(base64.b64decode(shot["data"]))

    def printed(self, path: Path) -> None:
        """Keep what a printer gets as a PDF."""
        path.write_bytes(base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"]))

    def _all(self) -> dict[str, Any]:
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            more = self._read.read(1 << 16)
            if not more:
                raise AssertionError("Chromium is gone")
            self._buffer += more
        message, _, self._buffer = self._buffer.partition(b"\0")
        parsed: dict[str, Any] = json.loads(message)
        return parsed

    def _answer(self, paused: dict[str, Any]) -> None:
        body = next(each for end, each in self.replies.items() if paused["request"]["url"].endswith(end))
        headers = [{"name": "Content-Type", "value": "application/connect+proto"}]
        reply = {"requestId": paused["requestId"], "responseCode": 200, "responseHeaders": headers, "body": body}
        self._send("Fetch.fulfillRequest", reply)  # its own reply is no answer to the call that waits

    def _hear(self, event: dict[str, Any]) -> None:
        method, told = event.get("method"), event.get("params", {})
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        elif method == "Network.loadingFailed":
            self.refused.append(told.get("blockedReason", ""))
        elif method == "Fetch.requestPaused":
            self._answer(told)
        elif method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(told["exceptionDetails"]))
        elif method == "Log.entryAdded" and told["entry"]["level"] == "error":
            self.errors.append(told["entry"]["text"])


_AT_THREE_AND_FOUR: Final = (
    "import fcntl, os, sys; read, write = (fcntl.fcntl(int(each), fcntl.F_DUPFD, 10) for each in sys.argv[1:3]); "
    "os.dup2(read, 3); os.dup2(write, 4); os.execv(sys.argv[3], sys.argv[3:])"
)
"""The protocol's pipe is at these descriptors."""

_BOX: Final = """(() => {
  const box = document.querySelector(%s).getBoundingClientRect();
  return {x: box.x + scrollX, y: box.y + scrollY, width: box.width, height: box.height};
})()"""

_CODES: Final = {"Enter": 13, "Escape": 27, "Home": 36, "ArrowLeft": 37, "ArrowRight": 39, "Tab": 9}


@contextmanager
def page(folder: Path) -> Iterator[Page]:
    """A page of a Chromium of its own, whose profile is in a folder."""
    to_read, write = os.pipe()
    read, to_write = os.pipe()

    process = subprocess.Popen(
        [sys.executable, "-c", _AT_THREE_AND_FOUR, str(to_read), str(to_write), CHROMIUM, *FLAGS,
         f"--user-data-dir={folder / 'chromium'}", "about:blank"],
        pass_fds=(to_read, to_write),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(to_read)
    os.close(to_write)
    try:
        with FileIO(read, "rb") as heard:
            yield Page(write, heard)
    finally:
        os.close(write)
        process.kill()
        process.wait(PATIENCE_S)
