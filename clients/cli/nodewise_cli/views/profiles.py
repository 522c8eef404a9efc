"""Stored profiles as JSON and for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from nodewise_cli.console import say
from nodewise_cli.views.numbers import shown
from nodewise_cli.views.table import Column, figures, print_table, words
from nodewise_client import (
    Configurations,
    Network,
    Observations,
    Profile,
    ProfileContent,
    Workload,
    configuration_rows,
)
from nodewise_values.wire import to_json

__all__ = ["content_document", "document", "moment", "show_list", "show_profile"]


def document(profile: Profile) -> dict[str, Any]:
    """The JSON of a profile, without what it holds."""
    return {
        "profile": profile.profile_id,
        "display_name": profile.display_name,
        "labels": dict(profile.labels),
        "revision": profile.revision,
        "observations": profile.observations_count,
        "uid": profile.uid,
        "etag": profile.etag,
        "digest": profile.digest,
        "created": moment(profile.create_time),
        "updated": moment(profile.update_time),
        "deleted": moment(profile.delete_time),
        "purged": moment(profile.purge_time),
    }


def content_document(profile: Profile) -> dict[str, Any]:
    """What it holds, as files and inline profiles say it: protobuf's JSON of `nodewise.v1.ProfileContent`."""
    found: dict[str, Any] = to_json(profile.content or ProfileContent())
    # The server's own, and no part of what may be sent to it.
    for part in ("observations", "phaseTimings"):
        found.get(part, {}).pop("numbers", None)
    return found


def show_list(profiles: Sequence[Profile]) -> None:
    """A line for each profile; what none of them has is left out."""
    columns: list[tuple[Column, list[str]]] = [
        (words("profile"), [found.profile_id for found in profiles]),
        (figures("revision"), [f"{found.revision:,}" for found in profiles]),
        (figures("observations"), [f"{found.observations_count:,}" for found in profiles]),
        (words("updated"), [moment(found.update_time) or "-" for found in profiles]),
    ]
    more = [
        (words("name"), [found.display_name for found in profiles]),
        (words("labels"), [_labels(found) for found in profiles]),
        (words("deleted"), [moment(found.delete_time) or "" for found in profiles]),
    ]
    columns += [column for column in more if any(column[1])]
    print_table([column for column, _ in columns], list(zip(*(cells for _, cells in columns), strict=True)))


def _labels(profile: Profile) -> str:
    return ", ".join(f"{key}={value}" if value else key for key, value in sorted(profile.labels.items()))


def show_profile(profile: Profile) -> None:
    """Print its facts, its observations and its traces."""
    content = profile.content or ProfileContent()
    name = f" ({profile.display_name})" if profile.display_name else ""
    say(f"{profile.profile_id}{name}: revision {profile.revision:,}, updated {moment(profile.update_time) or '-'}.")
    if profile.labels:
        say(f"Labels: {_labels(profile)}.")
    for name in ("workload", "network"):
        facts = [f"{field} {_fact(held)}" for field, held in _stated(getattr(content, name))]
        if facts:
            say(f"{name.capitalize()}: {', '.join(facts)}.")
    runs = content.observations
    if runs is not None:
        ran = configuration_rows(runs.configurations or Configurations())
        print_table(
            [
                figures("number"),
                words("device"),
                figures("nodes"),
                figures("workers"),
                words("sync", 5),
                figures("batch per worker", 6),
                figures("steps/s", 1.5),
                words("measured", 7),
            ],
            [_observation(runs, row, how) for row, how in enumerate(ran)],
        )
    phases = 0 if content.phase_timings is None else len(content.phase_timings.compute_seconds)
    if phases:
        numbers = () if content.phase_timings is None else content.phase_timings.numbers
        said = f", numbers {', '.join(map(str, numbers))}" if numbers else ""
        say(f"Phase timings of {phases:,} runs{said}.")
    for trace in content.traces:
        rank = "as it says itself" if trace.rank is None else str(trace.rank)
        say(f"Trace of {trace.size_bytes:,} bytes: rank {rank}, SHA-256 {trace.content_sha256}.")


def _stated(facts: Workload | Network | None) -> Iterator[tuple[str, Any]]:
    """Facts that are stated, with their names."""
    for each in fields(facts) if facts is not None else ():
        held = getattr(facts, each.name)
        if held not in (None, "", ()):
            yield each.name, held


def _observation(runs: Observations, row: int, how: Mapping[str, Any]) -> list[str]:
    def said(column: Sequence[Any]) -> Any:
        """A column's value in the row; one value holds for all rows."""
        return (column[0] if len(column) == 1 else column[row]) if len(column) else None

    nodes, workers, batch = (how.get(name) for name in ("nodes", "workers", "batch_per_worker_samples"))
    measured_at = said(runs.measured_at_unix_seconds)
    return [
        f"{said(runs.numbers):,}",
        how.get("devices") or "-",
        f"{nodes or 0:,}",
        f"{workers or 0:,}",
        str(how.get("sync_modes") or "-"),
        f"{batch:,}" if batch else "-",
        shown(said(runs.steps_per_second)),
        moment(datetime.fromtimestamp(measured_at, UTC)) or "-" if measured_at else "-",
    ]


def _fact(value: Any) -> str:
    """A fact of a profile; of one that has parts, only that it is there."""
    if isinstance(value, str | bool):
        return str(value)
    return f"{value:,}" if isinstance(value, int | float) else "given"


def moment(time: datetime | None) -> str | None:
    """A time as ISO 8601."""
    return None if time is None else time.isoformat(timespec="seconds")
