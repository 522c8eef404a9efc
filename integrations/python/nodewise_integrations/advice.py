"""Advice of Nodewise to a cluster manager. Failures are returned as values, so the manager continues without it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Self, TypeVar

from nodewise_client import (
    AppendProfileRequest,
    CallCancelledError,
    Client,
    DeadlineExceededError,
    NodewiseError,
    Notice,
    Prediction,
    PredictRequest,
    PredictResult,
    Profile,
    ProfileContent,
    RefusedError,
    ResourceExhaustedError,
    UnavailableError,
    configuration_rows,
    configurations,
    profile_source,
)
from nodewise_integrations.breaker import CircuitBreaker, breaker_file

__all__ = ["WRONG_ANSWER", "Advice", "Adviser", "NoAdvice", "NoAnswer", "question"]

TIMEOUT_SECONDS: Final = 5.0
EXTRAPOLATES: Final = "EXTRAPOLATES"
_RATES: Final = (1e-9, 1e9)
"""Steps per second that a training can have: more than one in 30 years, and less than one in a nanosecond."""

AnswerT = TypeVar("AnswerT")


class NoAdvice(StrEnum):
    """Why there is no answer. Each reason calls for a different reaction."""

    NOT_CONFIGURED = "not_configured"
    """No server is configured."""
    RESTING = "resting"
    """A recent question failed, and the server is not asked again yet."""
    UNANSWERED = "unanswered"
    """The server is not reachable, is overloaded, or did not answer in time."""
    REFUSED = "refused"
    """The server has too little evidence to answer."""
    NOTHING_FITS = "nothing_fits"
    """None of the counts can be recommended: none meets the objective, or none fits into memory."""
    REJECTED = "rejected"
    """The question is invalid, or the caller has no permission."""
    FAULT = "fault"
    """An error in the integration or in the server."""


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """There is no answer; the manager continues as it would without Nodewise."""

    reason: NoAdvice
    message: str
    """What happened, for people, on one line."""

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}"


WRONG_ANSWER: Final = NoAnswer(NoAdvice.FAULT, "the server's answer does not fit the question, and is not used")


@dataclass(frozen=True, slots=True)
class Advice:
    """The recommended configuration, and the answer that it comes from."""

    chosen: Prediction
    """The recommended row: nodes, workers, throughput with its interval, memory."""
    answer: PredictResult
    """All requested rows: predicted, refused with the reason, or too large for memory."""

    @property
    def why(self) -> str:
        """How the objective chose the row, with its numbers."""
        return "" if self.answer.recommendation is None else self.answer.recommendation.why

    @property
    def keeps_current(self) -> bool:
        """Whether the chosen row is the current configuration that the question states."""
        return self.answer.recommendation is not None and self.answer.recommendation.keeps_current

    @property
    def estimator(self) -> str:
        """The estimator as name@version; for a mixture, all its estimators, the largest weight first."""
        basis = self.answer.basis
        return "+".join(f"{each.estimator}@{each.estimator_version}" for each in basis.mixture or (basis,))

    @property
    def extrapolates(self) -> bool:
        """Whether the server warns that the chosen row lies far beyond the measured runs."""
        return any(notice.reason == EXTRAPOLATES for notice in self._notices())

    @property
    def notes(self) -> tuple[str, ...]:
        """Other notices of the server about the chosen row, or about all rows."""
        return tuple(notice.message for notice in self._notices() if notice.reason != EXTRAPOLATES)

    def longest_seconds(self, *, steps: float | None = None, samples: float | None = None) -> float | None:
        """Seconds of the given work at the lower bound of the chosen row's throughput; None = not known."""
        per_second, work = (
            (self.chosen.lower_steps_per_second, steps)
            if steps is not None
            else (self.chosen.lower_samples_per_second, samples)
        )
        if work is None or not per_second:
            return None
        return work / per_second + (self.chosen.once_seconds or 0.0)

    def _notices(self) -> Iterator[Notice]:
        row = None if self.answer.recommendation is None else self.answer.recommendation.row
        return (notice for notice in self.answer.warnings if not notice.rows or row in notice.rows)


class Adviser:
    """Calls one Nodewise server with a deadline, and pauses for a while after a failure. Threads may share it.

    Args:
        target: `host:port`; None = the value of NODEWISE_SERVER. It connects at the first question.
        timeout_seconds: deadline of each call.
        breaker: records failures; None = one for this process only.
        user_agent: the manager's name.
        options: further arguments of `Client`; they override the environment (NODEWISE_TOKEN, NODEWISE_TLS_CA, ...).
    """

    def __init__(
        self,
        target: str | None = None,
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        breaker: CircuitBreaker | None = None,
        user_agent: str = "nodewise-integrations",
        **options: Any,
    ) -> None:
        self._target: Final = target or os.environ.get("NODEWISE_SERVER", "")
        self._breaker: Final = breaker or CircuitBreaker()
        # Without retries: they would only use up the deadline if the server is not reachable.
        self._options: Final[dict[str, Any]] = {
            "timeout_s": timeout_seconds,
            "retry": False,
            "user_agent": user_agent,
            **options,
        }
        self._connecting: Final = threading.Lock()
        self._client: Client | None = None

    @classmethod
    def of_command(cls, target: str | None = None, **options: Any) -> Self:
        """Create one for a command that ends after its question: a file records its failures."""
        named = target or os.environ.get("NODEWISE_SERVER", "")
        return cls(target, breaker=CircuitBreaker(file=breaker_file(named)), **options)

    def advise(self, request: PredictRequest | Callable[[], PredictRequest]) -> Advice | NoAnswer:
        """Recommend one of the requested configurations; never one that does not fit into memory.

        If `request` is a function that fails, the failure is returned as an answer too.
        """
        answer = self.predict(request)
        if isinstance(answer, NoAnswer):
            return answer
        chosen = answer.recommended
        if chosen is None:
            said = "; ".join(notice.message for notice in answer.warnings)
            return NoAnswer(NoAdvice.NOTHING_FITS, _line(said or "no configuration can be recommended"))
        if not chosen.answered or chosen.excess_memory_bytes:
            return NoAnswer(NoAdvice.NOTHING_FITS, f"{chosen.nodes} nodes were recommended but do not fit into memory")
        return Advice(chosen, answer)

    def predict(self, request: PredictRequest | Callable[[], PredictRequest]) -> PredictResult | NoAnswer:
        """Predict the requested configurations: one row for each, in their order. Other replies are faults."""

        def call(client: Client) -> PredictResult | NoAnswer:
            asked = request() if callable(request) else request
            answer = client.predict(asked)
            return answer if _is_answer_to(asked, answer) else WRONG_ANSWER

        return self.ask(call)

    def append(
        self, profile_id: str, content: ProfileContent | Callable[[], ProfileContent], *, request_id: str
    ) -> Profile | NoAnswer:
        """Add measurements to a profile. A second call with the same `request_id` changes nothing."""
        stored = self.ask(
            lambda client: client.append_profile(
                AppendProfileRequest(
                    profile_id=profile_id,
                    request_id=request_id,
                    content=content() if callable(content) else content,
                )
            )
        )
        return stored if isinstance(stored, NoAnswer) or stored.revision > 0 else WRONG_ANSWER

    def ask(self, call: Callable[[Client], AnswerT]) -> AnswerT | NoAnswer:
        """Return what a call of the client returns. Failures are returned as answers, never raised."""
        if not self._target:
            return NoAnswer(NoAdvice.NOT_CONFIGURED, "NODEWISE_SERVER is not set; give the server as host:port")
        left_seconds = self._breaker.seconds_left()
        if left_seconds > 0:
            return NoAnswer(
                NoAdvice.RESTING,
                f"{self._target} did not answer before; it is not asked again for {left_seconds:.0f} s",
            )
        try:
            answer = call(self._connected())
        except NodewiseError as error:
            reason = _reason_of(error)
            (self._breaker.failed if reason is NoAdvice.UNANSWERED else self._breaker.answered)()
            return NoAnswer(reason, _line(str(error)))
        except Exception as error:  # noqa: BLE001  # the manager must continue after any error
            return NoAnswer(NoAdvice.FAULT, _line(f"{type(error).__name__}: {error}"))
        self._breaker.answered()
        return answer

    def _connected(self) -> Client:
        with self._connecting:
            if self._client is None:
                self._client = Client.from_environment(self._target, **self._options)
            return self._client

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()
            self._client = None


def question(
    profile_id: str, *, nodes: Iterable[int], workers_per_node: int | None = None, columns: Any = None, **rest: Any
) -> PredictRequest:
    """Make a request: on which of some numbers of nodes a stored job should run.

    Args:
        profile_id: profile of the job.
        nodes: the allowed numbers of nodes.
        workers_per_node: devices used on each node; None = as in the job's evidence.
        columns: further columns for `configurations`; absent ones are as in the job's evidence.
        rest: further fields of `PredictRequest`: objective, work, offers, current, options.
    """
    counts = list(nodes)
    workers = {} if workers_per_node is None else {"workers": [count * workers_per_node for count in counts]}
    return PredictRequest(
        profile=profile_source(profile_id),
        configurations=configurations(**{"nodes": counts, **workers, **(columns or {})}),
        **rest,
    )


def _is_answer_to(asked: PredictRequest, answer: PredictResult) -> bool:
    """Whether each requested configuration has a row, and answered rows have its counts and possible numbers."""
    stated = [{}] * len(answer) if asked.configurations is None else configuration_rows(asked.configurations)
    best = answer.recommendation
    return (
        len(answer) == len(stated)
        and (best is None or 0 <= best.row < len(stated))
        and all(_is_possible(row, counts) for row, counts in zip(answer, stated, strict=True) if row.answered)
    )


def _is_possible(row: Prediction, stated: Mapping[str, Any]) -> bool:
    slowest, fastest = _RATES
    bounds = (row.lower_steps_per_second, row.upper_steps_per_second)
    others = (row.samples_per_second, row.finish_seconds, row.once_seconds, row.cost, row.memory_bytes)
    return (
        all(getattr(row, name) == stated.get(name, getattr(row, name)) for name in ("nodes", "workers"))
        and slowest < (row.steps_per_second or 0.0) < fastest
        and all(value is None or 0 <= value < float("inf") for value in (*bounds, *others))
    )


def _reason_of(error: NodewiseError) -> NoAdvice:
    match error:
        case UnavailableError() | DeadlineExceededError() | CallCancelledError() | ResourceExhaustedError():
            return NoAdvice.UNANSWERED
        case RefusedError():
            return NoAdvice.REFUSED
        case _ if error.code in {"INTERNAL", "UNKNOWN", "DATA_LOSS"}:
            return NoAdvice.FAULT
        case _:
            return NoAdvice.REJECTED


def _line(text: str) -> str:
    return " ".join(text.split())
