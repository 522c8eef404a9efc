"""Settings for the authentication of clients."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_settings import NoDecode

from nodewise.domain.principal import Role

__all__ = ["LOOPBACK", "CertificateGrant", "JwtSettings", "TlsSettings", "Way", "is_loopback"]

LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
"""Hosts that only this machine can reach."""

Way = Literal["tokens", "jwt", "certificates"]
"""How a caller may authenticate."""
Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
"""Signature algorithms with public keys: a server that verifies cannot sign."""


def is_loopback(listen: str) -> bool:
    """Return whether only this machine can reach an address (HOST:PORT)."""
    return listen.rpartition(":")[0].strip("[]") in LOOPBACK


class TlsSettings(BaseModel):
    """TLS of the listeners. Files are read again when they change."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    certificate: str = Field("", description="PEM file of the server's certificate and its chain; empty = plaintext")
    key: str = Field("", description="PEM file of its private key, not encrypted")
    client_authorities: str = Field(
        "", description="PEM file of authorities; every client needs a certificate of one of them; empty = none needed"
    )

    @property
    def is_on(self) -> bool:
        """Whether the listeners use TLS."""
        return bool(self.certificate)


class JwtSettings(BaseModel):
    """Accepted JSON Web Tokens, and the meaning of their claims."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    keys: str = Field("", description="JWKS file of public keys; read again when it changes")
    issuer: str = Field("", description="required: the claim `iss` of accepted tokens")
    audience: str = Field("", description="required: a value that the claim `aud` must contain")
    algorithms: Annotated[tuple[Algorithm, ...], NoDecode] = Field(
        ("RS256", "ES256", "EdDSA"), min_length=1, description="accepted signature algorithms"
    )
    roles_claims: tuple[str, ...] = Field(
        ("nodewise_roles", "scope"),
        description="claims with roles, a list or a text separated by spaces: `nodewise:read`, or `read` except in "
        "`scope` and `scp`, which other services share; other values are ignored",
    )
    prefixes_claim: str = Field(
        "nodewise_prefixes",
        description="claim with prefixes of profile ids, a list or a text separated by spaces; * = all",
    )
    prefixes: tuple[str, ...] = Field(
        (), description="prefixes of tokens without that claim; empty = no stored profile, * = all"
    )
    leeway_s: float = Field(30.0, ge=0, le=600, description="seconds by which clocks may differ")

    @field_validator("algorithms", "roles_claims", "prefixes", mode="before")
    @classmethod
    def _names(cls, value: object) -> object:
        """Return a list of names, which the environment separates by commas."""
        return tuple(each.strip() for each in value.split(",") if each.strip()) if isinstance(value, str) else value


class CertificateGrant(BaseModel):
    """Rights of the holder of a client certificate."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    roles: tuple[Role, ...] = Field(min_length=1, description="any of read, ingest, schedule, admin")
    prefixes: tuple[str, ...] = Field((), description="prefixes of profile ids; empty = no stored profile, * = all")
