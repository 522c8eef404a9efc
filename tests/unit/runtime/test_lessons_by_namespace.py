"""Who teaches whom: samples, groups of owners, what is kept, and bounds on work and memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from estimators import Fake, asked, predictions_of, profile_of, question_of, registry_of
from hypothesis import given, settings
from hypothesis import strategies as st

from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.predictions import Options, Predictions
from nodewise.domain.profile import Profile
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.answer.bounded_influence import MOST_POINT, MOST_WIDTH
from nodewise.plugin import Context, Corpus, Prior
from nodewise.profiles.store import ProfileSummary
from nodewise.runtime.learning import learning as looks
from nodewise.runtime.learning.learning import EVERYONE, Learning
from nodewise.runtime.learning.saved_lessons import Learnt, SavedLessons
from nodewise.runtime.learning.sources import LEARNED_PROFILES, Corpora, Groups, Source, Sources, share_out


class Mean(Fake):
    """Predicts the mean of ln(rate) of everything that it learned from, and as wide as that is spread."""

    def __init__(self) -> None:
        super().__init__()
        self.learned = 0

    def learn(self, corpus: Corpus) -> Prior:
        self.learned += 1
        logs = sorted(float(np.log(rate)) for each in corpus for rate in each.observations.steps_per_s)
        return Prior.of("mean", logs, sources=(), content=logs)

    def fit(self, profile: Profile, context: Context) -> Told:
        logs = context.prior.content if context.prior is not None else []
        return Told(logs or [0.0])


class Told:
    def __init__(self, logs: list[float]) -> None:
        self.step_s, self.spread = float(np.exp(-np.mean(logs))), 0.05 + float(np.std(logs))

    def predict(self, configurations: Configurations, options: Options) -> Predictions:
        rows = len(configurations)
        return predictions_of([self.step_s] * rows, log_spread=np.full(rows, self.spread))


class Jobs:
    """A store of jobs that are there."""

    def __init__(self, jobs: Iterable[Profile] = ()) -> None:
        self._now = {each.profile_id: each for each in jobs}
        self._log = [ProfileSummary.of(each) for each in self._now.values()]

    def add(self, *jobs: Profile) -> None:
        self._now |= {each.profile_id: each for each in jobs}
        self._log += map(ProfileSummary.of, jobs)

    def delete(self, name: str) -> None:
        self._log.append(replace(ProfileSummary.of(self._now.pop(name)), delete_time_s=1.0))

    def generation(self) -> int:
        return len(self._log)

    def changes(self, since: int) -> tuple[int, tuple[ProfileSummary, ...]]:
        return len(self._log), tuple(self._log[since:])

    def list(self, prefix: str, after: str, limit: int) -> tuple[ProfileSummary, ...]:
        found = [each for name, each in sorted(self._now.items()) if name.startswith(prefix) and name > after]
        return tuple(ProfileSummary.of(each) for each in found[:limit])

    def load(self, profile_id: str, known: Profile | None, revision: int | None) -> Profile:
        return self._now[profile_id]


def job(name: str, *rates: float) -> Profile:
    plain = profile_of(f"digest of {name} {rates}", workers=(1,) * len(rates))
    runs = replace(plain.observations, steps_per_s=np.array(rates))
    return replace(plain, profile_id=name, uid=f"uid of {name}", revision=1, observations=runs)


def answers_of(mean: Mean) -> Answers:
    return Answers(registry_of({"mean": mean}))


def told(answers: Answers, name: str) -> tuple[float, float]:
    """Step and deviation."""
    question = question_of(job(name, 1.0), asked(1), estimator="mean")
    found = answers.answer(question).predictions
    return float(found.step_s[0]), float(found.log_spread[0])


def learned(jobs: Iterable[Profile], *shared: str) -> Answers:
    answers = answers_of(Mean())
    Learning(answers, Jobs(jobs), None, 1.0, shared=shared).learn()  # type: ignore[arg-type]  # as far as is asked
    return answers


OTHERS = [job("a/1", 2.0, 2.1), job("a/2", 2.2), job("b/1", 1.8), job("c/1", 2.5, 2.4), job("d/1", 2.0)]
WILD = st.lists(st.lists(st.floats(0.01, 100.0), min_size=1, max_size=3), min_size=1, max_size=5)


@settings(max_examples=10, deadline=None)
@given(WILD)
def test_an_owner_moves_others_within_bounds_however_many_profiles_it_has(wild: list[list[float]]) -> None:
    stated = [job(f"evil/{number}", *rates) for number, rates in enumerate(wild)]
    for shared in ((), (EVERYONE,)):
        before, after = learned(OTHERS, *shared), learned([*OTHERS, *stated], *shared)
        for name in ("a/1", "b/1", "new/1", ""):
            first, second = told(before, name), told(after, name)
            if not shared:
                assert first == second
            for one, other, most in zip(first, second, (MOST_POINT, MOST_WIDTH), strict=True):
                assert 1.0 / most - 1e-9 <= other / one <= most + 1e-9


def test_others_teach_where_namespaces_are_shared() -> None:
    alone, together = learned(OTHERS), learned(OTHERS, "a", "b")
    assert told(alone, "")[0] == told(together, "")[0] == 1.0  # who stores nothing is told what ships
    assert told(alone, "c/1") == told(together, "c/1")
    assert told(alone, "b/1")[0] > told(together, "b/1")[0]  # of a, which is faster
    assert told(learned(OTHERS, EVERYONE), "")[0] < 1.0


def test_jobs_of_ids_without_a_slash_teach_each_other() -> None:
    answers = learned([job("resnet50", 2.0), job("vgg16", 8.0), job("a/1", 100.0)])
    assert told(answers, "new")[0] == pytest.approx(0.25)


def test_a_sample_is_decided_by_hashes_not_by_names() -> None:
    jobs = [job(f"a/{number:04}", 1.0) for number in range(3 * LEARNED_PROFILES)]
    store = Jobs(jobs)
    sources = Sources(store)  # type: ignore[arg-type]
    assert sources.look() == {"a"}
    sample = sources.of("a")
    assert len(sample) == LEARNED_PROFILES
    names = sorted(int(each.profile_id[2:]) for each in sample)
    assert names[LEARNED_PROFILES // 2] == pytest.approx(1.5 * LEARNED_PROFILES, rel=0.2)
    assert sample == tuple(sorted(sample, key=lambda each: each.place))

    # What is deleted is made up for by others, as if it had never been there.
    gone = {each.profile_id for each in sample[: LEARNED_PROFILES // 2]}
    for name in gone:
        store.delete(name)
    assert sources.look() == {"a"}
    rest = Sources(store)  # type: ignore[arg-type]
    rest.look()
    assert len(sources.of("a")) == LEARNED_PROFILES
    assert sources.of("a") == rest.of("a")
    assert set(sample[LEARNED_PROFILES // 2 :]) < set(rest.of("a"))


def test_owners_get_as_many_turns_as_each_other() -> None:
    by_owner = {
        owner: tuple(Source(f"{owner}/{number}", f"{owner}{number}", 1) for number in range(count))
        for owner, count in (("many", 90), ("few", 3), ("some", 20))
    }
    found = share_out(by_owner, 30)
    counts = [sum(each.profile_id.startswith(owner) for each in found) for owner in ("many", "few", "some")]
    assert counts == [14, 3, 13]


def test_a_group_does_not_depend_on_who_else_there_is() -> None:
    everybody = {f"owner{number}": (Source(f"owner{number}/1", f"u{number}", 1),) for number in range(40)}
    for left_out in ("owner3", "owner17"):
        rest = {name: sources for name, sources in everybody.items() if name != left_out}
        assert Groups(everybody).without(left_out) == Groups(rest).all
    assert Groups(everybody).without("nobody") == ()


def test_only_namespaces_that_changed_are_learned_from_again() -> None:
    mean = Mean()
    answers = answers_of(mean)
    store = Jobs([job(f"n{number}/1", 1.0 + number) for number in range(50)])
    learning = Learning(answers, store, None, 1.0)  # type: ignore[arg-type]
    assert learning.learn()
    before, kept = mean.learned, answers.teachings.of("n3/1")
    assert not learning.learn()
    store.add(job("n7/2", 5.0))
    assert learning.learn()
    assert mean.learned == before + 1
    assert answers.teachings.of("n3/1") is kept


def test_work_is_bounded_and_goes_on_with_the_next_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "WORK_S", -1.0)
    learning = Learning(answers_of(Mean()), Jobs(OTHERS), None, 1.0)  # type: ignore[arg-type]
    learning.learn()
    assert learning.namespace_lessons == ()
    monkeypatch.setattr(looks, "WORK_S", 60.0)
    assert learning.learn()
    assert [each.namespace for each in learning.namespace_lessons] == ["a", "b", "c", "d"]


def test_memory_is_bounded_and_who_asks_keeps_its_lessons(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = answers_of(Mean())
    store = Jobs([job(f"n{number}/1", 2.0) for number in range(30)])
    learning = Learning(answers, store, None, 1.0)  # type: ignore[arg-type]
    learning.learn()
    held = sum(each.bytes_held for each in learning.namespace_lessons)
    told(answers, "n5/1")
    monkeypatch.setattr(looks, "LESSONS_BYTES", held // 3)
    store.add(job("n9/2", 2.0))
    learning.learn()
    left = {each.namespace for each in learning.namespace_lessons}
    assert 5 <= len(left) <= 11
    assert "n5" in left
    gone = min({f"n{number}" for number in range(30)} - left)
    assert told(answers, f"{gone}/1")[0] == 1.0
    assert learning.learn()  # because it was asked about
    assert gone in {each.namespace for each in learning.namespace_lessons}
    assert told(answers, f"{gone}/1")[0] == pytest.approx(0.5)


def test_what_is_kept_is_read_again_and_damage_is_no_more_than_a_loss(tmp_path: Path) -> None:
    corpora = Corpora((Source("a/1", "u1", 3),), ((Source("b/1", "u2", 1),),))
    lessons = Learnt(namespace="a", corpora=corpora, learned_unix_s=5.0)
    kept, other = SavedLessons(tmp_path), SavedLessons(tmp_path)
    kept.pin(lessons)
    kept.remember(lessons)
    assert other.pins()["a"].corpora == corpora
    assert other.before("a") == [lessons]
    assert other.before("b") == []
    kept.unpin("a")
    assert kept.pins() == {}
    for path in tmp_path.glob("*/*.json"):
        path.write_bytes(b"{}")
    assert SavedLessons(tmp_path).before("a") == []
    (tmp_path / "pinned").rmdir()
    (tmp_path / "pinned").write_bytes(b"in the way")
    with pytest.raises(NodewiseError) as caught:
        kept.pin(lessons)
    assert caught.value.reason == Reason.STORE_UNAVAILABLE
