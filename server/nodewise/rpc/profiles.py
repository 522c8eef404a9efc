"""ProfileService: thin behaviours over the store's writer and reader."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from contextlib import suppress
from typing import Final

from nodewise.domain.errors import NodewiseError, Reason, invalid_field
from nodewise.domain.profile import Profile
from nodewise.ports.limits import Limits
from nodewise.profiles.batches import Batch
from nodewise.profiles.reader import ProfileReader
from nodewise.profiles.store import ProfileStore, ProfileSummary, SessionStatus
from nodewise.profiles.writer import StoreWriter
from nodewise.rpc.calls import Call, run_in
from nodewise.rpc.paging import next_token, page_after, page_size
from nodewise.rpc.reading import Reader
from nodewise.rpc.sources import prefixed
from nodewise.rpc.wire_profiles import read_batch, read_content, write_profile, write_summary
from nodewise_protos.v1 import profile_service_pb2 as pb

__all__ = ["Profiles"]

PIPELINE: Final = 64
"""Batches of one stream that may wait for the disk together: enough to fill a group commit, and a bound on memory."""
LONGEST_REASON: Final = 512


class Profiles:
    """Behaviours of ProfileService.

    Parameters
    ----------
    store, writer, reader : ProfileStore, StoreWriter, ProfileReader
        Where profiles are.
    executor : Executor
        Threads for what may block.
    committed : callable
        Told the name of every profile whose revision moved.
    """

    def __init__(
        self,
        store: ProfileStore,
        writer: StoreWriter,
        reader: ProfileReader,
        limits: Limits,
        executor: Executor,
        committed: Callable[[str], None],
    ) -> None:
        self._store = store
        self._writer = writer
        self._reader = reader
        self._limits = limits
        self._executor = executor
        self._committed = committed

    async def ingest_profile(
        self, requests: AsyncIterator[pb.IngestProfileRequest], call: Call
    ) -> AsyncIterator[pb.IngestProfileResponse]:
        """One reply per request: the session's standing, then what each batch made of it once it is durable."""
        first = await anext(aiter(requests), None)
        if first is None or first.WhichOneof("action") != "open":
            raise NodewiseError(Reason.SESSION_NOT_OPEN, "the first message of a stream must open a session")
        profile_id, session_id = _names(
            ("open.profile_id", first.open.profile_id), ("open.session_id", first.open.session_id)
        )
        status: SessionStatus = await run_in(self._executor, self._store.open_session, profile_id, session_id)
        yield _reply(status)
        waiting: asyncio.Queue[asyncio.Future[SessionStatus] | Exception | None] = asyncio.Queue(PIPELINE)
        intake = asyncio.create_task(self._take_in(requests, profile_id, session_id, waiting))
        try:
            while (entry := await waiting.get()) is not None:
                if isinstance(entry, Exception):
                    raise entry
                before = status
                try:
                    status = await entry
                except NodewiseError as error:
                    raise prefixed(error, "batch.") from None
                if status.revision != before.revision:
                    self._committed(profile_id)
                yield _reply(status)
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
        """Read and submit batches ahead of their acknowledgements; ends with None, or with what was wrong."""
        try:
            async for request in requests:
                if request.WhichOneof("action") != "batch":
                    raise invalid_field("batch", "must follow: a session is opened once per stream")
                batch = read_batch(request.batch, self._limits)
                future = self._writer.append(profile_id, session_id, (batch,))
                await waiting.put(asyncio.wrap_future(future))
        except Exception as error:  # noqa: BLE001  # raised again by the side that replies
            await waiting.put(error)
        else:
            await waiting.put(None)

    async def append_profile(self, request: pb.AppendProfileRequest, call: Call) -> pb.AppendProfileResponse:
        """A session of one batch, named by the request."""
        profile_id, request_id = _names(("profile_id", request.profile_id), ("request_id", request.request_id))
        if request.content.traces:
            raise invalid_field("content.traces", "must be empty: traces come by IngestProfile")
        content = read_content(request.content, "content", self._limits)
        if content.is_empty:
            raise invalid_field("content", "must hold facts, phase timings or observations")
        batch = Batch(
            sequence_number=1,
            workload=content.workload,
            network=content.network,
            phase_timings=content.phase_timings,
            observations=content.observations,
            commit=True,
        )
        try:
            await asyncio.wrap_future(self._writer.append(profile_id, request_id, (batch,)))
        except NodewiseError as error:
            raise prefixed(error, "content.") from None
        self._committed(profile_id)
        return pb.AppendProfileResponse(profile=write_summary(await self._summary(profile_id)))

    async def retract_observations(
        self, request: pb.RetractObservationsRequest, call: Call
    ) -> pb.RetractObservationsResponse:
        """Take observations out."""
        profile_id, request_id = _names(("profile_id", request.profile_id), ("request_id", request.request_id))
        if len(request.reason) > LONGEST_REASON:
            raise invalid_field("reason", f"must be at most {LONGEST_REASON} characters, found {len(request.reason)}")
        if not request.numbers:
            raise invalid_field("numbers", "must name at least one observation")
        future = self._writer.retract(profile_id, request_id, tuple(request.numbers), request.reason)
        summary = await asyncio.wrap_future(future)
        self._committed(profile_id)
        return pb.RetractObservationsResponse(profile=write_summary(summary))

    async def get_profile(self, request: pb.GetProfileRequest, call: Call) -> pb.GetProfileResponse:
        """One profile with its content."""
        (profile_id,) = _names(("profile_id", request.profile_id))
        profile: Profile = await run_in(self._executor, self._reader.get, profile_id)
        return pb.GetProfileResponse(profile=write_profile(profile))

    async def list_profiles(self, request: pb.ListProfilesRequest, call: Call) -> pb.ListProfilesResponse:
        """Profiles by name."""
        size = page_size(request.page_size)
        found: tuple[ProfileSummary, ...] = await run_in(
            self._executor, self._store.list, request.name_prefix, page_after(request.page_token), size + 1
        )
        more = len(found) > size
        return pb.ListProfilesResponse(
            profiles=[write_summary(summary) for summary in found[:size]],
            next_page_token=next_token(found[size - 1].profile_id) if more else "",
        )

    async def delete_profile(self, request: pb.DeleteProfileRequest, call: Call) -> pb.DeleteProfileResponse:
        """Delete a profile."""
        (profile_id,) = _names(("profile_id", request.profile_id))
        await asyncio.wrap_future(self._writer.delete(profile_id, request.etag or None))
        return pb.DeleteProfileResponse()

    async def _summary(self, profile_id: str) -> ProfileSummary:
        profile: Profile = await run_in(self._executor, self._reader.get, profile_id)
        return ProfileSummary(
            profile_id=profile.profile_id,
            uid=profile.uid,
            revision=profile.revision,
            digest=profile.digest,
            create_time_s=profile.create_time_s,
            update_time_s=profile.update_time_s,
            observations_count=len(profile.observations),
        )


def _names(*fields: tuple[str, str]) -> list[str]:
    reader = Reader()
    names = [reader.identifier(value, path) for path, value in fields]
    reader.finish()
    return names


def _reply(status: SessionStatus) -> pb.IngestProfileResponse:
    return pb.IngestProfileResponse(
        durable_sequence_number=status.durable_sequence_number,
        revision=status.revision,
        observations_count=status.observations_count,
        committed_sequence_number=status.committed_sequence_number,
    )
