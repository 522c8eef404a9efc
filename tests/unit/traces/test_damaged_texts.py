"""Damaged or foreign bytes of traces, each with the text that says what is wrong."""

from __future__ import annotations

import io
import pickle

import pytest

from nodewise_traces.formats.protobuf import WireError, members
from nodewise_traces.scanning.plain_pickle import PickleError, load_pickle


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"\x07", "field 0 of wire type 7"),
        (b"\x08", "the stream ends inside a field"),
        (b"\x0a\x80", "the stream ends inside a length"),
        (b"\x0a\x05ab", "the stream ends inside a message"),
        (b"\x0a\x7f", "a message of 127 bytes"),
    ],
)
def test_a_stream_of_fields_that_is_damaged(content: bytes, text: str) -> None:
    with pytest.raises(WireError) as caught:
        list(members(io.BytesIO(content), 64))
    assert str(caught.value) == text


def test_a_pickle_that_names_code() -> None:
    with pytest.raises(PickleError, match="the pickle needs STACK_GLOBAL"):
        load_pickle(pickle.dumps({"entries": print}))
