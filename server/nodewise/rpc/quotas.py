"""Quotas of callers: the streams and the long calls that each may have open at once in this process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.rpc.calls import Call, Method

__all__ = ["OpenCalls", "with_open_call_limit"]

_RETRY_AFTER_S: Final = 1.0
"""Suggested delay of a retry, in seconds; long calls take seconds."""


def _account_of(call: Call) -> str:
    """The account whose quota a call counts against: the caller, or its address if callers do not authenticate."""
    if call.principal.is_known or call.context is None:
        return call.principal.subject
    return str(call.context.peer()).rpartition(":")[0]


class OpenCalls:
    """Counts the open calls of one kind.

    Parameters
    ----------
    quota : str
        Name of the quota.
    most : int
        Most open calls of one caller; 0 = no limit.
    """

    def __init__(self, quota: str, most: int) -> None:
        self._quota = quota
        self._most = most
        self._open: Counter[str] = Counter()

    @contextmanager
    def holding(self, call: Call) -> Iterator[None]:
        """Count a call while the context is open.

        Raises
        ------
        NodewiseError
            QUOTA_EXCEEDED.
        """
        caller = _account_of(call)
        count = self._open[caller] + 1
        if self._most and count > self._most:
            raise NodewiseError(
                Reason.QUOTA_EXCEEDED,
                f"{count} open calls of this caller exceed quotas.{self._quota} = {self._most}; end one, or retry",
                {"quota": self._quota, "found": str(count), "limit": str(self._most), "caller": caller},
                retry_after_s=_RETRY_AFTER_S,
            )
        self._open[caller] = count
        try:
            yield
        finally:
            self._open[caller] -= 1
            if not self._open[caller]:
                del self._open[caller]


def with_open_call_limit(method: Method, open_calls: OpenCalls) -> Method:
    """A method with a quota of open calls of a caller."""
    if method.streams_out:
        return replace(method, holding=open_calls.holding)
    behaviour = method.behaviour

    async def one(request: Any, call: Call) -> Any:
        with open_calls.holding(call):
            return await behaviour(request, call)

    return replace(method, behaviour=one)
