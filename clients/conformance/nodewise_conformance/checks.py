"""Whether an answer is what a scenario expects, and what the server between knows to be true of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from google.protobuf import json_format
from google.protobuf.message import Message

from nodewise_conformance.between import Attempt
from nodewise_conformance.contract import FILLED, json_of, message_of, methods, to_microseconds
from nodewise_conformance.rows import rows_of
from nodewise_conformance.scenarios import Scenario
from nodewise_conformance.statuses import Details

__all__ = ["compared", "complaints"]

ANY: Final = "<any>"
ABSENT: Final = "<absent>"
_OWN: Final = {"request_id", "page_token", "page_size", "now", "session_id"}
"""Fields of requests that a client may fill by itself where the caller left them out."""
_SHOWN: Final = 300


def complaints(
    scenario: Scenario, call: Mapping[str, Any], expect: Mapping[str, Any], answer: Mapping[str, Any],
    attempts: Sequence[Attempt],
) -> list[str]:  # fmt: skip
    """What is wrong with an answer; empty = nothing."""
    found = _outcome(expect, answer)
    found += _attempts(expect, attempts)
    found += _content(expect, answer, attempts)
    if attempts and not scenario.direct:
        found += _requests(scenario, call, attempts)
        found += _told_as_heard(scenario, answer, attempts)
    return found


def compared(expected: Any, found: Any, where: str) -> list[str]:
    """Differences: of objects the keys named, of lists every entry, of numbers all but rounding."""
    if expected == ANY:
        return [f"{where} is absent"] if found is None else []
    if expected == ABSENT:
        return [] if not found else [f"{where} is {_short(found)}, right would be nothing"]
    if isinstance(expected, Mapping):
        told: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
        return [each for key, value in expected.items() for each in compared(value, told.get(key), f"{where}.{key}")]
    if isinstance(expected, list):
        held = found if isinstance(found, list) else []
        if len(held) != len(expected):
            return [f"{where} has {len(held)} entries, right would be {len(expected)}: {_short(found)}"]
        return [
            each
            for place, (one, other) in enumerate(zip(expected, held, strict=True))
            for each in compared(one, other, f"{where}[{place}]")
        ]
    same = _same(expected, found)
    return [] if same else [f"{where} is {_short(found)}, right would be {_short(expected)}"]


def _same(expected: Any, found: Any) -> bool:
    if isinstance(expected, str) and expected.startswith("<contains ") and isinstance(found, str):
        return expected.removeprefix("<contains ").removesuffix(">") in found
    if expected is None or isinstance(expected, bool) or isinstance(found, bool):
        return (expected or None) == (found or None)
    if isinstance(expected, int | float) and isinstance(found, int | float | str):
        try:
            return math.isclose(float(expected), float(found), rel_tol=1e-9)
        except ValueError:
            return False
    # Proto JSON leaves out what is 0 or empty.
    return expected == found or (not expected and not found)


def _outcome(expect: Mapping[str, Any], answer: Mapping[str, Any]) -> list[str]:
    code = expect.get("code", "OK")
    found = compared(code, answer.get("code"), "code")
    if found:
        found[0] += f" (message: {_short(answer.get('message', ''))})"
    for key in ("reason", "metadata", "retry_delay_seconds"):
        if key in expect:
            found += compared(expect[key], answer.get(key), key)
    if "violations" in expect:
        told = {each.get("field"): each.get("description") for each in answer.get("violations") or ()}
        for each in expect["violations"]:
            found += compared(each.get("description", ANY), told.get(each["field"]), f"violations {each['field']}")
    if "message_contains" in expect and expect["message_contains"] not in str(answer.get("message", "")):
        found.append(f"message is {_short(answer.get('message'))}, right would hold {expect['message_contains']!r}")
    elapsed = float(answer.get("elapsed_seconds") or 0.0)
    if elapsed > expect.get("elapsed_below_seconds", math.inf):
        found.append(f"it took {elapsed:.2f} s, right would be below {expect['elapsed_below_seconds']} s")
    if elapsed < expect.get("elapsed_above_seconds", 0.0):
        found.append(f"it took {elapsed:.2f} s, right would be above {expect['elapsed_above_seconds']} s")
    return found


def _attempts(expect: Mapping[str, Any], attempts: Sequence[Attempt]) -> list[str]:
    found: list[str] = []
    least, most = expect.get("attempts_between", (expect.get("attempts", 0), expect.get("attempts", math.inf)))
    if not least <= len(attempts) <= most:
        found.append(f"{len(attempts)} attempts arrived, right would be {least} to {most}")
    for attempt in attempts:
        for key, value in expect.get("sent_metadata", {}).items():
            found += compared(value, attempt.metadata.get(key), f"metadata {key}")
        found += _deadline(expect, attempt)
    ended = sum(attempt.ended_by_caller for attempt in attempts)
    if ended != expect.get("ended_by_caller", ended):
        found.append(f"the caller ended {ended} attempts at the server, right would be {expect['ended_by_caller']}")
    apart = attempts[1].at - attempts[0].at if len(attempts) > 1 else math.inf
    if apart < expect.get("attempts_apart_seconds", 0.0):
        found.append(f"attempts were {apart:.3f} s apart, right would be {expect['attempts_apart_seconds']} s")
    largest = max((len(reply) for attempt in attempts for reply in attempt.replies), default=0)
    if largest < expect.get("reply_bytes_above", 0):
        found.append(f"the largest reply had {largest} bytes, right would be above {expect['reply_bytes_above']}")
    return found


def _deadline(expect: Mapping[str, Any], attempt: Attempt) -> list[str]:
    if "deadline_seconds_between" not in expect:
        return []
    least, most = expect["deadline_seconds_between"]
    told = attempt.deadline_seconds
    # The wire rounds a deadline up, so that it may arrive a little longer than it was.
    if told is not None and least <= told <= 1.02 * most:
        return []
    return [f"the deadline sent is {told} s, right would be {least} to {most} s"]


def _content(expect: Mapping[str, Any], answer: Mapping[str, Any], attempts: Sequence[Attempt]) -> list[str]:
    found: list[str] = []
    replies, rows = answer.get("replies") or [], answer.get("rows")
    if "replies_count" in expect and len(replies) != expect["replies_count"]:
        found.append(f"{len(replies)} replies, right would be {expect['replies_count']}")
    if "replies" in expect:
        found += compared(expect["replies"], [_plain(each, attempts) for each in replies], "replies")
    if "rows" in expect:
        found += compared(expect["rows"], rows, "rows")
    return found


def _plain(told: Any, attempts: Sequence[Attempt]) -> Any:
    """What was told, a reply or an item of a listing, by the contract's own names."""
    reply = attempts[-1].method.reply if attempts else None
    items = [field.message_type for field in reply.fields if field.is_repeated and field.message_type] if reply else []
    for descriptor in (reply, *items):
        try:
            return json_of(message_of(descriptor, told)) if descriptor else told
        except json_format.ParseError:
            continue
    return told  # what an ingest writer tells


def _requests(scenario: Scenario, call: Mapping[str, Any], attempts: Sequence[Attempt]) -> list[str]:
    """What arrived must be what was asked, but for what a client adds of its own."""
    if scenario.call["face"] in {"ingest", "pages"} or "requests" not in call:
        return []
    method = methods()[scenario.method]
    asked = [message_of(method.request, each) for each in call["requests"]]
    # A listing is asked for as the client's own method does it; see PROTOCOL.md.
    if "page_token" in method.request.fields_by_name and call["requests"] != [FILLED]:
        return []
    arrived = [method.read_request(each) for each in attempts[-1].requests]
    if not arrived and (attempts[-1].over_rest or attempts[-1].ended_by_caller):
        # Of REST path, query and body are one request: that it was understood shows in the reply. And what was
        # cancelled early may never have been read.
        return []
    if not method.client_streaming and len(arrived) == len(asked):
        for one, other in zip(asked, arrived, strict=True):
            _as_own(one, other)
    if arrived == asked or (method.client_streaming and arrived == asked[: len(arrived)]):
        return []
    wanted, sent = ([json_of(each) for each in many] for many in (asked, arrived))
    return [f"another request arrived: {_difference(wanted, sent)}"]


def _as_own(asked: Any, arrived: Any) -> None:
    """Take over what the client filled by itself."""
    for name in _OWN & set(asked.DESCRIPTOR.fields_by_name):
        if not asked.HasField(name) if asked.DESCRIPTOR.fields_by_name[name].has_presence else not getattr(asked, name):
            if asked.DESCRIPTOR.fields_by_name[name].message_type is not None:
                getattr(asked, name).CopyFrom(getattr(arrived, name))
            else:
                setattr(asked, name, getattr(arrived, name))


def _told_as_heard(scenario: Scenario, answer: Mapping[str, Any], attempts: Sequence[Attempt]) -> list[str]:
    """What the client tells must be what it was sent: every field, every detail, every row."""
    attempt, face = attempts[-1], scenario.call["face"]
    if attempt.status is not None and answer.get("code") != "OK" and attempt.status.details:
        details = Details(attempt.status)
        # Some libraries put words of their own before the server's.
        message = f"<contains {details.message}>"
        told: dict[str, Any] = {"reason": details.reason, "metadata": details.metadata, "message": message}
        told |= {"code": details.code, "retry_delay_seconds": details.retry_delay_seconds}
        found = compared(told, answer, "the error's")
        return found + compared(details.violations, answer.get("violations") or [], "the error's violations")
    if answer.get("code") != "OK" or not attempt.replies:
        return []
    # A watch tells what it hears across all attempts; whatever else is begun again is told once.
    heard = [
        each.method.read_reply(data) for each in (attempts if face == "watch" else [attempt]) for data in each.replies
    ]
    if face == "rows":
        expected = [row for reply in heard for row in rows_of(reply)]
        return compared(expected, answer.get("rows"), "rows")[:3]
    if face in {"call", "stream", "watch", "progress"}:
        told_replies = answer.get("replies") or []
        if face == "watch":
            heard = heard[: len(told_replies)]
        return _same_messages(heard[-1:] if face == "progress" else heard, told_replies, attempt)
    return []


def _same_messages(heard: Sequence[Message], told: Sequence[Any], attempt: Attempt) -> list[str]:
    if len(heard) != len(told):
        return [f"{len(told)} replies were told, {len(heard)} were sent"]
    for sent, given in zip(heard, told, strict=True):
        sent.DiscardUnknownFields()
        try:
            message = message_of(attempt.method.reply, given)
        except json_format.ParseError as error:
            return [f"a reply is no proto JSON of {attempt.method.reply.full_name}: {error}"]
        to_microseconds(sent)
        to_microseconds(message)
        if message != sent:
            return [f"another reply was told: {_difference(json_of(sent), json_of(message))}"]
    return []


def _difference(expected: Any, found: Any, where: str = "") -> str:
    """The first place where two JSON values differ."""
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        for key in [*expected, *(each for each in found if each not in expected)]:
            if expected.get(key) != found.get(key):
                return _difference(expected.get(key), found.get(key), f"{where}.{key}")
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for place, (one, other) in enumerate(zip(expected, found, strict=True)):
            if one != other:
                return _difference(one, other, f"{where}[{place}]")
    return f"{where or 'it'} is {_short(found)}, right would be {_short(expected)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
