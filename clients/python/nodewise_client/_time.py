"""Moments: `datetime` with a zone on this side, timestamps and Unix seconds on the wire."""

from __future__ import annotations

from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp


def to_timestamp(moment: datetime) -> Timestamp:
    """A moment as the wire writes it."""
    message = Timestamp()
    message.FromDatetime(_with_zone(moment))
    return message


def from_timestamp(message: Timestamp) -> datetime:
    """The moment of a timestamp, in UTC."""
    return message.ToDatetime(tzinfo=UTC)


def to_unix_seconds(moment: datetime | None) -> float:
    """Seconds since 1970; 0 where the moment is not known."""
    return 0.0 if moment is None else _with_zone(moment).timestamp()


def from_unix_seconds(seconds: float) -> datetime | None:
    """The moment, or None where the wire says that it is not known."""
    return datetime.fromtimestamp(seconds, UTC) if seconds else None


def _with_zone(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} has no time zone; give one, e.g. datetime.now(UTC)")
    return moment
