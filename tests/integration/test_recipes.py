"""The page of recipes over HTTP, run by a shell as it stands, with a server and without."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE_S
from programs import needs

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings

pytestmark = needs("bash", "curl")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "integrations" / "recipes.md"
BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def run(block: str, target: str, folder: Path) -> str:
    """What a block prints."""
    done = subprocess.run(
        # The two seconds of the page are not those of a busy machine.
        ["bash", "-euo", "pipefail", "-c", block.replace("localhost:50552", target).replace("time 2 ", "time 60 ")],
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
