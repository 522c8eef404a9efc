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
    problems = _outcome(expect, answer)
    problems += _attempts(expect, attempts)
    problems += _content(expect, answer, attempts)
    if attempts and not scenario.direct:
        problems += _requests(scenario, call, attempts)
        problems += _told_as_heard(scenario, answer, attempts)
    return problems


def compared(expected: Any, actual: Any, where: str) -> list[str]:
    """Differences: of objects the keys named, of lists every entry, of numbers all but rounding."""
    if expected == ANY:
        return [f"{where} is absent"] if actual is None else []
    if expected == ABSENT:
        return [] if not actual else [f"{where} is {_short(actual)}, expected nothing"]
    if isinstance(expected, Mapping):
        entries: Mapping[str, Any] = actual if isinstance(actual, Mapping) else {}
        return [each for key, value in expected.items() for each in compared(value, entries.get(key), f"{where}.{key}")]
    if isinstance(expected, list):
        items = actual if isinstance(actual, list) else []
        if len(items) != len(expected):
            return [f"{where} has {len(items)} entries, expected {len(expected)}: {_short(actual)}"]
        return [
            each
            for place, (one, other) in enumerate(zip(expected, items, strict=True))
            for each in compared(one, other, f"{where}[{place}]")
        ]
    same = _same(expected, actual)
    return [] if same else [f"{where} is {_short(actual)}, expected {_short(expected)}"]


def _same(expected: Any, value: Any) -> bool:
    if isinstance(expected, str) and expected.startswith("<contains ") and isinstance(value, str):
        return expected.removeprefix("<contains ").removesuffix(">") in value
    if expected is None or isinstance(expected, bool) or isinstance(value, bool):
        return (expected or None) == (value or None)
    if isinstance(expected, int | float) and isinstance(value, int | float | str):
        try:
            return math.isclose(float(expected), float(value), rel_tol=1e-9)
        except ValueError:
            return False
    # Proto JSON leaves out what is 0 or empty.
    return expected == value or (not expected and not value)


def _outcome(expect: Mapping[str, Any], answer: Mapping[str, Any]) -> list[str]:
    code = expect.get("code", "OK")
    problems = compared(code, answer.get("code"), "code")
    if problems:
        problems[0] += f" (message: {_short(answer.get('message', ''))})"
    for key in ("reason", "metadata", "retry_delay_seconds"):
        if key in expect:
            problems += compared(expect[key], answer.get(key), key)
    if "violations" in expect:
        violations = {each.get("field"): each.get("description") for each in answer.get("violations") or ()}
        for each in expect["violations"]:
            problems += compared(
                each.get("description", ANY), violations.get(each["field"]), f"violations {each['field']}"
            )
    if "message_contains" in expect and expect["message_contains"] not in str(answer.get("message", "")):
        problems.append(
            f"message is {_short(answer.get('message'))}, expected to contain {expect['message_contains']!r}"
        )
    elapsed_s = float(answer.get("elapsed_seconds") or 0.0)
    if elapsed_s > expect.get("elapsed_below_seconds", math.inf):
        problems.append(f"it took {elapsed_s:.2f} s, expected below {expect['elapsed_below_seconds']} s")
    if elapsed_s < expect.get("elapsed_above_seconds", 0.0):
        problems.append(f"it took {elapsed_s:.2f} s, expected above {expect['elapsed_above_seconds']} s")
    return problems


def _attempts(expect: Mapping[str, Any], attempts: Sequence[Attempt]) -> list[str]:
    problems: list[str] = []
    least, most = expect.get("attempts_between", (expect.get("attempts", 0), expect.get("attempts", math.inf)))
    if not least <= len(attempts) <= most:
        problems.append(f"{len(attempts)} attempts arrived, expected {least} to {most}")
    for attempt in attempts:
        for key, value in expect.get("sent_metadata", {}).items():
            problems += compared(value, attempt.metadata.get(key), f"metadata {key}")
        problems += _deadline(expect, attempt)
    ended_count = sum(attempt.ended_by_caller for attempt in attempts)
    if ended_count != expect.get("ended_by_caller", ended_count):
        problems.append(f"the caller ended {ended_count} attempts at the server, expected {expect['ended_by_caller']}")
    apart = attempts[1].at - attempts[0].at if len(attempts) > 1 else math.inf
    if apart < expect.get("attempts_apart_seconds", 0.0):
        problems.append(f"attempts were {apart:.3f} s apart, expected {expect['attempts_apart_seconds']} s")
    largest = max((len(reply) for attempt in attempts for reply in attempt.replies), default=0)
    if largest < expect.get("reply_bytes_above", 0):
        problems.append(f"the largest reply had {largest} bytes, expected above {expect['reply_bytes_above']}")
    return problems


def _deadline(expect: Mapping[str, Any], attempt: Attempt) -> list[str]:
    if "deadline_seconds_between" not in expect:
        return []
    least, most = expect["deadline_seconds_between"]
    deadline_s = attempt.deadline_seconds
    # The wire rounds a deadline up, so that it may arrive a little longer than it was.
    if deadline_s is not None and least <= deadline_s <= 1.02 * most:
        return []
    return [f"the deadline sent is {deadline_s} s, expected {least} to {most} s"]


def _content(expect: Mapping[str, Any], answer: Mapping[str, Any], attempts: Sequence[Attempt]) -> list[str]:
    problems: list[str] = []
    replies, rows = answer.get("replies") or [], answer.get("rows")
    if "replies_count" in expect and len(replies) != expect["replies_count"]:
        problems.append(f"{len(replies)} replies, expected {expect['replies_count']}")
    if "replies" in expect:
        problems += compared(expect["replies"], [_plain(each, attempts) for each in replies], "replies")
    if "rows" in expect:
        problems += compared(expect["rows"], rows, "rows")
    return problems


def _plain(reply_of_client: Any, attempts: Sequence[Attempt]) -> Any:
    """A reported reply or item of a listing, by the contract's own names."""
    reply = attempts[-1].method.reply if attempts else None
    items = [field.message_type for field in reply.fields if field.is_repeated and field.message_type] if reply else []
    for descriptor in (reply, *items):
        try:
            return json_of(message_of(descriptor, reply_of_client)) if descriptor else reply_of_client
        except json_format.ParseError:
            continue
    return reply_of_client  # what an ingest writer tells


def _requests(scenario: Scenario, call: Mapping[str, Any], attempts: Sequence[Attempt]) -> list[str]:
    """What arrived must be what was asked, but for what a client adds of its own."""
    if scenario.call["face"] in {"ingest", "pages"} or "requests" not in call:
        return []
    method = methods()[scenario.method]
    requests = [message_of(method.request, each) for each in call["requests"]]
    # A listing is asked for as the client's own method does it; see PROTOCOL.md.
    if "page_token" in method.request.fields_by_name and call["requests"] != [FILLED]:
        return []
    messages = [method.read_request(each) for each in attempts[-1].requests]
    if not messages and (attempts[-1].over_rest or attempts[-1].ended_by_caller):
        # Of REST path, query and body are one request: that it was understood shows in the reply. And what was
        # cancelled early may never have been read.
        return []
    if not method.client_streaming and len(messages) == len(requests):
        for one, other in zip(requests, messages, strict=True):
            _as_own(one, other)
    if messages == requests or (method.client_streaming and messages == requests[: len(messages)]):
        return []
    expected_json, sent_json = ([json_of(each) for each in many] for many in (requests, messages))
    return [f"another request arrived: {_difference(expected_json, sent_json)}"]


def _as_own(request: Any, message: Any) -> None:
    """Take over what the client filled by itself."""
    for name in _OWN & set(request.DESCRIPTOR.fields_by_name):
        if (
            not request.HasField(name)
            if request.DESCRIPTOR.fields_by_name[name].has_presence
            else not getattr(request, name)
        ):
            if request.DESCRIPTOR.fields_by_name[name].message_type is not None:
                getattr(request, name).CopyFrom(getattr(message, name))
            else:
                setattr(request, name, getattr(message, name))


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
    # A watch reports the replies of all attempts; other calls that are retried report one.
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


def _same_messages(messages: Sequence[Message], reports: Sequence[Any], attempt: Attempt) -> list[str]:
    if len(messages) != len(reports):
        return [f"{len(reports)} replies were reported, {len(messages)} were sent"]
    for sent_message, report in zip(messages, reports, strict=True):
        sent_message.DiscardUnknownFields()
        try:
            message = message_of(attempt.method.reply, report)
        except json_format.ParseError as error:
            return [f"a reply is not proto JSON of {attempt.method.reply.full_name}: {error}"]
        to_microseconds(sent_message)
        to_microseconds(message)
        if message != sent_message:
            return [f"another reply was reported: {_difference(json_of(sent_message), json_of(message))}"]
    return []


def _difference(expected: Any, value: Any, where: str = "") -> str:
    """The first place where two JSON values differ."""
    if isinstance(expected, Mapping) and isinstance(value, Mapping):
        for key in [*expected, *(each for each in value if each not in expected)]:
            if expected.get(key) != value.get(key):
                return _difference(expected.get(key), value.get(key), f"{where}.{key}")
    if isinstance(expected, list) and isinstance(value, list) and len(expected) == len(value):
        for place, (one, other) in enumerate(zip(expected, value, strict=True)):
            if one != other:
                return _difference(one, other, f"{where}[{place}]")
    return f"{where or 'it'} is {_short(value)}, expected {_short(expected)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
