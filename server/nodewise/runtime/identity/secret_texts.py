"""Bearer tokens as texts: what is given to a caller once, and what is kept of it."""

from __future__ import annotations

import hashlib
import hmac
import math
import re
import secrets
import time
from collections.abc import Sequence
from typing import Final

from nodewise.domain.errors import NodewiseError, Violation
from nodewise.domain.principal import EVERYTHING, Principal, Role, normal_prefix
from nodewise.profiles.tokens import StoredToken

__all__ = ["PREFIX", "holds", "new_token", "parted", "principal_of"]

PREFIX: Final = "nodewise_"
"""Tokens begin so: scanners find them in what should hold none."""
_ID_CHARACTERS: Final = "abcdefghijklmnopqrstuvwxyz234567"
_ID_LENGTH: Final = 12
_SECRET_BYTES: Final = 32
_TEXT: Final = re.compile(PREFIX + r"([a-z2-7]{12})_([A-Za-z0-9_-]{43})")
_PROFILE_PREFIX: Final = re.compile(r"(?!.*//)[A-Za-z0-9][A-Za-z0-9._~/-]{0,126}/")
_MOST_PREFIXES: Final = 64
_LONGEST_DESCRIPTION: Final = 256


def new_token(
    description: str, roles: Sequence[str], prefixes: Sequence[str], life_s: float | None
) -> tuple[str, StoredToken]:
    """A token's text, which is nowhere kept, and what is kept of it.

    Parameters
    ----------
    roles : sequence of str
        At least one.
    prefixes : sequence of str
        Of profile ids, by whole segments; none, or ``*`` = all profiles.
    life_s : float or None
        Seconds until it expires; None = never.

    Raises
    ------
    NodewiseError
        INVALID_FIELD.
    """
    checked = _checked(description, roles, prefixes, life_s)
    if checked:
        raise NodewiseError.invalid(checked)
    token_id = "".join(secrets.choice(_ID_CHARACTERS) for _ in range(_ID_LENGTH))
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    own = EVERYTHING if not prefixes or "*" in prefixes else tuple(sorted({normal_prefix(each) for each in prefixes}))
    now_s = time.time()
    kept = StoredToken(
        token_id=token_id,
        secret_sha256=_hashed(secret),
        description=description,
        roles=tuple(role for role in Role if role in roles),
        prefixes=own,
        create_time_s=now_s,
        expire_time_s=math.inf if life_s is None else now_s + life_s,
        revoke_time_s=math.inf,
    )
    return f"{PREFIX}{token_id}_{secret}", kept


def parted(text: str) -> tuple[str, str] | None:
    """Id and secret of a token; None = the text is none."""
    found = _TEXT.fullmatch(text)
    return None if found is None else (found[1], found[2])


def holds(kept: StoredToken, secret: str) -> bool:
    """Whether this is its secret; takes as long whatever is different."""
    return hmac.compare_digest(kept.secret_sha256, _hashed(secret))


def principal_of(kept: StoredToken) -> Principal:
    """Who calls with it."""
    ends_s = min(kept.expire_time_s, kept.revoke_time_s)
    return Principal(f"token:{kept.token_id}", frozenset(kept.roles), kept.prefixes, ends_s)


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _checked(description: str, roles: Sequence[str], prefixes: Sequence[str], life_s: float | None) -> list[Violation]:
    known = ", ".join(Role)
    wrong = [] if roles else [Violation("roles", f"must name at least one of {known}")]
    wrong += [Violation("roles", f"must be of {known}; found {each[:32]!r}") for each in roles if each not in [*Role]]
    if len(prefixes) > _MOST_PREFIXES:
        wrong.append(Violation("prefixes", f"must be at most {_MOST_PREFIXES}, found {len(prefixes)}"))
    for each in prefixes:
        if each != "*" and not _PROFILE_PREFIX.fullmatch(normal_prefix(each)):
            right = "must begin like a profile id, up to the end of a segment, such as team-a/, or be *"
            wrong.append(Violation("prefixes", f"{right}; found {each[:64]!r}"))
    if len(description) > _LONGEST_DESCRIPTION:
        wrong.append(Violation("description", f"must be at most {_LONGEST_DESCRIPTION} characters"))
    if life_s is not None and not 0 < life_s < math.inf:
        wrong.append(Violation("ttl", "must be above 0"))
    return wrong
