"""Certificates of the listeners. They are read again when their files change; open connections stay open."""

from __future__ import annotations

import hashlib
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, cast

import grpc
import structlog

from nodewise.runtime.identity.files import FileWatch
from nodewise.runtime.identity.settings import TlsSettings
from nodewise.runtime.settings import SettingsError

__all__ = ["ServerCertificates"]

_log = structlog.get_logger(__name__)


class ServerCertificates:
    """Certificates for TLS handshakes.

    Each handshake checks whether the files have changed. Unusable files are logged once, and the previous certificates
    stay in use, because a key may be replaced a moment after its certificate.

    Parameters
    ----------
    settings : TlsSettings
        Paths of the files.

    Raises
    ------
    SettingsError
        If the files cannot be used.
    """

    def __init__(self, settings: TlsSettings) -> None:
        self._settings = settings
        self._reading = threading.Lock()
        self._files = FileWatch(settings.certificate, settings.key, settings.client_authorities)
        self._current = self._read()

    def credentials(self) -> grpc.ServerCredentials:
        """Return credentials for a port of gRPC."""
        is_required = bool(self._settings.client_authorities)

        def fetch() -> grpc.ServerCertificateConfiguration | None:
            return self._current[0] if self._has_changed() else None

        fetcher = cast("Callable[[], grpc.ServerCertificateConfiguration]", fetch)  # the stub forgets None
        return grpc.dynamic_ssl_server_credentials(self._current[0], fetcher, require_client_authentication=is_required)

    def context(self) -> ssl.SSLContext:
        """Return a context for other listeners, which gives each client the current certificates."""

        def look(handshake: ssl.SSLObject, _name: str | None, _first: ssl.SSLContext) -> None:
            self._has_changed()
            handshake.context = self._current[1]

        _, first = self._current
        first.sni_callback = look
        return first

    def _has_changed(self) -> bool:
        """Return whether the certificates changed. Handshakes call this in their listener's thread."""
        with self._reading:
            if not self._files.has_changed():
                return False
            try:
                self._current = self._read()
            except SettingsError as error:
                _log.error("certificate_kept", problem=str(error))
                return False
            except Exception:  # noqa: BLE001  # a handshake must not fail by it
                _log.exception("certificate_kept", problem="the files cannot be read")
                return False
        return True

    def _read(self) -> tuple[grpc.ServerCertificateConfiguration, ssl.SSLContext]:
        """Read the certificates for gRPC and for other listeners."""
        settings = self._settings
        certificate, key = _bytes("certificate", settings.certificate), _bytes("key", settings.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        try:
            context.load_cert_chain(settings.certificate, settings.key, password=_refuse_password)
        except (ssl.SSLError, ValueError):
            message = "must be a certificate and its unencrypted key in PEM; these do not match"
            raise SettingsError(f"setting tls.certificate, tls.key: {message}") from None
        if (certificate, key) != (_bytes("certificate", settings.certificate), _bytes("key", settings.key)):
            raise SettingsError("setting tls.certificate, tls.key: the files changed while they were read; try again")
        authorities = _bytes("client_authorities", settings.client_authorities) if settings.client_authorities else None
        if authorities is not None:
            try:
                context.load_verify_locations(cadata=authorities.decode("ascii"))
            except (ssl.SSLError, ValueError):
                raise SettingsError("setting tls.client_authorities: must hold certificates in PEM") from None
            context.verify_mode = ssl.CERT_REQUIRED
        _log.info("certificate_read", path=settings.certificate, sha256=hashlib.sha256(certificate).hexdigest())
        return grpc.ssl_server_certificate_configuration([(key, certificate)], authorities), context


def _bytes(name: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise SettingsError(f"setting tls.{name}: {path} cannot be read ({error.strerror})") from None


def _refuse_password() -> NoReturn:
    """Refuse a key with a password: a server cannot ask for one."""
    raise ValueError("encrypted")
