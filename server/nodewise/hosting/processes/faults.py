"""What can be wrong with a host, as the door tells it."""

from __future__ import annotations

__all__ = ["HostBusyError", "HostFaultError", "HostKilledError"]


class HostFaultError(Exception):
    """The plugin failed in its host.

    Attributes
    ----------
    what : str
        What happened, for callers and the log: holds nothing that the plugin said.
    raised, detail : str
        For the log: the name of what the plugin raised, and its traceback.
    method : str
        Which method it was; "" = the one that was called.
    """

    def __init__(self, what: str, raised: str = "", detail: str = "", method: str = "") -> None:
        super().__init__(what)
        self.method = method
        self.what = what
        self.raised = raised
        self.detail = detail


class HostKilledError(HostFaultError):
    """The host's process was ended by SIGKILL: by an operator or for lack of memory, not by a fault of the plugin."""


class HostBusyError(Exception):
    """The plugin was not asked: its host does something else, or was ended by another call."""

    def __init__(self, what: str, retry_after_s: float) -> None:
        super().__init__(what)
        self.what = what
        self.retry_after_s = retry_after_s
