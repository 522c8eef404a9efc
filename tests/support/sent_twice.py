"""Every batch of a session sent to two servers at the same moment."""

from __future__ import annotations

from killed_ingest import COMMIT_EVERY, batch
from serving import Stubs

from nodewise_protos.v1 import profile_service_pb2 as profiles

__all__ = ["expected", "send_twice", "stored_rates"]

TIMEOUT_S = 60.0


def send_twice(one: Stubs, other: Stubs, batches: int) -> None:
    """Both must acknowledge each: whoever comes second is told that it is stored."""
    for number in range(1, batches + 1):
        content = batch(number).batch
        asked = profiles.IngestBatchRequest(profile_id="twice", session_id="s", batch=content)
        calls = [stubs.profile.IngestBatch.future(asked, timeout=TIMEOUT_S) for stubs in (one, other)]
        for call in calls:
            assert call.result().state.durable_sequence_number == number


def stored_rates(stubs: Stubs) -> tuple[int, list[int]]:
    """The revision, and the numbers of batches whose rows count."""
    asked = profiles.GetProfileRequest(profile_id="twice")
    rates: list[int] = []
    while True:
        page = stubs.profile.GetProfile(asked, timeout=TIMEOUT_S)
        rates += [int(rate) for rate in page.profile.content.observations.steps_per_second]
        if not page.next_page_token:
            return page.profile.revision, rates
        asked.page_token = page.next_page_token


def expected(batches: int) -> tuple[int, list[int]]:
    """Each batch once, in its order, as far as units ended."""
    return batches // COMMIT_EVERY, list(range(1, batches - batches % COMMIT_EVERY + 1))
