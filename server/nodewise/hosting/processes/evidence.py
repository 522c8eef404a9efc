"""Profiles as estimators in other processes get them: nodewise.v1's content, and what it has no field for."""

from __future__ import annotations

from dataclasses import replace

from nodewise.domain.profile import Profile
from nodewise.mapper import profiles
from nodewise.mapper.mapping import read_time, timestamp
from nodewise_protos.plugin.v1 import estimator_service_pb2 as pb
from nodewise_protos.v1 import profile_pb2

__all__ = ["read_profile", "write_profile"]


def write_profile(profile: Profile) -> pb.Profile:
    """A profile with its content."""
    memory = profiles.write_profile(Profile(observations=profile.memory_runs))
    found = profile_pb2.Profile(
        profile_id=profile.profile_id,
        uid=profile.uid,
        revision=profile.revision,
        digest=profile.digest,
        create_time=timestamp(profile.create_time_s),
        update_time=timestamp(profile.update_time_s),
        observations_count=len(profile.observations),
        content=profiles.write_profile(profile),
        display_name=profile.display_name,
        labels=profile.labels,
    )
    return pb.Profile(profile=found, memory_runs=memory.observations if len(profile.memory_runs) else None)


def read_profile(message: pb.Profile) -> Profile:
    """As written."""
    said = message.profile
    memory = profile_pb2.ProfileContent(observations=message.memory_runs)
    return replace(
        profiles.read_profile(said.content),
        profile_id=said.profile_id,
        uid=said.uid,
        revision=said.revision,
        digest=said.digest,
        memory_runs=profiles.read_profile(memory).observations,
        create_time_s=read_time(said.create_time),
        update_time_s=read_time(said.update_time),
        display_name=said.display_name,
        labels=dict(said.labels),
    )
