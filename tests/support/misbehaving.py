"""Estimators and policies for tests: one that answers, and ones that fail in every way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np

from nodewise.plugin import (
    Allocation,
    Assessment,
    Configurations,
    EstimatorRecord,
    Grant,
    NodewiseError,
    Options,
    PolicyRecord,
    Predictions,
    Profile,
    Query,
    Reason,
    RowStatus,
    SharingModelRecord,
    constant_ints,
    freeze,
)


def answered(configurations: Configurations, step_s: np.ndarray[Any, Any], spread: float = 0.1) -> Predictions:
    """Every row answered with a step time and nothing else."""
    rows = len(configurations)
    return Predictions(
        status=constant_ints(rows, RowStatus.ANSWERED),
        step_s=freeze(step_s.astype(np.float64)),
        log_spread=freeze(np.full(rows, spread)),
        breakdown_s={"compute": freeze(step_s.astype(np.float64))},
        bottlenecks=("compute",),
        bottleneck_index=constant_ints(rows, 0),
        extrapolation=freeze(np.ones(rows)),
    )


class Constant:
    """Takes one second a step, whatever is asked, and does what it is told on the way."""

    def __init__(
        self,
        *,
        assess: Callable[[], Assessment] | None = None,
        fit: Callable[[], None] | None = None,
        predict: Callable[[Configurations], Any] | None = None,
    ) -> None:
        self._assess = assess
        self._fit = fit
        self._predict = predict

    def assess(self, profile: Profile, query: Query) -> Assessment:
        return self._assess() if self._assess else Assessment(evidence=("a constant",), strength=0.01)

    def fit(self, profile: Profile, context: object) -> Constant:
        if self._fit:
            self._fit()
        return self

    def predict(self, configurations: Configurations, options: Options) -> Any:
        if self._predict:
            return self._predict(configurations)
        return answered(configurations, np.ones(len(configurations)))


def record(name: str, estimator: Any) -> EstimatorRecord:
    return EstimatorRecord(name=name, version="1.0", description="for tests", estimator=estimator)


class Decides:
    """A policy that decides what it is told."""

    def __init__(self, decide: Callable[..., Any]) -> None:
        self._decide = decide

    def decide(self, state: Any, curves: Any, budget: Any) -> Any:
        return self._decide(state, curves, budget)


def policy(name: str, decide: Callable[..., Any]) -> PolicyRecord:
    return PolicyRecord(name=name, version="1.0", description="for tests", policy=Decides(decide))


class Shares:
    """A sharing model that answers what it is told."""

    def __init__(self, predict_shares: Callable[..., Any]) -> None:
        self._predict_shares = predict_shares

    def predict_shares(self, question: Any, budget: Any) -> Any:
        return self._predict_shares(question, budget)


def sharing_model(name: str, predict_shares: Callable[..., Any]) -> SharingModelRecord:
    return SharingModelRecord(name=name, version="1.0", description="for tests", model=Shares(predict_shares))


def nothing(state: Any, curves: Any, budget: Any) -> Allocation:
    """Gives nothing to anyone."""
    return Allocation(grants=tuple(Grant(0) for _ in state.jobs))


# --- every way to misbehave inside a process

SECRET = "a secret of the server \x1b[31m\n\ud800"


class Bare(BaseException):
    """What no one but a plugin raises."""


class Unprintable(Exception):  # noqa: N818  # its name is no matter
    """An exception that cannot be written down."""

    def __str__(self) -> str:
        raise SystemExit(SECRET)

    __repr__ = __str__


class UnreadableError(NodewiseError):
    """A refusal whose reason cannot be read."""

    @property
    def kind(self) -> Any:
        raise SystemExit(SECRET)

    def __getattribute__(self, name: str) -> Any:
        if name in {"reason", "message", "metadata"}:
            raise SystemExit(SECRET)
        return super().__getattribute__(name)


class Mined:
    """An answer that goes off wherever it is touched."""

    def __getattribute__(self, name: str) -> Any:
        raise SystemExit(SECRET)


def _unreadable() -> UnreadableError:
    error = UnreadableError.__new__(UnreadableError)
    Exception.__init__(error, SECRET)
    return error


RAISED: dict[str, Callable[[], BaseException]] = {
    "an-error": lambda: RuntimeError(SECRET),
    "exit": lambda: SystemExit(SECRET),
    "interrupt": lambda: KeyboardInterrupt(SECRET),
    "generator-exit": lambda: GeneratorExit(SECRET),
    "bare": lambda: Bare(SECRET),
    "memory": lambda: MemoryError(SECRET),
    "stop": lambda: StopIteration(SECRET),
    "cancelled": lambda: asyncio.CancelledError(SECRET),
    "group": lambda: BaseExceptionGroup(SECRET, [KeyboardInterrupt(SECRET)]),
    "unprintable": Unprintable,
    "no-reason": lambda: NodewiseError("NO_REASON", SECRET, {"rows": 3}),  # type: ignore[arg-type, dict-item]
    "no-text": lambda: NodewiseError(Reason.EVIDENCE_MISSING, SECRET),
    "unreadable": _unreadable,
}
"""Exceptions by name; each is made anew for each call."""

ANSWERED: dict[str, Any] = {
    "nothing": None,
    "an-object": object(),
    "words": "words",
    "not-a-number": float("nan"),
    "mined": Mined(),
}
"""Answers by name that are right of no method."""


def misbehaving(good: Any, method: str, behave: Any) -> Any:
    """An object like ``good`` of which one method, or attribute, is replaced by a member of a class."""
    kind = type(good)
    changed = type(f"Misbehaving{kind.__name__}", (kind,), {method: behave})
    found = changed.__new__(changed)
    found.__dict__.update(good.__dict__)
    return found


def raising(raised: Callable[[], BaseException]) -> Any:
    """A method that raises."""

    def method(*_: Any) -> Any:
        raise raised()

    return method


def ways(answers: dict[str, Any], *, attribute: bool = False) -> dict[str, tuple[Any, str]]:
    """How one method may misbehave: what stands in its place, and the end of the reason of the error it costs.

    Parameters
    ----------
    answers : dict
        Further answers that are wrong of this method.
    attribute : bool
        Whether it is read, not called.
    """
    found: dict[str, tuple[Any, str]] = {}
    for name, raised in RAISED.items():
        found[name] = (property(raising(raised)) if attribute else raising(raised), "FAILED")
    if not attribute:
        found["property"] = (property(raising(RAISED["exit"])), "FAILED")
    for name, answer in {**ANSWERED, **answers}.items():

        def method(*_: Any, answer: Any = answer) -> Any:
            return answer

        found[name] = (property(method) if attribute else method, "INVALID_RESULT")
    return found
