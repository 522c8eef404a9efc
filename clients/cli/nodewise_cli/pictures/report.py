"""The report of a diagnosis, or of two compared: one page for browsers that needs nothing but itself."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson

from nodewise_cli.comparison import COVERAGE, Comparison
from nodewise_cli.outputs import policy_hash, writing
from nodewise_cli.pictures.drawing import Drawing, DrawnLane, drawing_of
from nodewise_cli.step_parts import KINDS, OTHER
from nodewise_cli.views.comparison import verdict
from nodewise_cli.views.numbers import milliseconds
from nodewise_cli.views.replay import truncated_traces
from nodewise_client import DiagnosisAnswer, DiagnosisBasis, RankShares, Strategy

__all__ = ["MOST_BARS", "MOST_EVENTS", "write_comparison", "write_report"]

MOST_EVENTS: Final = 120_000
"""Events of the lanes of a page: of about 25 bytes each, 3 MB."""

MOST_BARS: Final = 64
"""Ranks whose step is a bar: the others are counted."""

_MOST_DEPTH: Final = 8
"""Rows of a lane: the call that blocks lies below the operators that make it."""

MOST_NAMES: Final = 25
"""Names of events of which a page says what changed."""

_LEAST: Final = 1e-4
"""Share of a step below which the change of a name is not worth a line."""

_Lanes = dict[str, Any]


def write_report(path: Path, result: DiagnosisAnswer) -> None:
    """Write a diagnosis as a page.

    Raises
    ------
    CommandError
        If the file cannot be written.
    """
    shares = result.rank_shares[:MOST_BARS]
    sentence, rest = _split_sentence(result.verdict or f"Bound by {result.bound_by}.")
    strategies = [_strategy(one, result.step_seconds) for one in result.strategies]
    title = "Parts of a step, by rank"
    if len(result.rank_shares) > len(shares):
        title += f" ({len(shares)} of {len(result.rank_shares)} ranks)"
    _write(
        path,
        {
            "title": f"Nodewise: {sentence}",
            "sentence": sentence,
            "rest": rest,
            "facts": [*_facts(result), *_notes(result)],
            "bars_title": title,
            "bars": [_bar(one, f"rank {one.rank}") for one in shares],
            "strategies": [one for one in strategies if not one["combined"]],
            "combined": [one for one in strategies if one["combined"]],
            "costs": [
                {
                    "kind": one.kind,
                    "what": one.what,
                    "rank": one.rank,
                    "seconds": one.seconds,
                    "gain": one.gain_if_removed_seconds,
                    "matters": one.matters,
                    "why": one.why,
                }
                for one in result.bottlenecks
            ],
            "differences": None,
            "lanes": _merge([("", result, None)]),
            "footer": _footer(result),
        },
    )


def write_comparison(path: Path, comparison: Comparison) -> None:
    """Write a comparison as a page: the steps of both side by side.

    Raises
    ------
    CommandError
        If the file cannot be written.
    """
    sentence, rest = _split_sentence(verdict(comparison))
    before, after = ({one.rank: one for one in run.answer.rank_shares} for run in (comparison.before, comparison.after))
    main = comparison.main
    pairs = [main, *(one for one in comparison.ranks if one is not main)][: MOST_BARS // 2]
    several = len(comparison.ranks) > 1 or main.before.rank != main.after.rank
    bars = []
    for one in pairs:
        for shares, word, is_first in (
            (before[one.before.rank], "before", True),
            (after[one.after.rank], "after", False),
        ):
            bars.append(_bar(shares, f"{word}, rank {shares.rank}" if several else word) | {"first": is_first})
    interval = f"{milliseconds(main.lower_seconds)} to {milliseconds(main.upper_seconds)} ms"
    facts = [
        ("before", comparison.before.name),
        ("after", comparison.after.name),
        ("difference", f"{milliseconds(main.difference_seconds)} ms"),
        (f"{100 * COVERAGE:.0f} % interval", interval),
        ("steps", f"{main.before.steps} and {main.after.steps}"),
    ]
    lanes = [
        ("before", comparison.before.answer, main.before.rank),
        ("after", comparison.after.answer, main.after.rank),
    ]
    _write(
        path,
        {
            "title": f"Nodewise: {sentence}",
            "sentence": sentence,
            "rest": rest,
            "facts": [*facts, *dict.fromkeys((*_notes(comparison.before.answer), *_notes(comparison.after.answer)))],
            "bars_title": f"A {comparison.unit} before and after"
            + (f" ({len(pairs)} of {len(comparison.ranks)} ranks)" if len(pairs) < len(comparison.ranks) else ""),
            "bars": bars,
            "strategies": [],
            "combined": [],
            "costs": [],
            "differences": {
                "unit": comparison.unit,
                "before": main.before.step_seconds,
                "after": main.after.step_seconds,
                "parts": [
                    {
                        "kind": one.kind,
                        "what": one.what,
                        "before": one.before_seconds,
                        "after": one.after_seconds,
                    }
                    for one in main.parts
                ],
                "events": [
                    {
                        "kind": one.kind,
                        "name": one.name,
                        "before": one.before_seconds,
                        "after": one.after_seconds,
                        "before_count": one.before_count,
                        "after_count": one.after_count,
                    }
                    for one in main.events[:MOST_NAMES]
                    if abs(one.difference_seconds) >= _LEAST * main.before.step_seconds
                ],
            },
            "lanes": _merge(lanes),
            "footer": _footer(comparison.after.answer),
        },
    )


# --- words


def _split_sentence(text: str) -> tuple[str, str]:
    """The first sentence, which ends with a stop before a capital letter, and the rest."""
    for place, character in enumerate(text[:-2]):
        if character == "." and text[place + 1] == " " and text[place + 2].isupper():
            return text[: place + 1], text[place + 2 :]
    return text, ""


def _facts(result: DiagnosisAnswer) -> Iterator[tuple[str, str]]:
    yield "step", f"{milliseconds(result.step_seconds)} ms"
    steps = len(result.rank_shares[0].step_ordinals) if result.rank_shares else 0
    if steps != 1:
        yield "variation of steps", f"{milliseconds(result.persistence_seconds)} ms"
    yield "exposed communication", f"{milliseconds(result.exposed_communication_seconds)} ms"
    basis = result.basis or DiagnosisBasis()
    of = f" of {basis.world_size}" if basis.world_size else ""
    yield "ranks", f"{len(basis.ranks)}{of}"
    if steps:
        yield "steps", str(steps)


def _notes(result: DiagnosisAnswer) -> Iterator[tuple[str, str]]:
    """What limits the answer beside its sentence."""
    for text in truncated_traces(result):
        yield "limited", text
    if not result.complete:
        yield "limited", "the time limit ended the search: this is the result so far"
    notes = [warning.message for warning in result.warnings]
    notes += [warning.message for trace in (result.basis or DiagnosisBasis()).traces for warning in trace.warnings]
    for text in dict.fromkeys(notes):
        yield "note", text


def _footer(result: DiagnosisAnswer) -> str:
    basis = result.basis or DiagnosisBasis()
    return (
        f"From {basis.events_count:,} events, by {basis.diagnoser} {basis.diagnoser_version}. Parts of a step add up "
        "to it. Gains come from a replay without the named part; they do not add up."
    )


def _bar(shares: RankShares, name: str) -> dict[str, Any]:
    parts = [
        {"kind": one.kind, "what": one.what, "seconds": one.seconds, "waits_for_rank": one.waits_for_rank}
        for one in shares.parts
    ]
    return {"name": name, "rank": shares.rank, "step": shares.step_seconds, "parts": parts, "first": False}


def _strategy(one: Strategy, step_s: float) -> dict[str, Any]:
    """A strategy with its gain in a step; one that changes the samples of a step gains per sample."""
    per_sample = one.predicted_step_seconds and step_s / (one.speedup_ratio * one.predicted_step_seconds)
    bounds = (one.upper_step_seconds, one.lower_step_seconds)
    least, most = (None if each is None else step_s - each * per_sample for each in bounds)
    return {
        "name": one.name,
        "gain": step_s - step_s / one.speedup_ratio,
        "lower": least,
        "upper": most,
        "speedup": one.speedup_ratio,
        "effort": one.effort,
        "rests_on": one.rests_on,
        "acts_on": list(one.acts_on),
        "ranks": sorted({rank for change in one.changes for rank in change.ranks}),
        "combined": len(one.parts) > 1,
    }


# --- lanes


def _merge(runs: Sequence[tuple[str, DiagnosisAnswer, int | None]]) -> _Lanes | None:
    """Lanes of one representative step of each run, one below the other, from the begin of each step."""
    drawings = [
        (word, rank, drawing, ordinal)
        for word, result, rank in runs
        if (lanes_of_run := _drawing(result, rank, MOST_EVENTS // len(runs))) is not None
        for drawing, ordinal in [lanes_of_run]
    ]
    if not drawings:
        return None
    names, kinds, parts = _Words(), _Words(), _Words()
    lanes: list[dict[str, Any]] = []
    for word, rank, drawing, _ in drawings:
        codes = [
            np.array([dictionary.index(each) for each in words] or [0])
            for dictionary, words in ((names, drawing.names), (kinds, drawing.kinds), (parts, drawing.parts))
        ]
        lanes += [
            _lane(lane, f"{word} rank {lane.rank}".strip(), *codes)
            for lane in drawing.lanes
            if rank is None or lane.rank == rank
        ]
    notes = [f"{word}: {_note(drawing)}".removeprefix(": ") for word, _, drawing, _ in drawings]
    steps = [f"step {ordinal}" + (f" {word}" if word else "") for word, _, _, ordinal in drawings if ordinal]
    return {
        "title": "Timeline" + (f" of {' and '.join(steps)}" if steps else ""),
        "begin": min(drawing.begin_us for _, _, drawing, _ in drawings) * 1e3,
        "end": max(drawing.end_us for _, _, drawing, _ in drawings) * 1e3,
        "names": list(names),
        "kinds": list(kinds),
        "parts": list(parts),
        "lanes": lanes,
        "note": "; ".join(notes) + ". Drag or arrow keys: move. Ctrl and wheel, or + and -: zoom. Click: what it is.",
    }


class _Words(dict[str, int]):
    """A dictionary of words that several drawings share."""

    def index(self, word: str) -> int:
        return self.setdefault(word, len(self))


def _drawing(result: DiagnosisAnswer, rank: int | None, most: int) -> tuple[Drawing, int] | None:
    """The representative step drawn, and its ordinal; 0 = all that there is, for no step is known or marked."""
    timeline = result.timeline or result.recorded
    if timeline is None or not len(timeline):
        return None
    window, ordinal = _representative([one for one in result.rank_shares if rank is None or one.rank == rank])
    drawing = drawing_of(timeline, window_ns=window, most=most, most_depth=_MOST_DEPTH)
    has_steps = any(trace.steps_count for trace in (result.basis or DiagnosisBasis()).traces)
    return (drawing, ordinal if has_steps else 0) if drawing.lanes else None


def _representative(shares: Sequence[RankShares]) -> tuple[tuple[int, int] | None, int]:
    """Begin and end, over ranks, of the step whose length on the rank where it lasts longest is the median."""
    steps: dict[int, list[tuple[int, int]]] = {}
    for one in shares:
        for ordinal, begin, took in zip(one.step_ordinals, one.step_begin_nanoseconds, one.step_duration_nanoseconds):
            steps.setdefault(ordinal, []).append((begin, took))
    whole = {ordinal: spans for ordinal, spans in steps.items() if len(spans) == len(shares)} or steps
    if not whole:
        return None, 0
    ordinals = sorted(whole, key=lambda ordinal: (max(took for _, took in whole[ordinal]), ordinal))
    ordinal = ordinals[(len(ordinals) - 1) // 2]
    spans = whole[ordinal]
    return (min(begin for begin, _ in spans), max(begin + took for begin, took in spans)), ordinal


def _lane(lane: DrawnLane, group: str, names: Any, kinds: Any, parts: Any) -> dict[str, Any]:
    depth = np.array(lane.depth)
    begin, duration, waiting = (
        np.rint(np.array(each) * 1e3).astype(np.int64) for each in (lane.begin_us, lane.duration_us, lane.waiting_us)
    )
    part = np.array(lane.part)
    rows = []
    for row in range(int(depth.max()) + 1):
        rows_of_depth = np.flatnonzero(depth == row)
        columns = {
            "begin": np.diff(begin[rows_of_depth], prepend=0).tolist(),
            "duration": duration[rows_of_depth].tolist(),
            "name": names[np.array(lane.event)[rows_of_depth]].tolist(),
            "kind": kinds[np.array(lane.kind)[rows_of_depth]].tolist(),
            "part": np.where(part[rows_of_depth] >= 0, parts[np.maximum(part[rows_of_depth], 0)], -1).tolist(),
        }
        if waiting[rows_of_depth].any():
            columns["waiting"] = waiting[rows_of_depth].tolist()
        rows.append(columns)
    return {"group": group, "name": lane.name, "rank": lane.rank, "host": "stream" not in lane.name, "rows": rows}


def _note(drawing: Drawing) -> str:
    text = f"{drawing.drawn:,} of {drawing.events:,} events are drawn"
    if drawing.shortest_us:
        text += f"; others are shorter than {drawing.shortest_us:.3g} us"
    if drawing.drawn < drawing.events and not drawing.shortest_us:
        text += "; others are nested deeper"
    if drawing.lanes_left_out:
        text += f"; {drawing.lanes_left_out} more lanes are left out"
    return text


# --- the page


def _write(path: Path, data: dict[str, Any]) -> None:
    kinds = {name: {"words": kind.words, "colour": kind.colour} for name, kind in KINDS.items()}
    data |= {"kinds": kinds, "other": OTHER}
    # Data stand in a script element: nothing in them may end it.
    text = orjson.dumps(data).decode().replace("<", "\\u003c")
    style, script = _piece("report.css"), _piece("report.js")
    parts = {
        "title": html.escape(str(data["title"])[:300]),
        "style_hash": policy_hash(style),
        "script_hash": policy_hash(script),
        "style": style,
        "script": script,
        "data": text,
    }
    with writing(path):
        path.write_text("".join(_fill(_piece("report.html"), parts)), encoding="utf-8")


def _fill(page: str, words: dict[str, str]) -> Iterable[str]:
    """The page with every placeholder filled once; filled text is not searched for placeholders."""
    for number, piece in enumerate(page.split("{{")):
        name, close, after = piece.partition("}}")
        yield words[name] + after if number and close else piece


def _piece(name: str) -> str:
    return resources.files("nodewise_cli.pictures").joinpath(name).read_text(encoding="utf-8")
