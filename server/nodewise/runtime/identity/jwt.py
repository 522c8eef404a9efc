"""JSON Web Tokens, which an issuer signs. The settings state the trusted issuer, keys and claims."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import orjson
import structlog

from nodewise.domain.principal import Principal, Role, normal_prefix
from nodewise.runtime.identity.files import FileWatch
from nodewise.runtime.identity.refusals import unauthenticated_error
from nodewise.runtime.identity.settings import JwtSettings

__all__ = ["KEYS_KEPT_S", "JwtReader", "KeysError"]

_log = structlog.get_logger(__name__)

_NEEDED: Final = ("exp", "iss", "aud", "sub")
_TIMES: Final = ("exp", "nbf", "iat")
_NAMESPACE: Final = "nodewise:"
_SHARED_CLAIMS: Final = frozenset({"scope", "scp"})
"""Claims that all services of an issuer share, where roles need the prefix of Nodewise."""
_LONGEST_SUBJECT: Final = 128
LONGEST_TOKEN: Final = 16_384
"""Most characters; gRPC accepts about as much metadata."""
KEYS_KEPT_S: Final = 3600.0
"""Seconds for which keys stay valid after their file is missing or broken: long enough to repair it, and short enough
that a key whose withdrawal failed does not stay valid."""


class KeysError(Exception):
    """The file of keys cannot be used. The text says why."""


class JwtReader:
    """Identifies callers by JSON Web Tokens.

    Parameters
    ----------
    settings : JwtSettings
        Accepted tokens.
    now : callable
        Returns seconds of a monotonic clock.

    Raises
    ------
    KeysError
        If the file of keys cannot be used, or PyJWT is not installed.
    """

    def __init__(self, settings: JwtSettings, now: Callable[[], float] = time.monotonic) -> None:
        try:
            import jwt  # noqa: PLC0415  # an extra
        except ImportError:
            raise KeysError("needs PyJWT: pip install 'nodewise[jwt]'") from None
        self._jwt = jwt
        self._settings = settings
        self._now = now
        self._file = FileWatch(settings.keys)
        self._keys = self._read()
        self._broken_since_s: float | None = None

    def refresh(self) -> bool:
        """Read the file of keys again if it changed. Blocks. Returns whether the keys differ now."""
        path = self._settings.keys
        if not self._file.has_changed():
            since_s = self._broken_since_s
            if since_s is None or not self._keys or self._now() - since_s < KEYS_KEPT_S:
                return False
            _log.error("jwt_keys_dropped", path=path, problem=f"no usable keys were there for {KEYS_KEPT_S:g} s")
            self._keys = {}
            return True
        try:
            self._keys = self._read()
        except KeysError as error:
            if self._broken_since_s is None:
                self._broken_since_s = self._now()
            _log.error("jwt_keys_kept", path=path, problem=str(error), for_s=KEYS_KEPT_S)
            return False
        self._broken_since_s = None
        _log.info("jwt_keys_read", path=path, keys=len(self._keys))
        return True

    def principal(self, text: str) -> Principal:
        """Return the principal of a token. Raises NodewiseError UNAUTHENTICATED."""
        jwt, settings = self._jwt, self._settings
        if len(text) > LONGEST_TOKEN:
            raise unauthenticated_error("unknown")
        try:
            key = self._key(jwt.get_unverified_header(text).get("kid"))
            claims = jwt.decode(
                text,
                key,
                algorithms=list(settings.algorithms),
                issuer=settings.issuer,
                audience=settings.audience,
                leeway=settings.leeway_s,
                options={"require": list(_NEEDED)},
            )
            return self._principal(claims)
        except jwt.ExpiredSignatureError:
            raise unauthenticated_error("expired") from None
        except (jwt.PyJWTError, KeyError, TypeError, ValueError, OverflowError):
            raise unauthenticated_error("unknown") from None

    def _principal(self, claims: Mapping[str, Any]) -> Principal:
        """Return the principal. Raises ValueError for claims that RFC 7519 does not allow but PyJWT accepts."""
        settings, subject = self._settings, claims["sub"]
        if not isinstance(subject, str) or not subject.strip():
            raise ValueError("sub")
        if not all(_is_time(claims[name]) for name in _TIMES if name in claims):
            raise ValueError("exp, nbf or iat")
        role_names = {role for claim in settings.roles_claims for role in _roles(claim, claims.get(claim))}
        prefixes = _words(claims[settings.prefixes_claim]) if settings.prefixes_claim in claims else settings.prefixes
        return Principal(
            f"jwt:{subject[:_LONGEST_SUBJECT]}",
            frozenset(role for role in Role if role in role_names),
            tuple(sorted({normal_prefix(each) for each in prefixes if each.strip("/")})),
            float(claims["exp"]) + settings.leeway_s,
        )

    def _key(self, key_id: object) -> Any:
        """Return the key that a token names, or the only key if it names none."""
        if key_id is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys[key_id]

    def _read(self) -> dict[object, Any]:
        try:
            document = orjson.loads(Path(self._settings.keys).read_bytes())
            keys = self._jwt.PyJWKSet.from_dict(document).keys
        except OSError as error:
            raise KeysError(f"cannot be read ({error.strerror})") from None
        except (orjson.JSONDecodeError, self._jwt.PyJWTError, AttributeError, TypeError, ValueError):
            raise KeysError("is no JWKS document with a key that can be used") from None
        keys_by_id: dict[object, Any] = {key.key_id: key for key in keys if key.key_type != "oct"}
        if not keys_by_id:
            raise KeysError("holds no public key")
        return keys_by_id


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _roles(claim: str, value: object) -> set[str]:
    words = _words(value)
    bare = set() if claim in _SHARED_CLAIMS else set(words)
    return bare | {word.removeprefix(_NAMESPACE) for word in words if word.startswith(_NAMESPACE)}


def _words(value: object) -> tuple[str, ...]:
    """Return the words of a claim, which is a list or a text with blanks."""
    if isinstance(value, str):
        return tuple(value.split())
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()
