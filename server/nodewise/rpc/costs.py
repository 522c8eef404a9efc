"""What a call costs: seconds of CPU of the event loop, of threads and of the pool, by what its request holds.

One linear model for all methods, kept as data (``costs.toml``) and fitted by ``python bench/costs.py --write``. Its
seconds are those of the machine that it was fitted on: whoever asks how long work takes scales them by what it took
lately (:mod:`nodewise.rpc.pace`), so only their ratios matter here. What a request says about its cost only once it
was read to the end, such as the events of a named trace, its size stands in for.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from nodewise.estimation.answer.answers import INLINE_ROWS, INLINE_SCALE
from nodewise_protos.v1 import options_pb2

__all__ = ["Cost", "CostModel", "Expected", "features_of", "shipped_costs"]

_SHARE: Final = 1.0 / 16.0
"""Of the newest call in what calls of a method usually cost."""


class Cost(NamedTuple):
    """Seconds of CPU of one call, by where they are spent; its threads' is in so many parts."""

    loop_s: float = 0.0
    threads_s: float = 0.0
    pool_s: float = 0.0
    parts: float = 1.0

    @property
    def a_thread_s(self) -> float:
        """Of one turn in a thread."""
        return self.threads_s / self.parts


UNKNOWN: Final = Cost()
"""Of what nothing is known."""


PLACES: Final = ("loop", "threads", "pool")
"""Where CPU is spent, as fields of :class:`Cost`."""
Features = dict[str, float]


class CostModel:
    """Costs by method.

    Parameters
    ----------
    table : mapping
        By method, place and feature the seconds of one of it.
    """

    def __init__(self, table: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
        self._coefficients = {
            method: tuple(tuple(places.get(place, {}).items()) for place in PLACES) for method, places in table.items()
        }

    @property
    def methods(self) -> frozenset[str]:
        """Those that have costs."""
        return frozenset(self._coefficients)

    def of(self, method: str, request: Any) -> Cost:
        """What a request of a method costs; nothing where nothing is known of the method."""
        return self.expected(method, features_of(method, request))

    def expected(self, method: str, features: Features) -> Cost:
        """What a request of these features costs."""
        known = self._coefficients.get(method, ((), (), ()))
        loop_s, threads_s, pool_s = (sum(each_s * features.get(name, 0.0) for name, each_s in place) for place in known)
        return Cost(loop_s, threads_s, pool_s, max(1.0, features.get("fits", 1.0)))


class Expected:
    """What calls of one method are expected to cost: as usual until their request is read, then by what it holds.

    Parameters
    ----------
    model : CostModel
        Costs of all methods.
    method : str
        Its name.
    """

    __slots__ = ("_method", "_model", "usual")

    def __init__(self, model: CostModel, method: str) -> None:
        self._model, self._method = model, method
        self.usual = model.expected(method, {"calls": 1.0})
        """Of the calls that were looked at lately."""

    def of(self, request: Any) -> Cost:
        """What a request costs, which counts among the usual ones from now on."""
        cost = self._model.of(self._method, request)
        self.usual = Cost(*(was + _SHARE * (now - was) for was, now in zip(self.usual, cost)))
        return cost


@cache
def shipped_costs() -> CostModel:
    """As they were fitted."""
    return CostModel(tomllib.loads(resources.files(__package__).joinpath("costs.toml").read_text(encoding="utf-8")))


def features_of(method: str, request: Any) -> Features:
    """What a request holds that its cost depends on: numbers that are known without a look at its values."""
    found = {"calls": 1.0, "kilobytes": request.ByteSize() / 1e3}
    counted = _COUNTED.get(method)
    if counted is not None:
        counted(request, found)
    return found


def _rows(configurations: Any) -> int:
    return max(len(configurations.workers), len(configurations.nodes))


def _cycles(options: Any, workers: float) -> float:
    """Steps of all workers that are simulated."""
    return options.simulated_steps_count * workers if options.fidelity == options_pb2.FIDELITY_SIMULATE else 0.0


def _predict(request: Any, found: Features) -> None:
    rows = _rows(request.configurations)
    aside = rows > INLINE_ROWS or max(request.configurations.workers, default=0) > INLINE_SCALE
    found |= {"rows": rows, "rows_aside": rows if aside else 0}
    found["fits"] = request.profile.HasField("content")
    if request.options.fidelity == options_pb2.FIDELITY_SIMULATE:
        found |= {"simulations": 1.0, "cycles": _cycles(request.options, sum(request.configurations.workers))}


def _batch(request: Any, found: Features) -> None:
    jobs, shared = len(request.jobs), _rows(request.configurations)
    rows = fits = workers = 0
    for job in request.jobs:
        own = job.HasField("configurations")
        rows += _rows(job.configurations) if own else shared
        fits += job.profile.HasField("content")
        workers += sum((job if own else request).configurations.workers)
    found |= {"jobs": jobs, "rows": rows, "fits": fits, "cycles": _cycles(request.options, workers)}


def _stream(request: Any, found: Features) -> None:
    question = request.WhichOneof("question")
    if question == "predict":
        _predict(request.predict, found)
    elif question == "batch":
        _batch(request.batch, found)


def _suggest(request: Any, found: Features) -> None:
    rows = _rows(request.configurations)
    found |= {"rows": rows, "weighed_rows": rows * max(1, request.max_suggestions)}


def _schedule(request: Any, found: Features) -> None:
    found["jobs"] = len(request.jobs)
    found["fits"] = sum(job.profile.HasField("content") for job in request.jobs)
    found["devices"] = sum(sum(pool.available_devices) for pool in request.cluster.pools)


def _completion(request: Any, found: Features) -> None:
    found |= {"offers": len(request.offers), "runs": max(1, request.runs_count) * len(request.offers)}


def _sharing(request: Any, found: Features) -> None:
    jobs = len(request.jobs)
    found |= {"jobs": jobs, "pairs": jobs * jobs, "runs": len(request.runs)}


def _simulate(request: Any, found: Features) -> None:
    found |= {"jobs": request.jobs.count, "runs": request.jobs.count * max(1, request.repetitions_count)}


def _plan(request: Any, found: Features) -> None:
    found["devices"] = sum(
        max(pool.nodes.values, default=1) * max(1, pool.workers_per_node) for pool in request.constraints.pools
    )


def _backtest(request: Any, found: Features) -> None:
    found |= {"jobs": len(request.table.job_names), "rows": len(request.table.job_indexes)}


_COUNTED: Final[Mapping[str, Callable[[Any, Features], None]]] = MappingProxyType(
    {
        "Predict": _predict,
        "BatchPredict": _batch,
        "StreamPredict": _stream,
        "SuggestMeasurements": _suggest,
        "Schedule": _schedule,
        "EstimateCompletion": _completion,
        "PredictSharing": _sharing,
        "Simulate": _simulate,
        "Plan": _plan,
        "Backtest": _backtest,
    }
)
