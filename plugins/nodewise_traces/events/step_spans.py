"""Which spans are training steps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import numpy as np

from nodewise.plugin import EventKind, Ints, TraceSource, TraceSteps
from nodewise_traces.events.collectives import Spans
from nodewise_traces.refusals import unusable_error

__all__ = ["pattern_of", "steps_of", "steps_table"]

_STEP: Final = r"^ProfilerStep#(\d+)$"
_MOST_DIGITS: Final = 18
"""Decimal digits of a step's number that surely fit 64 bits."""


def pattern_of(source: TraceSource, what: str, otherwise: str = "") -> re.Pattern[str] | None:
    """A pattern of the sender's mapping, or the reader's own; None = there is neither.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for a pattern that is no regular expression.
    """
    text = source.mapping.get(what, otherwise)
    try:
        return re.compile(text) if text else None
    except re.error as error:
        raise unusable_error(source, f"mapping.{what} is not a regular expression ({error})") from None


def steps_of(spans: Spans, duration_ns: Ints, source: TraceSource) -> TraceSteps:
    """Spans on the host whose names match; the pattern's first group is the number, without one they are counted.

    Of two spans of one number (an annotation and its echo on another thread) the longer one is the step.
    """
    pattern = pattern_of(source, "step", _STEP)
    assert pattern is not None
    host = (spans.kind < EventKind.CALL) | (spans.kind == EventKind.OTHER)
    rows = np.flatnonzero(spans.match_names(pattern) & host)
    span_by_number: dict[int, tuple[int, int]] = {}
    for count, row in enumerate(rows.tolist(), start=1):
        match = pattern.search(spans.text(row))
        text = match.group(1) if match and pattern.groups else None
        number = int(text) if text and text.isdecimal() and len(text) <= _MOST_DIGITS else count
        begin, duration = int(spans.begin_ns[row]), int(duration_ns[row])
        if number not in span_by_number or duration > span_by_number[number][1] - span_by_number[number][0]:
            span_by_number[number] = (begin, begin + duration)
    return steps_table(span_by_number)


def steps_table(bounds: Mapping[int, tuple[int, int]]) -> TraceSteps:
    """Steps in the order of their begins; ``bounds`` is begin and end (ns) by number."""
    rows = [(number, *bound) for number, bound in sorted(bounds.items(), key=lambda step: step[1])]
    number, begin_ns, end_ns = np.ascontiguousarray(np.array(rows, dtype=np.int64).reshape(-1, 3).T)
    return TraceSteps(number=number, begin_ns=begin_ns, end_ns=end_ns)
