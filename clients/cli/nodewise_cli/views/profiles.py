"""Stored profiles as JSON and for people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from google.protobuf import json_format

from nodewise_cli.console import say
from nodewise_cli.views.numbers import shown
from nodewise_cli.views.table import figures, print_table, words
from nodewise_client import Observations, Profile

__all__ = ["content_document", "document", "show_list", "show_profile"]


def document(profile: Profile) -> dict[str, Any]:
    """The JSON of a profile, without what it holds."""
    return {
        "profile": profile.profile_id,
        "revision": profile.revision,
        "observations": profile.observations_count,
        "uid": profile.uid,
        "etag": profile.etag,
        "digest": profile.digest,
        "created": _moment(profile.create_time),
        "updated": _moment(profile.update_time),
    }


def content_document(profile: Profile) -> dict[str, Any]:
    """What it holds, as files and inline profiles say it: protobuf's JSON of `nodewise.v1.ProfileContent`."""
    found: dict[str, Any] = json_format.MessageToDict(profile.raw.content)
    # The server's own, and no part of what may be sent to it.
    found.get("observations", {}).pop("numbers", None)
    return found


def show_list(profiles: Sequence[Profile]) -> None:
    """A line for each profile."""
    print_table(
        [words("profile"), figures("revision"), figures("observations"), words("updated")],
        [
            [
                found.profile_id,
                f"{found.revision:,}",
                f"{found.observations_count:,}",
                _moment(found.update_time) or "-",
            ]
            for found in profiles
        ],
    )


def show_profile(profile: Profile) -> None:
    """Print its facts, its observations and its traces."""
    content = profile.raw.content
    say(f"{profile.profile_id}: revision {profile.revision:,}, updated {_moment(profile.update_time) or '-'}.")
    for name in ("workload", "network"):
        if content.HasField(name):
            facts = [f"{field.name} {_fact(value)}" for field, value in getattr(content, name).ListFields()]
            if facts:
                say(f"{name.capitalize()}: {', '.join(facts)}.")
    runs = None if profile.content is None else profile.content.observations
    if isinstance(runs, Observations):
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
            [_observation(runs, row) for row in range(len(runs))],
        )
    phases = content.phase_timings.configurations.workers
    if phases:
        say(f"Phase timings of {len(phases):,} runs.")
    for trace in content.traces:
        rank = "as it says itself" if trace.rank < 0 else str(trace.rank)
        say(f"Trace of {trace.size_bytes:,} bytes: rank {rank}, SHA-256 {trace.content_sha256}.")


def _observation(runs: Observations, row: int) -> list[str]:
    how = runs.configurations

    def said(column: Any) -> Any:
        """A column's value in the row; one value holds for all rows."""
        return (column[0] if len(column) == 1 else column[row]) if len(column) else None

    batch = said(how.batch_per_worker)
    return [
        f"{said(runs.numbers):,}",
        said(how.device) or "-",
        f"{said(how.nodes) or 0:,}",
        f"{said(how.workers) or 0:,}",
        str(said(how.sync) or "-"),
        f"{batch:,}" if batch else "-",
        shown(said(runs.steps_per_s)),
        _moment(said(runs.measured_at)) or "-",
    ]


def _fact(value: Any) -> str:
    """A fact of a profile; of one that has parts, only that it is there."""
    if isinstance(value, str | bool):
        return str(value)
    return f"{value:,}" if isinstance(value, int | float) else "given"


def _moment(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat(timespec="seconds")
