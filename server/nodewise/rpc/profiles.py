"""ProfileService: ingest, reads, lists, watches and deletions of profiles."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from nodewise.domain.errors import NodewiseError, Reason, invalid_field
from nodewise.domain.predictions import Notice
from nodewise.domain.profile import Profile
from nodewise.mapper.mapping import to_message
from nodewise.mapper.profiles import write_facts
from nodewise.mapper.reading import Reader
from nodewise.ports.limits import Limits
from nodewise.profiles.batches import Batch
from nodewise.profiles.quotas import DEFAULT_QUOTAS, StoreQuotas, Usage
from nodewise.profiles.reader import ProfileReader
from nodewise.profiles.store import Label, ProfileStore, ProfileSummary, SessionStatus
from nodewise.profiles.writer import StoreWriter
from nodewise.rpc.calls import Call, run_in
from nodewise.rpc.errors import below, with_durable, with_prefix
from nodewise.rpc.paging import ObservationPage, next_token, page, page_after, page_size
from nodewise.rpc.sources import read_content
from nodewise.rpc.wire_profile_changes import (
    not_found_on_the_wire,
    read_batch,
    read_naming,
    read_retracted,
    read_wanted_labels,
)
from nodewise_protos.v1 import profile_pb2
from nodewise_protos.v1 import profile_service_pb2 as pb

__all__ = ["Profiles"]

_PARTS: Final = ("workload", "network", "phase_timings", "observations", "shared_runs")
"""Fields that a batch copies from a content."""
PIPELINE: Final = 64
"""Most batches of one stream that wait for the disk: enough to fill a group commit, and a bound on memory."""
LOOK_EVERY_S: Final = 0.25
"""Seconds between two checks for changes, which another process may make. A check reads one counter."""
WATCHED_TOGETHER: Final = 256
"""Most profiles of one message of a watch: some 100 KB."""
ANY_ETAG: Final = "*"
NEWEST: Final = 2**62
"""A generation above all others."""


@dataclass(slots=True, eq=False)
class Profiles:
    """Behaviours of ProfileService.

    Attributes
    ----------
    store, writer, reader : ProfileStore, StoreWriter, ProfileReader
        The store of profiles.
    executor : Executor
        Threads for work that may block.
    committed : callable
        Called with the name of every profile with a new revision.
    doubts : callable
        Returns notices about doubtful observations of a profile.
    ending : bool
        Whether watches end.
    quotas : StoreQuotas
        Quotas of the store.
    """

    store: ProfileStore
    writer: StoreWriter
    reader: ProfileReader
    limits: Limits
    executor: Executor
    committed: Callable[[str], None]
    doubts: Callable[[Profile], tuple[Notice, ...]]
    ending: bool = False
    quotas: StoreQuotas = DEFAULT_QUOTAS

    def end_watches(self) -> None:
        """End all watches, since the server is stopping."""
        self.ending = True

    async def ingest_profile(
        self, requests: AsyncIterator[pb.IngestProfileRequest], call: Call
    ) -> AsyncIterator[pb.IngestProfileResponse]:
        """One reply per request: the state of the session, as opened, then after each batch, once it is durable."""
        first = await anext(aiter(requests), None)
        if first is None or first.WhichOneof("action") != "open":
            raise NodewiseError(Reason.SESSION_NOT_OPEN, "the first message of a stream must open a session")
        profile_id, session_id = _names(first.open, "profile_id", "session_id", path="open.")
        status: SessionStatus = await run_in(self.executor, self.store.open_session, profile_id, session_id)
        yield pb.IngestProfileResponse(state=_state(status))
        waiting: asyncio.Queue[asyncio.Future[SessionStatus] | Exception | None] = asyncio.Queue(PIPELINE)
        intake = asyncio.create_task(self._take_in(requests, profile_id, session_id, waiting))
        try:
            while (entry := await waiting.get()) is not None:
                if isinstance(entry, Exception):
                    raise entry
                before = status
                try:
                    with below("batch."):
                        status = await entry
                except NodewiseError as error:
                    raise with_durable(error, before.durable_sequence_number) from None
                if status.revision != before.revision:
                    self.committed(profile_id)
                yield pb.IngestProfileResponse(state=_state(status))
        finally:
            intake.cancel()
            with suppress(asyncio.CancelledError):
                await intake

    async def _take_in(
        self,
        requests: AsyncIterator[pb.IngestProfileRequest],
        profile_id: str,
        session_id: str,
        waiting: asyncio.Queue[asyncio.Future[SessionStatus] | Exception | None],
    ) -> None:
        """Read and submit batches before earlier ones are acknowledged; puts None, or an error, at the end."""
        try:
            async for request in requests:
                if request.WhichOneof("action") != "batch":
                    raise invalid_field("batch", "must be given: only the first message of a stream opens a session")
                batch = read_batch(request.batch, self.limits)
                future = asyncio.wrap_future(self.writer.append(profile_id, session_id, (batch,)))
                future.add_done_callback(_ignore)
                await waiting.put(future)
        except Exception as error:  # noqa: BLE001  # the replying coroutine raises it
            await waiting.put(error)
        else:
            await waiting.put(None)

    async def ingest_batch(self, request: pb.IngestBatchRequest, call: Call) -> pb.IngestBatchResponse:
        """Append one batch to a session; without a batch, open or resume the session."""
        profile_id, session_id = _names(request, "profile_id", "session_id")
        status: SessionStatus
        if request.HasField("batch"):
            batch = read_batch(request.batch, self.limits)
            try:
                with below("batch."):
                    status = await asyncio.wrap_future(self.writer.append(profile_id, session_id, (batch,)))
            except NodewiseError as error:
                raise with_durable(error, batch.sequence_number - 1) from None
            if batch.commit:
                self.committed(profile_id)
        else:
            status = await run_in(self.executor, self.store.open_session, profile_id, session_id)
        return pb.IngestBatchResponse(state=_state(status))

    async def append_profile(self, request: pb.AppendProfileRequest, call: Call) -> pb.AppendProfileResponse:
        """A session of one batch, named by the request."""
        profile_id, request_id = _names(request, "profile_id", "request_id")
        if request.content.traces:
            raise invalid_field("content.traces", "must be empty: traces come by IngestProfile or IngestBatch")
        content = read_content(request.content, "content", self.limits)
        reader = Reader()
        naming = read_naming(request, "", reader)
        reader.finish()
        if content.is_empty and not naming:
            raise invalid_field("content", "must hold facts, phase timings, observations or shared runs")
        parts = {name: getattr(content, name) for name in _PARTS}
        batch = Batch(sequence_number=1, **parts, naming=naming, commit=True)
        try:
            await asyncio.wrap_future(self.writer.append(profile_id, request_id, (batch,)))
        except NodewiseError as error:
            if error.reason is Reason.BATCH_CONFLICT:
                raise _reuse_error(request_id) from None
            raise error if _names_labels(error) else with_prefix(error, "content.") from None
        self.committed(profile_id)
        profile: Profile = await run_in(self.executor, self.reader.get, profile_id)
        doubts = await run_in(self.executor, self.doubts, profile) if len(content.observations) else ()
        return pb.AppendProfileResponse(profile=write_summary(ProfileSummary.of(profile), doubts))

    async def retract_evidence(self, request: pb.RetractEvidenceRequest, call: Call) -> pb.RetractEvidenceResponse:
        """Retract evidence."""
        profile_id, request_id = _names(request, "profile_id", "request_id")
        future = self.writer.retract(profile_id, request_id, read_retracted(request), request.reason)
        try:
            summary = await asyncio.wrap_future(future)
        except NodewiseError as error:
            raise not_found_on_the_wire(error) from None
        self.committed(profile_id)
        return pb.RetractEvidenceResponse(profile=write_summary(summary))

    async def get_profile(self, request: pb.GetProfileRequest, call: Call) -> pb.GetProfileResponse:
        """One profile, with the requested part of its content."""
        (profile_id,) = _names(request, "profile_id")
        page = ObservationPage.of(request)
        profile: Profile = await run_in(self.executor, self.reader.at, profile_id, page.revision)
        doubts = await run_in(self.executor, self.doubts, profile) if page.with_facts else ()
        answer = write_summary(ProfileSummary.of(profile), doubts)
        token = ""
        if page.with_facts:
            answer.content.MergeFrom(write_facts(profile))
        if page.with_observations:
            rows, token = page.of_profile(profile)
            if len(rows):
                answer.content.observations.CopyFrom(to_message(rows, profile_pb2.Observations))
        return pb.GetProfileResponse(profile=answer, next_page_token=token)

    async def list_profiles(self, request: pb.ListProfilesRequest, call: Call) -> pb.ListProfilesResponse:
        """Profiles by name."""
        size, after, labels = page_size(request), page_after(request.page_token), read_wanted_labels(request.labels)
        scopes = call.principal.scopes(request.name_prefix)
        find = partial(self._list, scopes, after, size + 1, labels, deleted=request.show_deleted)
        summaries: tuple[ProfileSummary, ...] = await run_in(self.executor, find)
        more = len(summaries) > size
        return pb.ListProfilesResponse(
            profiles=[write_summary(summary) for summary in summaries[:size]],
            next_page_token=next_token(summaries[size - 1].profile_id) if more else "",
        )

    def _list(
        self, scopes: Sequence[str], after: str, most: int, labels: Sequence[Label], *, deleted: bool = False
    ) -> tuple[ProfileSummary, ...]:
        """Profiles of several disjoint prefixes, sorted by name."""
        summaries: tuple[ProfileSummary, ...] = ()
        for prefix in scopes:
            if len(summaries) < most:
                summaries += tuple(self.store.list(prefix, after, most - len(summaries), labels, deleted=deleted))
        return summaries

    async def watch_profiles(
        self, request: pb.WatchProfilesRequest, call: Call
    ) -> AsyncIterator[pb.WatchProfilesResponse]:
        """Sends all profiles that match, then those that change; changes of a profile are sent until it is deleted."""
        prefix, labels = request.name_prefix, read_wanted_labels(request.labels)
        scopes = call.principal.scopes(prefix)
        prefix = scopes[0] if len(scopes) == 1 else prefix
        last_seen, _ = await run_in(self.executor, self.store.changes, NEWEST, prefix)
        sent_uids: set[str] = set()
        after: str | None = ""
        while after is not None:  # a profile that changes meanwhile is sent twice, and no change is missed
            list_next = partial(self._list, scopes, after, WATCHED_TOGETHER, labels)
            summaries: tuple[ProfileSummary, ...] = await run_in(self.executor, list_next)
            sent_uids |= {summary.uid for summary in summaries}
            after = summaries[-1].profile_id if len(summaries) == WATCHED_TOGETHER else None
            yield pb.WatchProfilesResponse(profiles=map(write_summary, summaries), caught_up=after is None)
        last_generation: Hashable = None
        while not self.ending:
            generation = self.store.generation()
            if generation != last_generation:
                last_generation = generation
                last_seen, summaries = await run_in(self.executor, self.store.changes, last_seen, prefix)
                own = [summary for summary in summaries if call.principal.covers(summary.profile_id)]
                changes = [summary for summary in own if summary.uid in sent_uids or _matches(summary, labels)]
                for first in range(0, len(changes), WATCHED_TOGETHER):
                    together = changes[first : first + WATCHED_TOGETHER]
                    yield pb.WatchProfilesResponse(profiles=map(write_summary, together))
                sent_uids |= {summary.uid for summary in changes}
                sent_uids -= {summary.uid for summary in changes if summary.delete_time_s}
            await asyncio.sleep(LOOK_EVERY_S)
        raise NodewiseError(Reason.STORE_UNAVAILABLE, "the server is shutting down; call WatchProfiles again")

    async def delete_profile(self, request: pb.DeleteProfileRequest, call: Call) -> pb.DeleteProfileResponse:
        """Delete a profile, which can be restored for some time."""
        (profile_id,) = _names(request, "profile_id")
        if not request.etag:
            raise invalid_field("etag", 'must be the etag of the profile, or "*" for any')
        etag = None if request.etag == ANY_ETAG else request.etag
        try:
            summary = await asyncio.wrap_future(self.writer.delete(profile_id, etag))
        except NodewiseError as error:
            if error.reason is Reason.PROFILE_NOT_FOUND and request.allow_missing:
                return pb.DeleteProfileResponse()
            raise
        return pb.DeleteProfileResponse(profile=write_summary(summary))

    async def undelete_profile(self, request: pb.UndeleteProfileRequest, call: Call) -> pb.UndeleteProfileResponse:
        """Restore a deleted profile."""
        (profile_id,) = _names(request, "profile_id")
        summary = await asyncio.wrap_future(self.writer.undelete(profile_id))
        return pb.UndeleteProfileResponse(profile=write_summary(summary))

    async def list_usage(self, request: pb.ListUsageRequest, call: Call) -> pb.ListUsageResponse:
        """Usage of the namespaces in which the caller may have profiles."""
        by_namespace: Mapping[str, Usage] = await run_in(self.executor, self.store.usage)
        # Names of pages must not be empty.
        own = {f"={name}": (name, usage) for name, usage in by_namespace.items() if call.principal.reaches(name)}
        keys, token = page(sorted(own), request)
        quotas = self.quotas
        response = pb.ListUsageResponse(next_page_token=token)
        for key in keys:
            name, usage = own[key]
            response.namespaces.add(
                namespace=name,
                stored_bytes=usage.stored_bytes,
                trace_bytes=usage.trace_bytes,
                profiles_count=usage.profiles,
                stored_bytes_quota=quotas.stored_bytes,
                trace_bytes_quota=quotas.trace_bytes,
                profiles_count_quota=quotas.profiles,
            )
        return response


def _ignore(future: asyncio.Future[SessionStatus]) -> None:
    """Ignore the outcome of a batch that was submitted before an earlier one ended the stream."""
    if not future.cancelled():
        future.exception()


def _names(request: Any, *fields: str, path: str = "") -> list[str]:
    reader = Reader()
    names = [reader.identifier(getattr(request, field), f"{path}{field}") for field in fields]
    reader.finish()
    return names


def _state(status: SessionStatus) -> pb.IngestState:
    return to_message(status, pb.IngestState)


def _reuse_error(request_id: str) -> NodewiseError:
    return NodewiseError(
        Reason.REQUEST_ID_REUSED,
        "request_id: was used for other content; a new request needs a new request_id",
        {"request_id": request_id},
    )


def _names_labels(error: NodewiseError) -> bool:
    """Whether an error is about labels, which are beside the content."""
    return any(violation.field == "labels" for violation in error.violations)


def _matches(summary: ProfileSummary, labels: Sequence[Label]) -> bool:
    labels_of_profile = summary.labels
    return all(
        key in labels_of_profile if value is None else labels_of_profile.get(key) == value for key, value in labels
    )


def write_summary(summary: ProfileSummary, doubts: Sequence[Notice] = ()) -> profile_pb2.Profile:
    """A profile without its content."""
    return to_message(summary, profile_pb2.Profile, content=None, warnings=doubts)
