"""Addresses of estimator servers."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Address"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Address of an estimator server.

    Attributes
    ----------
    target : str
        ``unix:///path`` or ``host:port``.
    ca, certificate, key : str
        Files in PEM: the authority of the server's certificate (empty = the system's roots), and the worker's own
        certificate with its key, where the server asks for one.
    plain : bool
        Whether connections to a ``host:port`` have no TLS.
    """

    target: str
    ca: str = ""
    certificate: str = ""
    key: str = ""
    plain: bool = False
