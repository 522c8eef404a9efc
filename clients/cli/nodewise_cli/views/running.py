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
SHOWN_ROWS: Final = 10
_RANKS: Final = 8


def document(result: DiagnosisAnswer) -> dict[str, Any]:
    """The JSON of what steps tell. What is not known is null."""
    return {} if result.steps is None else fields_of(result.steps)


def show(result: DiagnosisAnswer) -> None:
    """Print the verdict, and the alarms as a table."""
    diagnosis = result.steps
    if diagnosis is None:
        return
    say("\n".join(textwrap.wrap(diagnosis.verdict, WIDTH)))
    lost_windows = f", {diagnosis.lost_windows_count:,} windows lost" if diagnosis.lost_windows_count else ""
    steps = f"{diagnosis.steps_count:,} steps of {milliseconds(diagnosis.step_seconds)} ms"
    say(f"{diagnosis.ranks_count:,} ranks, {steps}{lost_windows}.")
    if diagnosis.alarms:
        alarms = diagnosis.alarms[:SHOWN_ROWS]
        print_columns(
            (words("slow"), [_whom(each) for each in alarms]),
            (figures("longer"), [f"{100 * (each.slowdown_ratio - 1):.0f} %" for each in alarms]),
            (figures("from"), [f"{100 * (each.lower_slowdown_ratio - 1):.0f}" for each in alarms]),
            (figures("to"), [f"{100 * (each.upper_slowdown_ratio - 1):.0f}" for each in alarms]),
            (words("part"), [each.part for each in alarms]),
            (words("since (UTC)"), [_time(each.begin_unix_seconds) for each in alarms]),
            (words("until"), [_time(each.end_unix_seconds) for each in alarms]),
            title=f"Slowdowns ({len(diagnosis.alarms)})",
        )
    if diagnosis.slow_hours:
        print_columns(
            (words("hour (UTC)"), [f"{each.hour:02d}:00" for each in diagnosis.slow_hours]),
            (figures("longer"), [f"{100 * (each.slowdown_ratio - 1):.0f} %" for each in diagnosis.slow_hours]),
            (words("days"), [f"{each.slow_days_count} of {each.days_count}" for each in diagnosis.slow_hours]),
            title="Hours that are slow on several days",
        )


def recording_document(request: tuple[str, int, Sequence[int]]) -> dict[str, Any]:
    """The JSON of a request to record."""
    return dict(zip(("request", "steps", "ranks"), (request[0], request[1], list(request[2])), strict=True))


def show_recording(request: tuple[str, int, Sequence[int]]) -> None:
    """Print what was asked for."""
    whom = f"ranks {', '.join(map(str, request[2]))}" if request[2] else "all ranks"
    say(f"Asked {whom} to record {request[1]} steps; they add the traces to the profile.")


def _whom(alarm: StepAlarm) -> str:
    if not alarm.ranks:
        return "exchange, all" if alarm.kind == "exchange" else "all ranks"
    ranks = ", ".join(map(str, alarm.ranks[:_RANKS])) + (", ..." if len(alarm.ranks) > _RANKS else "")
    return f"rank {ranks}" if alarm.node is None else f"node {alarm.node}: {ranks}"


def _time(unix_s: float | None) -> str:
    return "-" if unix_s is None else datetime.fromtimestamp(unix_s, UTC).strftime("%m-%d %H:%M:%S")
