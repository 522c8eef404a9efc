"""Credentials of a client: tokens that may change during its life, and options in the environment."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

__all__ = ["TokenFile", "TokenSource", "from_environment"]

TokenSource: TypeAlias = str | Callable[[], str]
"""A bearer token, or what is asked for it at every call."""
SYSTEM: Final = "system"
"""In place of a file of root certificates: those of the system."""


class TokenFile:
    """A token in a file, which is read again when it changes. Pass it as `token`.

    Args:
        path: holds the token and nothing else but blanks around it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path: Final = Path(path)
        self._lock: Final = threading.Lock()
        self._version: tuple[int, int, int] | None = None
        self._token = ""

    def __repr__(self) -> str:
        return f"TokenFile({str(self._path)!r})"

    def __call__(self) -> str:
        """Return the current token. Raises OSError if the file cannot be read."""
        status = self._path.stat()
        version = (status.st_ino, status.st_size, status.st_mtime_ns)
        with self._lock:
            if version != self._version:
                self._token = self._path.read_text(encoding="utf-8").strip()
                self._version = version
            return self._token


def from_environment(environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Options of a client that the environment states. Raises OSError if a file cannot be read.

    NODEWISE_TOKEN (a token, or @FILE) or NODEWISE_TOKEN_FILE; NODEWISE_TLS_CA (a file, or `system`),
    NODEWISE_TLS_CERT, NODEWISE_TLS_KEY.
    """
    options: dict[str, Any] = {}
    if token := environ.get("NODEWISE_TOKEN"):
        options["token"] = TokenFile(token[1:]) if token.startswith("@") else token
    elif environ.get("NODEWISE_TOKEN_FILE"):
        options["token"] = TokenFile(environ["NODEWISE_TOKEN_FILE"])
    roots, certificate, key = (environ.get(f"NODEWISE_TLS_{name}", "") for name in ("CA", "CERT", "KEY"))
    if roots or certificate:
        options["tls"] = True if roots in {"", SYSTEM} else Path(roots).read_bytes()
    if certificate:
        options["tls_certificate"] = Path(certificate).read_bytes()
    if key:
        options["tls_key"] = Path(key).read_bytes()
    return options
