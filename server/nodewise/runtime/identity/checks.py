"""Checks before a server listens: which clients may connect, and how."""

from __future__ import annotations

from nodewise.runtime.identity.settings import is_loopback
from nodewise.runtime.settings import Settings, SettingsError

__all__ = ["check_identity"]


def check_identity(settings: Settings) -> None:
    """Check that no client is admitted by an oversight. Raises SettingsError."""
    _check_tls(settings)
    _check_ways(settings)
    for name, listen in (("listen", settings.listen), ("http", settings.http_listen)):
        if listen and not is_loopback(listen):
            _check_reached(name, listen.rpartition(":")[0], settings)


def _check_reached(name: str, host: str, settings: Settings) -> None:
    """A listener that others than this machine reach."""
    if settings.admin and not settings.authentication:
        raise SettingsError(
            f"setting admin: whoever connects may swap plugins, so {name} must be loopback, found {host}; or set "
            "authentication"
        )
    if not settings.tls.is_on and not settings.allow_plaintext:
        raise SettingsError(
            f"setting {name}: {host} is reached from elsewhere, where others can read along; set tls.certificate and "
            "tls.key, or allow_plaintext = true, such as behind a proxy that speaks TLS"
        )
    if not settings.authentication and not settings.tls.client_authorities and not settings.allow_anonymous:
        raise SettingsError(
            f"setting {name}: {host} is reached from elsewhere, and whoever connects may read and delete everything; "
            "set authentication (tokens, jwt or certificates) or tls.client_authorities, or allow_anonymous = true"
        )


def _check_tls(settings: Settings) -> None:
    tls = settings.tls
    if bool(tls.certificate) != bool(tls.key):
        lacking = "tls.key" if tls.certificate else "tls.certificate"
        raise SettingsError(f"setting {lacking}: must name a file, as tls.certificate and tls.key belong together")
    if tls.client_authorities and not tls.is_on:
        raise SettingsError("setting tls.client_authorities: needs tls.certificate and tls.key")


def _check_ways(settings: Settings) -> None:
    ways, jwt = settings.authentication, settings.jwt
    if ways == ("tokens",) and settings.store.startswith("memory:"):
        raise SettingsError("setting authentication: a store in memory: has no first token; use sqlite:PATH, or jwt")
    if "jwt" in ways:
        for name, value in (("keys", jwt.keys), ("issuer", jwt.issuer), ("audience", jwt.audience)):
            if not value:
                raise SettingsError(f"setting jwt.{name}: must be set where authentication has jwt")
    if "certificates" in ways:
        if not settings.tls.client_authorities:
            raise SettingsError("setting tls.client_authorities: must be set where authentication has certificates")
        if not settings.certificates:
            raise SettingsError("setting certificates: must say what holders may do where authentication has them")
