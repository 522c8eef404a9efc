"""Who can do without a plugin waits only so long, and the next who asks has what came of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from patience import PATIENCE_S

from nodewise.hosting.background import Background, LateError, impatient
from nodewise.hosting.counts import CallCounts

FITS = ("fit",)
SOON_S = 0.05


@pytest.fixture
def hasty() -> Iterator[None]:
    token = impatient.set(True)
    yield
    impatient.reset(token)


class Slow:
    """Work that ends when a test says so."""

    def __init__(self) -> None:
        self.may_end = threading.Event()
        self.ended = threading.Event()
        self.thread = ""
        self.calls = 0

    def __call__(self) -> int:
        self.calls += 1
        self.thread = threading.current_thread().name
        assert self.may_end.wait(PATIENCE_S)
        self.ended.set()
        return 7

    def end(self) -> None:
        self.may_end.set()
        assert self.ended.wait(PATIENCE_S)


def known(seconds: float) -> CallCounts:
    calls = CallCounts()
    calls.add("fit", seconds, failed=False)
    return calls


def test_the_patient_and_those_who_ask_the_quick_do_the_work_themselves(hasty: None) -> None:
    here = threading.current_thread().name
    background = Background(SOON_S)
    assert background.soon(known(0.01), FITS, "a", lambda: threading.current_thread().name) == here
    impatient.set(False)
    assert background.soon(CallCounts(), FITS, "a", lambda: threading.current_thread().name) == here


def test_a_late_answer_is_there_for_the_next_and_is_asked_for_once(hasty: None) -> None:
    background, slow = Background(SOON_S), Slow()
    with pytest.raises(LateError):
        background.soon(CallCounts(), FITS, "a", slow)
    with pytest.raises(LateError):  # while one takes too long, nothing is begun
        background.soon(CallCounts(), FITS, "b", slow)
    slow.end()
    patient = Background(PATIENCE_S)
    patient._questions = background._questions
    assert patient.soon(CallCounts(), FITS, "a", slow) == 7
    assert slow.calls == 1
    assert not patient._questions


def test_who_took_longer_last_time_is_not_waited_for(hasty: None) -> None:
    background, slow = Background(PATIENCE_S), Slow()
    with pytest.raises(LateError):
        background.soon(known(PATIENCE_S + 1.0), FITS, "a", slow)
    slow.end()


def test_what_the_work_raises_is_raised(hasty: None) -> None:
    def fails() -> None:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        Background(PATIENCE_S).soon(CallCounts(), FITS, "a", fails)
