"""Whoever connects, and whoever has a token of another namespace: neither lists, reads, deletes, retracts or fills the
disk, and the audit log says who tried."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest
from patience import PATIENCE_S
from serving import Failure, Stubs, failure_of, observed, stored, workers

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.groups_of_settings import Quotas
from nodewise.runtime.identity.operating import end_token, make_token
from nodewise.runtime.settings import Settings
from nodewise_protos.v1 import prediction_service_pb2 as predictions
from nodewise_protos.v1 import profile_pb2
from nodewise_protos.v1 import profile_service_pb2 as pb
from nodewise_protos.v1beta1 import admin_service_pb2 as admin

OURS = "ours/job"
MIB = 1 << 20


def append(profile_id: str, request_id: str = "first") -> pb.AppendProfileRequest:
    content = profile_pb2.ProfileContent(observations=observed([1, 2], [1.0, 1.9]))
    return pb.AppendProfileRequest(profile_id=profile_id, request_id=request_id, content=content)


def trace_of(profile_id: str, size: int) -> pb.IngestBatchRequest:
    chunk = profile_pb2.TraceChunk(trace_id="t", format="kineto", data=bytes(size), last=True)
    batch = pb.ProfileBatch(sequence_number=1, trace_chunks=[chunk])
    return pb.IngestBatchRequest(profile_id=profile_id, session_id="s", batch=batch)


ATTACKS: dict[str, Callable[[Stubs], tuple[Any, Any]]] = {
    "read": lambda stubs: (stubs.profile.GetProfile, pb.GetProfileRequest(profile_id=OURS)),
    "ask about": lambda stubs: (
        stubs.prediction.Predict,
        predictions.PredictRequest(profile=stored(OURS), configurations=workers(1)),
    ),
    "delete": lambda stubs: (stubs.profile.DeleteProfile, pb.DeleteProfileRequest(profile_id=OURS, etag="*")),
    "bring back": lambda stubs: (stubs.profile.UndeleteProfile, pb.UndeleteProfileRequest(profile_id=OURS)),
    "retract": lambda stubs: (
        stubs.profile.RetractEvidence,
        pb.RetractEvidenceRequest(profile_id=OURS, request_id="r", observation_numbers=[1]),
    ),
    "poison": lambda stubs: (stubs.profile.AppendProfile, append(OURS, "poison")),
    "fill the disk": lambda stubs: (stubs.profile.IngestBatch, trace_of(OURS, MIB)),
    "swap plugins": lambda stubs: (stubs.admin.Reload, admin.ReloadRequest()),
    "make a token": lambda stubs: (
        stubs.admin.CreateToken,
        admin.CreateTokenRequest(roles=[admin.CALLER_ROLE_ADMIN]),
    ),
}


class Site:
    """A server that asks who calls, with a profile of ours, and an audit log of its own."""

    def __init__(self, root: Path) -> None:
        self.store, self.audit = f"sqlite:{root / 'store.db'}", root / "audit.log"
        self.config = root / "nodewise.toml"
        self.config.write_text(f'store = "{self.store}"\naudit_log = "{self.audit}"\n', encoding="utf-8")
        self.settings = Settings(
            store=self.store,
            authentication=("tokens",),
            admin=True,
            audit_log=str(self.audit),
            grace_s=0.1,
            scoring=False,
            quotas=Quotas(trace_bytes=3 * MIB, free_bytes=0),
        )

    def token(self, roles: Sequence[str], *prefixes: str) -> list[tuple[str, str]]:
        text, _ = make_token(self.config, None, "for tests", roles, prefixes, None)
        return [("authorization", f"Bearer {text}")]

    def entries(self) -> list[dict[str, Any]]:
        """Lines of the audit log."""
        return [json.loads(line) for line in self.audit.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def owner(site: Site) -> list[tuple[str, str]]:
    return site.token(["admin"])


@pytest.fixture(scope="module")
def neighbour(site: Site) -> list[tuple[str, str]]:
    """Who may do everything, to profiles of another namespace."""
    return site.token(["admin"], "theirs")


@pytest.fixture(scope="module")
def stubs(site: Site, owner: list[tuple[str, str]], neighbour: list[tuple[str, str]]) -> Iterator[Stubs]:
    with EmbeddedServer(site.settings) as server, Stubs(server.target) as found:
        found.profile.AppendProfile(append(OURS), metadata=owner)
        found.profile.AppendProfile(append("ours"), metadata=owner)
        found.profile.AppendProfile(append("theirs/job"), metadata=neighbour)
        yield found


def tried(stubs: Stubs, attack: str, metadata: list[tuple[str, str]]) -> Failure:
    method, request = ATTACKS[attack](stubs)
    return failure_of(method, request, metadata=metadata, timeout=PATIENCE_S)


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_stranger_is_turned_away(stubs: Stubs, site: Site, attack: str) -> None:
    metadata = [("x-request-id", f"stranger, {attack}"), ("authorization", "Bearer nodewise_guessed")]
    failure = tried(stubs, attack, metadata)
    assert (failure.code, failure.reason) == (grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED")
    (entry,) = (each for each in site.entries() if each["request_id"] == f"stranger, {attack}")
    assert (entry["outcome"], entry["subject"]) == ("UNAUTHENTICATED", "")
    assert entry["peer"].startswith("ip")
    assert "guessed" not in str(entry), "what the call brought is no news, it may be a secret mistyped"


@pytest.mark.parametrize("attack", ATTACKS)
def test_who_has_a_token_of_another_namespace_is_turned_away(
    stubs: Stubs, site: Site, neighbour: list[tuple[str, str]], attack: str
) -> None:
    failure = tried(stubs, attack, [*neighbour, ("x-request-id", f"neighbour, {attack}")])
    assert (failure.code, failure.reason) == (grpc.StatusCode.PERMISSION_DENIED, "PERMISSION_DENIED")
    (entry,) = (each for each in site.entries() if each["request_id"] == f"neighbour, {attack}")
    assert entry["outcome"] == "PERMISSION_DENIED"
    assert entry["subject"].startswith("token:")
    assert entry["method"].startswith("nodewise.v1")
    assert neighbour[0][1].removeprefix("Bearer ") not in site.audit.read_text(encoding="utf-8")


def test_lists_and_watches_hold_what_is_the_callers(stubs: Stubs, neighbour: list[tuple[str, str]]) -> None:
    for prefix in ("", "ours", "theirs"):
        reply = stubs.profile.ListProfiles(pb.ListProfilesRequest(name_prefix=prefix), metadata=neighbour)
        assert {each.profile_id for each in reply.profiles} <= {"theirs/job"}
    assert failure_of(stubs.profile.ListProfiles, pb.ListProfilesRequest()).reason == "UNAUTHENTICATED"
    usage = stubs.profile.ListUsage(pb.ListUsageRequest(), metadata=neighbour)
    assert {each.namespace for each in usage.namespaces} == {"theirs"}
    watch = stubs.profile.WatchProfiles(pb.WatchProfilesRequest(), metadata=neighbour, timeout=PATIENCE_S)
    assert {each.profile_id for each in next(watch).profiles} == {"theirs/job"}
    watch.cancel()


def test_a_neighbour_fills_no_more_of_the_disk_than_is_theirs(
    stubs: Stubs, neighbour: list[tuple[str, str]], owner: list[tuple[str, str]]
) -> None:
    for number in range(3):
        stubs.profile.IngestBatch(trace_of(f"theirs/{number}", MIB), metadata=neighbour)
    failure = failure_of(stubs.profile.IngestBatch, trace_of("theirs/3", MIB), metadata=neighbour)
    assert (failure.reason, failure.metadata["quota"], failure.metadata["namespace"]) == (
        "QUOTA_EXCEEDED",
        "trace_bytes",
        "theirs",
    )
    stubs.profile.IngestBatch(trace_of("ours/traced", MIB), metadata=owner)


def test_what_an_owner_does_is_put_down_whatever_comes_of_it(
    stubs: Stubs, site: Site, owner: list[tuple[str, str]]
) -> None:
    before = len(site.entries())
    stubs.profile.AppendProfile(append("ours/other"), metadata=owner)
    retracted = pb.RetractEvidenceRequest(
        profile_id="ours/other", request_id="r", observation_numbers=[1], reason="throttled"
    )
    stubs.profile.RetractEvidence(retracted, metadata=owner)
    wrong = pb.DeleteProfileRequest(profile_id="ours/other", etag="another")
    assert failure_of(stubs.profile.DeleteProfile, wrong, metadata=owner).reason == "ETAG_MISMATCH"
    stubs.profile.DeleteProfile(pb.DeleteProfileRequest(profile_id="ours/other", etag="*"), metadata=owner)
    stubs.profile.UndeleteProfile(pb.UndeleteProfileRequest(profile_id="ours/other"), metadata=owner)
    made = stubs.admin.CreateToken(
        admin.CreateTokenRequest(roles=[admin.CALLER_ROLE_READ], prefixes=["ours"]), metadata=owner
    )
    stubs.admin.RevokeToken(admin.RevokeTokenRequest(token_id=made.token.token_id), metadata=owner)
    found = site.entries()[before:]
    assert [(each["method"].rpartition(".")[2], each["outcome"]) for each in found] == [
        ("RetractEvidence", "OK"),
        ("DeleteProfile", "ETAG_MISMATCH"),
        ("DeleteProfile", "OK"),
        ("UndeleteProfile", "OK"),
        ("CreateToken", "OK"),
        ("RevokeToken", "OK"),
    ]
    assert found[0]["what"] == {"profile_id": "ours/other", "reason": "throttled", "observation_numbers": [1]}
    assert found[4]["what"] == {
        "token_id": made.token.token_id,
        "roles": ["CALLER_ROLE_READ"],
        "prefixes": ["ours"],
    }
    assert all(each["subject"].startswith("token:") and each["audit"] is True and each["time"] for each in found)
    assert made.bearer_token not in site.audit.read_text(encoding="utf-8")


def test_tokens_of_who_owns_the_store_are_put_down_too(site: Site) -> None:
    text, token = make_token(site.config, None, "the first", ["admin"], [], None)
    end_token(site.config, None, token.token_id)
    made, ended = site.entries()[-2:]
    assert (made["method"], ended["method"]) == ("nodewise.tokens.CreateToken", "nodewise.tokens.RevokeToken")
    assert made["what"] == {"token_id": token.token_id, "roles": ["admin"], "prefixes": []}
    assert made["subject"] == f"user:{os.getuid()}"
    assert text not in site.audit.read_text(encoding="utf-8")
