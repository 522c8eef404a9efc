"""Settings of operators about which clients may connect."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_settings import NoDecode

from nodewise.domain.principal import Role

__all__ = ["LOOPBACK", "CertificateGrant", "JwtSettings", "TlsSettings", "Way", "is_loopback"]

LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
"""Hosts that only this machine reaches."""

Way = Literal["tokens", "jwt", "certificates"]
"""How a caller may authenticate."""
Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
"""Of signatures whose keys may be known to all: a server that checks cannot sign."""


def is_loopback(listen: str) -> bool:
    """Whether an address (HOST:PORT) is reached from this machine alone."""
    return listen.rpartition(":")[0].strip("[]") in LOOPBACK


class TlsSettings(BaseModel):
    """Of the listener. Files are read again when they change."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    certificate: str = Field("", description="PEM file of the server's certificate and its chain; empty = plaintext")
    key: str = Field("", description="PEM file of its private key, not encrypted")
    client_authorities: str = Field(
        "",
        description="PEM file of authorities; whoever connects needs a certificate of one of them; empty = none needed",
    )

    @property
    def is_on(self) -> bool:
        """Whether the listener speaks TLS."""
        return bool(self.certificate)


class JwtSettings(BaseModel):
    """Which JSON Web Tokens are believed, and what their claims mean here."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    keys: str = Field("", description="JWKS file of public keys; read again when it changes")
    issuer: str = Field("", description="the claim `iss` of tokens that are believed; needed")
    audience: str = Field("", description="what the claim `aud` must hold; needed")
    algorithms: Annotated[tuple[Algorithm, ...], NoDecode] = Field(
        ("RS256", "ES256", "EdDSA"), min_length=1, description="of signatures that are believed"
    )
    roles_claims: tuple[str, ...] = Field(
        ("nodewise_roles", "scope"),
        description="claims that hold roles, a list or text with blanks: `nodewise:read`, or `read` but in `scope` and "
        "`scp`, which other services share; others are left out",
    )
    prefixes_claim: str = Field(
        "nodewise_prefixes", description="claim that holds prefixes of profile ids, a list or text with blanks; * = all"
    )
    prefixes: tuple[str, ...] = Field(
        (), description="prefixes of tokens without that claim; empty = no stored profile, * = all"
    )
    leeway_s: float = Field(30.0, ge=0, le=600, description="how far clocks may differ, seconds")

    @field_validator("algorithms", "roles_claims", "prefixes", mode="before")
    @classmethod
    def _names(cls, value: object) -> object:
        """A list, or in the environment names separated by commas."""
        return tuple(each.strip() for each in value.split(",") if each.strip()) if isinstance(value, str) else value


class CertificateGrant(BaseModel):
    """What the holder of a client's certificate may do."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    roles: tuple[Role, ...] = Field(min_length=1, description="of read, ingest, schedule, admin")
    prefixes: tuple[str, ...] = Field((), description="prefixes of profile ids; empty = no stored profile, * = all")
