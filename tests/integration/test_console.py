"""The console from any server with HTTP, and `nodewise ui`. Its pages are tested in a browser (clients/console)."""

from __future__ import annotations

import base64
import json
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from patience import PATIENCE_S

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings
from nodewise_client import configurations, model_from_hugging_face
from nodewise_client.frameworks import FRAMEWORKS, Layout, LayoutError, launch
from nodewise_values.wire import to_message

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


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    with EmbeddedServer(Settings(store="memory:", grace_s=1.0, http="127.0.0.1:0")) as server:
        yield f"http://{server.http_target}/"


def ask(base_url: str, name: str, question: Any) -> tuple[int, Any]:
    return ask_packed(base_url, name, zlib.compress(json.dumps(question).encode()))


def ask_packed(base_url: str, name: str, packed: bytes) -> tuple[int, Any]:
    text = base64.urlsafe_b64encode(packed).decode().rstrip("=")
    try:
        with urllib.request.urlopen(f"{base_url}console/{name}?q={text}") as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


CONFIG = json.loads((ROOT / "examples" / "config.json").read_text(encoding="utf-8"))


def test_a_model_is_what_the_client_reads(base_url: str) -> None:
    model = model_from_hugging_face(CONFIG, sequence_length=2048)
    expected = {"workload": json_format.MessageToDict(to_message(model.workload)), "notes": list(model.notes)}
    assert ask(base_url, "model", {"config": CONFIG, "sequenceLength": 2048}) == (200, expected)


def launch_document(layout: Layout, framework: str) -> dict[str, Any]:
    try:
        result = launch(layout, framework)
    except LayoutError as error:
        return {"framework": framework, "problem": str(error)}
    code = {"In the training script": "\n".join(result.code)} if result.code else {}
    texts = {"Command on each node": result.command, **result.files, **code}
    return {"framework": framework, "name": result.framework, "texts": texts, "notes": list(result.notes)}


def test_launches_are_what_the_client_writes_for_every_framework(base_url: str) -> None:
    workload = model_from_hugging_face(CONFIG, sequence_length=2048).workload
    columns: dict[str, Any] = {
        "nodes": [1, 2], "workers": [8, 16], "devices": ["H100", "H100"], "global_batch_samples": [64, 64],
        "batch_per_worker_samples": [2, 1], "tensor_parallel_degrees": [2, 4], "pipeline_parallel_degrees": [1, 2],
        "precisions": ["bf16", "bf16"],
    }  # fmt: skip
    question = {
        "workload": json_format.MessageToDict(to_message(workload)),
        "configurations": json_format.MessageToDict(to_message(configurations(**columns))),
    }
    for index in range(2):
        layout = Layout.of({name: column[index] for name, column in columns.items()}, workload)
        status, answer = ask(base_url, "launches", question | {"index": index})
        assert status == 200
        assert [each["framework"] for each in answer["launches"]] == list(FRAMEWORKS)
        for each in answer["launches"]:
            assert each == launch_document(layout, each["framework"])
    assert sum("problem" not in each for each in ask(base_url, "launches", question | {"index": 0})[1]["launches"]) >= 3


@pytest.mark.parametrize(
    ("name", "question", "message"),
    [
        ("model", [], "must be a JSON object"),
        ("model", {}, "config: must be a JSON object"),
        ("model", {"config": {"model_type": "llama"}}, "hidden_size"),
        ("model", {"config": CONFIG, "sequenceLength": "many"}, "sequenceLength: must be a whole number"),
        ("model", {"config": CONFIG | {"num_hidden_layers": 10**12}}, "num_hidden_layers: must be at most 4096"),
        ("model", {"config": CONFIG | {"hidden_size": "wide"}}, "hidden_size: must be a whole number"),
        ("model", {"config": CONFIG | {"junk": "x" * 70_000}}, "at most 65536 bytes"),
        ("launches", {"workload": 1}, "workload: must be a JSON object"),
        ("launches", {"workload": {}, "configurations": {"nodes": "x"}}, "nodes"),
        ("launches", {"workload": {}, "configurations": {"nodes": [1]}, "index": 1}, "index: must be that of one of"),
        ("launches", {"workload": {}, "configurations": {"nodes": [1, 2], "workers": [1] * 3}, "index": 0}, "nodes"),
        ("launches", {"workload": {}, "configurations": {"nodes": [1]}, "index": 0}, "the model is not a transformer"),
        ("memory", {"extra": {}, "breakdownSeconds": {"compute": "1"}}, "breakdownSeconds: must be an object"),
        ("memory", {"extra": {"memory_in_flight": 1e9}, "breakdownSeconds": {}}, "must be at most 10000"),
        ("memory", {"extra": {"memory_in_flight": 1}, "breakdownSeconds": {}}, "memory_kept_bytes: is missing"),
    ],
)  # fmt: skip
def test_a_question_that_cannot_be_answered_names_what_is_wrong(
    base_url: str, name: str, question: Any, message: str
) -> None:
    status, answer = ask(base_url, name, question)
    assert status == 400
    assert message in answer["message"]


def test_what_is_no_question_is_refused(base_url: str) -> None:
    bomb = zlib.compress(b"[" * 10_000_000)
    for packed in (b"", b"text", zlib.compress(b"{"), zlib.compress(b"[" * 60_000), zlib.compress(b"\xff"), bomb):
        status, answer = ask_packed(base_url, "model", packed)
        assert status == 400
        assert answer["message"].startswith("the question must")


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
