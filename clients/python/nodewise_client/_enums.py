"""Words for what the wire writes as numbers. Each is a string, so it prints, compares and serialises as its word."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal, TypeAlias, TypeVar

from nodewise_protos.v1 import configuration_pb2, prediction_pb2, prediction_service_pb2, schedule_pb2, simulation_pb2


class SyncMode(StrEnum):
    """How workers exchange gradients, and what a step means."""

    ASYNC = "async"
    SYNC = "sync"
    ALLREDUCE = "allreduce"
    HYBRID = "hybrid"


class PlacementRule(StrEnum):
    """How workers are laid over nodes."""

    PACKED = "packed"
    SPREAD = "spread"


class Recomputation(StrEnum):
    """Which activations are computed again in the backward pass."""

    NONE = "none"
    SELECTIVE = "selective"
    FULL = "full"


class Freshness(StrEnum):
    """How fresh a fitted model must be."""

    CACHED_ONLY = "cached_only"
    ALLOW_STALE = "allow_stale"
    WAIT = "wait"


class Fidelity(StrEnum):
    """How an answer is computed."""

    MODEL = "model"
    SIMULATE = "simulate"


class PredictionColumn(StrEnum):
    """Columns that may be left out of an answer."""

    INTERVAL = "interval"
    BREAKDOWN = "breakdown"
    UTILISATION = "utilisation"
    STALENESS = "staleness"
    MEMORY = "memory"
    WORK = "work"
    EXTRA = "extra"
    NONE = "none"


class RowStatus(StrEnum):
    """What became of a row."""

    ANSWERED = "answered"
    REFUSED = "refused"
    INFEASIBLE_MEMORY = "infeasible_memory"
    UNKNOWN = "unknown"
    """A status that this version of the client does not know."""


class IntervalBasis(StrEnum):
    """Where an interval comes from."""

    MODEL_SPREAD = "model_spread"
    CONFORMAL = "conformal"
    SIMULATION = "simulation"


class ScheduleAction(StrEnum):
    """What to do with a job."""

    KEEP = "keep"
    CHANGE = "change"
    WAIT = "wait"
    NO_ANSWER = "no_answer"


class SimulationClock(StrEnum):
    """When a simulation asks the policy."""

    EVENTS = "events"
    """At every arrival, completion, failure and repair."""
    FIXED_ROUNDS = "fixed-rounds"
    """At the multiples of a round's length."""
    DRAINED_ROUNDS = "drained-rounds"
    """When every running job is through with its round's whole steps."""


class HealthStatus(StrEnum):
    """What a server says of itself, or of one of its services."""

    UNKNOWN = "unknown"
    SERVING = "serving"
    NOT_SERVING = "not_serving"
    SERVICE_UNKNOWN = "service_unknown"


SyncModeWord: TypeAlias = Literal["async", "sync", "allreduce", "hybrid"]
PlacementRuleWord: TypeAlias = Literal["packed", "spread"]
RecomputationWord: TypeAlias = Literal["none", "selective", "full"]
FreshnessWord: TypeAlias = Literal["cached_only", "allow_stale", "wait"]
FidelityWord: TypeAlias = Literal["model", "simulate"]
SimulationClockWord: TypeAlias = Literal["events", "fixed-rounds", "drained-rounds"]
PredictionColumnWord: TypeAlias = Literal[
    "interval", "breakdown", "utilisation", "staleness", "memory", "work", "extra", "none"
]

SYNC_MODES: Final = {
    SyncMode.ASYNC: configuration_pb2.SYNC_MODE_ASYNC,
    SyncMode.SYNC: configuration_pb2.SYNC_MODE_SYNC,
    SyncMode.ALLREDUCE: configuration_pb2.SYNC_MODE_ALLREDUCE,
    SyncMode.HYBRID: configuration_pb2.SYNC_MODE_HYBRID,
}
PLACEMENT_RULES: Final = {
    PlacementRule.PACKED: configuration_pb2.PLACEMENT_RULE_PACKED,
    PlacementRule.SPREAD: configuration_pb2.PLACEMENT_RULE_SPREAD,
}
RECOMPUTATIONS: Final = {
    Recomputation.NONE: configuration_pb2.RECOMPUTATION_NONE,
    Recomputation.SELECTIVE: configuration_pb2.RECOMPUTATION_SELECTIVE,
    Recomputation.FULL: configuration_pb2.RECOMPUTATION_FULL,
}
SIMULATION_CLOCKS: Final = {
    SimulationClock.EVENTS: simulation_pb2.SIMULATION_CLOCK_EVENTS,
    SimulationClock.FIXED_ROUNDS: simulation_pb2.SIMULATION_CLOCK_FIXED_ROUNDS,
    SimulationClock.DRAINED_ROUNDS: simulation_pb2.SIMULATION_CLOCK_DRAINED_ROUNDS,
}
FRESHNESS: Final = {
    Freshness.CACHED_ONLY: prediction_service_pb2.FRESHNESS_CACHED_ONLY,
    Freshness.ALLOW_STALE: prediction_service_pb2.FRESHNESS_ALLOW_STALE,
    Freshness.WAIT: prediction_service_pb2.FRESHNESS_WAIT,
}
FIDELITIES: Final = {
    Fidelity.MODEL: prediction_service_pb2.FIDELITY_MODEL,
    Fidelity.SIMULATE: prediction_service_pb2.FIDELITY_SIMULATE,
}
COLUMNS: Final = {
    PredictionColumn.INTERVAL: prediction_pb2.PREDICTION_COLUMN_INTERVAL,
    PredictionColumn.BREAKDOWN: prediction_pb2.PREDICTION_COLUMN_BREAKDOWN,
    PredictionColumn.UTILISATION: prediction_pb2.PREDICTION_COLUMN_UTILISATION,
    PredictionColumn.STALENESS: prediction_pb2.PREDICTION_COLUMN_STALENESS,
    PredictionColumn.MEMORY: prediction_pb2.PREDICTION_COLUMN_MEMORY,
    PredictionColumn.WORK: prediction_pb2.PREDICTION_COLUMN_WORK,
    PredictionColumn.EXTRA: prediction_pb2.PREDICTION_COLUMN_EXTRA,
    PredictionColumn.NONE: prediction_pb2.PREDICTION_COLUMN_NONE,
}
ROW_STATUSES: Final = {
    RowStatus.ANSWERED: prediction_pb2.ROW_STATUS_ANSWERED,
    RowStatus.REFUSED: prediction_pb2.ROW_STATUS_REFUSED,
    RowStatus.INFEASIBLE_MEMORY: prediction_pb2.ROW_STATUS_INFEASIBLE_MEMORY,
}
INTERVAL_BASES: Final = {
    IntervalBasis.MODEL_SPREAD: prediction_pb2.INTERVAL_BASIS_MODEL_SPREAD,
    IntervalBasis.CONFORMAL: prediction_pb2.INTERVAL_BASIS_CONFORMAL,
    IntervalBasis.SIMULATION: prediction_pb2.INTERVAL_BASIS_SIMULATION,
}
SCHEDULE_ACTIONS: Final = {
    ScheduleAction.KEEP: schedule_pb2.SCHEDULE_ACTION_KEEP,
    ScheduleAction.CHANGE: schedule_pb2.SCHEDULE_ACTION_CHANGE,
    ScheduleAction.WAIT: schedule_pb2.SCHEDULE_ACTION_WAIT,
    ScheduleAction.NO_ANSWER: schedule_pb2.SCHEDULE_ACTION_NO_ANSWER,
}

Word = TypeVar("Word", bound=StrEnum)
Number = TypeVar("Number", bound=int)


def to_number(table: dict[Word, Number], word: Word | str) -> Number:
    """The wire's number of a word; a word that is none of the table's is a ValueError that lists them."""
    for known, number in table.items():
        if known == word:
            return number
    raise ValueError(f"{word!r} is none of {', '.join(repr(str(known)) for known in table)}")


def to_word(table: dict[Word, Number], number: int) -> Word | None:
    """The word of a wire's number; None where it is unspecified or newer than this client."""
    return next((word for word, known in table.items() if known == number), None)
