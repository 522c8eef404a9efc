"""Names of profiles from the names of jobs, directories and files."""

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
    """A valid profile name for any name: the name itself if valid, else a unique one that is derived from it."""
    if len(name) <= LONGEST and _FIT.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]
    return f"{fit_name(name, 'job', LONGEST - 1 - _DIGITS)}-{digest}"


def fit_name(name: str, otherwise: str, longest: int = LONGEST) -> str:
    """The part of a name that is valid in a profile name."""
    marks = "-._~/"
    return _SLASHES.sub("/", _UNFIT.sub("-", name)).strip(marks)[:longest].rstrip(marks) or otherwise
