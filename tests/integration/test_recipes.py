"""The page of recipes over HTTP, run by a shell as it stands, with a server and without."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from patience import PATIENCE_S
from programs import needs

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings

pytestmark = needs("bash", "curl")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "integrations" / "recipes.md"
BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def run(block: str, target: str, folder: Path, seconds: int = 60) -> str:
    """What a block prints."""
    # The two seconds of the page are not those of a busy machine.
    program = block.replace("localhost:50552", target).replace("time 2 ", f"time {seconds} ")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", program],
        cwd=folder,
        env={**os.environ, "no_proxy": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


def objects(text: str) -> Iterator[dict[str, Any]]:
    """The replies, one after the other."""
    decoder = json.JSONDecoder()
    while text:
        value, end = decoder.raw_decode(text)
        yield value
        text = text[end:].lstrip()


def test_each_recipe_answers_its_question_and_the_script_goes_on_without(tmp_path: Path) -> None:
    assert len(BLOCKS) == 6
    with EmbeddedServer(Settings(store="memory:", grace_s=1.0, http="127.0.0.1:0")) as server:
        target = server.http_target
        measured, which, how_long, memory, script, dstack = (run(block, target, tmp_path) for block in BLOCKS)
    assert json.loads(measured)["profile"]["observationsCount"] == 2
    assert json.loads(which)["recommendation"]["nodes"] == 2
    assert json.loads(how_long)["predictions"]["finishSeconds"] == pytest.approx([6846464 / 2048 / 3.848])
    _, fits = objects(memory)
    missing = fits["predictions"]["excessMemoryBytes"]
    assert [each > 0 for each in missing] == [True, False, False, False]
    assert fits["recommendation"]["nodes"] in {4, 8}
    assert script.strip() == "4"
    assert "nodes: 4\n" in dstack
    # The server is gone.
    assert run(BLOCKS[4], target, tmp_path).strip() == "2"
    assert "nodes: 2\n" in run(BLOCKS[5], target, tmp_path)


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (200, ""),
        (200, "<html>Welcome</html>"),
        (200, "[]"),
        (200, "{}"),
        (200, '{"recommendation": {"nodes": 4096}}'),
        (200, '{"recommendation": {"nodes": "4; true"}}'),
        (401, '{"recommendation": {"nodes": 4}}'),
        (429, ""),
    ],
)
def test_the_script_prints_two_where_something_else_answers(status: int, text: str, tmp_path: Path) -> None:
    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_words: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        Thread(target=server.serve_forever).start()
        printed = run(BLOCKS[4], f"127.0.0.1:{server.server_port}", tmp_path)
        server.shutdown()
    assert printed == "2\n"


def test_the_script_prints_two_where_nothing_answers(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert run(BLOCKS[4], f"127.0.0.1:{silent.getsockname()[1]}", tmp_path, seconds=1) == "2\n"
