"""A foreign tool reads the OpenAPI document, calls what it offers with what comes to it, and holds replies to it.

``SCHEMATHESIS_CASES=10000`` is the long run: so many random requests over three seeds, beside those that follow from
the document (coverage) and chains of calls that its links lead to (stateful).
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from certificates import Authority

from nodewise.profiles.opening import open_store
from nodewise.rpc.http import front
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.identity.tokens import new_token
from nodewise.runtime.settings import Settings

TOOL = Path(__file__).resolve().parents[2] / ".venv-openapi" / "bin" / "schemathesis"
DOCUMENT = Path(front.__file__).with_name("openapi.json")
HOOKS = Path(__file__).resolve().parents[1] / "support" / "openapi_checks.py"
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "missing_required_header",
    "unsupported_method",
    "allow_header_conformance",
    "use_after_free",
    "ensure_resource_availability",
    "lines_conform_to_the_document",
    "wrong_requests_are_refused",
)
"""Left out: ``positive_data_acceptance``, since JSON Schema cannot state that columns have equal lengths or that a job
has evidence; ``negative_data_rejection``, which ``wrong_requests_are_refused`` replaces; ``ignored_auth`` and
``object_level_authorization``, since the document offers calls without a token, for servers that ask for none."""
CASES = int(os.environ.get("SCHEMATHESIS_CASES", "0"))
SEEDS = (1, 2, 3)


def requested(seed: int) -> tuple[str, ...]:
    if not CASES:
        return ("--phases", "fuzzing", "--max-examples", "3", "--generation-deterministic")
    operations = sum(len(verbs) for verbs in json.loads(DOCUMENT.read_bytes())["paths"].values())
    examples = math.ceil(CASES / operations / len(SEEDS))
    phases = "fuzzing,stateful" if seed != SEEDS[0] else "coverage,fuzzing,stateful"  # coverage has no chance in it
    return ("--phases", phases, "--max-examples", str(examples), "--continue-on-failure")


@pytest.mark.oracle
@pytest.mark.timeout(0 if CASES else 900)
@pytest.mark.skipif(not TOOL.exists(), reason="needs `python tools/environment.py openapi`")
@pytest.mark.parametrize("secured", [False, True], ids=["open", "tokens-and-tls"])
@pytest.mark.parametrize("seed", SEEDS if CASES else SEEDS[:1])
def test_replies_are_as_the_document_says(tmp_path: Path, seed: int, secured: bool) -> None:
    settings: dict[str, Any] = {"store": "memory:", "grace_s": 1.0, "http": "127.0.0.1:0", "default_deadline_s": 5.0}
    options, scheme, environment = list[str | Path](), "http", {"SCHEMATHESIS_HOOKS": str(HOOKS)}
    if secured:
        url, authority = f"sqlite:{tmp_path / 'store.db'}", Authority()
        store = open_store(url)
        assert store.tokens is not None
        token, kept = new_token("schemathesis", ["admin"], (), None)
        store.tokens.add(kept)
        store.close()
        authority.write("server", tmp_path / "tls.pem", tmp_path / "tls.key")
        (tmp_path / "roots.pem").write_bytes(authority.pem)
        files = {"certificate": str(tmp_path / "tls.pem"), "key": str(tmp_path / "tls.key")}
        settings |= {"store": url, "authentication": ("tokens",), "tls": files}
        options = ["--tls-verify", tmp_path / "roots.pem", "--header", f"Authorization: Bearer {token}"]
        options += ["--generation-with-security-parameters", "false"]
        scheme, environment["OWN_TOKEN_ID"] = "https", kept.token_id
    # A call's time may be over before it is answered on a busy machine: 504 says so.
    expected = 'not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 504]'
    (tmp_path / "schemathesis.toml").write_text(f"[checks]\n{expected}\n")
    with EmbeddedServer(Settings(**settings)) as server:
        document = f"{scheme}://{server.http_target}/openapi.json"
        found = subprocess.run(
            # How long it takes to make requests says nothing of the server.
            [
                TOOL,
                "run",
                document,
                "--suppress-health-check",
                "all",
                *requested(seed),
                *options,
                "--seed",
                str(seed),
                "--checks",
                ",".join(CHECKS),
            ],
            cwd=tmp_path,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
        )
    assert found.returncode == 0, found.stdout
    (cases,) = re.findall(r"(\d+) generated", found.stdout)
    print(f"seed {seed}, {scheme}: {cases} cases")
    assert int(cases) >= CASES / len(SEEDS)
