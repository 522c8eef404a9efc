"""Audit entries of administration, deletions, restorations, retractions and rejected callers."""

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
_FIELDS: Final = (
    *("profile_id", "etag", "reason", "observation_numbers", "phase_timing_numbers", "fact_paths", "trace_sha256s"),
    *("shared_run_sha256s", "generation", "share", "token_id", "description", "roles", "prefixes", "lifetime_seconds"),
    *("namespace", "action", "lessons_id"),
)
"""Fields of requests that entries contain. Others are omitted, since one of them may be a secret."""
REFUSALS_A_SECOND: Final = 50
"""Most rejected calls in a second with an entry each; further ones are counted."""
COUNTED_AFTER_S: Final = 1.0
_MOST_ENTRIES: Final = 20
"""Most elements of a list in an entry; the number of further ones is stated."""
_TURNED_AWAY: Final = (Kind.UNAUTHENTICATED, Kind.FORBIDDEN)


def is_audited(method: str) -> bool:
    """Whether calls of a method get an entry, by its full name."""
    name = method.rpartition(".")[2]
    return name in _METHODS or (_ADMIN in method and not name.startswith(_LOOKS))


class Audit:
    """Writes audit entries.

    Parameters
    ----------
    write : callable
        Writes one entry; never raises.
    """

    def __init__(self, write: Callable[[Mapping[str, Any]], None]) -> None:
        self._write = write
        self._refusal_count = 0
        self._others: Counter[str] = Counter()
        self._counting: asyncio.TimerHandle | None = None

    def put(self, method: str, call: Call, outcome: str, what: Mapping[str, Any]) -> None:
        """Write the entry of a call and its outcome."""
        self._put(method, call.principal.subject, _peer(call.context), outcome, what, call.request_id)

    def record_refusal(self, path: str, context: Context, request_id: str, error: NodewiseError) -> None:
        """Write an entry if an error rejects the caller.

        Above ``REFUSALS_A_SECOND`` only the number of rejected calls is written, so that no caller can fill the disk.
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
    """One entry, with the current time."""
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
    """A method whose calls all get an entry, whatever their outcome."""
    behaviour = method.behaviour

    async def behave(request: Any, call: Call) -> Any:
        outcome, what = "CANCELLED", _content_of(request)
        try:
            reply = await behaviour(request, call)
            outcome = "OK"
            if "token" in reply.DESCRIPTOR.fields_by_name:
                what["token_id"] = reply.token.token_id
        except NodewiseError as error:
            outcome = "" if error.kind in _TURNED_AWAY else str(error.reason)  # record_refusal writes those
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
    """The fields of a request that its entry contains."""
    fields = request.DESCRIPTOR.fields_by_name
    return {
        name: _plain(value, fields[name].enum_type)
        for name in _FIELDS
        if name in fields and (value := getattr(request, name))
    }


def _plain(value: Any, enum: EnumDescriptor | None) -> Any:
    if isinstance(value, (str, int, float)):
        return value
    names = [enum.values_by_number[each].name if enum and each in enum.values_by_number else each for each in value]
    return names if len(names) <= _MOST_ENTRIES else [*names[:_MOST_ENTRIES], f"and {len(names) - _MOST_ENTRIES} more"]
