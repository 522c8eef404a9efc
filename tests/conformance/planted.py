"""Plugins that do one thing wrong each: a right one, spoilt in one place."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from nodewise_example_amdahl import nodewise_estimators as amdahl
from nodewise_example_busy import nodewise_diagnosers as busy
from nodewise_example_rotation import nodewise_policies as rotation
from nodewise_example_steplog import nodewise_trace_readers as steplog

from nodewise.plugin import (
    BASIC_COLUMNS,
    Assessment,
    Grant,
    NodewiseError,
    Predictions,
    Prior,
    Reason,
    Refusal,
    hookimpl,
)
from nodewise_partitioning.plugin import nodewise_estimators as partitioning
from nodewise_scaling.plugin import nodewise_estimators as scaling
from nodewise_sharing.plugin import nodewise_sharing_models as fitted_sharing
from nodewise_unseen.plugin import nodewise_estimators as unseen


class Plugin:
    """Registers one record, whatever its kind."""

    def __init__(self, record: Any) -> None:
        self.record = record

    def _of(self, kind: str) -> list[Any]:
        return [self.record] if type(self.record).__name__ == kind else []

    @hookimpl
    def nodewise_estimators(self) -> list[Any]:
        return self._of("EstimatorRecord")

    @hookimpl
    def nodewise_policies(self) -> list[Any]:
        return self._of("PolicyRecord")

    @hookimpl
    def nodewise_trace_readers(self) -> list[Any]:
        return self._of("TraceReaderRecord")

    @hookimpl
    def nodewise_diagnosers(self) -> list[Any]:
        return self._of("DiagnoserRecord")

    @hookimpl
    def nodewise_sharing_models(self) -> list[Any]:
        return self._of("SharingModelRecord")


class Spoilt:
    """An object of which some methods are others: each gets the right method first."""

    def __init__(self, right: Any, **methods: Callable[..., Any]) -> None:
        self._right = right
        for name, method in methods.items():
            setattr(self, name, self._bound(name, method))

    def _bound(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        right = getattr(self._right, name, None)
        return lambda *arguments: method(right, *arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._right, name)


@dataclass(frozen=True)
class Planted:
    """A check, the plugin that must not pass it, and what it is told."""

    kind: str
    check: str
    told: str
    plugin: Plugin

    def __str__(self) -> str:
        return f"{self.kind}: {self.check}: {self.told}"


# --- estimators


def estimator(
    check: str, told: str, *, of: Any = amdahl, columns: frozenset[str] = frozenset(), **wrong: Any
) -> Planted:
    """``wrong`` are methods of the estimator, or of its model."""
    (record, *_) = of()
    own = {name: wrong.pop(name) for name in ("assess", "fit", "learn") if name in wrong}
    if wrong:
        own["fit"] = lambda right, *asked: Spoilt(right(*asked), **wrong)
    wrongly = replace(record, estimator=Spoilt(record.estimator, **own), columns=record.columns | columns)
    return Planted("estimator", check, told, Plugin(wrongly))


def scaled(predictions: Predictions, by: Any) -> Predictions:
    """Steps so many times as long, in all their parts."""
    return replace(
        predictions,
        step_s=predictions.step_s * by,
        breakdown_s={name: part * by for name, part in predictions.breakdown_s.items()},
    )


def with_factor(factor: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda right, rows, options: scaled(right(rows, options), factor(rows))


class Drifting:
    """Another factor each time."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, rows: Any) -> float:
        self.asked += 1
        return 1.0 + self.asked / 100


def write(column: np.ndarray, value: Any) -> None:
    column[:1] = value


def writing(right: Any, rows: Any, options: Any) -> Predictions:
    write(rows.workers, 1)
    return right(rows, options)


def noisy(right: Any, *asked: Any) -> Any:
    chance = 1.0 + np.random.default_rng().random()
    return Spoilt(right(*asked), predict=with_factor(lambda rows: chance))


def wordless(right: Any, profile: Any, query: Any) -> Assessment:
    found = right(profile, query)
    return Assessment(refusal=Refusal(Reason.EVIDENCE_MISSING, "no")) if found.refusal is not None else found


def learned(right: Any, corpus: Any) -> Prior:
    known = list(corpus)
    return Prior(prior_id=known[0].digest, estimator="scaling", sources=(), content=None)


class Larger(Spoilt):
    """A space whose bounds are above what they bound."""

    def lower_bound(self) -> Any:
        return {name: values * 1.5 for name, values in self._right.lower_bound().items()}


def evaluated(right: Any, rows: Any, columns: Any) -> Any:
    return {name: values * (1.01 if name == "step_s" else 1.0) for name, values in right(rows, columns).items()}


def by_count(right: Any, profile: Any, query: Any) -> Assessment:
    found = right(profile, query)
    return replace(found, expected_log_error=0.1 * len(query.configurations)) if found.refusal is None else found


ESTIMATORS = (
    estimator(
        "answers",
        "answers no row of any job",
        assess=lambda right, *asked: Assessment(refusal=Refusal.missing("never", "observations")),
    ),
    estimator(
        "shapes, bounds and sums",
        "the breakdown does not add up",
        predict=lambda right, *asked: replace((found := right(*asked)), step_s=found.step_s * 2.0),
    ),
    estimator("shapes, bounds and sums", "is not finite", predict=with_factor(lambda rows: float("nan"))),
    estimator("shapes, bounds and sums", "instead of Predictions", predict=lambda right, *asked: None),
    estimator("shapes, bounds and sums", "raised ZeroDivisionError", predict=lambda right, *asked: 1 // 0),
    estimator("inputs are not written to", "writes to an argument", predict=writing),
    estimator("purity", "differs the second time", predict=with_factor(Drifting())),
    estimator("determinism", "with one seed differ", fit=noisy),
    estimator("order of rows", "order of the rows", predict=with_factor(lambda rows: 1.0 + np.arange(len(rows)))),
    estimator("all rows as row by row", "one by one", predict=with_factor(lambda rows: float(len(rows)))),
    estimator("expected errors as row by row", "another expected_log_error for row 0 alone", assess=by_count),
    estimator("refusals", "names no field", assess=wordless),
    estimator("columns", "columns lists zero_stage", columns=BASIC_COLUMNS | {"zero_stage"}),
    estimator("learning", "order of the corpus", of=scaling, learn=learned),
    estimator(
        "covariance", "no covariance", of=scaling, log_covariance=lambda right, *asked: -np.eye(len(right(*asked)))
    ),
    estimator(
        "architectures at once as one by one",
        "differ in step_s from one by one",
        of=unseen,
        predict_architectures=lambda right, *asked: replace(
            found := right(*asked), predictions=scaled(found.predictions, 1.01)
        ),
    ),
    estimator(
        "architectures at once as one by one",
        "returns an invalid answer: own_log_errors is negative",
        of=unseen,
        predict_architectures=lambda right, *asked: replace(
            found := right(*asked), own_log_errors=found.own_log_errors - 1.0
        ),
    ),
    estimator("evaluate as predict", "another step_s than predict", of=partitioning, evaluate=evaluated),
    estimator(
        "lower bounds",
        "below the bound of its prefix",
        of=partitioning,
        space=lambda right, *asked: Larger(right(*asked)),
    ),
)


# --- policies


def policy(check: str, told: str, decide: Any, **changes: Any) -> Planted:
    (record,) = rotation()
    wrongly = replace(record, policy=Spoilt(record.policy, decide=decide), **changes)
    return Planted("policy", check, told, Plugin(wrongly))


def nothing(right: Any, state: Any, *asked: Any) -> Any:
    return replace(right(state, *asked), grants=(Grant(0),) * len(state.jobs))


def too_much(right: Any, state: Any, *asked: Any) -> Any:
    return replace(right(state, *asked), grants=(Grant(4, 0),) * len(state.jobs))


def too_few(right: Any, state: Any, *asked: Any) -> Any:
    found = right(state, *asked)
    return replace(found, grants=found.grants[:-1])


def cleared(right: Any, state: Any, *asked: Any) -> Any:
    found = right(state, *asked)
    state.parameters.clear()
    return found


class Remembering:
    """Keeps the time of the first question that it got."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, right: Any, state: Any, *asked: Any) -> Any:
        self.count += 1
        return replace(right(state, *asked), memory=str(self.count).encode())


def forgetful(right: Any, state: Any, *asked: Any) -> Any:
    if state.memory:
        raise ValueError(state.memory)
    return right(state, *asked)


def patient(right: Any, state: Any, curves: Any, budget: Any) -> Any:
    if budget.remaining_s() <= 0.0:
        raise TimeoutError
    return right(state, curves, budget)


def fussy(right: Any, state: Any, *asked: Any) -> Any:
    if state.parameters["largest_share"] >= 1.0:
        raise ValueError
    return right(state, *asked)


POLICIES = (
    policy("gives", "gives no job a device", nothing),
    policy("feasibility", "", too_much),
    policy("feasibility", "", too_few),
    policy("inputs are not written to", "decide writes to parameters", cleared),
    policy("purity", "keep state in memory alone", Remembering()),
    policy("memory", "decide on 'four jobs' raised ValueError", forgetful),
    policy("no time left", "failed in decide", patient),
    policy("parameters", "failed in decide", fussy),
)


# --- readers


def reader(check: str, told: str, **wrong: Any) -> Planted:
    (record,) = steplog()
    wrongly = replace(record, reader=Spoilt(record.reader, **wrong))
    return Planted("trace_reader", check, told, Plugin(wrongly))


def turned(right: Any, *asked: Any) -> Any:
    return [replace(trace, begin_ns=trace.begin_ns[::-1]) for trace in right(*asked)]


def hasty(right: Any, stream: Any, source: Any) -> Any:
    """Takes what one read gives for the whole file."""
    import io

    return right(io.BytesIO(stream.raw.read(1 << 20)), source)


def waiting(right: Any, stream: Any, source: Any) -> Any:
    found = right(stream, source)
    while not stream.read(1).endswith(b"end"):
        time.sleep(0)
    return found


def careless(right: Any, stream: Any, source: Any) -> Any:
    try:
        return right(stream, source)
    except NodewiseError:
        raise KeyError("rank") from None


def talkative(right: Any, *asked: Any) -> Any:
    return [replace(trace, names=("/home/ann/loop.py", *trace.names[1:])) for trace in right(*asked)]


READERS = (
    reader("recognises", "a confidence from 0 to 1", recognises=lambda right, *asked: 3.0),
    reader("recognises", "does not recognise", recognises=lambda right, *asked: 0.0),
    reader("reads", "not in order of begin", read=turned),
    reader(
        "reads", "states the format", read=lambda right, *asked: [replace(each, format="?") for each in right(*asked)]
    ),
    reader("pieces of any size", "refuses", read=hasty),
    reader("damage", "raised KeyError", read=careless),
    reader("damage", "reads on after the end", read=waiting),
    reader("paths, hosts and users", "strip paths", read=talkative),
)


# --- diagnosers


def diagnoser(check: str, told: str, **wrong: Any) -> Planted:
    (record,) = busy()
    wrongly = replace(record, diagnoser=Spoilt(record.diagnoser, **wrong))
    return Planted("diagnoser", check, told, Plugin(wrongly))


def refusing(right: Any, *asked: Any) -> Any:
    raise NodewiseError(Reason.NOT_IMPLEMENTED, "never")


def scribbling(right: Any, traces: Any, *asked: Any) -> Any:
    write(traces[0].begin_ns, 1)
    return right(traces, *asked)


def idler(right: Any, *asked: Any) -> Any:
    found = right(*asked)
    return replace(found, ranks=tuple(replace(each, idle_s=each.idle_s + 0.001) for each in found.ranks))


def late(right: Any, *asked: Any) -> Any:
    if asked[-1].remaining_s() <= 0.0:
        raise TimeoutError
    return right(*asked)


class Talkative:
    """Says each time something else."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, right: Any, *asked: Any) -> Any:
        self.count += 1
        return replace(right(*asked), warnings=(f"asked {self.count} times",))


DIAGNOSERS = (
    diagnoser("answers", "refuses every recording", replay=refusing, diagnose=refusing),
    diagnoser("answers", "raised StopIteration", diagnose=lambda right, *asked: next(iter(()))),
    diagnoser("replays", "tests steps", replay=lambda right, traces, asked, run: right(traces, type(asked)(), run)),
    diagnoser("replays", "replay is of ranks", replay=lambda right, *asked: replace(right(*asked), ranks=(0, 2))),
    diagnoser("sums", "add up to", diagnose=idler),
    diagnoser(
        "order", "bottlenecks where 2 were requested", diagnose=lambda right, a, b, q, c: right(a, b, type(q)(), c)
    ),
    diagnoser("inputs are not written to", "writes to an argument", replay=scribbling),
    diagnoser("purity", "warnings", diagnose=Talkative()),
    diagnoser("no time left", "raised TimeoutError", diagnose=late),
)

# --- sharing models


def sharing(check: str, told: str, wrong: Callable[..., Any]) -> Planted:
    """The shipped model with another way to answer."""
    (record,) = fitted_sharing()
    wrongly = replace(record, model=Spoilt(record.model, predict_shares=wrong))
    return Planted("sharing_model", check, told, Plugin(wrongly))


def certain(right: Any, question: Any, budget: Any) -> Any:
    """No range, not even of jobs that were never seen."""
    return [replace(each, low=each.high, middle=each.low) for each in right(question, budget)]


def first_wins(right: Any, question: Any, budget: Any) -> Any:
    """Whoever stands first keeps less."""
    found = []
    for each in right(question, budget):
        middle = each.middle.copy()
        middle[0] = each.low[0]
        total = each.total[0], float(middle.sum()), each.total[2]
        found.append(replace(each, middle=middle, total=total))
    return found


def in_company(right: Any, question: Any, budget: Any) -> Any:
    """The more sets are asked about, the less is kept."""
    part = 1.0 / len(question.sets)
    return [
        replace(
            each,
            low=each.low * part,
            middle=each.middle * part,
            high=each.high * part,
            total=tuple(t * part for t in each.total),
        )
        for each in right(question, budget)
    ]


def untaught(right: Any, question: Any, budget: Any) -> Any:
    return right(replace(question, runs=()), budget)


class Tiring:
    """Keeps less with every call."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, right: Any, question: Any, budget: Any) -> Any:
        self.calls += 1
        return [replace(each, warnings=(str(self.calls),)) for each in right(question, budget)]


def impatient(right: Any, question: Any, budget: Any) -> Any:
    if budget.remaining_s() <= 0:
        raise TimeoutError
    return right(question, budget)


def refusing_modes(right: Any, question: Any, budget: Any) -> Any:
    raise NodewiseError(Reason.NOT_IMPLEMENTED, "no mode is known")


SHARING = (
    sharing("answers", "refuses every mode", refusing_modes),
    sharing("answers", "low, middle and high must be 0 or more and ascend", certain),
    sharing("order of jobs", "depend on the order", first_wins),
    sharing("company of sets", "depend on the other sets", in_company),
    sharing("measured pairs", "ran with the shares", untaught),
    sharing("purity", "warnings", Tiring()),
    sharing("no time left", "raised TimeoutError", impatient),
)
PLANTED = (*ESTIMATORS, *POLICIES, *READERS, *DIAGNOSERS, *SHARING)
