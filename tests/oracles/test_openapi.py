"""A foreign tool reads the OpenAPI document, calls what it offers with what comes to it, and holds replies to it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings

TOOL = Path(__file__).resolve().parents[2] / ".venv-openapi" / "bin" / "schemathesis"
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
ENDLESS = "profiles:watch"


@pytest.mark.oracle
@pytest.mark.skipif(not TOOL.exists(), reason="needs `python tools/environment.py openapi`")
def test_replies_are_as_the_document_says(tmp_path: Path) -> None:
    settings = Settings(store="memory:", grace_s=1.0, http="127.0.0.1:0", default_deadline_s=5.0)
    with EmbeddedServer(settings) as server:
        document = f"http://{server.http_target}/openapi.json"
        options = ("--max-examples", "3", "--phases", "fuzzing", "--seed", "1", "--generation-deterministic")
        found = subprocess.run(
            [TOOL, "run", document, *options, "--checks", CHECKS, "--exclude-path-regex", ENDLESS],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    assert found.returncode == 0, found.stdout
