"""Replies that are known by the bytes of their requests: for as long as the same would be answered."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from estimators import Fake, refusing, registry_of
from profile_batches import batch
from questions import Asked, call_of
from serving import inline, stored, workers

from nodewise.domain.errors import NodewiseError
from nodewise.estimation.lessons.lessons import Lessons, Teachings
from nodewise.hosting.breaker import Breaker
from nodewise.plugin import Prior
from nodewise.ports.limits import Limits
from nodewise.profiles.opening import open_store
from nodewise.profiles.store import ProfileStore
from nodewise.rpc.calls import Method
from nodewise.rpc.classes import QUESTIONS_AT_WORK, Admission
from nodewise.rpc.intake import RECEIVED_BYTES, InFlight, Intake
from nodewise.rpc.routes import make_router
from nodewise_protos.v1 import options_pb2, profile_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb

ROWS = workers(2, 4)


@pytest.fixture
def store() -> ProfileStore:
    return open_store("memory:")


@pytest.fixture
def fake() -> Fake:
    return Fake()


@pytest.fixture
def asked(store: ProfileStore, fake: Fake) -> Asked:
    return Asked(registry_of({"fake": fake}), store=store)


def commit(store: ProfileStore, number: int, *rates: float, job: str = "job") -> None:
    store.append(job, "session", [batch(number, *rates, commit=True)])


def request(profile: profile_pb2.ProfileSource, **more: Any) -> bytes:
    return pb.PredictRequest(profile=profile, configurations=ROWS, **more).SerializeToString()


def answered_once(asked: Asked, data: bytes) -> bytes:
    reply = asked.run(asked.predictions.predict(pb.PredictRequest.FromString(data), call_of()))
    assert isinstance(reply, bytes)
    return reply


def answered(asked: Asked, data: bytes) -> bytes:
    """Answered twice: a model that must be fitted answers in a thread, and in the event loop the second time."""
    answered_once(asked, data)
    return answered_once(asked, data)


def model(**stated: Any) -> options_pb2.PredictOptions:
    return options_pb2.PredictOptions(model=options_pb2.ModelOptions(**stated))


def test_a_reply_is_known_until_the_store_changes(asked: Asked, store: ProfileStore) -> None:
    commit(store, 1, 1.0)
    data = request(stored("job"))
    assert asked.predictions.known.get(data) is None
    first = answered(asked, data)
    assert asked.predictions.known.get(data) == first
    commit(store, 2, 2.0)
    assert asked.predictions.known.get(data) is None
    second = answered(asked, data)
    assert asked.predictions.known.get(data) == second
    assert pb.PredictResponse.FromString(second).basis.profile_revision == 2


def test_a_reply_that_needed_a_fit_is_known_at_once(asked: Asked, store: ProfileStore) -> None:
    for number in (1, 2):
        commit(store, number, float(number))
        data = request(stored("job"))
        reply = answered_once(asked, data)
        assert asked.predictions.known.get(data) is reply
        assert pb.PredictResponse.FromString(reply).basis.profile_revision == number
    assert answered_once(asked, data) is reply


def test_a_reply_outlives_what_others_store(asked: Asked, store: ProfileStore, fake: Fake) -> None:
    commit(store, 1, 1.0)
    data = request(stored("job"))
    first, assessed = answered(asked, data), fake.assessed
    commit(store, 1, 1.0, job="another")
    assert asked.predictions.known.get(data) is first  # the store tells which profiles changed
    assert answered(asked, data) is first
    assert fake.assessed == assessed
    assert asked.predictions.known.get(data) is first


def on_stream(data: bytes, question_id: str = "1") -> bytes:
    return pb.StreamPredictRequest(
        question_id=question_id, predict=pb.PredictRequest.FromString(data)
    ).SerializeToString()


def test_a_question_of_a_stream_is_known_by_its_own_bytes(asked: Asked, store: ProfileStore) -> None:
    commit(store, 1, 1.0)
    data = request(stored("job"))
    assert asked.streams.known_reply(on_stream(data)) is None
    reply = answered(asked, data)
    for question_id in ("", "1", "x" * 127):
        known = asked.streams.known_reply(on_stream(data, question_id))
        assert known is not None
        found = pb.StreamPredictResponse.FromString(known)
        assert found == pb.StreamPredictResponse(question_id=question_id, predict=pb.PredictResponse.FromString(reply))
        (usual,) = asked.stream(pb.StreamPredictRequest.FromString(on_stream(data, question_id)))
        assert found == usual
    commit(store, 2, 2.0)
    assert asked.streams.known_reply(on_stream(data)) is None


def test_what_is_not_just_one_question_of_a_stream_is_decoded_first(asked: Asked) -> None:
    data = request(inline())
    answered(asked, data)
    whole = on_stream(data)
    assert asked.streams.known_reply(whole) is not None
    assert [asked.streams.known_reply(whole[:end]) for end in range(len(whole))] == [None] * len(whole)
    batch_too = pb.StreamPredictRequest(batch=pb.BatchPredictRequest()).SerializeToString()
    odd = (whole + whole, whole + batch_too, on_stream(data, "x" * 128), on_stream(data, "\u00e9"), data)
    assert [asked.streams.known_reply(each) for each in odd] == [None] * len(odd)


def test_a_reply_that_is_too_long_for_a_stream_is_refused_by_its_question(fake: Fake) -> None:
    data = request(inline())
    alone = len(answered(Asked(registry_of({"fake": fake})), data))
    asked = Asked(registry_of({"fake": fake}), limits=Limits(reply_bytes=alone))
    answered(asked, data)
    assert asked.predictions.known.get(data) is not None
    assert asked.streams.known_reply(on_stream(data)) is None


def test_a_profile_in_the_question_is_known_whatever_is_stored(asked: Asked, store: ProfileStore) -> None:
    data = request(inline())
    reply = answered(asked, data)
    commit(store, 1, 1.0)
    assert asked.predictions.known.get(data) == reply


def test_nothing_is_known_once_something_is_learned_or_somebody_is_left_alone(fake: Fake) -> None:
    registry, breaker = registry_of({"fake": fake}), Breaker()
    estimators = {name: replace(loaded, breaker=breaker) for name, loaded in registry.estimators.items()}
    asked = Asked(replace(registry, estimators=MappingProxyType(estimators)))
    data = request(inline())
    answers = asked.predictions.answering.answers
    answered(asked, data)
    prior = Prior.of("fake", ["another job"], sources=("one",), content=None)
    answers.adopt(Teachings(Lessons({"fake": prior})))
    assert asked.predictions.known.get(data) is None
    assert pb.PredictResponse.FromString(answered(asked, data)).basis.prior_ids == [prior.prior_id]
    assert asked.predictions.known.get(data) is not None
    while breaker.is_closed:
        breaker.record_failure("predict")
    assert asked.predictions.known.get(data) is None


def test_that_an_answer_still_holds_is_known_too(asked: Asked) -> None:
    digest = pb.PredictResponse.FromString(answered(asked, request(inline()))).basis.digest
    data = request(inline(), if_none_match=digest)
    reply = answered(asked, data)
    assert pb.PredictResponse.FromString(reply).unchanged
    assert asked.predictions.known.get(data) == reply


def test_a_stale_answer_and_one_of_an_older_revision_are_not_known(asked: Asked, store: ProfileStore) -> None:
    commit(store, 1, 1.0)
    answered(asked, request(stored("job")))
    commit(store, 2, 2.0)
    data = request(stored("job"), options=model(freshness=options_pb2.FRESHNESS_ALLOW_STALE))
    assert pb.PredictResponse.FromString(answered(asked, data)).basis.stale
    assert asked.predictions.known.get(data) is None
    older = request(profile_pb2.ProfileSource(profile_id="job", revision=1))
    assert pb.PredictResponse.FromString(answered(asked, older)).basis.profile_revision == 1
    assert asked.predictions.known.get(older) is None


def test_an_answer_in_place_of_another_estimators_is_not_known(store: ProfileStore) -> None:
    asked = Asked(registry_of({"refusing": refusing(), "fake": Fake()}), store=store)
    data = request(inline(), options=model(estimator="refusing", allow_fallback=True))
    assert pb.PredictResponse.FromString(answered(asked, data)).basis.fallback
    assert asked.predictions.known.get(data) is None


def test_a_mixture_that_misses_a_part_is_not_known(logs: list[Any]) -> None:
    def fails(*_: object) -> Any:
        raise RuntimeError

    asked = Asked(registry_of({"one": Fake(), "other": Fake(fails)}))
    data = request(inline())
    notices = pb.PredictResponse.FromString(answered(asked, data)).predictions.warnings
    assert [notice.reason for notice in notices] == ["PART_MISSING"]
    assert asked.predictions.known.get(data) is None


def test_a_store_that_cannot_be_asked_makes_nothing_known(asked: Asked, store: ProfileStore) -> None:
    commit(store, 1, 1.0)
    data = request(stored("job"))
    answered(asked, data)
    store.close()
    assert asked.predictions.known.get(data) is None
    with pytest.raises(NodewiseError):
        answered(asked, data)


def test_recent_requests_are_those_that_were_answered_last_known_or_not(asked: Asked) -> None:
    first, second, unknown = (request(inline(), options=model(seed=seed)) for seed in (1, 2, 3))
    for data in (first, second, unknown):
        answered(asked, data)
    assert asked.predictions.known.get(first) is not None
    assert asked.predictions.recent(2) == [first, unknown]
    assert asked.predictions.recent(9) == [first, unknown, second]
    asked.predictions.forget()
    assert asked.predictions.recent(9) == []


class Context:
    """A call's, as far as a known reply needs it."""

    trailing: tuple[Any, ...] = ()

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return (("x-request-id", "mine"),)

    def set_trailing_metadata(self, metadata: tuple[Any, ...]) -> None:
        self.trailing = metadata


def test_what_is_known_is_told_before_anything_is_decoded(asked: Asked) -> None:
    async def behaviour(*_: object) -> bytes:
        raise AssertionError("nobody should be asked")

    data = request(inline())
    reply, admission, limits = answered(asked, data), Admission(1.0, 1), Limits()
    method = Method(
        behaviour=behaviour,
        request=pb.PredictRequest,
        intake=Intake(pb.PredictRequest, RECEIVED_BYTES, limits, InFlight(limits.bytes_in_flight)),
        admission=admission,
        queue=admission.questions,
        known=asked.predictions.known.get,
    )
    handler: Any = make_router("service", {"Predict": method}).routes["/service/Predict"].usual
    context = Context()
    assert asked.run(handler.unary_unary(handler.request_deserializer(data), context)) == reply
    assert context.trailing == (("x-request-id", "mine"),)
    assert isinstance(handler.request_deserializer(request(inline(), if_none_match="other")), pb.PredictRequest)
    assert admission.questions.free == QUESTIONS_AT_WORK
