"""ProfileService at its behaviours: what comes in, what is told of it, and what goes out and comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from serving import observed, one_worker_phases

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.ports.limits import Limits
from nodewise.profiles.opening import open_store
from nodewise.profiles.reader import ProfileReader
from nodewise.profiles.store import ProfileStore
from nodewise.profiles.writer import StoreWriter
from nodewise.rpc.calls import Call
from nodewise.rpc.profiles import Profiles
from nodewise_protos.v1 import profile_pb2, workload_pb2
from nodewise_protos.v1 import profile_service_pb2 as pb

CALL = Call("test", None)


class Service:
    """ProfileService of one process over a store."""

    def __init__(self, store: ProfileStore) -> None:
        self.store = store
        self.moved: list[str] = []
        self._writer = StoreWriter(store)
        self._executor = ThreadPoolExecutor(2)
        reader = ProfileReader(store)
        limits = Limits(rows_per_batch=1000)
        self.behaviours = Profiles(store, self._writer, reader, limits, self._executor, self.moved.append, lambda _: ())

    def close(self) -> None:
        self._writer.close()
        self._executor.shutdown()
        self.store.close()

    def call(self, name: str, /, **fields: Any) -> Any:
        request = getattr(pb, "".join(word.capitalize() for word in name.split("_")) + "Request")(**fields)
        return asyncio.run(getattr(self.behaviours, name)(request, CALL))

    def ingest(self, *requests: pb.IngestProfileRequest) -> list[pb.IngestState]:
        async def sent() -> AsyncIterator[pb.IngestProfileRequest]:
            for request in requests:
                yield request

        async def answered() -> list[pb.IngestState]:
            return [reply.state async for reply in self.behaviours.ingest_profile(sent(), CALL)]

        return asyncio.run(answered())

    def append(self, profile_id: str = "job", request_id: str = "first", *rates: float, **fields: Any) -> Any:
        """Observations on 1, 2, ... workers."""
        content = fields.pop("content", None) or profile_pb2.ProfileContent(
            observations=observed(list(range(1, len(rates) + 1)), list(rates)) if rates else None
        )
        return self.call(
            "append_profile", profile_id=profile_id, request_id=request_id, content=content, **fields
        ).profile

    def get(self, profile_id: str = "job", **fields: Any) -> profile_pb2.Profile:
        found: profile_pb2.Profile = self.call("get_profile", profile_id=profile_id, **fields).profile
        return found

    def refused(self, expected: Reason, name: str, /, **fields: Any) -> NodewiseError:
        return refused(expected, lambda: self.call(name, **fields))


def refused(reason: Reason, call: Callable[[], object]) -> NodewiseError:
    with pytest.raises(NodewiseError) as caught:
        call()
    assert caught.value.reason == reason
    return caught.value


@pytest.fixture
def service() -> Iterator[Service]:
    found = Service(open_store("memory:"))
    yield found
    found.close()


def batch(number: int, *rates: float, commit: bool = False, **fields: Any) -> pb.ProfileBatch:
    rows = observed(list(range(1, len(rates) + 1)), list(rates)) if rates else None
    return pb.ProfileBatch(sequence_number=number, observations=rows, commit=commit, **fields)


def opening(session_id: str = "s") -> pb.IngestProfileRequest:
    return pb.IngestProfileRequest(open=pb.OpenSession(profile_id="job", session_id=session_id))


def sent(content: pb.ProfileBatch) -> pb.IngestProfileRequest:
    return pb.IngestProfileRequest(batch=content)


def facts(**workload: Any) -> profile_pb2.ProfileContent:
    return profile_pb2.ProfileContent(workload=workload_pb2.Workload(**workload))


# --- sessions


def test_a_session_is_one_whether_it_comes_by_a_stream_or_by_calls(service: Service) -> None:
    assert service.call("ingest_batch", profile_id="job", session_id="s").state == pb.IngestState()
    last = service.ingest(opening(), sent(batch(1, 1.0)))[-1]
    assert last.durable_sequence_number == 1
    state = service.call("ingest_batch", profile_id="job", session_id="s", batch=batch(2, 2.0, commit=True)).state
    assert state == pb.IngestState(
        durable_sequence_number=2, committed_sequence_number=2, revision=1, observations_count=2
    )
    again = service.call("ingest_batch", profile_id="job", session_id="s", batch=batch(2, 2.0, commit=True)).state
    assert again == state == service.ingest(opening())[0]
    assert service.ingest(opening(), sent(batch(3, 3.0, commit=True)))[-1].revision == 2
    assert set(service.moved) == {"job"}


def test_a_trace_comes_by_calls_as_well(service: Service) -> None:
    pieces = [
        profile_pb2.TraceChunk(trace_id="t", format="kineto", rank=0, data=b"abc"),
        profile_pb2.TraceChunk(trace_id="t", offset_bytes=3, data=b"d", last=True),
    ]
    for number, piece in enumerate(pieces, start=1):
        content = batch(number, trace_chunks=[piece], commit=number == 2)
        service.call("ingest_batch", profile_id="job", session_id="s", batch=content)
    (trace,) = service.get(view=pb.PROFILE_VIEW_FACTS).content.traces
    assert (trace.format, trace.rank, trace.HasField("world_size"), trace.size_bytes) == ("kineto", 0, False, 4)


def test_what_is_wrong_with_a_batch_is_named_below_it(service: Service) -> None:
    error = service.refused(
        Reason.INVALID_FIELD, "ingest_batch", profile_id="job", session_id="s", batch=batch(1, -1.0)
    )
    assert error.violations[0].field == "batch.observations.steps_per_second[0]"
    service.refused(Reason.BATCH_OUT_OF_ORDER, "ingest_batch", profile_id="job", session_id="s", batch=batch(2, 1.0))
    service.call("ingest_batch", profile_id="job", session_id="s", batch=batch(1, 1.0))
    service.refused(Reason.BATCH_CONFLICT, "ingest_batch", profile_id="job", session_id="s", batch=batch(1, 2.0))
    refused(Reason.SESSION_NOT_OPEN, lambda: service.ingest(sent(batch(1, 1.0))))


@pytest.mark.parametrize("name", ["", "a b", "a:b", "a//b", "/a", "a-", "a" * 129])
def test_names_are_of_characters_that_stand_in_paths(service: Service, name: str) -> None:
    for method in ("get_profile", "undelete_profile"):
        assert service.refused(Reason.INVALID_FIELD, method, profile_id=name).violations[0].field == "profile_id"
    error = service.refused(Reason.INVALID_FIELD, "ingest_batch", profile_id="a", session_id=name)
    assert error.violations[0].field == "session_id"
    assert service.append("team/model~1.0_b", "r", 1.0).profile_id == "team/model~1.0_b"


# --- appending, names and labels


def test_an_append_repeated_changes_nothing_and_a_used_id_is_refused(service: Service) -> None:
    first = service.append("job", "r", 1.0, 2.0)
    assert service.append("job", "r", 1.0, 2.0) == first
    error = refused(Reason.REQUEST_ID_REUSED, lambda: service.append("job", "r", 9.0))
    assert error.metadata == {"request_id": "r"}
    assert service.get().observations_count == 2


def test_names_and_labels_move_the_revision_but_not_the_digest(service: Service) -> None:
    plain = service.append("job", "a", 1.0)
    named = service.append("job", "b", display_name="ResNet-50 auf V100", labels={"team": "vision", "site": "ulm"})
    assert (named.revision, named.digest) == (2, plain.digest)
    assert named.etag != plain.etag
    assert (named.display_name, dict(named.labels)) == ("ResNet-50 auf V100", {"team": "vision", "site": "ulm"})
    changed = service.append("job", "c", labels={"site": "", "tier": "spot"})
    assert (changed.display_name, dict(changed.labels)) == (named.display_name, {"team": "vision", "tier": "spot"})
    service.ingest(opening(), sent(batch(1, display_name="", labels={"team": ""})), sent(batch(2, 3.0, commit=True)))
    found = service.get()
    assert (found.display_name, dict(found.labels)) == ("", {"tier": "spot"})
    assert service.get(revision=2).labels == named.labels
    names = [service.get(revision=at).display_name for at in (1, 2, 3, 4)]
    assert names == ["", named.display_name, named.display_name, ""]


def test_labels_and_names_out_of_bounds_are_named(service: Service) -> None:
    def field_of(**fields: Any) -> str:
        return refused(Reason.INVALID_FIELD, lambda: service.append("job", "r", **fields)).violations[0].field

    assert field_of(display_name="x" * 257) == "display_name"
    assert field_of(labels={"a b": "c"}) == field_of(labels={"": "c"}) == field_of(labels={"k": "x" * 129}) == "labels"
    assert field_of(labels={str(number): "x" for number in range(33)}) == "labels"
    service.append("job", "r", labels={str(number): "x" for number in range(32)})
    error = refused(Reason.INVALID_FIELD, lambda: service.append("job", "r2", labels={"one": "more"}))
    assert error.violations[0].field == "labels"
    service.append("job", "r3", labels={"one": "more", "0": ""})
    assert refused(Reason.INVALID_FIELD, lambda: service.append("job", "r4")).violations[0].field == "content"


def test_lists_by_labels_and_pages(service: Service) -> None:
    for number in range(5):
        labels = {"parity": "even" if number % 2 == 0 else "odd", "all": "yes"}
        service.append(f"p{number}", "r", float(number + 1), labels=labels)
    service.append("q", "r", 1.0)

    def listed(**fields: Any) -> list[str]:
        return [found.profile_id for found in service.call("list_profiles", **fields).profiles]

    assert listed(labels=["all"]) == ["p0", "p1", "p2", "p3", "p4"]
    assert listed(labels=["all", "parity=even"]) == ["p0", "p2", "p4"]
    assert listed(labels=["parity=EVEN"]) == listed(labels=["nothing"]) == []
    first = service.call("list_profiles", labels=["parity=even"], page_size=2)
    rest = service.call("list_profiles", labels=["parity=even"], page_size=2, page_token=first.next_page_token)
    assert [found.profile_id for page in (first, rest) for found in page.profiles] == ["p0", "p2", "p4"]
    assert not rest.next_page_token
    assert not first.profiles[0].HasField("content")
    error = service.refused(Reason.INVALID_FIELD, "list_profiles", labels=["fine", "=x"])
    assert error.violations[0].field == "labels[1]"


# --- reading


def test_views_hold_as_much_as_is_asked_for(service: Service) -> None:
    content = one_worker_phases()
    content.observations.CopyFrom(observed([1, 2], [1.0, 2.0]))
    service.append(content=content)
    assert not service.get(view=pb.PROFILE_VIEW_BASIC).HasField("content")
    seen = service.get(view=pb.PROFILE_VIEW_FACTS)
    assert not seen.content.HasField("observations")
    assert list(seen.content.phase_timings.numbers) == [1]
    assert seen.observations_count == 2
    whole = service.get()
    assert list(whole.content.observations.numbers) == [1, 2]
    assert service.get(view=pb.PROFILE_VIEW_FULL) == whole
    # What was read may be sent again.
    assert service.append("copy", "r", content=whole.content).digest == whole.digest
    error = service.refused(Reason.INVALID_FIELD, "get_profile", profile_id="job", view=77)
    assert error.violations[0].field == "view"


def test_pages_of_observations_are_of_the_revision_that_the_first_was_of(service: Service) -> None:
    service.append("job", "a", 1.0, 2.0, 3.0, 4.0, 5.0, content=None)
    service.call("retract_evidence", profile_id="job", request_id="r", observation_numbers=[2])
    first = service.call("get_profile", profile_id="job", page_size=2)
    assert list(first.profile.content.observations.numbers) == [1, 3]
    service.append("job", "b", 6.0)
    second = service.call("get_profile", profile_id="job", page_size=2, page_token=first.next_page_token)
    assert second.profile.revision == 2
    assert list(second.profile.content.observations.numbers) == [4, 5]
    assert list(second.profile.content.observations.steps_per_second) == [4.0, 5.0]
    assert not second.next_page_token
    for wrong in ({"revision": 1}, {"page_token": "?"}, {"page_size": 0}, {"page_size": 20_001}):
        fields = {"profile_id": "job", "page_token": first.next_page_token, **wrong}
        service.refused(Reason.INVALID_FIELD, "get_profile", **fields)
    service.call("delete_profile", profile_id="job", etag="*")
    service.append("job", "a", 1.0, 2.0, 3.0)
    service.append("job", "b", 1.0, 2.0, 3.0)
    service.refused(Reason.REVISION_NOT_FOUND, "get_profile", profile_id="job", page_token=first.next_page_token)


def test_every_revision_is_read_as_it_was(service: Service) -> None:
    then = [service.append("job", "a", 1.0), service.append("job", "b", 2.0)]
    assert [service.get(revision=at).digest for at in (1, 2)] == [found.digest for found in then]
    error = service.refused(Reason.REVISION_NOT_FOUND, "get_profile", profile_id="job", revision=3)
    assert error.metadata == {"profile_id": "job", "revision": "3"}
    service.refused(Reason.INVALID_FIELD, "get_profile", profile_id="job", revision=0)
    service.refused(Reason.PROFILE_NOT_FOUND, "get_profile", profile_id="nobody", revision=1)


# --- retraction


def test_evidence_of_every_kind_is_retracted_and_stays_in_the_history(service: Service) -> None:
    content = one_worker_phases()
    content.observations.CopyFrom(observed([1, 2], [1.0, 2.0]))
    content.workload.MergeFrom(workload_pb2.Workload(model_name="net", tensors_count=16))
    content.network.link_bytes_per_second = 1e9
    service.append(content=content)
    piece = profile_pb2.TraceChunk(trace_id="t", format="kineto", data=b"abc", last=True)
    service.call("ingest_batch", profile_id="job", session_id="s", batch=batch(1, trace_chunks=[piece], commit=True))
    before = service.get()
    gone = {
        "observation_numbers": [2],
        "phase_timing_numbers": [1],
        "fact_paths": ["workload.tensors_count", "network.link_bytes_per_second"],
        "trace_sha256s": [before.content.traces[0].content_sha256],
    }
    found = service.call("retract_evidence", profile_id="job", request_id="r", reason="wrong", **gone).profile
    assert (found.revision, found.observations_count, found.HasField("content")) == (3, 1, False)
    after = service.get()
    assert list(after.content.observations.numbers) == [1]
    assert not after.content.HasField("phase_timings")
    assert not after.content.HasField("network")
    assert not after.content.traces
    assert after.content.workload.model_name == "net"
    assert not after.content.workload.HasField("tensors_count")
    assert service.get(revision=2) == before
    again = service.call("retract_evidence", profile_id="job", request_id="r", reason="wrong", **gone).profile
    assert again == found
    # Facts may be stated anew, with another value too; traces and timings sent again; numbers go on.
    anew = one_worker_phases()
    anew.workload.tensors_count = 17
    service.append("job", "anew", content=anew)
    service.call("ingest_batch", profile_id="job", session_id="t", batch=batch(1, trace_chunks=[piece], commit=True))
    now = service.get()
    assert now.content.workload.tensors_count == 17
    assert list(now.content.phase_timings.numbers) == [2]
    assert len(now.content.traces) == 1
    assert [service.get(revision=at).digest for at in (2, 3, 5)] == [before.digest, after.digest, now.digest]


def test_what_is_not_held_is_named_by_its_list(service: Service) -> None:
    service.append(content=facts(tensors_count=16))

    def missing(**gone: Any) -> NodewiseError:
        return service.refused(Reason.EVIDENCE_NOT_FOUND, "retract_evidence", profile_id="job", request_id="r", **gone)

    assert missing(observation_numbers=[3, 1]).metadata == {"profile_id": "job", "observation_numbers": "1,3"}
    assert missing(phase_timing_numbers=[1]).metadata["phase_timing_numbers"] == "1"
    error = missing(fact_paths=["workload.tensors_count", "workload.epochs_count"])
    assert error.metadata["fact_paths"] == "workload.epochs_count"
    assert "epochs_count" in error.message
    assert missing(trace_sha256s=["0" * 64]).metadata["trace_sha256s"] == "0" * 64
    assert service.get().content.workload.tensors_count == 16


@pytest.mark.parametrize(
    ("field", "gone"),
    [
        ("observation_numbers", {}),
        ("fact_paths[1]", {"fact_paths": ["workload.tensors_count", "workload.tensors"]}),
        ("fact_paths[0]", {"fact_paths": ["observations"]}),
        ("trace_sha256s[0]", {"trace_sha256s": ["abc"]}),
        ("reason", {"observation_numbers": [1], "reason": "x" * 513}),
    ],
)
def test_a_retraction_that_says_what_cannot_be(service: Service, field: str, gone: dict[str, Any]) -> None:
    service.append("job", "r", 1.0)
    error = service.refused(Reason.INVALID_FIELD, "retract_evidence", profile_id="job", request_id="r", **gone)
    assert error.violations[0].field == field


def test_a_used_id_retracts_nothing_else(service: Service) -> None:
    service.append("job", "a", 1.0, 2.0)
    service.call("retract_evidence", profile_id="job", request_id="r", observation_numbers=[1])
    service.refused(
        Reason.REQUEST_ID_REUSED, "retract_evidence", profile_id="job", request_id="r", observation_numbers=[2]
    )


# --- deletion


def test_a_deleted_profile_is_gone_for_everyone_until_it_is_brought_back(service: Service) -> None:
    kept = service.append("job", "a", 1.0)
    deleted = service.call("delete_profile", profile_id="job", etag=kept.etag).profile
    day_s = deleted.purge_time.ToSeconds() - deleted.delete_time.ToSeconds()
    assert day_s == 86_400
    assert (deleted.etag, deleted.digest) == (kept.etag, kept.digest)
    service.refused(Reason.PROFILE_NOT_FOUND, "get_profile", profile_id="job")
    assert not service.call("list_profiles").profiles
    assert list(service.call("list_profiles", show_deleted=True).profiles) == [deleted]
    assert service.call("delete_profile", profile_id="job", etag=kept.etag).profile == deleted
    service.refused(Reason.PROFILE_NOT_FOUND, "delete_profile", profile_id="job", etag="*")
    assert service.call("undelete_profile", profile_id="job").profile == kept
    assert service.call("undelete_profile", profile_id="job").profile == kept
    assert service.get().content.observations.steps_per_second == [1.0]
    service.refused(Reason.PROFILE_NOT_FOUND, "undelete_profile", profile_id="nobody")


def test_an_etag_must_be_given_and_be_the_newest(service: Service) -> None:
    old = service.append("job", "a", 1.0)
    new = service.append("job", "b", 2.0)
    assert service.refused(Reason.INVALID_FIELD, "delete_profile", profile_id="job").violations[0].field == "etag"
    error = service.refused(Reason.ETAG_MISMATCH, "delete_profile", profile_id="job", etag=old.etag)
    assert error.metadata["etag"] == new.etag
    assert service.call("delete_profile", profile_id="job", etag="*").profile.etag == new.etag


def test_missing_profiles_may_be_allowed(service: Service) -> None:
    service.refused(Reason.PROFILE_NOT_FOUND, "delete_profile", profile_id="job", etag="*")
    assert not service.call("delete_profile", profile_id="job", etag="*", allow_missing=True).HasField("profile")


def test_writing_to_the_name_of_a_deleted_profile_makes_a_new_one(service: Service) -> None:
    old = service.append("job", "a", 1.0)
    service.call("delete_profile", profile_id="job", etag=old.etag)
    new = service.append("job", "a", 2.0)
    assert (new.revision, new.observations_count) == (1, 1)
    assert new.uid != old.uid
    assert service.call("undelete_profile", profile_id="job").profile == new
    assert list(service.call("list_profiles", show_deleted=True).profiles) == [new]
    # A late repetition of the first deletion is answered by it, and does not reach the new one.
    assert service.call("delete_profile", profile_id="job", etag=old.etag).profile.uid == old.uid
    assert service.get().uid == new.uid
    service.call("delete_profile", profile_id="job", etag="*")
    assert service.call("undelete_profile", profile_id="job").profile == new


# --- watching


def watched(service: Service, *steps: Callable[[], object], **fields: Any) -> list[pb.WatchProfilesResponse]:
    """What is told at first, then after each step: steps follow what was told of the ones before."""

    async def told() -> list[pb.WatchProfilesResponse]:
        replies = service.behaviours.watch_profiles(pb.WatchProfilesRequest(**fields), CALL)
        found = [await anext(replies)]
        while not found[-1].caught_up:
            found.append(await anext(replies))
        for step in steps:
            await asyncio.to_thread(step)
            found.append(await asyncio.wait_for(anext(replies), 60))
        return found

    return asyncio.run(told())


@pytest.mark.parametrize("processes", [1, 2])
def test_watching_tells_all_then_every_change(tmp_path: Path, processes: int) -> None:
    url = str(tmp_path / "store.db")
    services = [Service(open_store(url)) for _ in range(processes)]
    here, there = services[0], services[-1]
    here.append("a", "1", 1.0, labels={"team": "x"})
    here.append("b", "1", 1.0)

    replies = watched(
        here,
        lambda: there.append("c", "1", 1.0, labels={"team": "x"}),
        lambda: there.append("a", "2", 2.0),
        lambda: there.call("delete_profile", profile_id="a", etag="*"),
        lambda: there.call("undelete_profile", profile_id="a"),
        lambda: there.append("c", "2", labels={"team": ""}),
        labels=["team=x"],
    )
    told = [
        [(found.profile_id, found.revision, found.HasField("delete_time")) for found in r.profiles] for r in replies
    ]
    assert told == [
        [("a", 1, False)],
        [("c", 1, False)],
        [("a", 2, False)],
        [("a", 2, True)],
        [("a", 2, False)],
        [("c", 2, False)],
    ]
    assert [reply.caught_up for reply in replies] == [True] + [False] * 5
    assert not any(found.HasField("content") for reply in replies for found in reply.profiles)
    for each in services:
        each.close()


def test_watching_nothing_is_caught_up_at_once(service: Service) -> None:
    (first,) = watched(service, name_prefix="none")
    assert (list(first.profiles), first.caught_up) == ([], True)
    error = refused(Reason.INVALID_FIELD, lambda: watched(service, labels=["a b"]))
    assert error.violations[0].field == "labels[0]"


def test_watches_end_when_the_server_does(service: Service) -> None:
    error = refused(Reason.STORE_UNAVAILABLE, lambda: watched(service, service.behaviours.end_watches))
    assert "call WatchProfiles again" in error.message


def test_many_profiles_are_told_in_several_messages(service: Service) -> None:
    for number in range(300):
        service.append(f"p{number:03}", "r", 1.0)
    replies = watched(service)
    assert [len(reply.profiles) for reply in replies] == [256, 44]
    assert [reply.caught_up for reply in replies] == [False, True]
