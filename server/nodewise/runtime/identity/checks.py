"""Checks before a server listens: its settings must not admit clients by mistake."""

from __future__ import annotations

from nodewise.runtime.identity.settings import is_loopback
from nodewise.runtime.settings import Settings, SettingsError

__all__ = ["check_identity"]


def check_identity(settings: Settings) -> None:
    """Check that the settings admit no client by mistake. Raises SettingsError."""
    _check_tls(settings)
    _check_ways(settings)
    for name, listen in (("listen", settings.listen), ("http", settings.http_listen)):
        if listen and not is_loopback(listen):
            _check_reached(name, listen.rpartition(":")[0], settings)


def _check_reached(name: str, host: str, settings: Settings) -> None:
    """Check a listener that other machines can reach."""
    if settings.admin and not settings.authentication:
        raise SettingsError(
            f"setting admin: every client could swap plugins, so {name} must be loopback, found {host}; or set "
            "authentication"
        )
    if not settings.tls.is_on and not settings.allow_plaintext:
        raise SettingsError(
            f"setting {name}: {host} is not loopback (127.0.0.1, ::1 or localhost), so others could read the traffic; "
            "set tls.certificate and tls.key, or allow_plaintext = true, such as behind a proxy with TLS"
        )
    if not settings.authentication and not settings.tls.client_authorities and not settings.allow_anonymous:
        raise SettingsError(
            f"setting {name}: {host} is not loopback (127.0.0.1, ::1 or localhost), so every client could read and "
            "delete everything; set authentication (tokens, jwt or certificates) or tls.client_authorities, or "
            "allow_anonymous = true"
        )


def _check_tls(settings: Settings) -> None:
    tls = settings.tls
    if bool(tls.certificate) != bool(tls.key):
        lacking = "tls.key" if tls.certificate else "tls.certificate"
        raise SettingsError(f"setting {lacking}: must name a file: tls.certificate and tls.key need each other")
    if tls.client_authorities and not tls.is_on:
        raise SettingsError("setting tls.client_authorities: needs tls.certificate and tls.key")


def _check_ways(settings: Settings) -> None:
    ways, jwt = settings.authentication, settings.jwt
    if ways == ("tokens",) and settings.store.startswith("memory:"):
        raise SettingsError("setting authentication: a store in memory: has no first token; use sqlite:PATH, or jwt")
    if "jwt" in ways:
        for name, value in (("keys", jwt.keys), ("issuer", jwt.issuer), ("audience", jwt.audience)):
            if not value:
                raise SettingsError(f"setting jwt.{name}: must be set if authentication includes jwt")
    if "certificates" in ways:
        if not settings.tls.client_authorities:
            raise SettingsError("setting tls.client_authorities: must be set if authentication includes certificates")
        if not settings.certificates:
            raise SettingsError("setting certificates: must be set if authentication includes certificates")
