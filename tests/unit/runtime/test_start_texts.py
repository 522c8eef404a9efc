"""Why a server does not start, or starts without a part: the text of every setting and missing package."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from certificates import Authority

from nodewise.catalogue.loading import CatalogueError, load_catalogue
from nodewise.domain.errors import NodewiseError
from nodewise.ports.limits import LARGEST_CONFIGURATION, Limits
from nodewise.profiles.opening import open_store, open_traces
from nodewise.profiles.store import StoreOptions
from nodewise.rpc.routes import Router
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.generations.loading import catalogue_bytes
from nodewise.runtime.groups_of_settings import Quotas
from nodewise.runtime.identity.callers import callers_of
from nodewise.runtime.identity.settings import TlsSettings
from nodewise.runtime.identity.tls import ServerCertificates
from nodewise.runtime.settings import Settings, SettingsError, load_settings
from nodewise.runtime.starting import StartError
from nodewise.runtime.tracing import start_tracing
from nodewise_cli.errors import CommandError
from nodewise_cli.outputs import needs_matplotlib


def error_of(work: Callable[[], object]) -> str:
    with pytest.raises((SettingsError, StartError, NodewiseError, CatalogueError, CommandError, ValueError)) as caught:
        work()
    violations = getattr(caught.value, "violations", ())
    return violations[0].description if violations else str(caught.value)


def start(**settings: Any) -> None:
    with EmbeddedServer(Settings(**settings)):
        """It is refused before."""


@pytest.mark.parametrize(
    ("package", "work", "text"),
    [
        ("boto3", lambda: open_traces("s3://bucket/prefix"), "needs the S3 client: pip install 'nodewise[s3]'"),
        (
            "psycopg",
            lambda: open_store("postgresql://host/database", StoreOptions()),
            "needs the PostgreSQL driver: pip install 'nodewise[postgresql]'",
        ),
        (
            "jwt",
            lambda: callers_of(Settings(authentication=("jwt",)), cast("Any", SimpleNamespace(tokens=None))),
            "setting jwt.keys:  needs PyJWT: pip install 'nodewise[jwt]'",
        ),
        ("matplotlib.figure", lambda: needs_matplotlib("--plot"), "--plot needs matplotlib: pip install matplotlib"),
    ],
)
def test_a_missing_package_is_named(
    monkeypatch: pytest.MonkeyPatch, package: str, work: Callable[[], object], text: str
) -> None:
    for name in ("postgres_store", "postgres_connection", "s3_blobs", "remote_traces"):
        monkeypatch.delitem(sys.modules, f"nodewise.profiles.{name}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    assert error_of(work) == text


def test_tracing_without_its_package_is_logged(monkeypatch: pytest.MonkeyPatch, logs: list[Any]) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4317")
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with_spans, stop = start_tracing()
    stop()
    handlers = Router("nodewise.v1.PredictionService", {})
    assert with_spans(handlers) is handlers
    assert (logs[0]["event"], logs[0]["reason"]) == (
        "tracing_unavailable",
        "OTEL_EXPORTER_OTLP_ENDPOINT is set: install nodewise[opentelemetry]",
    )


@pytest.mark.parametrize(
    ("work", "text"),
    [
        (lambda: Quotas(stored_bytes=-1), "stored_bytes must be at least 0"),
        (lambda: Limits(rows_per_call=0), "rows_per_call must be at least 1"),
        (
            lambda: Limits(max_nodes=LARGEST_CONFIGURATION + 1),
            f"max_nodes and max_workers must be at most {LARGEST_CONFIGURATION}",
        ),
        (
            lambda: catalogue_bytes(Settings(catalogue="none.toml")),
            "setting catalogue: none.toml cannot be read (No such file or directory)",
        ),
        (
            lambda: start(store="memory:", admin=True),
            "setting admin: needs the setting plugins_folder, or a store that lasts, such as sqlite:PATH",
        ),
        (
            lambda: callers_of(Settings(authentication=("tokens",)), cast("Any", SimpleNamespace(tokens=None))),
            "setting authentication: this kind of store cannot store tokens; use SQLite or PostgreSQL, or jwt",
        ),
        (lambda: open_traces("ftp://host"), "must be a directory or s3://BUCKET/PREFIX"),
        (
            lambda: open_traces("s3://"),
            "must be s3://BUCKET/PREFIX; credentials and the endpoint come from AWS_...",
        ),
        (
            lambda: open_store("postgresql://host/database", StoreOptions(traces=None)),
            "must name a directory that all replicas share or s3://BUCKET/PREFIX, where the store is PostgreSQL",
        ),
    ],
)
def test_a_setting_that_cannot_be_is_named(work: Callable[[], object], text: str) -> None:
    assert error_of(work) == text


def test_a_list_of_names_that_is_no_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODEWISE_PLUGINS", '["a"')
    assert "must be names separated by commas, or a JSON list of them" in error_of(load_settings)


def test_a_catalogue_in_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.toml"
    path.write_bytes(b"\xff")
    assert error_of(lambda: load_catalogue(path)) == f"{path}: cannot be read (it is not valid UTF-8)"


def test_authorities_that_are_no_certificates(tmp_path: Path) -> None:
    certificate, key, wrong = (tmp_path / name for name in ("server.pem", "key.pem", "wrong.pem"))
    Authority().write("server", certificate, key)
    wrong.write_text("not PEM")
    settings = TlsSettings(certificate=str(certificate), key=str(key), client_authorities=str(wrong))
    text = "setting tls.client_authorities: must hold certificates in PEM"
    assert error_of(lambda: ServerCertificates(settings)) == text
