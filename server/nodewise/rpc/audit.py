"""What is put down of who administered, deleted, brought back, retracted, or was turned away."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from google.protobuf.descriptor import EnumDescriptor

from nodewise.domain.errors import Kind, NodewiseError
from nodewise.rpc.calls import Call, Context, Method

__all__ = ["REFUSALS_A_SECOND", "Audit", "entry_of", "is_audited", "with_audit"]

_ADMIN: Final = ".AdminService."
_LOOKS: Final = ("List", "Get")
_METHODS: Final = frozenset({"DeleteProfile", "UndeleteProfile", "RetractEvidence"})
_SAID: Final = (
    *("profile_id", "etag", "reason", "observation_numbers", "phase_timing_numbers", "fact_paths", "trace_sha256s"),
    *("shared_run_sha256s", "generation", "share", "token_id", "description", "roles", "prefixes", "lifetime_seconds"),
    *("namespace", "action", "lessons_id"),
)
"""Fields of requests that are put down, where a request has them. Others are not: one of them may be a secret."""
REFUSALS_A_SECOND: Final = 50
"""Callers turned away that are put down one by one."""
COUNTED_AFTER_S: Final = 1.0
_NAMED: Final = 20
"""Entries of a list that are put down; of more it is said how many there were."""
_TURNED_AWAY: Final = (Kind.UNAUTHENTICATED, Kind.FORBIDDEN)


def is_audited(method: str) -> bool:
    """Whether calls of a method are put down, by its full name."""
    name = method.rpartition(".")[2]
    return name in _METHODS or (_ADMIN in method and not name.startswith(_LOOKS))


class Audit:
    """Puts things down.

    Parameters
    ----------
    write : callable
        Takes one entry; never raises.
    """

    def __init__(self, write: Callable[[Mapping[str, Any]], None]) -> None:
        self._write = write
        self._refusal_count = 0
        self._others: Counter[str] = Counter()
        self._counting: asyncio.TimerHandle | None = None

    def put(self, method: str, call: Call, outcome: str, what: Mapping[str, Any]) -> None:
        """What became of a call."""
        self._put(method, call.principal.subject, _peer(call.context), outcome, what, call.request_id)

    def record_refusal(self, path: str, context: Context, request_id: str, error: NodewiseError) -> None:
        """A call ends by an error: put down where somebody was turned away.

        Whoever is turned away again and again shall not fill the disk: of more than some a second the number is said.
        """
        if error.kind not in _TURNED_AWAY:
            return
        reason = str(error.reason)
        if self._counting is None:
            self._counting = asyncio.get_running_loop().call_later(COUNTED_AFTER_S, self._count)
        if self._refusal_count < REFUSALS_A_SECOND:
            self._refusal_count += 1
            subject = error.metadata.get("subject", "")
            self._put(path, subject, _peer(context), reason, {"message": error.message}, request_id)
        else:
            self._others[reason] += 1

    def _count(self) -> None:
        self._counting = None
        self._refusal_count = 0
        for reason, calls in self._others.items():
            self._put("", "", "", reason, {"other_calls": calls}, "")
        self._others.clear()

    def _put(self, path: str, *parts: Any) -> None:
        self._write(entry_of(path.lstrip("/").replace("/", "."), *parts))


def entry_of(
    method: str, subject: str, peer: str, outcome: str, what: Mapping[str, Any], request_id: str
) -> dict[str, Any]:
    """One entry, of now."""
    return {
        "time": datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds"),
        "audit": True,
        "subject": subject,
        "peer": peer,
        "method": method,
        "what": dict(what),
        "outcome": outcome,
        "request_id": request_id,
    }


def _peer(context: Context | None) -> str:
    return "" if context is None else str(context.peer())


def with_audit(name: str, method: Method, audit: Audit) -> Method:
    """A method whose calls are put down, whatever becomes of them."""
    behaviour = method.behaviour

    async def behave(request: Any, call: Call) -> Any:
        outcome, what = "CANCELLED", _content_of(request)
        try:
            reply = await behaviour(request, call)
            outcome = "OK"
            if "token" in reply.DESCRIPTOR.fields_by_name:
                what["token_id"] = reply.token.token_id
        except NodewiseError as error:
            outcome = "" if error.kind in _TURNED_AWAY else str(error.reason)  # who is turned away is put down then
            raise
        except Exception:
            outcome = "INTERNAL"
            raise
        finally:
            if outcome:
                audit.put(name, call, outcome, what)
        return reply

    return replace(method, behaviour=behave)


def _content_of(request: Any) -> dict[str, Any]:
    """What a request is about."""
    fields = request.DESCRIPTOR.fields_by_name
    return {
        name: _plain(value, fields[name].enum_type)
        for name in _SAID
        if name in fields and (value := getattr(request, name))
    }


def _plain(value: Any, enum: EnumDescriptor | None) -> Any:
    if isinstance(value, (str, int, float)):
        return value
    names = [enum.values_by_number[each].name if enum and each in enum.values_by_number else each for each in value]
    return names if len(names) <= _NAMED else [*names[:_NAMED], f"and {len(names) - _NAMED} more"]
