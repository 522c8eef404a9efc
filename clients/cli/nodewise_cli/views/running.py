"""Diagnoses of jobs that run, as JSON and for people in 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from nodewise_cli.console import say
from nodewise_cli.views.numbers import milliseconds
from nodewise_cli.views.plain import fields_of
from nodewise_cli.views.table import figures, print_columns, words
from nodewise_client import DiagnosisAnswer, StepAlarm

__all__ = ["document", "recording_document", "show", "show_recording"]

WIDTH: Final = 80
SHOWN: Final = 10
_RANKS: Final = 8


def document(result: DiagnosisAnswer) -> dict[str, Any]:
    """The JSON of what steps tell. What is not known is null."""
    return {} if result.steps is None else fields_of(result.steps)


def show(result: DiagnosisAnswer) -> None:
    """Print the verdict, and the alarms as a table."""
    found = result.steps
    if found is None:
        return
    say("\n".join(textwrap.wrap(found.verdict, WIDTH)))
    lost = f", {found.lost_windows_count:,} windows were lost" if found.lost_windows_count else ""
    say(f"{found.ranks_count:,} ranks, {found.steps_count:,} steps of {milliseconds(found.step_seconds)} ms{lost}.")
    if found.alarms:
        listed = found.alarms[:SHOWN]
        print_columns(
            (words("slow"), [_whom(each) for each in listed]),
            (figures("longer"), [f"{100 * (each.slowdown_ratio - 1):.0f} %" for each in listed]),
            (figures("from"), [f"{100 * (each.lower_slowdown_ratio - 1):.0f}" for each in listed]),
            (figures("to"), [f"{100 * (each.upper_slowdown_ratio - 1):.0f}" for each in listed]),
            (words("part"), [each.part for each in listed]),
            (words("since (UTC)"), [_time(each.begin_unix_seconds) for each in listed]),
            (words("until"), [_time(each.end_unix_seconds) for each in listed]),
            title=f"Slowdowns ({len(found.alarms)})",
        )
    if found.slow_hours:
        print_columns(
            (words("hour (UTC)"), [f"{each.hour:02d}:00" for each in found.slow_hours]),
            (figures("longer"), [f"{100 * (each.slowdown_ratio - 1):.0f} %" for each in found.slow_hours]),
            (words("days"), [f"{each.slow_days_count} of {each.days_count}" for each in found.slow_hours]),
            title="Hours that are slow on several days",
        )


def recording_document(asked: tuple[str, int, Sequence[int]]) -> dict[str, Any]:
    """The JSON of a request to record."""
    return dict(zip(("request", "steps", "ranks"), (asked[0], asked[1], list(asked[2])), strict=True))


def show_recording(asked: tuple[str, int, Sequence[int]]) -> None:
    """Print what was asked for."""
    whom = f"ranks {', '.join(map(str, asked[2]))}" if asked[2] else "all ranks"
    say(f"Asked {whom} to record {asked[1]} steps; their traces come into the profile.")


def _whom(alarm: StepAlarm) -> str:
    if not alarm.ranks:
        return "exchange, all" if alarm.kind == "exchange" else "all ranks"
    named = ", ".join(map(str, alarm.ranks[:_RANKS])) + (", ..." if len(alarm.ranks) > _RANKS else "")
    return f"rank {named}" if alarm.node is None else f"node {alarm.node}: {named}"


def _time(unix_s: float | None) -> str:
    return "-" if unix_s is None else datetime.fromtimestamp(unix_s, UTC).strftime("%m-%d %H:%M:%S")
