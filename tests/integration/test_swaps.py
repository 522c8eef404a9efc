"""Generations take over under load: no call fails, no answer is of two versions, and what is gone leaves nothing."""

from __future__ import annotations

import gc
import os
import queue
import weakref
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from patience import wait_until
from serving import Stubs, failure_of, registry_with
from swaps import NAME, Load, generation, request_of, version_of

from nodewise.estimation.lessons.calibration import Calibration
from nodewise.estimation.lessons.lessons import Lessons, Teachings
from nodewise.plugin import Prior
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings
from nodewise_protos.v1 import prediction_service_pb2 as pb

pytestmark = pytest.mark.wheel

SWAPS = int(os.environ.get("NODEWISE_SWAPS", "8"))
"""How many: the long form has a thousand."""


def are_collected(gone: list[weakref.ref[Any]]) -> bool:
    """Whether nothing holds them: cycles among them are collected now, not when so much was allocated."""
    gc.collect()
    return not any(answers() for answers in gone)


def test_nobody_notices_swaps() -> None:
    with EmbeddedServer(None, generation(1)) as server, Load(server.target) as load:
        gone: list[weakref.ref[Any]] = []
        for number in range(2, SWAPS + 2):
            wait_until(partial(load.seen.versions.__contains__, version_of(number - 1)))
            gone.append(weakref.ref(server._application.tracks.stable.answers))
            server.swap(generation(number))
        wait_until(lambda: version_of(SWAPS + 1) in load.seen.versions)
        wait_until(partial(are_collected, gone))
    assert load.seen.failures == []
    assert load.seen.mixed == []
    assert set(load.seen.answers) == {"stub", "batch", "stream", "sync", "async"}


def test_what_did_not_change_is_not_fitted_again() -> None:
    with EmbeddedServer(None, generation(1)) as server, Stubs(server.target) as stubs:
        request = request_of(1)
        request.options.model.estimator = "queueing"
        before = stubs.prediction.Predict(request)
        server.swap(generation(2))
        after = stubs.prediction.Predict(request)
        assert after.basis.generation != before.basis.generation
        assert after.basis.fit_time == before.basis.fit_time
        assert after.basis.digest == before.basis.digest
        assert after.predictions == before.predictions


def test_what_was_learned_of_others_stays() -> None:
    """Priors and calibrations are swapped as a whole, with the plugins that they were learned of."""
    with EmbeddedServer(Settings(store="memory:", grace_s=1.0, learn_interval_s=0.0), generation(1)) as server:
        answers = server._application.tracks.stable.answers
        prior, calibration = Prior.of(NAME, "by hand", sources=(), content=None), Calibration("tried", 2.0, 3)
        names = (NAME, "queueing")
        shipped = answers.teachings.common.priors
        known = Lessons({**shipped, **dict.fromkeys(names, prior)}, dict.fromkeys(names, calibration))
        answers.adopt(Teachings(known, {"acme": replace(known, others=(known,))}))
        server.swap(generation(2))
        kept = server._application.tracks.stable.answers.teachings
        own = kept.of("acme/job")
        for lessons in (kept.common, own, *own.others):
            assert lessons.priors["queueing"] is prior
            assert lessons.calibrations == {"queueing": calibration}
            assert known.priors.keys() - lessons.priors.keys() == {NAME}


def test_a_stream_changes_between_answers() -> None:
    with EmbeddedServer(None, generation(1)) as server, Stubs(server.target) as stubs:
        asked: queue.SimpleQueue[pb.StreamPredictRequest | None] = queue.SimpleQueue()
        answers = stubs.prediction.StreamPredict(iter(asked.get, None))
        for number in range(1, 4):
            if number > 1:
                server.swap(generation(number))
            asked.put(pb.StreamPredictRequest(question_id=str(number), predict=request_of(number)))
            assert next(answers).predict.basis.estimator_version == version_of(number)
        asked.put(None)


def test_an_estimator_comes_and_goes() -> None:
    with EmbeddedServer(None, generation(1)) as server, Stubs(server.target) as stubs:
        server.swap(registry_with())
        assert failure_of(stubs.prediction.Predict, request_of(1)).reason == "ESTIMATOR_NOT_FOUND"
        server.swap(generation(2))
        assert stubs.prediction.Predict(request_of(1)).basis.estimator == NAME
