"""Names of profiles out of whatever a job, a directory or a file is called."""

from __future__ import annotations

import hashlib
import re
from typing import Final

__all__ = ["fit_name", "profile_id_of"]

LONGEST: Final = 128
_FIT: Final = re.compile(r"[A-Za-z0-9](?:(?:[A-Za-z0-9._~-]|/(?!/))*[A-Za-z0-9])?")
_UNFIT: Final = re.compile(r"[^A-Za-z0-9._~/-]+")
_SLASHES: Final = re.compile(r"/{2,}")
_DIGITS: Final = 8


def profile_id_of(name: str) -> str:
    """The name as one of a profile: itself where it can be one, else made of it, another for every other name."""
    if len(name) <= LONGEST and _FIT.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]
    return f"{fit_name(name, 'job', LONGEST - 1 - _DIGITS)}-{digest}"


def fit_name(name: str, otherwise: str, longest: int = LONGEST) -> str:
    """What of a name a profile may be called."""
    marks = "-._~/"
    return _SLASHES.sub("/", _UNFIT.sub("-", name)).strip(marks)[:longest].rstrip(marks) or otherwise
