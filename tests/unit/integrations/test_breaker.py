"""The circuit breaker: how long nobody is asked, and who knows of it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from nodewise_integrations.breaker import CircuitBreaker, breaker_file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "unanswered"


def aged(file: Path, seconds: float) -> None:
    os.utime(file, (time.time() - seconds, time.time() - seconds))


def test_after_a_failure_nobody_is_asked_until_an_answer() -> None:
    breaker = CircuitBreaker(60.0)
    assert breaker.seconds_left() == 0
    breaker.failed()
    assert 50 < breaker.seconds_left() <= 60
    breaker.answered()
    assert breaker.seconds_left() == 0


def test_other_processes_know_by_the_file(file: Path) -> None:
    CircuitBreaker(60.0, file=file).failed()
    other = CircuitBreaker(60.0, file=file)
    assert 50 < other.seconds_left() <= 60
    other.answered()
    assert CircuitBreaker(60.0, file=file).seconds_left() == 0


def test_a_failure_is_forgotten_with_time(file: Path) -> None:
    CircuitBreaker(60.0, file=file).failed()
    aged(file, 61)
    assert CircuitBreaker(60.0, file=file).seconds_left() == 0
    CircuitBreaker(60.0, file=file).failed()
    assert CircuitBreaker(60.0, file=file).seconds_left() > 50


def test_a_clock_that_was_set_back_does_not_silence_for_ever(file: Path) -> None:
    CircuitBreaker(60.0, file=file).failed()
    aged(file, -3600)
    assert CircuitBreaker(60.0, file=file).seconds_left() == 0


def test_a_folder_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    breaker = CircuitBreaker(60.0, file=tmp_path / "taken" / "unanswered")
    breaker.failed()
    assert breaker.seconds_left() > 50  # this process knows
    breaker.answered()
    assert breaker.seconds_left() == 0


def test_each_server_has_its_own_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NODEWISE_STATE_FOLDER", str(tmp_path))
    assert breaker_file("a:1").parent == tmp_path
    assert breaker_file("a:1") == breaker_file("a:1") != breaker_file("b:1")
    monkeypatch.delenv("NODEWISE_STATE_FOLDER")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert breaker_file("a:1").parent == tmp_path / "cache" / "nodewise"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert breaker_file("a:1").parent == tmp_path / "home" / ".cache" / "nodewise"
