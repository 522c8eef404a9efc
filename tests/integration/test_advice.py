"""What cluster managers are told, by a real server, and what they are told when there is none."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_client import (
    AppendProfileRequest,
    Client,
    CurrentConfiguration,
    HighestThroughput,
    Knee,
    LeastTime,
    Network,
    ProfileContent,
    Transformer,
    Work,
    Workload,
    configurations,
    objective,
    observations,
)
from nodewise_integrations.advice import Advice, Adviser, NoAdvice, NoAnswer, question
from nodewise_integrations.breaker import CircuitBreaker

RAN = configurations(nodes=[1, 2], workers=[8, 16], sync_modes="allreduce", batch_per_worker_samples=32, devices="A100")
# Sharded over all its devices (ZeRO 3) this needs several nodes, whatever would be fastest.
LARGE = ProfileContent(
    workload=Workload(
        precision="fp16",
        transformer=Transformer(
            layers_count=48,
            hidden_size=6144,
            attention_heads_count=64,
            sequence_length_tokens=2048,
            vocabulary_size=51200,
        ),
    ),
    network=Network(link_bytes_per_second=25e9),
)
LARGE_COLUMNS: dict[str, Any] = {
    "devices": "A100-40GB",
    "sync_modes": "allreduce",
    "zero_stages": 3,
    "batch_per_worker_samples": 1,
    "recomputations": "full",
}


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    with EmbeddedServer() as server:
        with Client(server.target) as client:
            for profile_id, content in {
                "team/job": ProfileContent(
                    observations=observations(configurations=RAN, steps_per_second=[4.1, 3.9]),
                ),
                "team/large": LARGE,
            }.items():
                client.append_profile(AppendProfileRequest(profile_id=profile_id, content=content))
        yield server.target


@pytest.fixture
def adviser(target: str) -> Iterator[Adviser]:
    adviser = Adviser(target, timeout_seconds=60.0)
    yield adviser
    adviser.close()


def advised(answer: Advice | NoAnswer) -> Advice:
    assert isinstance(answer, Advice), answer
    return answer


def refused(answer: object) -> NoAnswer:
    assert isinstance(answer, NoAnswer), answer
    return answer


def test_a_count_with_its_interval_and_its_reasons(adviser: Adviser) -> None:
    told = advised(adviser.advise(question("team/job", nodes=(1, 2, 3), objective=objective(Knee(share=0.5)))))
    assert (told.chosen.nodes, told.chosen.workers) == (3, 24)
    assert told.chosen.lower_samples_per_second < told.chosen.samples_per_second < told.chosen.upper_samples_per_second
    assert "at least 0.5" in told.why
    assert re.fullmatch(r"[a-z-]+@[\d.]+(\+[a-z-]+@[\d.]+)*", told.estimator)
    assert not told.extrapolates
    assert len(told.answer) == 3
    asked = question("team/job", nodes=range(1, 17), workers_per_node=4)
    far = advised(adviser.advise(asked))
    assert (far.chosen.nodes, far.chosen.workers) == (8, 32)
    assert "the evidence reaches 2 nodes" in far.why
    assert far.extrapolates


def test_the_longest_time_is_that_at_the_lower_bound(adviser: Adviser) -> None:
    told = advised(adviser.advise(question("team/job", nodes=[2])))
    lower = told.chosen.lower_steps_per_second
    assert told.longest_seconds(steps=1000) == pytest.approx(1000 / lower)
    assert told.longest_seconds(samples=1000 * 16 * 32) == pytest.approx(1000 / lower)
    assert told.longest_seconds() is None


def test_what_it_runs_on_now_is_kept_where_moving_does_not_pay(adviser: Adviser) -> None:
    now = CurrentConfiguration(row=1, restart_cost_seconds=600)
    short = question("team/job", nodes=[1, 2, 3], current=now, work=Work(samples=1e5))
    told = advised(adviser.advise(short))
    assert told.chosen.nodes == 2
    assert told.keeps_current


def test_a_count_that_does_not_fit_into_memory_is_never_chosen(adviser: Adviser) -> None:
    asked = {"workers_per_node": 8, "columns": LARGE_COLUMNS}
    told = advised(adviser.advise(question("team/large", nodes=range(1, 9), objective=objective(Knee()), **asked)))
    by_nodes = {row.nodes: row for row in told.answer}
    assert by_nodes[1].excess_memory_bytes > 0
    assert told.chosen.answered
    assert not told.chosen.excess_memory_bytes
    # Those that do not fit are asked about alone: none of them is the answer.
    small = [row.nodes for row in told.answer if not row.answered]
    assert 1 in small
    for rule in (HighestThroughput(), Knee()):
        none = refused(adviser.advise(question("team/large", nodes=small, objective=objective(rule), **asked)))
        assert none.reason is NoAdvice.NOTHING_FITS


def test_refusals_name_their_kind_and_do_not_rest(adviser: Adviser) -> None:
    unknown = refused(adviser.advise(question("nobody/nothing", nodes=[1])))
    assert unknown.reason is NoAdvice.REJECTED
    assert "PROFILE_NOT_FOUND" in unknown.message
    other = question("team/job", nodes=[1, 2], columns={"devices": "V100", "sync_modes": "async"})
    assert refused(adviser.advise(other)).reason is NoAdvice.REFUSED
    late = question("team/job", nodes=[1, 2], objective=objective(LeastTime(max_nodes=1)), work=Work(epochs=1.0))
    assert refused(adviser.advise(late)).reason in {NoAdvice.REJECTED, NoAdvice.NOTHING_FITS, NoAdvice.REFUSED}
    advised(adviser.advise(question("team/job", nodes=[1, 2])))


def test_what_was_measured_is_appended_once(adviser: Adviser) -> None:
    ran = ProfileContent(observations=observations(configurations=RAN, steps_per_second=[4.0, 3.8]))
    first = adviser.append("team/other", ran, request_id="slurm-test-1")
    again = adviser.append("team/other", ran, request_id="slurm-test-1")
    assert not isinstance(first, NoAnswer)
    assert not isinstance(again, NoAnswer)
    assert (again.revision, again.observations_count) == (first.revision, 2)
    wrong = refused(adviser.append("team/other", ProfileContent(), request_id="no / such id"))
    assert wrong.reason is NoAdvice.REJECTED


@pytest.fixture
def silent() -> Iterator[str]:
    """A port where somebody listens and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def test_a_server_that_is_silent_costs_one_time_out(silent: str, tmp_path: Path) -> None:
    file = tmp_path / "unanswered"
    first = Adviser(silent, timeout_seconds=0.2, breaker=CircuitBreaker(file=file))
    asked = question("team/job", nodes=[1])
    assert refused(first.advise(asked)).reason is NoAdvice.UNANSWERED
    assert refused(first.advise(asked)).reason is NoAdvice.RESTING
    begun = time.monotonic()
    other = Adviser(silent, timeout_seconds=60.0, breaker=CircuitBreaker(file=file))
    assert refused(other.advise(asked)).reason is NoAdvice.RESTING
    assert time.monotonic() - begun < 30.0
    first.close()


def test_a_server_that_is_back_is_asked_again(target: str, tmp_path: Path) -> None:
    file = tmp_path / "unanswered"
    gone = Adviser("127.0.0.1:1", timeout_seconds=5.0, breaker=CircuitBreaker(0.0, file=file))
    assert refused(gone.ask(lambda client: client.list_devices())).reason is NoAdvice.UNANSWERED
    assert file.exists()
    back = Adviser(target, timeout_seconds=60.0, breaker=CircuitBreaker(0.0, file=file))
    advised(back.advise(question("team/job", nodes=[1])))
    assert not file.exists()
    gone.close()
    back.close()


def test_nothing_is_raised_whatever_is_wrong(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    monkeypatch.delenv("NODEWISE_SERVER", raising=False)
    assert refused(Adviser().advise(question("team/job", nodes=[1]))).reason is NoAdvice.NOT_CONFIGURED
    broken = Adviser(target)
    assert "ZeroDivisionError" in refused(broken.ask(lambda client: 1 / 0)).message
    monkeypatch.setenv("NODEWISE_TOKEN_FILE", "/nonexistent/token")
    hidden = refused(Adviser(target).advise(question("team/job", nodes=[1])))
    assert hidden.reason is NoAdvice.FAULT
    assert "/nonexistent/token" in hidden.message
    broken.close()
