"""Two diagnoses compared, as JSON and for people: one sentence, then where the difference comes from, part by part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from math import fsum
from typing import Any, Final

from nodewise_cli.comparison import COVERAGE, Comparison, EventDifference, PartDifference, RankDifference, Run
from nodewise_cli.console import say
from nodewise_cli.step_parts import kind_of
from nodewise_cli.views.numbers import milliseconds
from nodewise_cli.views.plain import plain, short
from nodewise_cli.views.table import figures, names, print_columns, words

__all__ = ["document", "show", "verdict"]

SHOWN_ROWS: Final = 10
_NAMED_SHARE: Final = 0.1
"""Parts with at least this share of the difference are named in the sentence."""
_MOST_NAMED: Final = 4


def verdict(comparison: Comparison) -> str:
    """The comparison in one sentence that is made from its parts, and what limits it."""
    return " ".join((_sentence(comparison), *(f"Limited: {limit}." for limit in comparison.limits)))


def document(comparison: Comparison) -> dict[str, Any]:
    """The JSON of a comparison: its main rank at the top, then all ranks. What is not known is null."""
    return {
        "verdict": verdict(comparison),
        "unit": comparison.unit,
        "coverage": COVERAGE,
        "before": _run_document(comparison.before),
        "after": _run_document(comparison.after),
        **_rank(comparison.main),
        "ranks": [_rank(one) for one in comparison.ranks],
        "limits": list(comparison.limits),
    }


def _run_document(run: Run) -> dict[str, Any]:
    answer = run.answer
    return {
        "name": run.name,
        "step_s": answer.step_seconds,
        "persistence_s": answer.persistence_seconds,
        "bound_by": answer.bound_by or None,
        "verdict": answer.verdict,
    }


def _rank(one: RankDifference) -> dict[str, Any]:
    return {
        "before_step": _fields(one.before),
        "after_step": _fields(one.after),
        "difference_s": one.difference_seconds,
        "lower_s": one.lower_seconds,
        "upper_s": one.upper_seconds,
        "noise_s": one.noise_seconds,
        "matters": one.matters,
        "kinds": [{"kind": kind, "difference_s": seconds} for kind, seconds in one.by_kind().items()],
        "parts": [_fields(part) | {"difference_s": part.difference_seconds} for part in one.parts],
        "events": [
            _fields(event) | {"difference_s": event.difference_seconds, "change": event.change} for event in one.events
        ],
    }


def _fields(value: Any) -> dict[str, Any]:
    # Counts of events stay counts: a time stands beside each.
    return {
        each.name if each.name.endswith("_count") else short(each.name): plain(getattr(value, each.name))
        for each in fields(value)
    }


def show(comparison: Comparison) -> None:
    """Print the sentence, the parts, what changed within them, and the ranks."""
    say(verdict(comparison))
    say()
    _parts(comparison.main.parts, comparison)
    _events(comparison.main.events)
    if len(comparison.ranks) > 1:
        _ranks(comparison.ranks)


def _parts(parts: Sequence[PartDifference], comparison: Comparison) -> None:
    main = comparison.main
    shown_parts = [part for part in parts if part.before_seconds or part.after_seconds][:SHOWN_ROWS]
    rest = [part for part in parts if part not in shown_parts]
    sums = [
        (
            "other",
            f"{len(rest)} more",
            fsum(one.before_seconds for one in rest),
            fsum(one.after_seconds for one in rest),
        ),
        (comparison.unit, "", main.before.step_seconds, main.after.step_seconds),
    ]
    rows = [(part.kind.replace("_", " "), part.what, part.before_seconds, part.after_seconds) for part in shown_parts]
    rows += sums if rest else sums[1:]
    print_columns(
        (figures("differs ms", 0), [format_difference_ms(after - before) for _, _, before, after in rows]),
        (figures("before"), [milliseconds(before) for _, _, before, _ in rows]),
        (figures("after"), [milliseconds(after) for _, _, _, after in rows]),
        (words("part", 0), [kind for kind, _, _, _ in rows]),
        (names("what", 3.5), [what for _, what, _, _ in rows]),
        title=f"Parts of a {comparison.unit} of rank {main.after.rank}, which add up to the difference",
    )


def _events(events: Sequence[EventDifference]) -> None:
    shown_events = [event for event in events if event.difference_seconds][:SHOWN_ROWS]
    if not shown_events:
        return
    print_columns(
        (figures("differs ms", 0), [format_difference_ms(event.difference_seconds) for event in shown_events]),
        (figures("before"), [milliseconds(event.before_seconds) for event in shown_events]),
        (figures("after"), [milliseconds(event.after_seconds) for event in shown_events]),
        (figures("times"), [_times(event) for event in shown_events]),
        (words("in"), [event.kind.replace("_", " ") for event in shown_events]),
        (names("kernel or call", 0), [event.name for event in shown_events]),
        title="What changed most by name (times may overlap)",
    )


def _times(event: EventDifference) -> str:
    if event.change != "changed":
        return event.change
    old, new = (f"{count:.4g}" for count in (event.before_count, event.after_count))
    return old if old == new else f"{old} to {new}"


def _ranks(ranks: Sequence[RankDifference]) -> None:
    kinds = sorted({kind for one in ranks for kind in one.by_kind()}, key=lambda kind: -_most(ranks, kind))[:4]
    print_columns(
        (figures("rank"), [str(one.after.rank) for one in ranks]),
        (figures("before"), [milliseconds(one.before.step_seconds) for one in ranks]),
        (figures("after"), [milliseconds(one.after.step_seconds) for one in ranks]),
        (figures("differs ms", 0), [format_difference_ms(one.difference_seconds) for one in ranks]),
        *(
            (figures(kind.replace("_", " ")), [format_difference_ms(one.by_kind().get(kind, 0.0)) for one in ranks])
            for kind in kinds
        ),
        title="Ranks, ms of a mean step, and the kinds of parts that differ most",
    )


def _most(ranks: Sequence[RankDifference], kind: str) -> float:
    return max(abs(one.by_kind().get(kind, 0.0)) for one in ranks)


def format_difference_ms(seconds: float) -> str:
    """A difference in milliseconds."""
    return f"{1e3 * seconds:+,.3f}" if abs(seconds) >= 5e-7 else "0"


# --- the sentence


def _sentence(comparison: Comparison) -> str:
    main, ranks, before, after, unit = (
        comparison.main,
        comparison.ranks,
        comparison.before,
        comparison.after,
        comparison.unit,
    )
    old, new = main.before, main.after
    whose, than = "", f"in {before.name}"
    if before.answer is after.answer or old.rank != new.rank:
        whose, than = f" of rank {new.rank}", f"one of rank {old.rank}"
    elif len(ranks) > 1 or after.rank is not None:
        whose = f" of rank {new.rank}"
    difference = main.difference_seconds
    times = f"{_ms(new.step_seconds)} against {_ms(old.step_seconds)} ms"
    ratio = difference / old.step_seconds if old.step_seconds else 0.0
    interval = (
        f"{100 * COVERAGE:.0f} % interval {_with_sign(main.lower_seconds)} to {_with_sign(main.upper_seconds)} ms"
    )
    kinds = main.by_kind()
    if not main.matters:
        text = f"a {unit}{whose} takes {times}, {_with_sign(difference)} ms ({interval}), "
        if main.is_uneven:
            return (
                f"No significant difference: {text}as its steps vary: by {_ms(new.deviation_seconds)} ms, in "
                f"{before.name} by {_ms(old.deviation_seconds)} ms (standard deviation). On the mean: "
                f"{_tell_kinds(main, kinds)}."
            )
        text = f"No relevant difference: {text}which is within the variation of steps"
        offsetting = {kind: each for kind, each in kinds.items() if abs(each) > main.noise_seconds}
        if len(offsetting) > 1:
            text += f", though parts of it cancel out: {_tell_kinds(main, offsetting)}"
        return f"{text}."
    word = "longer" if difference > 0 else "less"
    return (
        f"A {unit}{whose} takes {_ms(abs(difference))} ms {word} than {than} ({times}, {100 * ratio:+.1f} %; "
        f"{interval}): {_tell_kinds(main, kinds)}{_tell_waits(main, ranks)}."
    )


def _tell_kinds(main: RankDifference, kinds: Mapping[str, float]) -> str:
    """The kinds of parts that differ most, as numbers that add up to the whole as it is printed."""
    total = main.difference_seconds
    largest = [kind for kind, each in kinds.items() if abs(each) >= _NAMED_SHARE * abs(total)][:_MOST_NAMED] or list(
        kinds
    )[:1]
    words = [
        f"{_with_sign(kinds[kind])} ms {kind_of(kind).words}{_mostly(main, kind, kinds[kind])}" for kind in largest
    ]
    rest = round(1e3 * total, 2) - fsum(round(1e3 * kinds[kind], 2) for kind in largest)
    return ", ".join([*words, *([f"{_with_sign(rest / 1e3)} ms other"] if abs(rest) >= 0.005 else [])])


def _mostly(main: RankDifference, kind: str, difference: float) -> str:
    """The part of a kind that makes most of its difference."""
    part = next(one for one in main.parts if one.kind == kind)
    if kind == "unexplained" or part.difference_seconds * difference < 0.5 * difference**2:
        return ""
    ranks = ", ".join(map(str, part.waits_for_ranks))
    late = f", for rank{'s' if len(part.waits_for_ranks) > 1 else ''} {ranks}" if ranks else ""
    number = f"{_with_sign(part.difference_seconds)} ms "
    return f" ({'' if number == f'{_with_sign(difference)} ms ' else number}in {part.what}{late})"


def _tell_waits(main: RankDifference, ranks: Sequence[RankDifference]) -> str:
    """What the other ranks wait for it."""
    others = [one.by_kind().get("waiting", 0.0) for one in ranks if one is not main]
    mean = fsum(others) / len(others) if others else 0.0
    if abs(mean) <= main.noise_seconds or mean * main.difference_seconds < 0:
        return ""
    return f"; the other ranks wait {_ms(abs(mean))} ms {'longer' if mean > 0 else 'less'} meanwhile"


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.2f}"


def _with_sign(seconds: float) -> str:
    return f"{1e3 * seconds:+.2f}"
