"""Outages of nodes, from events that Slurm (`sacctmgr show event -P`) or Kubernetes (`kubectl get events`) recorded."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from nodewise_cli.failures import InputError, text_of

__all__ = ["Outage", "read_outages"]

_COLUMNS: Final = ("NodeName", "TimeStart", "TimeEnd", "State")
_FAILED: Final = ("DOWN", "FAIL")
"""How states begin in which Slurm ends the jobs of a node; a node that is drained finishes them first."""
_NOT_READY: Final = "NodeNotReady"
_KUBELET: Final = "kubelet"


@dataclass(frozen=True, slots=True)
class Outage:
    """A node that was not there: from when to when, in seconds (None = not known), and whether it lost its jobs."""

    node: str
    begin_s: float
    end_s: float | None = None
    fails: bool = True


def read_outages(path: Path) -> list[Outage]:
    """The failures in a file. Events of one node without a gap are one outage, which begins as its first event does.

    Raises
    ------
    InputError
        Naming the file and what would be right.
    """
    text = text_of(path, "a list of events")
    events = _of_kubernetes(path, text) if text.lstrip().startswith("{") else _of_slurm(path, text)
    outages: list[Outage] = []
    for event in sorted(events, key=lambda each: (each.node, each.begin_s)):
        last = outages[-1] if outages else None
        if last is None or last.node != event.node or last.end_s is None or event.begin_s > last.end_s:
            outages.append(event)
        elif event.end_s is None or event.end_s > last.end_s:
            outages[-1] = replace(last, end_s=event.end_s)
    return [outage for outage in outages if outage.fails]


def _of_slurm(path: Path, text: str) -> Iterator[Outage]:
    # Reasons are the last column, and may hold anything.
    rows = csv.DictReader(text.splitlines(), restval="", delimiter="|", quoting=csv.QUOTE_NONE)
    if not set(_COLUMNS) <= set(rows.fieldnames or ()):
        command = f"sacctmgr show event -P format={','.join(_COLUMNS)}"
        raise InputError(f"{path}: must be what `{command}` prints, or `kubectl get events -A -o json`")
    for row in rows:
        # Events of the whole cluster have no node.
        if row["NodeName"]:
            begin_s = _seconds(row["TimeStart"])
            if begin_s is None:
                place = f"{path}: line {rows.line_num}: TimeStart"
                raise InputError(f"{place}: must be a time such as 2026-01-31T09:30:00, found {row['TimeStart']!r}")
            fails = row["State"].startswith(_FAILED)
            yield Outage(row["NodeName"], begin_s, _seconds(row["TimeEnd"]), fails)


def _of_kubernetes(path: Path, text: str) -> Iterator[Outage]:
    try:
        items = json.loads(text)["items"]
        for item in items:
            is_of_node = item["involvedObject"]["kind"] == "Node" and item["reason"] == _NOT_READY
            # The kubelet may report what the node controller reports too.
            if is_of_node and (item.get("source") or {}).get("component") != _KUBELET:
                yield from _outages(item)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{path}: must be what `kubectl get events -A -o json` prints, with items") from None


def _outages(event: dict[str, Any]) -> Iterable[Outage]:
    """One outage for each time that the event occurred; of the first and the last, the time is known."""
    first = event.get("firstTimestamp") or event["eventTime"]
    series = event.get("series") or {}
    last = series.get("lastObservedTime") or event.get("lastTimestamp") or first
    count = series.get("count") or event.get("count") or 1
    times = [first] * (count - 1) + [last]
    return [Outage(event["involvedObject"]["name"], datetime.fromisoformat(each).timestamp()) for each in times]


def _seconds(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
