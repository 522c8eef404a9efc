"""Quotas of callers: how many streams, and how many long calls, each may have open at once in this process."""

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
"""Long calls take seconds."""


def _account_of(call: Call) -> str:
    """Whose quota a call counts against: who he is, or where nobody asks that, the address that he calls from."""
    if call.principal.is_known or call.context is None:
        return call.principal.subject
    return str(call.context.peer()).rpartition(":")[0]


class OpenCalls:
    """Calls of a kind that are open.

    Parameters
    ----------
    quota : str
        Its name.
    most : int
        Of one caller; 0 = no limit.
    """

    def __init__(self, quota: str, most: int) -> None:
        self._quota = quota
        self._most = most
        self._open: Counter[str] = Counter()

    @contextmanager
    def holding(self, call: Call) -> Iterator[None]:
        """Count a call for as long as it is open.

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
                f"the caller would have {count} such calls open, above quotas.{self._quota} = {self._most};"
                " end one, or retry",
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
    """A method of which a caller may have so many calls open."""
    if method.streams_out:
        return replace(method, holding=open_calls.holding)
    behaviour = method.behaviour

    async def one(request: Any, call: Call) -> Any:
        with open_calls.holding(call):
            return await behaviour(request, call)

    return replace(method, behaviour=one)
