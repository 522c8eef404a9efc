"""The JSON specification of a simulation: jobs, curves, cluster, policies, time, costs and randomness."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from nodewise_cli.failures import InputError

__all__ = [
    "CurveSpec",
    "GenerateSpec",
    "InlineJob",
    "LawSpec",
    "PolicySpec",
    "Rates",
    "SharedPairSpec",
    "SimulationSpec",
    "SpecT",
    "SweepSpec",
    "checked_spec",
    "parsed_cluster",
]

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, strict=True)]
MOST_SEEDS: Final = 100_000
_UNKNOWN: Final = "unknown_key"
"""What an error is called that says so."""
Rates = Mapping[str, Mapping[int, Positive]]
"""Samples/s by pool and worker devices."""

_SIZE: Final = re.compile(r"(\d{1,7})(?:x(\d{1,5}))?", re.ASCII)
_SIZE_FORM: Final = "must be a number of nodes with one device each, such as 8, or nodes x devices, such as 2x4"


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: Any) -> Any:
        names = [field.alias or name for name, field in cls.model_fields.items()]
        keys = value if isinstance(value, dict) and cls.model_config["extra"] == "forbid" else {}
        for name in keys:
            if name not in names:
                near = "".join(f" (did you mean {each}?)" for each in get_close_matches(name, names, 1))
                context = {"name": name, "near": near, "known": ", ".join(names)}
                raise PydanticCustomError(_UNKNOWN, "is unknown{near}; fields are: {known}", context)
        return value


class PoolSpec(_Model):
    """Nodes of one kind. ``device`` empty = as the pool is named. Failures are what the policy knows of them."""

    name: Annotated[str, Field(min_length=1)]
    device: str = ""
    nodes: Count
    devices_per_node: Count = 1
    link_bytes_per_s: NotNegative = 0.0
    device_hours_between_failures: Positive | None = None
    restart_s: NotNegative | None = None


class LawSpec(_Model):
    """A law of arrivals or sizes, and its parameters by name."""

    model_config = ConfigDict(frozen=True, extra="allow")

    law: str


class GenerateSpec(_Model):
    """Jobs that are made up; ``sizes`` are seconds on the requested devices."""

    jobs: Count
    arrivals: LawSpec
    sizes: LawSpec
    curves: tuple[str, ...] = ()
    requested: Annotated[tuple[Count, ...], Field(min_length=1)] = (1,)
    rigid: bool = False


class InlineJob(_Model):
    """A job, with the columns of the table of jobs."""

    job: Annotated[str, Field(min_length=1)]
    arrival_s: NotNegative
    samples: Positive
    curve: str
    requested_devices: Count = 1
    rigid: bool = False
    stop_samples: NotNegative | None = None
    samples_per_step: NotNegative = 0.0
    restart_cost_s: NotNegative | None = None
    weight: Positive = 1.0
    queue: str = ""
    deadline_s: NotNegative | None = None
    minimum_run_s: NotNegative = 0.0
    server_devices: Annotated[int, Field(ge=0)] = 0


Format = Literal["auto", "gavel", "pollux", "philly", "helios", "sacct", "alibaba-2020", "alibaba-2023", "table"]


class JobsSpec(_Model):
    """Where jobs come from: a file, a generator, or a list."""

    file: str | None = None
    format: Format = "auto"
    applications: tuple[str, ...] | None = None
    rigid: bool = False
    generate: GenerateSpec | None = None
    listed: tuple[InlineJob, ...] | None = Field(None, alias="list")

    @model_validator(mode="after")
    def _one(self) -> JobsSpec:
        sources = [name for name in ("file", "generate", "listed") if getattr(self, name) is not None]
        if len(sources) != 1:
            raise ValueError("must be a list of jobs, {'file': ...} or {'generate': ...}")
        return self


class CurveSpec(_Model):
    """Throughput over devices: rates that are true, rates that the policy sees, or a profile to predict them from.

    With a profile alone its prediction is true; with rates beside it the policy sees the prediction.
    """

    samples_per_s: Rates | None = None
    predicted_samples_per_s: Rates | None = None
    profile: Mapping[str, Any] | None = None
    allowed_devices: tuple[Count, ...] = ()

    @model_validator(mode="after")
    def _something(self) -> CurveSpec:
        if self.samples_per_s is None and self.profile is None:
            raise ValueError("must have samples_per_s or a profile")
        if self.predicted_samples_per_s is not None and self.profile is not None:
            raise ValueError("must have either predicted_samples_per_s or a profile, not both")
        return self


class SharedPairSpec(_Model):
    """Jobs of two curves on one device: the share of its solo speed that each keeps, true and predicted."""

    curves: tuple[str, str]
    shares: tuple[Positive, Positive]
    predicted_shares: tuple[Positive, Positive] | None = None
    pool: str = ""


class PolicySpec(_Model):
    """A policy and its parameters."""

    name: str = ""
    parameters: Mapping[str, float] = Field(default_factory=dict)
    label: str = ""

    @property
    def display_name(self) -> str:
        """The name in tables."""
        if self.label:
            return self.label
        parameters_text = ", ".join(f"{name}={value:g}" for name, value in sorted(self.parameters.items()))
        return f"{self.name}({parameters_text})" if parameters_text else self.name


class CheckpointsSpec(_Model):
    """A job saves its state."""

    interval_s: Positive
    cost_s: NotNegative = 0.0


class FailuresSpec(_Model):
    """Nodes fail."""

    mean_time_between_failures_s: Positive
    mean_repair_s: Positive


class EarlyStopsSpec(_Model):
    """Jobs end early."""

    probability: Annotated[float, Field(ge=0, le=1)]
    progress_shares: tuple[Annotated[float, Field(ge=0, le=1)], ...] = Field((), alias="progress")


class PredictionErrorSpec(_Model):
    """What the policy sees of curves is wrong by chance."""

    job_sigma: NotNegative = 0.0
    row_sigma: NotNegative = 0.0


def _as_jobs(value: Any) -> Any:
    return {"list": value} if isinstance(value, list) else value


def _as_policies(value: Any) -> Any:
    entries = value if isinstance(value, list | tuple) else [value]
    return [{"name": each} if isinstance(each, str) else each for each in entries]


def parsed_cluster(value: Any) -> Any:
    """Pools of ``{"v100": 8, "t4": "2x4"}`` or of ``v100=8,t4=2x4``; a list stays as it is."""
    if isinstance(value, str):
        parts = [part.partition("=") for part in value.split(",")]
        wrong = next((name + mark for name, mark, size in parts if not (name and mark and size)), None)
        if wrong is not None:
            raise ValueError(f"must be pools such as v100=8,t4=2x4, found {value!r}")
        value = {name.strip(): size.strip() for name, _, size in parts}
    if not isinstance(value, dict):
        return value
    pools = []
    for name, size in value.items():
        match = _SIZE.fullmatch(str(size))
        if match is None or not int(match[1]) or match[2] == "0":
            raise ValueError(f"{name}: {_SIZE_FORM}; found {size!r}")
        pools.append({"name": name, "nodes": int(match[1]), "devices_per_node": int(match[2] or 1)})
    return pools


_Cluster: TypeAlias = tuple[PoolSpec, ...] | Mapping[str, int | str] | str
_Policies: TypeAlias = str | PolicySpec | tuple[str | PolicySpec, ...]
"""What a file may hold; only the first is a value."""


class SimulationSpec(_Model):
    """A simulation."""

    jobs: Annotated[JobsSpec, BeforeValidator(_as_jobs, json_schema_input_type=JobsSpec | tuple[InlineJob, ...])]
    throughputs: str | None = None
    curves: Mapping[str, CurveSpec] = Field(default_factory=dict)
    cluster: Annotated[
        tuple[PoolSpec, ...],
        BeforeValidator(parsed_cluster, json_schema_input_type=_Cluster),
        Field(min_length=1),
    ]
    policy: Annotated[
        tuple[PolicySpec, ...],
        BeforeValidator(_as_policies, json_schema_input_type=_Policies),
        Field(min_length=1),
    ] = (PolicySpec(),)
    shared_pairs: tuple[SharedPairSpec, ...] = ()
    quotas: Mapping[str, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    clock: Literal["events", "fixed-rounds", "drained-rounds"] | None = None
    round_s: Positive | None = None
    on_changes_only: bool | None = None
    minimum_decision_interval_s: NotNegative | None = None
    restart_cost_s: NotNegative | None = None
    first_start_cost_s: NotNegative | None = None
    checkpoints: CheckpointsSpec | None = None
    failures: FailuresSpec | None = None
    early_stops: EarlyStopsSpec | None = None
    prediction_error: PredictionErrorSpec | None = None
    load: Positive = 1.0
    seed: Annotated[int, Field(ge=0, strict=True)] = 0
    repetitions: Count = 1

    @model_validator(mode="after")
    def _distinct(self) -> SimulationSpec:
        for pool in _twins([pool.name for pool in self.cluster]):
            raise ValueError(f"cluster: names of pools must be unique, found {pool!r} twice")
        for number, pair in enumerate(self.shared_pairs):
            if pair.pool and pair.pool not in [pool.name for pool in self.cluster]:
                raise ValueError(f"shared_pairs.{number}.pool: must name a pool of the cluster, found {pair.pool!r}")
        for policy in _twins([policy.display_name for policy in self.policy]):
            raise ValueError(f"policy: found {policy!r} twice; give each a label of its own")
        return self


def _twins(values: Sequence[Any]) -> list[Any]:
    """Values that occur more than once."""
    return [value for value, count in Counter(values).items() if count > 1]


def _as_seeds(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int):
        return value
    if not 1 <= value <= MOST_SEEDS:
        raise ValueError(f"must be a list of seeds, or the number of seeds, 1 to {MOST_SEEDS:,}")
    return list(range(value))


class SweepSpec(SimulationSpec):
    """Policies x loads x prediction errors x seeds."""

    loads: Annotated[tuple[Positive, ...], Field(min_length=1)] = (1.0,)
    seeds: Annotated[
        tuple[Annotated[int, Field(ge=0, strict=True)], ...],
        BeforeValidator(_as_seeds, json_schema_input_type=int | tuple[int, ...]),
        Field(min_length=1),
    ] = (0,)
    prediction_errors: Annotated[tuple[PredictionErrorSpec, ...], Field(min_length=1)] = (PredictionErrorSpec(),)

    @model_validator(mode="after")
    def _lists_alone(self) -> SweepSpec:
        for name, instead in (("load", "loads"), ("seed", "seeds"), ("prediction_error", "prediction_errors")):
            if name in self.model_fields_set:
                raise ValueError(f"{name}: a sweep needs a list, under {instead!r}")
        if "repetitions" in self.model_fields_set:
            raise ValueError("repetitions: must be left out in a sweep, which repeats by seeds")
        for name in ("loads", "seeds", "prediction_errors"):
            if _twins(getattr(self, name)):
                raise ValueError(f"{name}: must not contain a value twice")
        return self


SpecT = TypeVar("SpecT", bound=SimulationSpec)


def checked_spec(place: str, document: Mapping[str, Any], kind: type[SpecT]) -> SpecT:
    """A specification from its parts.

    Raises
    ------
    InputError
        Naming the place, the field and what would be right.
    """
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        unknown = [first["ctx"]["name"]] if first["type"] == _UNKNOWN else []
        field = ".".join(map(str, (*first["loc"], *unknown)))
        message = first["msg"].removeprefix("Value error, ")
        text = "must be given" if first["type"] == "missing" else message[:1].lower() + message[1:]
        input_text = "" if first["type"] in ("missing", "value_error", _UNKNOWN) else f"; found {first['input']!r}"
        raise InputError(f"{place}: {field}: {text}{input_text}" if field else f"{place}: {text}") from None
