"""Every failure that the service can name reaches the caller as its own class, with all that was said about it."""

from __future__ import annotations

import socket

import grpc
import pytest
from fake_nodewise import status_of
from patience import PATIENCE_S

from nodewise_client import (
    CallCancelledError,
    Code,
    ConflictError,
    DeadlineExceededError,
    FailedPreconditionError,
    FieldViolation,
    InternalError,
    InvalidArgumentError,
    LimitExceededError,
    NodewiseError,
    NotFoundError,
    PermissionDeniedError,
    PredictRequest,
    RefusedError,
    ResourceExhaustedError,
    ResumePolicy,
    UnauthenticatedError,
    UnavailableError,
    UnimplementedError,
    _errors,
    profile_source,
)

S = grpc.StatusCode
BY_CODE = {
    S.CANCELLED: CallCancelledError,
    S.UNKNOWN: InternalError,
    S.INVALID_ARGUMENT: InvalidArgumentError,
    S.DEADLINE_EXCEEDED: DeadlineExceededError,
    S.NOT_FOUND: NotFoundError,
    S.ALREADY_EXISTS: ConflictError,
    S.PERMISSION_DENIED: PermissionDeniedError,
    S.RESOURCE_EXHAUSTED: ResourceExhaustedError,
    S.FAILED_PRECONDITION: FailedPreconditionError,
    S.ABORTED: ConflictError,
    S.OUT_OF_RANGE: InvalidArgumentError,
    S.UNIMPLEMENTED: UnimplementedError,
    S.INTERNAL: InternalError,
    S.UNAVAILABLE: UnavailableError,
    S.DATA_LOSS: InternalError,
    S.UNAUTHENTICATED: UnauthenticatedError,
}


def test_the_table_of_reasons_is_the_servers_catalogue():
    catalogue = pytest.importorskip("nodewise.domain.errors")
    rpc = pytest.importorskip("nodewise.rpc.errors")
    kinds = {
        "INVALID": InvalidArgumentError,
        "NOT_FOUND": NotFoundError,
        "EXISTS": ConflictError,
        "CONFLICT": ConflictError,
        "PRECONDITION": FailedPreconditionError,
        "UNIMPLEMENTED": UnimplementedError,
        "UNAVAILABLE": UnavailableError,
        "EXHAUSTED": ResourceExhaustedError,
        "UNAUTHENTICATED": UnauthenticatedError,
        "FORBIDDEN": PermissionDeniedError,
        "DEADLINE": DeadlineExceededError,
        "INTERNAL": InternalError,
    }
    assert set(_errors.BY_REASON) == {str(reason) for reason in catalogue.Reason}
    for reason, entry in catalogue.CATALOGUE.items():
        kind, code = _errors.BY_REASON[reason]
        assert issubclass(kind, kinds[entry.kind.name]), reason
        told = rpc.grpc_code(rpc.status_of(catalogue.NodewiseError(reason, "for people")))
        assert code.name == told.name, reason


@pytest.mark.parametrize("reason", sorted(_errors.BY_REASON))
def test_the_reason_decides_whatever_the_code(server, make_client, reason):
    client = make_client(server.target, retry=False)
    server.answer("Predict", status_of(S.UNKNOWN, "text for people", reason=reason, metadata={"job": "resnet"}))
    kind, _ = _errors.BY_REASON[reason]
    with pytest.raises(kind) as caught:
        client.predict(PredictRequest(profile=profile_source("resnet")))
    assert type(caught.value) is kind
    assert (caught.value.reason, caught.value.message, caught.value.metadata) == (
        reason,
        "text for people",
        {"job": "resnet"},
    )
    assert caught.value.code is Code.UNKNOWN
    assert str(caught.value) == f"{reason}: text for people"


@pytest.mark.parametrize("code", BY_CODE)
def test_a_status_without_details_still_has_its_class(server, make_client, code):
    client = make_client(server.target, retry=False)
    server.answer("Predict", code)
    with pytest.raises(NodewiseError, match="injected") as caught:
        client.predict(PredictRequest(profile=profile_source("resnet")))
    assert type(caught.value) is BY_CODE[code]
    assert caught.value.code == code.name
    assert not caught.value.reason


def test_violations_and_retry_delay_arrive(client, server):
    server.answer(
        "Predict",
        status_of(
            S.INVALID_ARGUMENT,
            "configurations.nodes[3]: give at least 1 (and 1 more)",
            reason="INVALID_FIELD",
            violations={"configurations.nodes[3]": "give at least 1", "options.seed": "not negative"},
            retry_delay_s=1.5,
        ),
    )
    with pytest.raises(InvalidArgumentError) as caught:
        client.predict(PredictRequest(profile=profile_source("resnet")))
    assert caught.value.violations == (
        FieldViolation(field="configurations.nodes[3]", description="give at least 1"),
        FieldViolation(field="options.seed", description="not negative"),
    )
    assert caught.value.retry_delay_s == 1.5
    assert str(caught.value).endswith("options.seed: not negative; try again in 1.5 s")


def test_a_refusal_names_what_is_missing(client, server):
    server.answer(
        "Predict",
        status_of(
            S.FAILED_PRECONDITION,
            "phase timings are missing",
            reason="EVIDENCE_MISSING",
            metadata={"missingFields": "phase_timings,network.link_bytes_per_second"},
        ),
    )
    with pytest.raises(RefusedError) as caught:
        client.predict(PredictRequest(profile=profile_source("resnet")))
    assert caught.value.missing_fields == ("phase_timings", "network.link_bytes_per_second")


def test_a_limit_is_an_invalid_argument():
    assert issubclass(LimitExceededError, InvalidArgumentError)


def test_the_reason_of_another_domain_decides_nothing(client, server):
    server.answer("Predict", status_of(S.NOT_FOUND, "from a proxy", reason="INVALID_FIELD", domain="proxy.example"))
    with pytest.raises(NotFoundError) as caught:
        client.predict(PredictRequest(profile=profile_source("resnet")))
    assert not caught.value.reason


def test_details_that_cannot_be_read_leave_the_code():
    class Call:
        def code(self):
            return S.NOT_FOUND

        def details(self):
            return "gone"

        def trailing_metadata(self):
            return (("grpc-status-details-bin", b"\xff\xff\xff"), ("grpc-retry-pushback-ms", "250"))

    error = _errors.from_call(Call(), target="t", method="m")
    assert (type(error), error.message, error.retry_delay_s) == (NotFoundError, "gone", 0.25)


def test_a_status_that_grpc_lost_is_no_fault_of_the_server():
    class Call:
        def code(self):
            return S.INTERNAL

        def details(self):
            return "Internal error from Core"

        def trailing_metadata(self):
            return None

    error = _errors.from_call(Call(), target="t", method="m")
    assert (type(error), error.code) == (UnavailableError, Code.UNAVAILABLE)
    assert "status was lost" in str(error)


@pytest.mark.parametrize(("sent", "seconds"), [(b"junk", None), ("-1", None), ("0", 0.0), (None, None)])
def test_pushback_that_says_nothing_is_no_delay(sent, seconds):
    assert _errors._pushback(sent) == seconds


def test_nobody_there_says_where_and_what_to_check(make_client):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        target = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(UnavailableError) as caught:
            make_client(target).predict(PredictRequest(profile=profile_source("resnet")))
        assert target in str(caught.value)
        assert "nodewise serve" in str(caught.value)
        with (
            pytest.raises(UnavailableError, match="nodewise serve"),
            make_client(target).ingest("resnet", resume=ResumePolicy(opening_deadline_s=0.1)),
        ):
            pass


def test_a_deadline_says_what_to_change(client, server):
    server.answer("Predict", lambda _: server.hold.wait(PATIENCE_S))
    with pytest.raises(DeadlineExceededError, match=r"Predict at 127\.0\.0\.1.*timeout_s"):
        client.predict(PredictRequest(profile=profile_source("resnet")), timeout_s=0.05)
    server.hold.set()


def test_the_deadline_of_the_client_holds_where_a_call_has_none(server, make_client):
    server.answer("Predict", lambda _: server.hold.wait(PATIENCE_S))
    with pytest.raises(DeadlineExceededError):
        make_client(server.target, timeout_s=0.05).predict(PredictRequest(profile=profile_source("resnet")))
    server.hold.set()
