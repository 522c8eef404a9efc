"""TLS and mTLS over real sockets: certificates are exchanged under a server that runs, and say who calls."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
from certificates import Authority
from cryptography import x509
from patience import PATIENCE_S, wait_until
from serving import ServerProcess

from nodewise.profiles.opening import open_store
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.identity.tokens import new_token
from nodewise.runtime.settings import Settings
from nodewise_client import (
    CallerRole,
    Client,
    CreateTokenRequest,
    HealthStatus,
    PermissionDeniedError,
    TokenFile,
    UnauthenticatedError,
    UnavailableError,
)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


class Files:
    def __init__(self, folder: Path, authority: Authority) -> None:
        self.certificate, self.key, self.authorities = (folder / name for name in ("tls.pem", "tls.key", "roots.pem"))
        authority.write("first", self.certificate, self.key)
        self.authorities.write_bytes(authority.pem)

    def settings(self, *, mutual: bool = False) -> dict[str, str]:
        held = {"certificate": str(self.certificate), "key": str(self.key)}
        return held | ({"client_authorities": str(self.authorities)} if mutual else {})


@pytest.fixture
def files(tmp_path: Path, authority: Authority) -> Files:
    return Files(tmp_path, authority)


def served_name(target: str, authority: Authority) -> str:
    """The name in the certificate that a new connection is shown."""
    context = ssl.create_default_context(cadata=authority.pem.decode())
    context.set_alpn_protocols(["h2"])
    host, _, port = target.rpartition(":")
    plain = socket.create_connection((host, int(port)), PATIENCE_S)
    with plain, context.wrap_socket(plain, server_hostname="localhost") as wrapped:
        subject: Any = wrapped.getpeercert()
        return str(dict(each[0] for each in subject["subject"])["commonName"])


def test_a_new_certificate_is_shown_and_a_broken_one_is_not(
    files: Files, authority: Authority, logs: list[Any]
) -> None:
    settings = Settings(store="memory:", grace_s=1.0, tls=files.settings())
    with EmbeddedServer(settings) as server, Client(server.target, tls=authority.pem) as before:
        assert before.health() is HealthStatus.SERVING
        assert served_name(server.target, authority) == "first"
        authority.write("second", files.certificate, files.key)
        assert served_name(server.target, authority) == "second"
        assert before.health() is HealthStatus.SERVING  # over the connection that it has
        good = files.certificate.read_bytes()
        for broken in (b"", b"no certificate", authority.signed("third")[0], None):
            files.certificate.unlink() if broken is None else files.certificate.write_bytes(broken)
            assert served_name(server.target, authority) == "second"
            assert served_name(server.target, authority) == "second"
        assert len([each for each in logs if each["event"] == "certificate_kept"]) == 4
        files.certificate.write_bytes(good)
        authority.write("fourth", files.certificate, files.key)
        assert served_name(server.target, authority) == "fourth"
        with pytest.raises(UnavailableError), Client(server.target) as plain:
            plain.health(timeout_s=5.0)


def test_who_has_no_certificate_is_not_connected_where_one_is_needed(files: Files, authority: Authority) -> None:
    settings = Settings(store="memory:", grace_s=1.0, tls=files.settings(mutual=True))
    certificate, key = authority.signed("anybody")
    other_certificate, other_key = Authority().signed("stranger")
    with EmbeddedServer(settings) as server:
        with Client(server.target, tls=authority.pem, tls_certificate=certificate, tls_key=key) as client:
            assert client.list_policies().policies
        for own in ({}, {"tls_certificate": other_certificate, "tls_key": other_key}):
            with (
                Client(server.target, tls=authority.pem, retry=False, **own) as client,
                pytest.raises(UnavailableError),
            ):
                client.health(timeout_s=5.0)


def test_the_holder_of_a_certificate_is_known(files: Files, authority: Authority) -> None:
    settings = Settings(
        store="memory:",
        grace_s=1.0,
        tls=files.settings(mutual=True),
        authentication=("certificates",),
        certificates={
            "scheduler": {"roles": ["schedule"], "prefixes": ["*"]},
            "spiffe://site/reader": {"roles": ["read"], "prefixes": ["team-a"]},
        },
    )
    with EmbeddedServer(settings) as server:

        def client(name: str, *alternatives: x509.GeneralName) -> Client:
            certificate, key = authority.signed(name, *alternatives)
            return Client(server.target, tls=authority.pem, tls_certificate=certificate, tls_key=key)

        with client("scheduler") as scheduler:
            assert scheduler.list_policies().policies
            with pytest.raises(PermissionDeniedError):
                list(scheduler.list_profiles())
        with client("reader", x509.UniformResourceIdentifier("spiffe://site/reader")) as reader:
            assert list(reader.list_profiles()) == []
        with client("nobody") as nobody, pytest.raises(UnauthenticatedError, match="holder"):
            nobody.list_policies()


@pytest.mark.long
def test_workers_of_a_server_share_certificates_and_tokens(files: Files, authority: Authority, tmp_path: Path) -> None:
    """Two workers on one port, each with TLS of its own."""
    url = f"sqlite:{tmp_path / 'store.db'}"
    store = open_store(url)
    first, kept = new_token("", ["admin"], [], None)
    assert store.tokens is not None
    store.tokens.add(kept)
    store.close()
    environment = {
        "NODEWISE_TLS__CERTIFICATE": str(files.certificate),
        "NODEWISE_TLS__KEY": str(files.key),
        "NODEWISE_AUTHENTICATION": "tokens",
    }
    with ServerProcess("--store", url, "--workers", "2", environment=environment) as server:
        (tmp_path / "token").write_text(f"{first}\n")

        def admin() -> Client:
            return Client(server.target, token=TokenFile(tmp_path / "token"), tls=authority.pem)

        with admin() as client:
            request = CreateTokenRequest(roles=(CallerRole.READ,), prefixes=("team-a",))
            made = client.create_token(request)

        def told() -> list[str]:
            """Over connections of their own, some of which reach either worker."""
            found = []
            for _ in range(8):
                with Client(server.target, token=made.bearer_token, tls=authority.pem, retry=False) as client:
                    try:
                        found += [""] if list(client.list_profiles()) == [] else ["something is shown"]
                    except UnauthenticatedError as error:
                        found.append(str(error))
            return found

        assert told() == [""] * 8
        authority.write("second", files.certificate, files.key)
        assert {served_name(server.target, authority) for _ in range(8)} == {"second"}
        with admin() as client:
            assert made.token is not None
            assert made.token.token_id in {token.token_id for token in client.list_tokens().tokens}
            client.revoke_token(made.token.token_id)
        wait_until(lambda: all("revoked" in each for each in told()))
        _, logged = server.terminate()
    assert '"certificate_read"' in logged
    # No token, nor a part of one, nor a key.
    for secret in (first.rpartition("_")[2], made.bearer_token.rpartition("_")[2], "PRIVATE KEY"):
        assert secret not in logged
