"""Stored profiles as JSON and for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from nodewise_cli.console import say
from nodewise_cli.views.numbers import format_count, format_number
from nodewise_cli.views.plain import fields_of
from nodewise_cli.views.table import figures, print_columns, words
from nodewise_client import Configurations, NamespaceUsage, Observations, Profile, ProfileContent, configuration_rows
from nodewise_values.wire import to_json

__all__ = [
    "content_document",
    "list_document",
    "show_deleted",
    "show_list",
    "show_profile",
    "show_usage",
    "usage_document",
    "whole_document",
]


def list_document(profiles: Iterable[Profile]) -> dict[str, Any]:
    """The JSON of profiles, without what they hold."""
    return {"profiles": [_document(profile) for profile in profiles]}


def whole_document(profile: Profile) -> dict[str, Any]:
    """The JSON of a profile with what it holds."""
    return {"profiles": [_document(profile) | {"content": content_document(profile)}]}


def _document(profile: Profile) -> dict[str, Any]:
    """The JSON of a profile, without what it holds."""
    moments = ("create_time", "update_time", "delete_time", "purge_time")
    document = {"profile": profile.profile_id} | fields_of(profile, "profile_id", "content", *moments)
    return document | {f"{name.removesuffix('_time')}d": _moment(getattr(profile, name)) for name in moments}


def content_document(profile: Profile) -> dict[str, Any]:
    """What it holds, as files and inline profiles say it: protobuf's JSON of `nodewise.v1.ProfileContent`."""
    content: dict[str, Any] = to_json(profile.content or ProfileContent())
    # The server's own, and no part of what may be sent to it.
    for part in ("observations", "phaseTimings"):
        content.get(part, {}).pop("numbers", None)
    for run in content.get("sharedRuns", ()):
        run.pop("contentSha256", None)
    return content


def show_list(profiles: Sequence[Profile]) -> None:
    """Print a line for each profile; columns that are empty for all are left out."""
    always = [
        (words("profile"), [profile.profile_id for profile in profiles]),
        (figures("revision"), [f"{profile.revision:,}" for profile in profiles]),
        (figures("observations"), [f"{profile.observations_count:,}" for profile in profiles]),
        (words("updated"), [_moment(profile.update_time) or "-" for profile in profiles]),
    ]
    more = [
        (words("name"), [profile.display_name for profile in profiles]),
        (words("labels"), [_labels(profile) for profile in profiles]),
        (words("deleted"), [_moment(profile.delete_time) or "" for profile in profiles]),
    ]
    print_columns(*always, *(column for column in more if any(column[1])))


def _labels(profile: Profile) -> str:
    return ", ".join(f"{key}={value}" if value else key for key, value in sorted(profile.labels.items()))


def usage_document(namespaces: Iterable[NamespaceUsage]) -> dict[str, Any]:
    """The JSON of what namespaces store."""
    return {"namespaces": [{"namespace": entry.namespace} | fields_of(entry, "namespace") for entry in namespaces]}


def show_usage(namespaces: Sequence[NamespaceUsage]) -> None:
    """Print a line for each namespace: its use of each quota."""
    columns = (
        ("profiles", "profiles_count", "profiles_count_quota"),
        ("evidence bytes", "stored_bytes", "stored_bytes_quota"),
        ("trace bytes", "trace_bytes", "trace_bytes_quota"),
    )
    print_columns(
        (words("namespace"), [namespace.namespace or "-" for namespace in namespaces]),
        *(
            (figures(title), [_of(getattr(namespace, name), getattr(namespace, quota)) for namespace in namespaces])
            for title, name, quota in columns
        ),
    )


def _of(amount: int, quota: int) -> str:
    return f"{amount:,} of {quota:,}" if quota else f"{amount:,}"


def show_deleted(profiles: Sequence[Profile]) -> None:
    """Print what was deleted, and until when it can be restored."""
    for profile in profiles:
        until = "" if profile.purge_time is None else f" `undelete` restores it until {_moment(profile.purge_time)}."
        say(f"Deleted {profile.profile_id}, with {profile.observations_count:,} observations.{until}")


def show_profile(profile: Profile) -> None:
    """Print its facts, its observations and its traces."""
    content = profile.content or ProfileContent()
    name = f" ({profile.display_name})" if profile.display_name else ""
    say(f"{profile.profile_id}{name}: revision {profile.revision:,}, updated {_moment(profile.update_time) or '-'}.")
    if profile.labels:
        say(f"Labels: {_labels(profile)}.")
    for name in ("workload", "network"):
        facts = getattr(content, name)
        values = {each.name: getattr(facts, each.name) for each in fields(facts)} if facts is not None else {}
        texts = [f"{field} {_fact(value)}" for field, value in values.items() if value not in (None, "", ())]
        if texts:
            say(f"{name.capitalize()}: {', '.join(texts)}.")
    if content.observations is not None:
        _observations(content.observations)
    timings = content.phase_timings
    if timings is not None and timings.compute_seconds:
        numbers = f", numbers {', '.join(map(str, timings.numbers))}" if timings.numbers else ""
        say(f"Phase timings of {len(timings.compute_seconds):,} runs{numbers}.")
    for run in content.shared_runs:
        mode = str(run.mode or "time_sliced").replace("_", " ")
        shares = (
            f"kept {run.share:g} of its solo speed beside {run.partner_profile_id}, which kept {run.partner_share:g}"
        )
        say(f"Shared a {run.device_name} ({mode}): {shares}; SHA-256 {run.content_sha256}.")
    for trace in content.traces:
        rank = "stated in the trace" if trace.rank is None else str(trace.rank)
        say(f"Trace of {trace.size_bytes:,} bytes: rank {rank}, SHA-256 {trace.content_sha256}.")


def _observations(runs: Observations) -> None:
    ran = configuration_rows(runs.configurations or Configurations())

    def of_rows(column: Sequence[Any]) -> Sequence[Any]:
        """An entry for every row: one value holds for all of them, and none states nothing."""
        return column if len(column) > 1 else (*column, None)[:1] * len(ran)

    times = of_rows(runs.measured_at_unix_seconds)
    print_columns(
        (figures("number"), [f"{number:,}" for number in of_rows(runs.numbers)]),
        (words("device"), [how.get("devices") or "-" for how in ran]),
        (figures("nodes"), [f"{how.get('nodes') or 0:,}" for how in ran]),
        (figures("workers"), [f"{how.get('workers') or 0:,}" for how in ran]),
        (words("sync", 5), [str(how.get("sync_modes") or "-") for how in ran]),
        (figures("batch per worker", 6), [format_count(how.get("batch_per_worker_samples") or None) for how in ran]),
        (figures("steps/s", 1.5), [format_number(rate) for rate in of_rows(runs.steps_per_second)]),
        (words("measured", 7), [_moment(datetime.fromtimestamp(at, UTC)) or "-" if at else "-" for at in times]),
    )


def _fact(value: Any) -> str:
    """A fact of a profile; of one that has parts, only that it is there."""
    if isinstance(value, str | bool):
        return str(value)
    return f"{value:,}" if isinstance(value, int | float) else "given"


def _moment(time: datetime | None) -> str | None:
    """A time as ISO 8601."""
    return None if time is None else time.isoformat(timespec="seconds")
