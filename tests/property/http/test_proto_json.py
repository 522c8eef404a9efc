"""JSON of every message: taken where protobuf's json_format takes it, else refused with the field."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from google.protobuf import json_format
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings
from hypothesis import strategies as st
from random_messages import random_message

from nodewise.domain.errors import NodewiseError
from nodewise.rpc.http.translating import json_of, message_of, parse_json
from nodewise.rpc.services import METHODS

REQUESTS = sorted({each.input_type.full_name for each in METHODS.values()})
REPLIES = sorted({each.output_type.full_name for each in METHODS.values()})
KINDS: dict[str, type[Message]] = {
    kind.full_name: GetMessageClass(kind) for each in METHODS.values() for kind in (each.input_type, each.output_type)
}
WRONG = (None, True, 1, -1, 1.5, 2**31, 2**63, 2**64, 1e300, "", "1", "1.0", "x", "NaN", [], [1], ["x"], {}, {"a": 1})


def read(name: str, body: bytes, *, strict: bool = True) -> Message:
    return message_of(parse_json(body, KINDS[name]), KINDS[name], strict=strict)


def messages(name: str, seeds: st.SearchStrategy[int]) -> st.SearchStrategy[Message]:
    return seeds.map(lambda seed: random_message(KINDS[name], random.Random(seed))).filter(writable)


def writable(message: Message) -> bool:
    """Whether its times are such as JSON can tell."""
    try:
        json_format.MessageToDict(message)
    except (ValueError, json_format.SerializeToJsonError):
        return False
    return True


seeds = st.integers(0, 2**64)


@settings(max_examples=200)
@given(st.sampled_from(sorted(KINDS)).flatmap(lambda name: messages(name, seeds)))
def test_a_message_is_written_as_json_format_writes_it(message: Message) -> None:
    told = json.loads(json_of(message))
    assert told == json.loads(json_format.MessageToJson(message))


@settings(max_examples=200)
@given(st.sampled_from(REQUESTS).flatmap(lambda name: messages(name, seeds)), st.booleans())
def test_what_json_format_writes_is_read_as_the_same_message(message: Message, snake: bool) -> None:
    text = json_format.MessageToJson(message, preserving_proto_field_name=snake).encode()
    name = message.DESCRIPTOR.full_name
    if b"Infinity" in text or b"NaN" in text:
        text = orjson.dumps(json_format.MessageToDict(message, preserving_proto_field_name=snake))
    assert read(name, text).SerializeToString(deterministic=True) == message.SerializeToString(deterministic=True)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Of everything in a value of JSON."""
    yield path
    held = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in held:
        yield from places(each, (*path, key))


def put(value: Any, path: tuple[Any, ...], wrong: Any) -> Any:
    if not path:
        return wrong
    value[path[0]] = put(value[path[0]], path[1:], wrong)
    return value


def parsed(name: str, value: Any) -> Message | None:
    """What json_format reads, if it takes the value."""
    try:
        return json_format.Parse(json.dumps(value), KINDS[name]())
    except (json_format.ParseError, ValueError, TypeError, AttributeError, OverflowError):
        return None


@settings(max_examples=400)
@given(st.sampled_from(REQUESTS).flatmap(lambda name: messages(name, seeds)), seeds)
def test_of_what_is_changed_in_json_nothing_is_taken_for_another_thing(message: Message, seed: int) -> None:
    chance, name = random.Random(seed), message.DESCRIPTOR.full_name
    value = json_format.MessageToDict(message)
    wrong = chance.choice(WRONG)
    place = chance.choice(list(places(value)))
    value = put(value, place, wrong)
    text = json.dumps(value)
    expected = parsed(name, value)
    # json_format takes true for 1.0; a place that takes a fraction is a number's.
    if wrong is True and place and parsed(name, put(json.loads(text), place, 1.5)) is not None:
        expected = None
    if expected is None or not isinstance(value, dict):
        with pytest.raises(NodewiseError) as refused:
            read(name, text.encode())
        assert "field" in refused.value.metadata or not isinstance(value, dict)
        return
    found = read(name, text.encode())
    assert found == expected or str(found) == str(expected), text  # NaN differs from itself


@pytest.mark.parametrize("name", REQUESTS)
def test_a_name_that_is_not_known_is_refused_or_left_out(name: str) -> None:
    with pytest.raises(NodewiseError, match="is not a field of"):
        read(name, b'{"nobodyKnows": {"this": [1]}}')
    assert read(name, b'{"nobodyKnows": {"this": [1]}}', strict=False) == KINDS[name]()


@pytest.mark.parametrize("body", [b"{", b'"a"', b"[" * 100_000, b'{"a":' * 100_000, b"\xff", b"1", b"nul"])
def test_what_is_no_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(NodewiseError, match="JSON"):
        read("nodewise.v1.PredictRequest", body)
