"""Who a client is: tokens that change while it lives, certificates of its own, and what the environment says."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_nodewise import FakeServer

from nodewise_client import AsyncClient, Client, PredictRequest, TokenFile
from nodewise_client._access import from_environment
from nodewise_client._connection import Connection


def connection(**options: object) -> Connection:
    given = {"timeout_s": None, "token": None, "tls": False, "retry": True, "max_receive_bytes": 1 << 20} | options
    return Connection(target="server:1", **given)  # type: ignore[arg-type]


def test_a_function_is_asked_for_the_token_at_every_call() -> None:
    tokens = iter(["one", "two"])
    fake = FakeServer()
    try:
        with Client(fake.target, token=lambda: next(tokens)) as client:
            for expected in ("one", "two"):
                client.predict(PredictRequest())
                assert fake.metadata["authorization"] == f"Bearer {expected}"
    finally:
        fake.stop()


def test_a_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("first\n")
    token = TokenFile(path)
    assert token() == token() == "first"
    (tmp_path / "new").write_text("second\n")
    (tmp_path / "new").replace(path)
    assert token() == "second"
    assert "second" not in repr(token)
    path.unlink()
    with pytest.raises(OSError, match="token"):
        token()


def test_a_connection_shows_no_secret() -> None:
    shown = repr(connection(token="secret", tls=True, tls_certificate=b"secret", tls_key=b"secret"))
    assert "secret" not in shown


def test_halves_of_a_certificate_are_refused() -> None:
    with pytest.raises(ValueError, match="belong together"):
        connection(tls=True, tls_certificate=b"pem")
    with pytest.raises(ValueError, match="needs tls"):
        connection(tls_certificate=b"pem", tls_key=b"pem")


def test_what_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("roots", "certificate", "key", "token"):
        (tmp_path / name).write_text(name)
    assert from_environment({}) == {}
    assert from_environment({"NODEWISE_TLS_CA": "system"}) == {"tls": True}
    environ = {
        "NODEWISE_TOKEN_FILE": str(tmp_path / "token"),
        "NODEWISE_TLS_CA": str(tmp_path / "roots"),
        "NODEWISE_TLS_CERT": str(tmp_path / "certificate"),
        "NODEWISE_TLS_KEY": str(tmp_path / "key"),
    }
    found = from_environment(environ)
    assert found.pop("token")() == "token"
    assert found == {"tls": b"roots", "tls_certificate": b"certificate", "tls_key": b"key"}
    assert from_environment({**environ, "NODEWISE_TOKEN": "given"})["token"] == "given"
    assert from_environment({"NODEWISE_TOKEN": f"@{tmp_path / 'token'}"})["token"]() == "token"
    monkeypatch.setenv("NODEWISE_SERVER", "server:1")
    monkeypatch.setenv("NODEWISE_TOKEN", "given")
    for kind in (Client, AsyncClient):
        assert "server:1" in repr(kind.from_environment())
        assert kind.from_environment("other:1", token="own")._connection.metadata == (("authorization", "Bearer own"),)
