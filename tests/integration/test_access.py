"""Who may do what, over a real socket: every role, on all profiles and on some, asks every method of the contract."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import Descriptor, MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from patience import PATIENCE_S, wait_until
from serving import Failure, Stubs, failure_of, inline, one_worker_phases, stored, workers

from nodewise.domain.principal import Role
from nodewise.profiles.opening import open_store
from nodewise.rpc.access import PROFILE_ID, RULES, names_in
from nodewise.rpc.services import _DESCRIPTORS
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.identity.tokens import new_token, split_token
from nodewise.runtime.settings import Settings
from nodewise_client import Client, PermissionDeniedError, UnauthenticatedError
from nodewise_protos.v1 import prediction_service_pb2 as predictions
from nodewise_protos.v1 import profile_service_pb2 as profiles
from nodewise_protos.v1beta1 import admin_service_pb2 as admin

METHODS = [method for service in _DESCRIPTORS.values() for method in service.methods]
OURS, THEIRS, NOBODYS = "team-a/one", "team-b/one", "team-b/none"
REFUSALS = {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED}
ENDED = ("expired", "revoked")
Metadata = tuple[tuple[str, str], ...]


def bearer(text: str) -> Metadata:
    return (("authorization", f"Bearer {text}"),)


class Site:
    """A server with a token for each role, on all profiles (``read``) and on team-a's (``read team-a``)."""

    def __init__(self, target: str, url: str, tokens: dict[str, str]) -> None:
        self.target, self.url, self.tokens = target, url, tokens
        self.stubs = Stubs(target)

    def of(self, name: str) -> Metadata:
        return bearer(self.tokens[name])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    url = f"sqlite:{tmp_path_factory.mktemp('access') / 'store.db'}"
    store, tokens = open_store(url), {}
    assert store.tokens is not None
    for role in Role:
        for name, prefixes in ((role, ()), (f"{role} team-a", ("team-a",))):
            tokens[str(name)], kept = new_token(name, [role], prefixes, None)
            store.tokens.add(kept)
    for name in ENDED:
        tokens[name], kept = new_token(name, ["admin"], [], 1e-9 if name == "expired" else None)
        store.tokens.add(kept)
    store.tokens.revoke(kept.token_id)
    store.close()
    settings = Settings(
        store=url, grace_s=1.0, learn_interval_s=0, scoring=False, authentication=("tokens",), reflection=True
    )
    with EmbeddedServer(settings) as server:
        made = Site(server.target, url, tokens)
        for name in (OURS, THEIRS):
            request = profiles.AppendProfileRequest(profile_id=name, request_id="1", content=one_worker_phases())
            made.stubs.profile.AppendProfile(request, metadata=made.of("ingest"))
        yield made
        made.stubs.channel.close()


def requests_naming(method: MethodDescriptor, profile_id: str) -> list[Message]:
    """A request for each place in which one can name a profile, with nothing else in it; or an empty one."""
    found = []
    for path in _paths(method.input_type):
        request = GetMessageClass(method.input_type)()
        holder: Any = request
        for name, many in path[:-1]:
            holder = getattr(holder, name).add() if many else getattr(holder, name)
        setattr(holder, path[-1][0], profile_id)
        found.append(request)
    return found or [GetMessageClass(method.input_type)()]


def _paths(message: Descriptor) -> Iterator[tuple[tuple[str, bool], ...]]:
    for field in message.fields:
        here = ((field.name, bool(field.is_repeated)),)
        if field.name == PROFILE_ID:
            yield here
        elif field.message_type is not None and names_in(field.message_type) is not None:
            yield from (here + rest for rest in _paths(field.message_type))


def refusal(site: Site, method: MethodDescriptor, request: Message, metadata: Metadata) -> str:
    """Why a call is not let in, as its reason; empty = it was, whatever came of it then."""
    path = f"/{method.containing_service.full_name}/{method.name}"
    ask = site.stubs.channel.stream_stream(
        path, type(request).SerializeToString, GetMessageClass(method.output_type).FromString
    )
    call = ask(iter([request]), timeout=PATIENCE_S, metadata=metadata)
    try:
        reply = next(call, None)
    except grpc.RpcError as error:
        failure = Failure(error)
        # Where AdminService is off that is no matter of who asks: the rule names the method.
        ours = failure.reason == "UNAUTHENTICATED" or "method" in failure.metadata
        return failure.reason if failure.code in REFUSALS and ours else ""
    finally:
        call.cancel()
    return reply.problem.reason if isinstance(reply, predictions.StreamPredictResponse) else ""


def may(method: MethodDescriptor, role: Role, *, everywhere: bool, names_theirs: bool) -> bool:
    rule = RULES[method.full_name]
    if role is not Role.ADMIN and role not in rule.roles:
        return False
    return everywhere or not (rule.everywhere or names_theirs)


@pytest.mark.parametrize("method", METHODS, ids=[method.name for method in METHODS])
def test_everybody_asks_every_method(site: Site, method: MethodDescriptor) -> None:
    names = names_in(method.input_type) is not None
    for profile_id in (OURS, THEIRS, NOBODYS) if names else (OURS,):
        for request in requests_naming(method, profile_id):
            for role in Role:
                for everywhere in (True, False):
                    found = refusal(site, method, request, site.of(role if everywhere else f"{role} team-a"))
                    expected = may(method, role, everywhere=everywhere, names_theirs=names and profile_id != OURS)
                    assert (found != "PERMISSION_DENIED") == expected, (role, everywhere, request)
                    assert found != "UNAUTHENTICATED"
            for stranger in ((), site.of("expired"), site.of("revoked"), bearer("nonsense")):
                assert refusal(site, method, request, stranger) == "UNAUTHENTICATED"


def test_strangers_are_told_what_is_wrong(site: Site) -> None:
    request = predictions.PredictRequest(profile=inline(), configurations=workers(1))
    real = site.tokens["read"]
    for metadata, cause in (
        ((), "none"),
        ((("authorization", "Basic YTpi"),), "malformed"),
        (bearer("nonsense"), "unknown"),
        (bearer("nodewise_" + "a" * 12 + "_" + "A" * 43), "unknown"),
        (bearer(real[:-1] + ("A" if real[-1] != "A" else "B")), "unknown"),
        (site.of("expired"), "expired"),
        (site.of("revoked"), "revoked"),
    ):
        failure = failure_of(site.stubs.prediction.Predict, request, metadata=metadata)
        assert (failure.code, failure.reason) == (grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED")
        assert failure.metadata == {"cause": cause}
        assert real[-20:] not in failure.message


def test_a_refusal_does_not_tell_whether_there_is_such_a_profile(site: Site) -> None:
    told = []
    for name in (THEIRS, NOBODYS, "//"):
        request = profiles.GetProfileRequest(profile_id=name)
        failure = failure_of(site.stubs.profile.GetProfile, request, metadata=site.of("read team-a"))
        told.append((failure.reason, failure.status.code, failure.status.message.replace(name, "NAME")))
    assert told[0] == told[1] == told[2]
    missing = failure_of(
        site.stubs.profile.GetProfile, profiles.GetProfileRequest(profile_id=NOBODYS), metadata=site.of("read")
    )
    assert missing.reason == "PROFILE_NOT_FOUND"


def test_a_reply_that_is_known_is_for_who_may_see_it(site: Site) -> None:
    """Replies are known by the bytes of requests, before anything is decoded."""
    predict, request = site.stubs.prediction.Predict, _question(THEIRS)
    for _ in range(3):
        reply = predict(request, metadata=site.of("read"))
    assert failure_of(predict, request, metadata=site.of("read team-a")).reason == "PERMISSION_DENIED"
    assert failure_of(predict, request, metadata=site.of("ingest")).reason == "PERMISSION_DENIED"
    assert failure_of(predict, request).reason == "UNAUTHENTICATED"
    assert predict(request, metadata=site.of("read")) == reply
    for _ in range(3):
        assert predict(_question(OURS), metadata=site.of("read team-a")).predictions == reply.predictions


def test_a_question_of_a_stream_that_is_refused_ends_no_other(site: Site) -> None:
    asked = [
        predictions.StreamPredictRequest(question_id=str(number), predict=_question(name))
        for number, name in enumerate((OURS, THEIRS, OURS, NOBODYS, OURS))
    ]
    for _ in range(2):  # as they come, and as they are known
        list(site.stubs.prediction.StreamPredict(iter(asked), metadata=site.of("read")))
    replies = list(site.stubs.prediction.StreamPredict(iter(asked), metadata=site.of("read team-a")))
    assert [reply.question_id for reply in replies] == [str(number) for number in range(5)]
    assert [reply.problem.reason for reply in replies] == ["", "PERMISSION_DENIED", "", "PERMISSION_DENIED", ""]


def _question(profile_id: str) -> predictions.PredictRequest:
    return predictions.PredictRequest(profile=stored(profile_id), configurations=workers(1, 2, 4))


def test_listings_show_what_is_the_caller_s(site: Site) -> None:
    def names(prefix: str, who: str) -> Sequence[str]:
        request = profiles.ListProfilesRequest(name_prefix=prefix)
        return [each.profile_id for each in site.stubs.profile.ListProfiles(request, metadata=site.of(who)).profiles]

    assert names("", "read") == [OURS, THEIRS]
    assert names("", "read team-a") == names("team", "read team-a") == names(OURS, "read team-a") == [OURS]
    assert names("team-b", "read team-a") == []


def test_pages_go_over_several_prefixes(site: Site) -> None:
    admins = site.stubs.admin
    made = admins.CreateToken(
        admin.CreateTokenRequest(roles=[admin.CALLER_ROLE_READ], prefixes=["team-b", "team-a"]),
        metadata=site.of("admin"),
    )
    found, token = [], ""
    while True:
        request = profiles.ListProfilesRequest(page_size=1, page_token=token)
        reply = site.stubs.profile.ListProfiles(request, metadata=bearer(made.bearer_token))
        found += [each.profile_id for each in reply.profiles]
        token = reply.next_page_token
        if not token:
            break
    assert found == [OURS, THEIRS]


def test_a_watch_tells_of_what_is_the_caller_s_until_its_token_is_revoked(site: Site) -> None:
    admins = site.stubs.admin
    request = admin.CreateTokenRequest(roles=[admin.CALLER_ROLE_READ], prefixes=["team-a"])
    made = admins.CreateToken(request, metadata=site.of("admin"))
    watch = site.stubs.profile.WatchProfiles(
        profiles.WatchProfilesRequest(), metadata=bearer(made.bearer_token), timeout=PATIENCE_S
    )
    first = next(watch)
    assert first.caught_up
    assert [each.profile_id for each in first.profiles] == [OURS]
    for name in ("team-b/watched", "team-a/watched"):
        append = profiles.AppendProfileRequest(profile_id=name, request_id="1", content=one_worker_phases())
        site.stubs.profile.AppendProfile(append, metadata=site.of("ingest"))
    assert [each.profile_id for each in next(watch).profiles] == ["team-a/watched"]
    admins.RevokeToken(admin.RevokeTokenRequest(token_id=made.token.token_id), metadata=site.of("admin"))
    delete = profiles.DeleteProfileRequest(profile_id="team-a/watched", etag="*")
    site.stubs.profile.DeleteProfile(delete, metadata=site.of("admin"))
    with pytest.raises(grpc.RpcError) as caught:
        next(watch)
    assert Failure(caught.value).metadata == {"cause": "revoked"}
    site.stubs.profile.DeleteProfile(
        profiles.DeleteProfileRequest(profile_id="team-b/watched", etag="*"), metadata=site.of("admin")
    )


def test_what_another_process_makes_and_revokes_is_seen_within_a_second(site: Site) -> None:
    other = open_store(site.url)
    assert other.tokens is not None
    text, kept = new_token("of another worker", ["read"], [], None)
    other.tokens.add(kept)
    request = predictions.ListDevicesRequest(page_size=1)
    site.stubs.prediction.ListDevices(request, metadata=bearer(text))  # new ones are looked for at once
    other.tokens.revoke(kept.token_id)
    revoked_s = time.monotonic()

    def refused() -> bool:
        try:
            site.stubs.prediction.ListDevices(request, metadata=bearer(text))
        except grpc.RpcError as error:
            return Failure(error).metadata == {"cause": "revoked"}
        return False

    wait_until(refused)
    assert time.monotonic() - revoked_s < PATIENCE_S
    other.close()


def test_tokens_of_the_wire(site: Site) -> None:
    with Client(site.target, token=site.tokens["admin"]) as client:
        listed = {token.token_id: token for token in client.list_tokens().tokens}
        parts = {name: split_token(text) or ("", "") for name, text in site.tokens.items()}
        ids = {name: token_id for name, (token_id, _) in parts.items()}
        assert {ids.pop("expired"), ids.pop("revoked")}.isdisjoint(listed)
        assert {(listed[each].expire_time, listed[each].revoke_time) for each in ids.values()} == {(None, None)}
        assert not any(secret in repr(listed) for _, secret in parts.values())
    with Client(site.target, token=lambda: site.tokens["admin team-a"]) as client, pytest.raises(PermissionDeniedError):
        client.list_tokens()
    with Client(site.target) as client, pytest.raises(UnauthenticatedError):
        client.list_tokens()
    for wrong, field in (
        (admin.CreateTokenRequest(), "roles"),
        (admin.CreateTokenRequest(roles=[0]), "roles[0]"),
        (admin.CreateTokenRequest(roles=[1], prefixes=["/"]), "prefixes"),
        (admin.CreateTokenRequest(roles=[1], prefixes=["*"], lifetime_seconds=-1), "lifetime_seconds"),
        (admin.CreateTokenRequest(roles=[1]), "prefixes"),
    ):
        failure = failure_of(site.stubs.admin.CreateToken, wrong, metadata=site.of("admin"))
        assert failure.reason == "INVALID_FIELD"
        assert field in failure.fields
    made = site.stubs.admin.CreateToken(
        admin.CreateTokenRequest(roles=[1], prefixes=["*"]), metadata=site.of("admin")
    ).token
    assert list(made.prefixes) == []
    assert made.expire_time.seconds - made.create_time.seconds == 90 * 86_400
    unknown = admin.RevokeTokenRequest(token_id="aaaaaaaaaaaa")
    assert failure_of(site.stubs.admin.RevokeToken, unknown, metadata=site.of("admin")).reason == "TOKEN_NOT_FOUND"


def test_health_is_for_all_and_reflection_for_the_known(site: Site) -> None:
    health = health_pb2_grpc.HealthStub(site.stubs.channel).Check(health_pb2.HealthCheckRequest())
    assert health.status == health_pb2.HealthCheckResponse.SERVING
    reflect = reflection_pb2_grpc.ServerReflectionStub(site.stubs.channel).ServerReflectionInfo
    ask = [reflection_pb2.ServerReflectionRequest(list_services="")]
    assert failure_of(reflect, iter(ask)).reason == "UNAUTHENTICATED"
    (reply,) = reflect(iter(ask), metadata=site.of("ingest"))
    assert reply.list_services_response.service


def test_where_nobody_is_asked_no_token_is_made(tmp_path: Path) -> None:
    """One that whoever connects has made would be worth a lot once callers are asked."""
    settings = Settings(store=f"sqlite:{tmp_path / 'store.db'}", grace_s=1.0, admin=True)
    with EmbeddedServer(settings) as server, Stubs(server.target) as stubs:
        request = admin.CreateTokenRequest(roles=[admin.CALLER_ROLE_ADMIN])
        failure = failure_of(stubs.admin.CreateToken, request)
    assert failure.reason == "PERMISSION_DENIED"
    assert "--store" in failure.message
