"""A value that is made where it is read says what one made at once says, whatever is read of it first."""

from __future__ import annotations

import copy
import pickle
from dataclasses import asdict, fields, replace
from typing import Any

import pytest
from contract_values import contract_messages, filled, home_of, variants
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from nodewise_protos.v1 import prediction_pb2
from nodewise_values import Predictions
from nodewise_values.value import LazyValue
from nodewise_values.wire import from_message, from_own_message, to_message

ANSWERS = [
    message
    for message in contract_messages()
    if message.name.endswith("Response") or issubclass(home_of(message, "nodewise_values"), LazyValue)
]


def hashed(value: Any) -> int | str:
    try:
        return hash(value)
    except TypeError as unhashable:  # it holds a mapping
        return str(unhashable)


LOOKS = [repr, asdict, to_message, dir, hashed]


@st.composite
def answers(draw: st.DrawFn) -> tuple[Any, Any]:
    """A value made at once, and the same to be made where it is read; some fields are left out, at any depth."""
    descriptor = draw(st.sampled_from(ANSWERS))
    message, _ = filled(descriptor, draw(st.integers(0, variants(descriptor) - 1)))
    _thin_out(message, draw)
    kind = home_of(descriptor, "nodewise_values")
    # Of the same message: two that are equal give the entries of a map in different orders.
    return from_message(message, kind), from_own_message(message, kind)


def _thin_out(message: Message, draw: st.DrawFn) -> None:
    held = message.ListFields()
    absent = draw(st.sets(st.sampled_from([field.name for field, _ in held]))) if held else set()
    for field, part in held:
        if field.name in absent:
            message.ClearField(field.name)
        elif isinstance(part, Message) and part.DESCRIPTOR.full_name.startswith("nodewise."):
            _thin_out(part, draw)


@given(answers(), st.data())
def test_a_value_made_late_is_the_one_made_at_once(made: tuple[Any, Any], data: st.DataObject) -> None:
    early, late = made
    names = [each.name for each in fields(early)]
    for name in data.draw(st.permutations(names))[: data.draw(st.integers(0, len(names)))]:
        assert getattr(late, name) == getattr(early, name)
        assert getattr(late, name) is getattr(late, name)
    look = data.draw(st.sampled_from(LOOKS))
    assert look(late) == look(early)
    assert (late == early, early == late, late != early) == (True, True, False)
    for again in (copy.copy(late), copy.deepcopy(late), pickle.loads(pickle.dumps(late)), replace(late)):
        assert again == early
        assert type(again) is type(late) is type(early)
    changed = data.draw(st.sampled_from(names)) if names else None
    if changed is not None:
        assert replace(late, **{changed: None}) == replace(early, **{changed: None})


def test_only_what_is_read_is_made() -> None:
    message = prediction_pb2.Predictions(nodes=[1, 2], workers=[3, 4])
    late = from_own_message(message, Predictions)
    assert late.nodes == (1, 2)
    message.Clear()
    assert (late.nodes, late.workers) == ((1, 2), ())


def test_a_message_that_others_have_is_read_at_once() -> None:
    message = prediction_pb2.Predictions(nodes=[1, 2], interval_coverage=0.5)
    value = from_message(message, Predictions)
    message.Clear()
    assert value == Predictions(nodes=(1, 2), interval_coverage=0.5)


def test_a_value_made_late_is_frozen_and_has_no_other_names() -> None:
    late = from_own_message(prediction_pb2.Predictions(), Predictions)
    with pytest.raises(AttributeError, match="cannot assign to field 'nodes'"):
        late.nodes = (1,)  # type: ignore[misc]
    with pytest.raises(AttributeError, match="'Predictions' object has no attribute 'node'"):
        late.node  # noqa: B018  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match=r"nodewise\.v1\.NamedColumn is no nodewise\.v1\.Predictions"):
        from_own_message(prediction_pb2.NamedColumn(), Predictions)
