"""Suggestions: what to measure next, what it would teach and what it costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from nodewise_client._configurations import (
    Configurations,
    NodeRange,
    WorkerRange,
    configurations_to_wire,
    ranges_to_wire,
)
from nodewise_client._evidence import ProfileContent, source_to_wire
from nodewise_client._objectives import Objective, Rule, objective_to_wire
from nodewise_client._predictions import Basis, Notice, Rows, basis_from_wire
from nodewise_client._questions import PredictOptions, options_to_wire
from nodewise_protos.v1 import prediction_service_pb2 as wire


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementSuggestion:
    """A measurement worth making."""

    row: int
    """Row of what may be run: explicit configurations first, then those of the ranges in order."""
    nodes: int
    workers: int
    cost_node_s: float
    """Nodes held, times start-up and steps of the run, node-seconds."""
    expected_regret_fall: float
    """Expected fall of the decision's regret, as a share of the best throughput."""
    expected_width_fall: float
    """Expected fall of ln(upper / lower) of the interval, averaged over the rows."""
    why: str
    """For people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestResult(Rows[MeasurementSuggestion]):
    """The next measurements: a sequence, best first; each rests on those before it."""

    suggestions: tuple[MeasurementSuggestion, ...]
    """Empty where no measurement would teach anything; a warning then says why."""
    expected_regret: float
    """Expected regret of deciding without a measurement, as a share of the best throughput."""
    basis: Basis
    warnings: tuple[Notice, ...]
    raw: wire.SuggestMeasurementsResponse = field(repr=False, compare=False)
    """The message as it came."""

    def _items(self) -> tuple[MeasurementSuggestion, ...]:
        return self.suggestions


def suggest_request(
    profile: str | ProfileContent,
    *,
    configurations: Configurations | None,
    ranges: Iterable[NodeRange | WorkerRange],
    objective: Objective | Rule | None,
    count: int,
    start_up_s: float,
    run_steps: int,
    options: PredictOptions | None,
    minimum_revision: int,
) -> wire.SuggestMeasurementsRequest:
    """A question about the next measurement as its message."""
    return wire.SuggestMeasurementsRequest(
        profile=source_to_wire(profile, minimum_revision),
        configurations=None if configurations is None else configurations_to_wire(configurations),
        ranges=ranges_to_wire(ranges),
        objective=objective_to_wire(objective),
        suggestions_count=count,
        start_up_seconds=start_up_s,
        run_steps_count=run_steps,
        options=options_to_wire(options),
    )


def suggest_result(message: wire.SuggestMeasurementsResponse) -> SuggestResult:
    """The suggestions that a message holds."""
    return SuggestResult(
        suggestions=tuple(
            MeasurementSuggestion(
                row=found.row,
                nodes=found.nodes,
                workers=found.workers,
                cost_node_s=found.cost_node_seconds,
                expected_regret_fall=found.expected_regret_fall,
                expected_width_fall=found.expected_width_fall,
                why=found.why,
            )
            for found in message.suggestions
        ),
        expected_regret=message.expected_regret,
        basis=basis_from_wire(message.basis),
        warnings=tuple(
            Notice(reason=found.reason, message=found.message, rows=tuple(found.rows)) for found in message.warnings
        ),
        raw=message,
    )
