"""Whatever is wrong in one field of any message is refused, under that field's path and no other."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from contract_values import contract_messages, filled, home_of, is_map, is_time
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from hypothesis import given, settings
from hypothesis import strategies as st

from nodewise_values.wire import InvalidValueError, from_json, from_message, to_json, to_message

FIELDS = [(message, field) for message in contract_messages() for field in message.fields]

_BITS = {
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_SINT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_SINT64: (-(2**63), 2**63 - 1),
}
odd = st.sampled_from([object(), [1], {}, 1j])


def bad_entries(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    """Entries that the field must not hold."""
    if is_time(field):
        return st.one_of(odd, st.datetimes(), st.text(), st.integers())
    if field.message_type is not None:
        return st.one_of(odd, st.text(), st.integers())
    if field.enum_type is not None:
        words = {each.name.lower() for each in field.enum_type.values}
        known = st.text().filter(
            lambda text: not any(name.endswith(text) for name in words) and not text.startswith("unknown_")
        )
        return st.one_of(odd, known, st.integers(1, 9), st.floats())
    if field.type in _BITS:
        least, most = _BITS[field.type]
        outside = st.one_of(st.integers(max_value=least - 1), st.integers(min_value=most + 1))
        return st.one_of(odd, outside, st.floats(), st.booleans(), st.text(), st.none())
    if field.type == FieldDescriptor.TYPE_DOUBLE:
        never = st.sampled_from([math.nan, math.inf, -math.inf, 10**400])
        return st.one_of(odd, never, st.booleans(), st.text(), st.none())
    if field.type == FieldDescriptor.TYPE_STRING:
        return st.one_of(odd, st.integers(), st.binary(), st.just("\ud800"), st.none())
    return st.one_of(odd, st.integers(), st.text(), st.none())


@st.composite
def spoilt(draw: st.DrawFn) -> tuple[Any, str]:
    """A value that is right but for one entry, and the path of that entry."""
    descriptor, field = draw(st.sampled_from(FIELDS))
    value, path = _valid(descriptor, field), field.name
    held = getattr(value, field.name)
    if is_map(field):
        key = draw(st.sampled_from(sorted(held)))
        bad: Any = {**held, key: draw(bad_entries(field.message_type.fields_by_name["value"]))}
        path += f"[{key!r}]"
    elif field.is_repeated:
        place = draw(st.integers(0, len(held) - 1))
        bad = (*held[:place], draw(bad_entries(field)), *held[place + 1 :])
        path += f"[{place}]"
    else:
        bad = draw(bad_entries(field).filter(lambda entry: entry is not None))
    return replace(value, **{field.name: bad}), path


def _valid(descriptor: Descriptor, field: FieldDescriptor) -> Any:
    oneof = field.containing_oneof
    return filled(descriptor, 0 if oneof is None else oneof.fields.index(field))[1]


@given(spoilt())
@settings(max_examples=300, deadline=None)
def test_a_bad_entry_is_refused_under_its_own_path(case: tuple[Any, str]) -> None:
    value, path = case
    with pytest.raises(InvalidValueError) as caught:
        to_message(value)
    assert [each.field for each in caught.value.violations] == [path]
    assert caught.value.violations[0].description.startswith("must be")


@pytest.mark.parametrize("text", ["\x80", "a\u00e9==", "!", "a"])
def test_what_is_no_base64_is_refused_in_words(text: str) -> None:
    descriptor, field = next(case for case in FIELDS if case[1].type == FieldDescriptor.TYPE_BYTES)
    entry = [text] if field.is_repeated else text
    with pytest.raises(InvalidValueError, match="must be bytes in base64") as caught:
        from_json({field.name: entry}, home_of(descriptor, "nodewise_values"))
    assert caught.value.violations[0].field.startswith(field.name)


junk = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=8,
)


@given(st.sampled_from(FIELDS), junk)
@settings(max_examples=300, deadline=None)
def test_json_is_read_or_refused_and_never_more(case: tuple[Descriptor, FieldDescriptor], entry: Any) -> None:
    descriptor, field = case
    kind = home_of(descriptor, "nodewise_values")
    try:
        value = from_json({field.name: entry}, kind)
    except InvalidValueError as error:
        elsewhere = [each for each in error.violations if not each.field.startswith(field.name)]
        if elsewhere:
            raise
    else:
        assert from_json(to_json(value), kind) == value
        assert from_message(to_message(value), kind) == value
