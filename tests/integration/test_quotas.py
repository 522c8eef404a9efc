"""Quotas over the wire: which one it was, what was found, what is allowed, and that the rest goes on."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from misbehaving import nothing, policy
from patience import PATIENCE_S, wait_until
from serving import Failure, Stubs, failure_of, observed, registry_with
from tiny_traces import tiny
from typer.testing import CliRunner

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.groups_of_settings import Quotas
from nodewise.runtime.settings import Settings
from nodewise_cli.app import app
from nodewise_client import Client, ResourceExhaustedError
from nodewise_protos.v1 import profile_pb2
from nodewise_protos.v1 import profile_service_pb2 as pb
from nodewise_protos.v1beta1 import simulation_pb2
from nodewise_protos.v1beta1 import simulation_service_pb2 as simulations

QUOTAS = Quotas(
    stored_bytes=20_000, trace_bytes=100, profiles=3, streams_per_caller=2, long_calls_per_caller=1, free_bytes=0
)


class Held:
    """A policy that decides nothing until it may."""

    def __init__(self) -> None:
        self.begun, self.may = threading.Event(), threading.Event()

    def __call__(self, *state: Any) -> Any:
        self.begun.set()
        assert self.may.wait(PATIENCE_S)
        return nothing(*state)


HELD = Held()


@pytest.fixture(scope="module")
def stubs() -> Iterator[Stubs]:
    settings = Settings(store="memory:", grace_s=1.0, scoring=False, quotas=QUOTAS)
    with EmbeddedServer(settings, registry_with((), (policy("held", HELD),))) as server, Stubs(server.target) as found:
        yield found
        HELD.may.set()


def target_of(stubs: Stubs) -> str:
    """Where they call."""
    target: str = stubs.channel._channel.target().decode().removeprefix("dns:///")
    return target


def violation(failure: Failure) -> error_details_pb2.QuotaFailure.Violation:
    """What a refusal says of its quota."""
    assert (failure.code, failure.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED")
    found = error_details_pb2.QuotaFailure()
    (detail,) = (each for each in failure.status.details if each.Is(found.DESCRIPTOR))
    detail.Unpack(found)
    assert failure.metadata["limit"] == str(found.violations[0].quota_value)
    assert failure.metadata["quota"] == found.violations[0].quota_metric
    return found.violations[0]


def says_when(failure: Failure) -> bool:
    """Whether it is told after which time to come back."""
    return any(each.Is(error_details_pb2.RetryInfo.DESCRIPTOR) for each in failure.status.details)


def append(profile_id: str, request_id: str = "first", rows: int = 1) -> pb.AppendProfileRequest:
    runs = observed([1] * rows, [1.0 + row / 7 for row in range(rows)])
    content = profile_pb2.ProfileContent(observations=runs)
    return pb.AppendProfileRequest(profile_id=profile_id, request_id=request_id, content=content)


def test_bytes_and_profiles_of_a_namespace(stubs: Stubs) -> None:
    stubs.profile.AppendProfile(append("evidence/one"))
    failure = failure_of(stubs.profile.AppendProfile, append("evidence/one", "second", rows=3_000))
    assert violation(failure).subject == "namespace:evidence"
    assert violation(failure).quota_id == "quotas.stored_bytes"
    assert not says_when(failure), "it would be no better after a second"
    for number in range(2, 4):
        stubs.profile.AppendProfile(append(f"evidence/{number}"))
    failure = failure_of(stubs.profile.AppendProfile, append("evidence/4"))
    assert (violation(failure).quota_metric, failure.metadata["found"]) == ("profiles", "4")
    stubs.profile.AppendProfile(append("evidence"))  # it has no namespace: another one


def test_traces_of_a_namespace_whatever_they_are_sent_by(stubs: Stubs) -> None:
    chunk = profile_pb2.TraceChunk(trace_id="t", format="tiny", data=tiny() * 100, last=True)
    batch = pb.ProfileBatch(sequence_number=1, trace_chunks=[chunk], commit=True)
    request = pb.IngestBatchRequest(profile_id="traced/one", session_id="s", batch=batch)
    assert violation(failure_of(stubs.profile.IngestBatch, request)).quota_metric == "trace_bytes"
    opened = pb.IngestProfileRequest(open=pb.OpenSession(profile_id="traced/one", session_id="s"))
    failure = failure_of(stubs.profile.IngestProfile, iter([opened, pb.IngestProfileRequest(batch=batch)]))
    assert violation(failure).subject == "namespace:traced"


def test_a_client_is_told_at_once_and_does_not_try_again(stubs: Stubs) -> None:
    with Client(target_of(stubs), timeout_s=PATIENCE_S) as client:
        with pytest.raises(ResourceExhaustedError) as caught, client.ingest("impatient/one") as writer:
            writer.trace(io.BytesIO(b"x" * 1000), trace_id="t", trace_format="tiny", rank=0, world_size=1)
        assert caught.value.metadata["quota"] == "trace_bytes"
        assert caught.value.retry_delay_s is None


def test_streams_that_a_caller_has_open(stubs: Stubs) -> None:
    def watch() -> Any:
        return stubs.profile.WatchProfiles(pb.WatchProfilesRequest(name_prefix="no/"), timeout=PATIENCE_S)

    open_ones = [watch(), watch()]
    for each in open_ones:
        next(each)
    failure = failure_of(stubs.profile.WatchProfiles, pb.WatchProfilesRequest(), timeout=PATIENCE_S)
    assert violation(failure).quota_metric == "streams_per_caller"
    assert violation(failure).subject in ("ipv4:127.0.0.1", "ipv6:%5B::1%5D")
    assert says_when(failure)
    assert failure_of(stubs.prediction.StreamPredict, iter([])).reason == "QUOTA_EXCEEDED"
    stubs.profile.ListProfiles(pb.ListProfilesRequest())  # calls are no streams
    open_ones.pop().cancel()

    def let_in() -> bool:
        again = watch()
        try:
            next(again)
        except grpc.RpcError:
            return False
        open_ones.append(again)
        return True

    wait_until(let_in)
    for each in open_ones:
        each.cancel()


def test_long_calls_that_a_caller_has_at_work_or_waiting(stubs: Stubs) -> None:
    request = simulations.SimulateRequest(policy="held")
    request.cluster.pools.add(name="p", device_name="V100", available_devices=[8])
    request.curves.add(
        rows=simulation_pb2.SimulationCurveRows(pool_indexes=[0], devices_counts=[1], samples_per_second=[10])
    )
    jobs = {"arrival_seconds": [0.0], "work_samples": [50], "requested_devices": [1], "curve_indexes": [0]}
    request.jobs.CopyFrom(simulation_pb2.SimulationJobs(count=1, **jobs))
    first = stubs.simulation.Simulate(request, timeout=PATIENCE_S)
    assert HELD.begun.wait(PATIENCE_S)
    failure = failure_of(stubs.simulation.Simulate, request, timeout=PATIENCE_S)
    assert violation(failure).quota_metric == "long_calls_per_caller"
    assert says_when(failure)
    stubs.profile.ListProfiles(pb.ListProfilesRequest())
    HELD.may.set()
    for _ in first:
        pass


def test_what_namespaces_store_is_told_beside_their_quotas(stubs: Stubs) -> None:
    for number in range(3):
        stubs.profile.AppendProfile(append(f"told-{number}/one"))
    pages, token = [], ""
    while not pages or token:  # one at a time
        pages.append(stubs.profile.ListUsage(pb.ListUsageRequest(page_size=1, page_token=token)))
        token = pages[-1].next_page_token
    with Client(target_of(stubs), timeout_s=PATIENCE_S) as client:
        found = {each.namespace: each for each in client.list_usage().namespaces}
    assert [each.namespaces[0].namespace for each in pages] == sorted(found)
    told = found["told-0"]
    assert (told.profiles_count, told.profiles_count_quota) == (1, QUOTAS.profiles)
    assert 0 < told.stored_bytes < told.stored_bytes_quota == QUOTAS.stored_bytes
    assert (told.trace_bytes, told.trace_bytes_quota) == (0, QUOTAS.trace_bytes)
    shown = CliRunner().invoke(app, ["profiles", "usage", "--server", target_of(stubs)], catch_exceptions=False)
    assert "told-0" in shown.stdout
    assert "1 of 3" in shown.stdout
    as_json = CliRunner().invoke(app, ["profiles", "usage", "--server", target_of(stubs), "--json"])
    entry = next(each for each in json.loads(as_json.stdout)["namespaces"] if each["namespace"] == "told-0")
    assert (entry["profiles"], entry["profiles_count_quota"]) == (1, QUOTAS.profiles)
