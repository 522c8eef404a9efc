"""A profile's life through the client, on a real server: sessions, labels, retraction, deletion and return."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings
from nodewise_client import (
    AppendProfileRequest,
    Client,
    ConflictError,
    DeleteProfileRequest,
    GetProfileRequest,
    IngestBatchRequest,
    InvalidArgumentError,
    ListProfilesRequest,
    NotFoundError,
    PluginKind,
    PredictRequest,
    ProfileBatch,
    ProfileContent,
    ProfileView,
    RetractEvidenceRequest,
    WatchProfilesRequest,
    Workload,
    configurations,
    observations,
    phase_timings,
    profile_source,
)

pytestmark = pytest.mark.wheel

ONE_WORKER = configurations(nodes=1, workers=1, parameter_servers=1, sync_modes="async")
ROWS = configurations(workers=[1, 4])


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    settings = Settings(store="memory:", grace_s=1.0, scoring=False)
    with EmbeddedServer(settings) as server, Client(server.target, timeout_s=60.0) as found:
        yield found


def timed(compute_s: float) -> ProfileContent:
    phases = phase_timings(
        compute_seconds=compute_s,
        download_seconds=0.1,
        upload_seconds=0.1,
        update_seconds=0.01,
        configurations=ONE_WORKER,
    )
    return ProfileContent(phase_timings=phases)


def test_a_writer_resumes_what_calls_began_and_calls_what_it_left(client: Client) -> None:
    runs = observations(configurations=ONE_WORKER, steps_per_second=1.0)
    first = IngestBatchRequest(
        profile_id="both", session_id="s", batch=ProfileBatch(sequence_number=1, observations=runs, commit=True)
    )
    assert client.ingest_batch(first).durable_sequence_number == 1
    with client.ingest("both", session_id="s") as writer:
        writer.observe([observations(configurations=ONE_WORKER, steps_per_second=2.0)])
        writer.commit()
    asked = IngestBatchRequest(profile_id="both", session_id="s")
    state = client.ingest_batch(asked)
    assert state.committed_sequence_number == state.durable_sequence_number >= 2
    assert (state.revision, state.observations_count) == (2, 2)
    assert client.ingest_batch(first) == state, "the same batch again changes nothing"
    other = replace(first, batch=replace(first.batch, observations=None))
    with pytest.raises(ConflictError) as caught:
        client.ingest_batch(other)
    assert caught.value.reason == "BATCH_CONFLICT"


def test_evidence_that_was_retracted_counts_no_more_and_stays_in_the_history(client: Client) -> None:
    client.append_profile(
        AppendProfileRequest(
            profile_id="phases", content=replace(timed(0.2), workload=Workload(parameter_bytes=4_000_000))
        )
    )
    slow = client.append_profile(AppendProfileRequest(profile_id="phases", content=timed(2.0)))
    (_, number) = client.get_profile("phases").content.phase_timings.numbers
    found = client.retract_evidence(
        RetractEvidenceRequest(
            profile_id="phases",
            phase_timing_numbers=[number],
            fact_paths=["workload.parameter_bytes"],
            reason="disturbed",
        )
    )
    assert found.revision == slow.revision + 1
    now = client.get_profile("phases").content
    assert now.phase_timings.compute_seconds == (0.2,)
    assert now.workload is None or not now.workload.parameter_bytes
    then = client.get_profile(GetProfileRequest(profile_id="phases", revision=slow.revision))
    assert then.content.phase_timings.compute_seconds == (0.2, 2.0)
    assert then.content.workload.parameter_bytes == 4_000_000
    # A fact that was retracted may be stated anew, with another value.
    stated = ProfileContent(workload=Workload(parameter_bytes=5_000_000))
    client.append_profile(AppendProfileRequest(profile_id="phases", content=stated))
    assert client.get_profile("phases").content.workload.parameter_bytes == 5_000_000
    with pytest.raises(NotFoundError) as caught:
        client.retract_evidence(RetractEvidenceRequest(profile_id="phases", phase_timing_numbers=[number]))
    assert caught.value.reason == "EVIDENCE_NOT_FOUND"


def test_labels_are_listed_by_and_are_no_part_of_the_content(client: Client) -> None:
    made = client.append_profile(
        AppendProfileRequest(
            profile_id="labelled/a", content=timed(0.3), display_name="job @ A100", labels={"team": "x", "old": "1"}
        )
    )
    client.append_profile(AppendProfileRequest(profile_id="labelled/b", content=timed(0.3), labels={"team": "y"}))
    moved = client.append_profile(AppendProfileRequest(profile_id="labelled/a", labels={"old": "", "run": "7"}))
    assert (moved.labels, moved.display_name) == ({"team": "x", "run": "7"}, "job @ A100")
    assert (moved.digest, moved.revision) == (made.digest, 2)
    assert moved.etag != made.etag

    def named(*labels: str) -> list[str]:
        return [each.profile_id for each in client.list_profiles(ListProfilesRequest(labels=labels))]

    assert named("team") == ["labelled/a", "labelled/b"]
    assert named("team=x", "run") == ["labelled/a"]
    assert named("old") == []


def test_a_profile_that_was_deleted_returns_as_it_was(client: Client) -> None:
    made = client.append_profile(AppendProfileRequest(profile_id="gone", content=timed(0.4)))
    before = client.predict(PredictRequest(profile=profile_source("gone"), configurations=ROWS))
    assert before.basis is not None
    with pytest.raises(InvalidArgumentError, match="etag"):
        client.delete_profile("gone")
    watch = client.watch_profiles(WatchProfilesRequest(name_prefix="gone"), timeout_s=60.0)
    assert [each.profile_id for each in next(watch).profiles] == ["gone"]
    deleted = client.delete_profile("gone", etag=made.etag)
    assert deleted is not None
    assert deleted.purge_time > deleted.delete_time
    (told,) = next(watch).profiles
    assert told == deleted
    with pytest.raises(NotFoundError):
        client.predict(PredictRequest(profile=profile_source("gone"), configurations=ROWS))
    never = DeleteProfileRequest(profile_id="never-was", etag="*", allow_missing=True)
    assert client.delete_profile(never) is None
    assert client.undelete_profile("gone") == made
    (told,) = next(watch).profiles
    assert told == made
    watch.close()
    after = client.predict(
        PredictRequest(profile=profile_source("gone"), configurations=ROWS, if_none_match=before.basis.digest)
    )
    assert after.unchanged
    assert len(after) == 0


def test_views_hold_what_they_say(client: Client) -> None:
    ran = configurations(nodes=1, workers=[1, 2], sync_modes="allreduce")
    runs = observations(configurations=ran, steps_per_second=[1.0, 1.9])
    client.append_profile(AppendProfileRequest(profile_id="viewed", content=replace(timed(0.5), observations=runs)))

    def seen(view: ProfileView) -> ProfileContent | None:
        return client.get_profile(GetProfileRequest(profile_id="viewed", view=view)).content

    assert seen(ProfileView.BASIC) is None
    facts, full = seen(ProfileView.FACTS), seen(ProfileView.FULL)
    assert facts is not None
    assert full is not None
    assert (facts.phase_timings, facts.observations) == (full.phase_timings, None)
    assert full.observations is not None
    assert full.observations.steps_per_second == (1.0, 1.9)
    paged = client.get_profile(GetProfileRequest(profile_id="viewed", page_size=1))
    assert paged.content == full


def test_what_can_be_asked_is_listed(client: Client) -> None:
    plugins = client.list_plugins().plugins
    assert {each.kind for each in plugins} == set(PluginKind)
    assert [each.name for each in client.list_plugins(PluginKind.POLICY).plugins] == [
        each.name for each in client.list_policies().policies
    ]
    listed = client.list_devices()
    assert listed.catalog_digest
    assert "A100" in {alias for device in listed.devices for alias in (device.name, *device.aliases)}
