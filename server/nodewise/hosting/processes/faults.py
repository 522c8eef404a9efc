"""Faults of a host, as callers of plugins see them."""

from __future__ import annotations

__all__ = ["HostBusyError", "HostFaultError", "HostKilledError"]


class HostFaultError(Exception):
    """The plugin failed in its host.

    Attributes
    ----------
    what : str
        What happened, for callers and the log; holds no text of the plugin.
    exception_name, detail : str
        For the log: class name and traceback of the plugin's exception.
    method : str
        Method that failed; "" = the one that was called.
    """

    def __init__(self, what: str, exception_name: str = "", detail: str = "", method: str = "") -> None:
        super().__init__(what)
        self.method = method
        self.what = what
        self.exception_name = exception_name
        self.detail = detail


class HostKilledError(HostFaultError):
    """The host's process was ended by SIGKILL: by an operator or for lack of memory, not by a fault of the plugin."""


class HostBusyError(Exception):
    """The plugin was not called: its host is busy, or was ended by another call."""

    def __init__(self, what: str, retry_after_s: float) -> None:
        super().__init__(what)
        self.what = what
        self.retry_after_s = retry_after_s
