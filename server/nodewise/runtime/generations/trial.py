"""Trial of a generation beside the serving one: it must load, pass conformance checks, and answer recent requests."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Set
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

import structlog

from nodewise.conformance.cases import registry_cases
from nodewise.conformance.findings import NonConformanceError
from nodewise.domain.errors import Kind, NodewiseError
from nodewise.estimation.question import AUTO
from nodewise.hosting.registry import Registry
from nodewise.mapper.mapping import timestamp
from nodewise.rpc.calls import Call, run_in
from nodewise.runtime.generations.load_check import newly_left_out
from nodewise.runtime.generations.serving_state import ServingState
from nodewise.runtime.settings import Settings
from nodewise_protos.v1 import options_pb2
from nodewise_protos.v1.prediction_service_pb2 import PredictRequest, PredictResponse
from nodewise_protos.v1beta1 import admin_service_pb2 as pb

__all__ = ["run_trial", "trial_of"]

_log = structlog.get_logger(__name__)

CONFORMANCE_SHARE: Final = 0.6
"""Share of a trial's time for conformance checks; the rest is for requests."""
ASKED_S: Final = 10.0
"""Most seconds of one shadowed request."""
_OF_ITS_OWN: Final = frozenset({"answers"})
"""Checks that ask for evidence which only a plugin's author has: jobs of the kind that it answers."""


def trial_of(*failures: str, **more: Any) -> pb.Trial:
    """Return a trial that ends now. ``failures`` say why the generation must not serve; without failures it may."""
    return pb.Trial(trial_time=timestamp(time.time()), failures=failures, **more)


async def run_trial(settings: Settings, before: ServingState, after: ServingState) -> pb.Trial:
    """Check the changed plugins, and repeat the latest requests, within the time of the settings."""
    current, other = before.loaded_plugins.registry, after.loaded_plugins.registry
    names = {name for _, name, *_ in _records(other) - _records(current)}
    failures = newly_left_out(other, [(problem.name, problem.distribution) for problem in current.problems])
    pass_count = left_out = 0
    differences: list[pb.EstimatorDifference] = []
    seconds = settings.swap_trial_s
    if not failures and names and seconds:
        check = await run_in(None, _check, other, names, seconds * CONFORMANCE_SHARE)
        failures, pass_count, left_out = check
    if not failures and settings.swap_shadowed_requests and seconds:
        most, share = settings.swap_shadowed_requests, 1.0 - CONFORMANCE_SHARE
        differences = await _compare(before, after, most, seconds * share)
        failures = [
            f"estimator {each.estimator}: {each.failures_count} of {each.requests_count} recent requests fail that "
            f"{each.version_before or 'the one that serves'} answers or refuses"
            for each in differences
            if each.failures_count
        ]
    missing = [
        f"{kind} {name!r} is missing"
        for kind, records in current.by_kind.items()
        for name in records
        if name not in other.by_kind[kind]
    ]
    return trial_of(
        *failures,
        notices=missing,
        checks_passed_count=pass_count,
        checks_left_out_count=left_out,
        differences=differences,
    )


def _records(registry: Registry) -> set[tuple[str, ...]]:
    """Return keys that identify records across registries: kind, name, and origin."""
    return {
        (kind, name, plugin.distribution, plugin.origin, plugin.record.version)
        for kind, records in registry.by_kind.items()
        for name, plugin in records.items()
    }


def _check(registry: Registry, names: Set[str], seconds: float) -> tuple[list[str], int, int]:
    """Run conformance checks of records, one after the other until one fails.

    Returns
    -------
    tuple of (list of str, int, int)
        Failures, number of checks passed, number of checks skipped (out of time, or after a failure).
    """
    ends_s = time.monotonic() + seconds
    cases = [case for case in registry_cases(registry, names) if case.check not in _OF_ITS_OWN]
    for pass_count, case in enumerate(cases):
        if time.monotonic() > ends_s:
            return [], pass_count, len(cases) - pass_count
        try:
            case.run()
            continue
        except NonConformanceError as error:
            failure = str(error)
        except NodewiseError as error:
            failure = error.message
        except Exception as error:  # noqa: BLE001  # a plugin's fault in some other guise
            _log.warning("conformance_failed", case=str(case), exc_info=error)
            failure = f"it raised {type(error).__name__}"
        return [f"{case}: {failure}"], pass_count, len(cases) - pass_count - 1
    return [], len(cases), 0


# --- shadowing: the requests that were answered last, asked of both generations


@dataclass(slots=True)
class _Comparison:
    """Comparison of the replies to requests for one estimator."""

    difference_message: pb.EstimatorDifference
    log_ratios: list[float] = field(default_factory=list)
    seconds: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))

    def add(self, before: PredictResponse | NodewiseError, after: PredictResponse | NodewiseError) -> None:
        """Add the replies or refusals of both generations to one request."""
        difference_message = self.difference_message
        if _is_fault(after) and not _is_fault(before):
            difference_message.failures_count += 1
        elif isinstance(before, NodewiseError) or isinstance(after, NodewiseError):
            difference_message.changed_refusals_count += getattr(before, "reason", None) != getattr(
                after, "reason", None
            )
        else:
            difference_message.version_before, difference_message.version_after = (
                each.basis.estimator_version for each in (before, after)
            )
            for one, other in zip(before.predictions.steps_per_second, after.predictions.steps_per_second):
                if one > 0.0 and other > 0.0:
                    self.log_ratios.append(abs(math.log(other / one)))
                else:
                    difference_message.changed_refusals_count += (one > 0.0) != (other > 0.0)

    def difference(self) -> pb.EstimatorDifference:
        """The comparison in numbers."""
        difference_message, ratios = self.difference_message, self.log_ratios
        difference_message.requests_count, difference_message.rows_count = len(self.seconds[0]), len(ratios)
        difference_message.median_log_ratio, difference_message.largest_log_ratio = (
            median(ratios or [0.0]),
            max(ratios, default=0.0),
        )
        difference_message.median_seconds_before, difference_message.median_seconds_after = map(median, self.seconds)
        return difference_message


async def _compare(
    before: ServingState, after: ServingState, most: int, seconds: float
) -> list[pb.EstimatorDifference]:
    """Send requests to both generations, newest first, one at a time. Simulations are skipped: they are slow."""
    ends_s = time.monotonic() + seconds
    comparisons: dict[str, _Comparison] = {}
    for data in before.predictions.recent(most):
        if time.monotonic() > ends_s:
            break
        request = PredictRequest.FromString(data)
        if request.options.fidelity == options_pb2.FIDELITY_SIMULATE:
            continue
        name = request.options.model.estimator or AUTO
        comparison = comparisons.setdefault(name, _Comparison(pb.EstimatorDifference(estimator=name)))
        replies = [await _ask(*each, request) for each in zip((before, after), comparison.seconds)]
        comparison.add(*replies)
        await asyncio.sleep(0)  # calls come first
    return [comparisons[name].difference() for name in sorted(comparisons)]


async def _ask(
    serving_state: ServingState, seconds: list[float], request: PredictRequest
) -> PredictResponse | NodewiseError:
    started_s = time.perf_counter()
    try:
        data: Any = await serving_state.predictions.predict(request, Call("shadow", time.monotonic() + ASKED_S))
        return PredictResponse.FromString(data)
    except NodewiseError as error:
        return error
    finally:
        seconds.append(time.perf_counter() - started_s)


def _is_fault(reply: PredictResponse | NodewiseError) -> bool:
    """Return whether the server or a plugin is at fault."""
    return isinstance(reply, NodewiseError) and reply.kind in (Kind.INTERNAL, Kind.UNAVAILABLE)
