"""The compiled scanner against the standard library's JSON, on documents of any shape and any cut into chunks."""

from __future__ import annotations

import io
import json
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodewise_traces.scanning._text import decimal
from nodewise_traces.scanning.decode import text_of
from nodewise_traces.scanning.fields import ARGUMENT_KEYS, FIRST_ARGUMENT, MISSING, NAME, TS
from nodewise_traces.scanning.stream import Batch, ChromeStream

texts = st.text(max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
events = st.fixed_dictionaries(
    {"ph": st.sampled_from("XiMsf"), "name": texts, "ts": st.integers(0, 2**50)},
    optional={
        "args": st.dictionaries(st.sampled_from(ARGUMENT_KEYS) | texts, values, max_size=4),
        "extra": values,
    },
)


@pytest.mark.parametrize("indent", [None, 2])
@settings(deadline=None)  # the first call compiles
@given(
    wanted=st.lists(events, max_size=12),
    members=st.dictionaries(texts.filter(lambda key: key != "traceEvents"), values, max_size=3),
    chunk_bytes=st.integers(1, 300),
    ascii_only=st.booleans(),
)
def test_any_document_in_any_chunks(
    indent: int | None, wanted: list[dict[str, Any]], members: dict[str, Any], chunk_bytes: int, ascii_only: bool
) -> None:
    before = dict(list(members.items())[:1])
    document = {**before, "traceEvents": wanted, **members}
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only).encode("utf-8", errors="surrogatepass")
    read = ChromeStream(Trickle(text, chunk_bytes))
    found = []
    for batch in read.batches():
        names = names_of(batch)
        for row in range(len(batch.rows)):
            assert batch.rows[row, TS] == wanted[len(found)]["ts"] * 1000
            event = batch.event(row)
            found.append(event)
            if all(ord(letter) < 0xD800 or ord(letter) > 0xDFFF for letter in event["name"]):
                assert text_of(names[row]) == wanted[len(found) - 1]["name"]
            for place, key in enumerate(ARGUMENT_KEYS[:-2]):
                value = event.get("args", {}).get(key)
                if isinstance(value, int) and not isinstance(value, bool):
                    expected = value if abs(value) < 9e18 else batch.rows[row, FIRST_ARGUMENT + place]
                    assert batch.rows[row, FIRST_ARGUMENT + place] == expected
    assert len(found) == len(wanted)
    assert read.counts["malformed"] == read.counts["truncated"] == 0
    assert read.has_events


def names_of(batch: Batch) -> list[bytes]:
    """The raw names of a batch's events, each as its number stands for it."""
    known: dict[bytes, int] = {}
    numbers = batch.number_texts(NAME, lambda text: known.setdefault(text, len(known)))
    by_number = list(known)
    return [by_number[number] for number in numbers.tolist()]


class Trickle(io.BytesIO):
    """Gives few bytes at a time, whatever is asked for."""

    def __init__(self, text: bytes, chunk_bytes: int) -> None:
        super().__init__(text)
        self.chunk_bytes = chunk_bytes

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(self.chunk_bytes)


@settings(deadline=None)  # the first call compiles
@given(number=st.decimals(-(10**13), 10**13, allow_nan=False, allow_infinity=False, places=6))
def test_decimals_are_exact(number: Decimal) -> None:
    text = format(number, "f").encode()
    found = decimal(np.frombuffer(text, dtype=np.uint8), 0, len(text), 3)
    assert found == int((number * 1000).quantize(Decimal(1), rounding=ROUND_HALF_UP))


@settings(deadline=None)  # the first call compiles
@given(mantissa=st.integers(-(10**6), 10**6), exponent=st.integers(-3, 9), plus=st.sampled_from(["", "+"]))
def test_exponents(mantissa: int, exponent: int, plus: str) -> None:
    text = f"{mantissa}e{plus if exponent >= 0 else ''}{exponent}".encode()
    assert decimal(np.frombuffer(text, dtype=np.uint8), 0, len(text), 3) == mantissa * 10 ** (exponent + 3)


@settings(deadline=None)  # the first call compiles
@given(text=st.binary(max_size=40))
def test_any_bytes_are_a_number_or_none(text: bytes) -> None:
    array = np.frombuffer(text or b"x", dtype=np.uint8)
    found = decimal(array, 0, len(array), 3)
    assert found == MISSING or abs(found) < 2**63


@settings(deadline=None)  # the first call compiles
@given(text=st.binary(max_size=400), chunk_bytes=st.integers(1, 64))
def test_any_bytes_end(text: bytes, chunk_bytes: int) -> None:
    for document in (text, b'{"traceEvents": [' + text, b"[" + text):
        read = ChromeStream(Trickle(document, chunk_bytes))
        assert sum(len(batch.rows) for batch in read.batches()) == read.counts["events"]


@settings(deadline=None)  # the first call compiles
@given(wanted=st.lists(events, min_size=2, max_size=8), damage=st.data())
def test_damage_costs_what_is_near_it(wanted: list[dict[str, Any]], damage: st.DataObject) -> None:
    pieces = [json.dumps({"ph": "X", "ts": 1, "name": f"event {place}"}) for place in range(len(wanted))]
    broken = damage.draw(st.integers(0, len(pieces) - 1))
    pieces[broken] = pieces[broken].replace("event", 'ev"ent')
    read = ChromeStream(io.BytesIO(f'{{"traceEvents": [{",".join(pieces)}], "last": 5}}'.encode()))
    names = [name for batch in read.batches() for name in names_of(batch)]
    assert names == [f"event {place}".encode() for place in range(len(pieces)) if place != broken]
    assert read.counts["malformed"] == 1
    assert read.members.get("last") == 5
