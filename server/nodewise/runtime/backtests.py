"""Backtests by an engine: each estimator is a unit of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from nodewise.catalogue.loading import load_catalogue
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.lessons.priors import learned_from
from nodewise.evaluation.backtest import names_of
from nodewise.hosting.registry import load_registry
from nodewise.ports.executor import Outcome, WorkExecutor
from nodewise.ports.limits import Limits
from nodewise.rpc.evaluations import read_estimators, run_request
from nodewise_protos.v1beta1 import evaluation_service_pb2 as pb

__all__ = ["run_backtest_units", "scored_unit"]


def run_backtest_units(
    executor: WorkExecutor, request: pb.BacktestRequest, progress: Callable[[int, int], None]
) -> tuple[pb.BacktestResult, list[str]]:
    """The result of a backtest, the same on every engine but for times, and the faults of estimators without one.

    Parameters
    ----------
    progress : callable
        Called with the number of estimators that are done, and of all estimators.

    Raises
    ------
    NodewiseError
        INVALID_FIELD, ESTIMATOR_NOT_FOUND.
    """
    names = names_of(_answers(), read_estimators(request.estimators))
    data = request.SerializeToString(deterministic=True)
    outcomes: Iterator[Outcome[bytes]] = executor.run(scored_unit, data, names)
    by_index: dict[int, Outcome[bytes]] = {}
    for outcome in outcomes:
        by_index[outcome.index] = outcome
        progress(len(by_index), len(names))
    ordered = [by_index[index] for index in range(len(names))]
    parts = [pb.BacktestResult.FromString(each.result) for each in ordered if each.result is not None]
    evaluations = [evaluation for part in parts for evaluation in part.evaluations]
    faults = [f"{name}: {each.fault}" for name, each in zip(names, ordered) if each.result is None]
    return pb.BacktestResult(evaluations=evaluations, prior=_priors_of(part.prior for part in parts)), faults


def scored_unit(request: bytes, name: str) -> bytes:
    """The BacktestResult of one estimator; runs in the processes of an engine.

    Raises
    ------
    NodewiseError
        What Backtest raises.
    """
    message = pb.BacktestRequest.FromString(request)
    return run_request(_answers(), message, Limits(), estimators=(name,)).SerializeToString()


def _priors_of(texts: Iterator[str]) -> str:
    """Descriptions of priors as one: those with the same sources are listed together."""
    sources: dict[str, str] = {}
    for text in texts:
        for part in filter(None, text.split("; ")):
            names, _, learned = part.partition(", learned from ")
            sources |= dict.fromkeys(names.split(", "), learned)
    alike: dict[str, list[str]] = {}
    for name in sorted(sources):
        alike.setdefault(sources[name], []).append(name)
    return "; ".join(f"{', '.join(names)}, learned from {learned}" for learned, names in alike.items())


@lru_cache(maxsize=1)
def _answers() -> Answers:
    """The installed plugins, loaded once per process."""
    registry = load_registry()
    return Answers(registry, catalogue=load_catalogue(None), priors=learned_from(registry, ()).priors)
