"""What is kept of jobs takes so many bytes, however many jobs there are and however large they are."""

from __future__ import annotations

import gc
import tracemalloc

import pytest
from estimators import Fake, asked, profile_of, question_of, registry_of
from profile_batches import batch

from nodewise.estimation.answer.answers import Answers
from nodewise.ports.cache import CacheSpace
from nodewise.profiles.opening import open_store
from nodewise.profiles.reader import profile_bytes

BESIDE = 1.5
"""Times the room that is taken in all: what entries weigh is an estimate."""


@pytest.mark.parametrize(("jobs", "rows", "room_bytes"), [(400, 2, 400_000), (120, 1_000, 2_000_000)])
@pytest.mark.long
def test_jobs_that_nobody_asks_about_again_take_no_more_than_the_room(jobs: int, rows: int, room_bytes: int) -> None:
    space = CacheSpace(room_bytes)
    answers = Answers(registry_of({"one": Fake()}), space=space)
    candidates = asked(1, 2, 4)
    answers.answer(question_of(profile_of("first"), candidates))
    filled = False
    tracemalloc.start()
    try:
        for number in range(jobs):
            profile = profile_of(f"{number}", workers=range(1, rows + 1))
            answers.answer(question_of(profile, candidates))
            filled |= space.weight > 0.8 * room_bytes
        del profile
        gc.collect()
        assert filled, "or nothing is tried"
        assert tracemalloc.get_traced_memory()[0] < BESIDE * room_bytes
    finally:
        tracemalloc.stop()


def test_revisions_of_a_large_stored_profile_take_no_more_than_the_room() -> None:
    """Each revision has columns of its own, which models that were fitted to it keep alive."""
    room_bytes = 12_000_000
    space = CacheSpace(room_bytes)
    answers = Answers(registry_of({"one": Fake()}), space=space)
    store = open_store("memory:")
    store.append("job", "s", [batch(1, *(1.0 + number / 7.0 for number in range(10_000)), commit=True)])
    tracemalloc.start()
    try:
        profile = store.load("job")
        assert tracemalloc.get_traced_memory()[0] < 1.1 * profile_bytes(profile)
        for number in range(2, 14):
            store.append("job", "s", [batch(number, 1.0, commit=True)])
            profile = store.load("job", profile)
            answers.answer(question_of(profile, asked(1, 2, 4)))
        gc.collect()
        assert space.weight > 0.6 * room_bytes
        assert tracemalloc.get_traced_memory()[0] < 1.2 * room_bytes + profile_bytes(profile)
    finally:
        tracemalloc.stop()
        store.close()
