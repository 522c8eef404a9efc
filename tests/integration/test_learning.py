"""What the store teaches reaches the answers."""

from __future__ import annotations

import numpy as np

from nodewise.domain.columns import as_floats, as_ints
from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.profile import Observations, Profile
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import IntervalBasis, Question
from nodewise.hosting.registry import load_registry
from nodewise.profiles.digest import content_digest
from nodewise.profiles.store import ProfileSummary
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.learning.learning import Learning
from nodewise_client import Client, PredictRequest, ProfileContent, configurations, observations, profile_source


class FewProfiles:
    """A store that holds these profiles."""

    def __init__(self, profiles: list[Profile]) -> None:
        self._profiles = profiles

    def generation(self) -> int:
        return len(self._profiles)

    def changes(self, since: int) -> tuple[int, tuple[ProfileSummary, ...]]:
        return len(self._profiles), tuple(ProfileSummary.of(each) for each in self._profiles[since:])

    def list(self, prefix: str, after: str, limit: int) -> tuple[ProfileSummary, ...]:
        return tuple(ProfileSummary.of(each) for each in self._profiles)

    def load(self, profile_id: str, known: Profile | None, revision: int | None) -> Profile:
        return next(each for each in self._profiles if each.profile_id == profile_id)

    def add(self, profile: Profile) -> None:
        self._profiles.append(profile)


def job(number: int) -> Profile:
    """An all-reduce job on up to 8 nodes of an accelerator of its own kind."""
    nodes = np.array([1, 2, 4, 8])
    step_s = (0.2 + 0.01 * number) * np.array([1.0, 1.6, 1.9, 2.1])
    rows = Configurations.of(
        4,
        nodes=as_ints(nodes),
        workers=as_ints(4 * nodes),
        sync_mode=SyncMode.ALLREDUCE,
        batch_per_worker=32,
        device="X9",
    )
    plain = Profile(observations=Observations.of(rows, as_floats(1.0 / step_s)))
    name = f"job{number}"
    return Profile(
        profile_id=name, uid=f"uid-{name}", revision=1, observations=plain.observations, digest=content_digest(plain)
    )


def test_priors_and_calibrations_are_learned_from_the_store_when_it_changes() -> None:
    engine = Answers(load_registry(safe_mode=True))
    store = FewProfiles([job(number) for number in range(6)])
    question = Question(profile=job(7), configurations=Configurations.of(1, workers=[64], device="X9"))
    before = engine.answer(question)
    assert before.interval is not None
    assert before.interval.basis == IntervalBasis.MODEL_SPREAD
    learning = Learning(engine, store, None, 1.0)  # type: ignore[arg-type]  # it holds what learning asks for
    assert learning.learn()
    after = engine.answer(question)
    assert after.interval is not None
    assert after.interval.basis == IntervalBasis.CONFORMAL
    assert after.basis.prior_id.startswith("scaling-")
    assert after.basis.prior_id != before.basis.prior_id
    assert not learning.learn(), "the store has not changed"
    store.add(job(9))
    assert learning.learn()
    assert engine.answer(question).basis.prior_id != after.basis.prior_id


def test_a_service_names_the_prior_that_comes_with_an_estimator() -> None:
    with EmbeddedServer() as server, Client(server.target) as client:
        content = ProfileContent(
            observations=observations(
                configurations=configurations(workers=[4, 8], nodes=[1, 2], sync_modes="allreduce", devices="V100"),
                steps_per_second=[4.0, 3.5],
            )
        )
        answer = client.predict(
            PredictRequest(profile=profile_source(content), configurations=configurations(workers=[16], nodes=[4]))
        )
        assert answer.basis.estimator == "scaling"
        (prior_id,) = answer.basis.prior_ids
        assert prior_id.startswith("scaling-")
