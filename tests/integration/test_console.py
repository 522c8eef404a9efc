"""The console from any server with HTTP, and `nodewise ui`. Its pages are tested in a browser (clients/console)."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from patience import PATIENCE_S

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings

ROOT = Path(__file__).resolve().parents[2]


def test_a_server_sends_the_console_under_a_strict_policy() -> None:
    with EmbeddedServer(Settings(store="memory:", grace_s=1.0, http="127.0.0.1:0")) as server:
        base = f"http://{server.http_target}/"
        with urllib.request.urlopen(base) as response:
            page, headers = response.read().decode(), response.headers
        assert headers.get_content_type() == "text/html"
        assert headers["Content-Security-Policy"].startswith("default-src 'self'; ")
        assert "unsafe" not in headers["Content-Security-Policy"]
        files = re.findall(r'(?:src|href)="\./([\w.]+)"', page)
        assert sorted(files) == ["console.css", "console.js"]
        for name, kind in (("console.css", "text/css"), ("console.js", "text/javascript")):
            with urllib.request.urlopen(base + name) as response:
                assert response.headers.get_content_type() == kind
                assert len(response.read()) > 1000
        with urllib.request.urlopen(f"{base}docs") as response:
            page = response.read().decode()
        for name in re.findall(r'(?:src|href)="\./([\w.]*)"', page):
            with urllib.request.urlopen(base + name) as response:
                assert response.status == 200


@pytest.mark.wheel
def test_ui_shows_files_until_it_is_interrupted(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "nodewise", "ui", ROOT / "examples" / "testbed.csv", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stdout is not None
        url = next(found[1] for line in process.stdout if (found := re.search(r"The console is at (\S+) ", line)))
        with urllib.request.urlopen(url) as response:
            assert b"console.js" in response.read()
        with urllib.request.urlopen(f"{url}v1/profiles") as response:
            assert b'"a1"' in response.read()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
    assert not list(tmp_path.iterdir())
