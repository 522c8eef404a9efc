"""Profiles as the server keeps them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from nodewise_client._evidence import ProfileContent, content_from_wire
from nodewise_client._time import from_timestamp
from nodewise_protos.v1 import profile_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A stored profile."""

    profile_id: str
    """Name chosen by the client."""
    uid: str
    """Assigned by the server; another profile under the same name has another uid."""
    revision: int
    """Grows by one with every commit."""
    etag: str
    """Changes with every revision; may be given to `delete_profile`."""
    digest: str
    """SHA-256 of the content, hexadecimal."""
    create_time: datetime | None
    update_time: datetime | None
    observations_count: int
    """Observations that count; retracted ones do not."""
    content: ProfileContent | None
    """None in listings and after an append."""
    raw: profile_pb2.Profile = field(repr=False, compare=False)
    """The message as it came."""


def profile_from_wire(message: profile_pb2.Profile) -> Profile:
    """The profile that a message holds."""
    return Profile(
        profile_id=message.profile_id,
        uid=message.uid,
        revision=message.revision,
        etag=message.etag,
        digest=message.digest,
        create_time=from_timestamp(message.create_time) if message.HasField("create_time") else None,
        update_time=from_timestamp(message.update_time) if message.HasField("update_time") else None,
        observations_count=message.observations_count,
        content=content_from_wire(message.content) if message.HasField("content") else None,
        raw=message,
    )
