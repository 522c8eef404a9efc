"""How many estimators of third parties a question costs where nobody is named."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from estimators import Fake, asked, profile_of, question_of, record_of, registry_of

from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.estimators.estimators import MOST_OF_ONE, MOST_OUTSIDE
from nodewise.hosting.registry import LoadedPlugin


def test_one_distribution_with_many_estimators_leaves_the_others_their_time() -> None:
    fakes = {f"many{number:05d}": Fake() for number in range(10_000)} | {"other": Fake()}
    loaded = {
        name: LoadedPlugin(record_of(name, fake), "other 1.0" if name == "other" else "many 1.0", "process")
        for name, fake in fakes.items()
    }
    shipped = Fake()
    inline = registry_of({"shipped": shipped})
    registry = replace(inline, estimators=MappingProxyType({**inline.estimators, **loaded}))
    answers = Answers(registry)
    answers.answer(question_of(profile_of(), asked(1, 2)))
    assert shipped.assessed
    assert fakes["other"].assessed
    assert sum(bool(fake.assessed) for fake in fakes.values()) == MOST_OF_ONE + 1
    assert answers.answer(question_of(profile_of(), asked(1, 2), estimator="many09999")).basis.estimator == "many09999"


def test_many_distributions_are_asked_in_turn_and_no_more_than_there_is_time_for() -> None:
    fakes = {f"e{number:03d}": Fake() for number in range(100)}
    loaded = {
        name: LoadedPlugin(record_of(name, fake), f"d{number % 50} 1.0", "process")
        for number, (name, fake) in enumerate(fakes.items())
    }
    registry = replace(registry_of({}), estimators=MappingProxyType(loaded))
    Answers(registry).answer(question_of(profile_of(), asked(1, 2)))
    assert [name for name, fake in fakes.items() if fake.assessed] == list(fakes)[:MOST_OUTSIDE]
