"""Profiles of many pages, and watches that outlive their server."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import islice

import grpc
import pytest
from fake_nodewise import status_of
from patience import PATIENCE_S

from nodewise_client import (
    AsyncClient,
    Client,
    Code,
    DeadlineExceededError,
    GetProfileRequest,
    InvalidArgumentError,
    Observations,
    PhaseTimings,
    Profile,
    ProfileContent,
    ResourceExhaustedError,
    ResumePolicy,
    UnavailableError,
    WatchProfilesRequest,
    WorkerGroup,
    Workload,
    configurations,
    observations,
    phase_timings,
)
from nodewise_client._pages import whole_profile
from nodewise_client._resume import Restarts
from nodewise_protos.v1 import profile_pb2, profile_service_pb2
from nodewise_values.wire import to_message

S = grpc.StatusCode


def numbered(given: Observations, *numbers: int) -> Observations:
    return replace(given, numbers=numbers)


def page(observed: Observations | None, token: str = "", **facts: object) -> profile_service_pb2.GetProfileResponse:
    content = ProfileContent(observations=observed, **facts)
    profile = profile_pb2.Profile(profile_id="r", revision=4, content=to_message(content))
    return profile_service_pb2.GetProfileResponse(profile=profile, next_page_token=token)


def test_pages_of_observations_become_one_profile(client, server):
    timings = phase_timings(compute_seconds=0.1)
    server.answer(
        "GetProfile",
        page(
            numbered(
                observations(
                    configurations=configurations(nodes=[1, 2], devices="V100", parameter_servers=1),
                    steps_per_second=[1.0, 2.0],
                    step_variation=[None, 0.1],
                ),
                1,
                2,
            ),
            "2",
            workload=Workload(parameter_bytes=5),
            phase_timings=timings,
        ),
        page(
            numbered(
                observations(
                    configurations=configurations(nodes=4, devices="P100", parameter_servers=2, sync_modes="sync"),
                    steps_per_second=3.0,
                    steps_counts=9,
                ),
                7,
            ),
            "3",
        ),
        page(None),
    )
    found = client.get_profile(GetProfileRequest(profile_id="r", page_size=2, revision=4))
    assert found.revision == 4
    assert found.content == ProfileContent(
        workload=Workload(parameter_bytes=5),
        phase_timings=timings,
        observations=numbered(
            observations(
                configurations=configurations(
                    nodes=[1, 2, 4],
                    devices=["V100", "V100", "P100"],
                    parameter_servers=[1, 1, 2],
                    sync_modes=[None, None, "sync"],
                ),
                steps_per_second=[1.0, 2.0, 3.0],
                step_variation=[None, 0.1, None],
                steps_counts=[None, None, 9],
            ),
            1,
            2,
            7,
        ),
    )
    assert [(asked.page_token, asked.page_size, asked.revision) for asked in server.requests["GetProfile"]] == [
        ("", 2, 4),
        ("2", 2, 4),
        ("3", 2, 4),
    ]


def test_rows_of_pages_keep_placements_groups_and_offers_apart():
    pieces = [
        observations(configurations=configurations(placements=[(2, 2)], nodes=2), steps_per_second=1.0),
        observations(
            configurations=configurations(
                nodes=1, groups=[[WorkerGroup(workers=1), WorkerGroup(workers=1, compute_factor=2.0)]]
            ),
            steps_per_second=2.0,
        ),
        observations(configurations=configurations(nodes=1, offers="spot"), steps_per_second=3.0),
    ]
    pages = [Profile(content=ProfileContent(observations=piece)) for piece in pieces]
    ran = whole_profile(pages).content.observations.configurations
    assert (ran.placement_offsets, ran.placement_workers) == ((0, 2, 2, 2), (2, 2))
    assert (ran.group_offsets, ran.group_workers, ran.group_compute_factors) == ((0, 0, 2, 2), (1, 1), (1.0, 2.0))
    assert (ran.offer_names, ran.offer_indexes) == (("", "spot"), (0, 0, 1))


def test_what_was_read_may_be_written_again(client, server, quick):
    read = numbered(observations(configurations=configurations(nodes=[1, 2]), steps_per_second=[1.0, 2.0]), 3, 4)
    with client.ingest("r", session_id="s", resume=quick) as writer:
        writer.observe(read)
        writer.phases(PhaseTimings(compute_seconds=(0.1,), numbers=(5,)))
    sent = server.sessions["s"].batches[0]
    assert (list(sent.observations.steps_per_second), list(sent.observations.numbers)) == ([1.0, 2.0], [])
    assert not sent.phase_timings.numbers


def told(*names: str, caught_up: bool = False) -> profile_service_pb2.WatchProfilesResponse:
    profiles = [profile_pb2.Profile(profile_id=name) for name in names]
    return profile_service_pb2.WatchProfilesResponse(profiles=profiles, caught_up=caught_up)


CUT = (
    [told("a", caught_up=True), S.UNAVAILABLE],
    S.UNAVAILABLE,
    [],
    [told("a", "b", caught_up=True), told("c")],
)
HEARD = [(["a"], True), (["a", "b"], True), (["c"], False)]


def heard(event) -> tuple[list[str], bool]:
    return [profile.profile_id for profile in event.profiles], event.caught_up


def test_a_watch_begins_anew_where_the_server_goes_away(server, quick):
    server.answer("WatchProfiles", *CUT)
    with Client(server.target) as client:
        events = client.watch_profiles(WatchProfilesRequest(name_prefix="team/", labels=("gpu",)), resume=quick)
        assert [heard(event) for event in islice(events, 3)] == HEARD
        events.close()
    first, *others = server.requests["WatchProfiles"]
    assert (first.name_prefix, list(first.labels)) == ("team/", ["gpu"])
    assert others == [first] * len(others)


async def test_a_watch_begins_anew_for_asyncio(server, quick):
    server.answer("WatchProfiles", *CUT)
    async with AsyncClient(server.target) as client:
        events = client.watch_profiles(resume=quick)
        assert [heard(await anext(events)) for _ in HEARD] == HEARD
        await events.aclose()


def test_a_watch_that_cannot_be_is_refused(client, server):
    server.answer("WatchProfiles", status_of(S.INVALID_ARGUMENT, "bad", reason="INVALID_FIELD"))
    with pytest.raises(InvalidArgumentError):
        client.watch_profiles()
    assert len(server.requests["WatchProfiles"]) == 1


def test_an_overloaded_server_is_not_watched_again(client, server):
    server.answer("WatchProfiles", status_of(S.RESOURCE_EXHAUSTED, "full", reason="OVERLOADED", retry_delay_s=2.0))
    with pytest.raises(ResourceExhaustedError, match="try again in 2 s") as caught:
        client.watch_profiles()
    assert caught.value.retry_delay_s == 2.0


def test_without_retry_a_watch_does_not_begin_anew(server, make_client):
    server.answer("WatchProfiles", [told("a"), S.UNAVAILABLE])
    with pytest.raises(UnavailableError):
        make_client(server.target, retry=False).watch_profiles()
    assert len(server.requests["WatchProfiles"]) == 1


def test_a_watch_ends_with_its_time(client, server):
    server.answer("WatchProfiles", lambda _: iter(lambda: server.hold.wait(PATIENCE_S), True))
    with pytest.raises(DeadlineExceededError):
        client.watch_profiles(timeout_s=0.05)
    server.hold.set()


def test_a_server_that_stays_away_is_given_up():
    now = [5.0]
    restarts = Restarts(ResumePolicy(uniform=random.Random(1).random), clock=lambda: now[0])
    gone = UnavailableError("gone", code=Code.UNAVAILABLE)
    assert restarts.pause_s(gone) < 0.1
    now[0] = 14.95
    with pytest.raises(UnavailableError, match="gone"):
        restarts.pause_s(gone)
    restarts.record_reply()
    now[0] = 3600.0
    assert restarts.pause_s(None) < 0.1
    now[0] = 3629.0
    assert restarts.pause_s(gone) < 0.2
    now[0] = 3630.0
    with pytest.raises(UnavailableError, match="ended the watch"):
        restarts.pause_s(None)
