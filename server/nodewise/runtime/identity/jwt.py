"""JSON Web Tokens: signed by somebody else, believed for what the settings say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import orjson
import structlog

from nodewise.domain.principal import Principal, Role, normal_prefix
from nodewise.runtime.identity.files import Watched
from nodewise.runtime.identity.refusals import Cause, unauthenticated
from nodewise.runtime.identity.settings import JwtSettings

__all__ = ["JwtReader", "KeysError"]

_log = structlog.get_logger(__name__)

_NEEDED: Final = ("exp", "iss", "aud", "sub")
_NAMESPACE: Final = "nodewise:"
_LONGEST_SUBJECT: Final = 128
LONGEST_TOKEN: Final = 16_384
"""Characters; gRPC takes about as much metadata."""


class KeysError(Exception):
    """A file of keys that cannot be used; the text says why."""


class JwtReader:
    """Knows callers by JSON Web Tokens.

    Parameters
    ----------
    settings : JwtSettings
        Whose tokens are believed.

    Raises
    ------
    KeysError
        If the file of keys cannot be used, or PyJWT is not installed.
    """

    def __init__(self, settings: JwtSettings) -> None:
        try:
            import jwt  # noqa: PLC0415  # an extra
        except ImportError:
            raise KeysError("needs PyJWT: pip install 'nodewise[jwt]'") from None
        self._jwt = jwt
        self._settings = settings
        self._file = Watched(settings.keys)
        self._keys = self._read()

    def refresh(self) -> bool:
        """Read the file again if it changed; blocks. Returns whether other keys are believed now."""
        if not self._file.changed():
            return False
        try:
            self._keys = self._read()
        except KeysError as error:
            _log.error("jwt_keys_kept", path=self._settings.keys, problem=str(error))
            return False
        _log.info("jwt_keys_read", path=self._settings.keys, keys=len(self._keys))
        return True

    def principal(self, text: str) -> Principal:
        """Who calls with a token. Raises NodewiseError UNAUTHENTICATED."""
        jwt, settings = self._jwt, self._settings
        if len(text) > LONGEST_TOKEN:
            raise unauthenticated(Cause.UNKNOWN)
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
        except jwt.ExpiredSignatureError:
            raise unauthenticated(Cause.EXPIRED) from None
        except (jwt.PyJWTError, KeyError, TypeError, ValueError):
            raise unauthenticated(Cause.UNKNOWN) from None
        return self._principal(claims)

    def _principal(self, claims: Mapping[str, Any]) -> Principal:
        settings = self._settings
        named = {word.removeprefix(_NAMESPACE) for claim in settings.roles_claims for word in _words(claims.get(claim))}
        held = _words(claims[settings.prefixes_claim]) if settings.prefixes_claim in claims else settings.prefixes
        return Principal(
            f"jwt:{str(claims['sub'])[:_LONGEST_SUBJECT]}",
            frozenset(role for role in Role if role in named),
            tuple(sorted({normal_prefix(each) for each in held if each.strip("/")})),
            float(claims["exp"]) + settings.leeway_s,
        )

    def _key(self, key_id: object) -> Any:
        """The key that a token names; the only one, if it names none."""
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
        found: dict[object, Any] = {key.key_id: key for key in keys if key.key_type != "oct"}
        if not found:
            raise KeysError("holds no public key")
        return found


def _words(value: object) -> tuple[str, ...]:
    """A claim that is a list, or a text with blanks."""
    if isinstance(value, str):
        return tuple(value.split())
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()
