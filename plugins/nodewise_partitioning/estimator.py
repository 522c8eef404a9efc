"""The estimator: reads dimensions and runs, corrects the software stack by them, and makes the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

import numpy as np

from nodewise.plugin import (
    Assessment,
    Catalogue,
    Context,
    Corpus,
    Model,
    NodewiseError,
    Notice,
    Observations,
    Prior,
    Profile,
    Query,
    Reason,
    Refusal,
    Transformer,
    as_ints,
    catalogue_key,
)
from nodewise_partitioning.calibration import NOISE, Calibrated, Runs, calibrated
from nodewise_partitioning.hardware import DEFAULT_FORMAT, device_of
from nodewise_partitioning.layered.model import LayeredModel, assess_layers
from nodewise_partitioning.model import Knowledge, PartitioningModel, memory_learned, refusals_of
from nodewise_partitioning.rows import asked_of
from nodewise_partitioning.software import DEFAULT_FRAMEWORK, Software, is_known, stack_of
from nodewise_partitioning.training import Training
from nodewise_partitioning.unsaid import by_stack, kinds_of, settled, stack_names
from nodewise_partitioning.workload import Dimensions

__all__ = ["PartitioningEstimator"]

NAME: Final = "partitioning"

FACTS_ALONE: Final = 0.1
OWN_RUNS: Final = 0.6
"""Strength of evidence: dimensions and data sheets; also runs of the job itself."""

LOG_SPREAD: Final = 0.10
"""Deviation of ln(step) on A100 with the default numbers: nine of ten published runs lie within 17 %."""
OTHER_LOG_SPREAD: Final = 0.25
"""On a device, or with a framework, that no run of the defaults had."""
KNOWN_DEVICE: Final = "a100"
LEAST_LOG_SPREAD: Final = 0.05
PRIOR_RUNS: Final = 8.0
"""Runs that the defaults' spread counts for beside those of a calibration."""

OTHER_WIDENED: Final = 2.0
"""How much wider the priors of a stack's numbers are for another stack or device than the defaults were fitted to."""

EXPECTED_LOG_ERROR: Final[Mapping[float, float]] = {FACTS_ALONE: 0.08, OWN_RUNS: 0.05}
"""Mean |ln(predicted / measured)| by strength (research/partitioning.md); facts alone on other devices: more."""


class PartitioningEstimator:
    """Closed-form step times of partitioned transformers, corrected by measured runs."""

    def learn(self, corpus: Corpus) -> Prior:
        """Keep the runs of all transformers: which numbers they correct depends on the catalogue.

        Raises
        ------
        NodewiseError
            EVIDENCE_MISSING: no job of the corpus has both.
        """
        teaching = (each for each in corpus if each.workload.transformer is not None and len(each.observations))
        lessons = tuple(sorted(teaching, key=lambda each: each.digest))
        if not lessons:
            raise NodewiseError(Reason.EVIDENCE_MISSING, "no measured run of a transformer of known dimensions")
        runs = sum(len(each.observations) for each in lessons)
        sources = (f"{runs} runs of transformers, of {len(lessons)} profiles",)
        return Prior.of(NAME, [each.digest for each in lessons], sources=sources, content=lessons)

    def assess(self, profile: Profile, query: Query) -> Assessment:
        """Say whether the dimensions are known and a row is a partition of the model."""
        transformer = profile.workload.transformer
        if transformer is None and profile.workload.layers:
            return assess_layers(profile, query)
        if transformer is None:
            return Assessment(refusal=_NO_DIMENSIONS)
        refusals = refusals_of(_uncorrected(profile, transformer, query.catalogue), query.configurations)
        if sum(len(each.rows) for each in refusals) == len(query.configurations):
            nothing = Refusal.missing("no configuration was asked about", "configurations")
            return Assessment(refusal=refusals[0].refusal if refusals else nothing)
        own = len(profile.observations)
        strength = OWN_RUNS if own else FACTS_ALONE
        words = [f"dimensions of a transformer ({transformer.layers} layers of {transformer.hidden_size})"]
        if own:
            words.append(f"{own} measured run{'s' if own > 1 else ''}")
        return Assessment(evidence=tuple(words), strength=strength, expected_log_error=EXPECTED_LOG_ERROR[strength])

    def fit(self, profile: Profile, context: Context) -> Model:
        """Correct the stack by the runs of other transformers, then by the job's own."""
        workload = profile.workload
        transformer = workload.transformer
        if transformer is None and workload.layers:
            return LayeredModel(profile, context.catalogue)
        if transformer is None:
            raise NodewiseError(_NO_DIMENSIONS.reason, _NO_DIMENSIONS.message)
        framework, number_format = _declared(profile)
        known = is_known(framework)
        prior = context.prior
        lessons = prior.content if prior is not None and isinstance(prior.content, tuple) else ()
        held = _Held(context.catalogue.digest, context.catalogue)
        by_stack = _runs_of(profile, context.catalogue)
        own = max(by_stack, key=lambda name: sum(len(each.step_s) for each in by_stack[name]), default="")
        learned = {name: _learned(lessons, name, number_format, held) for name in stack_names(framework)}
        taught = max(learned, key=lambda name: (name == own, learned[name][0].runs))
        found, devices = learned[taught]
        level = 1.0
        measured = {catalogue_key(each.device.name) for each in by_stack.get(own, ())}
        if measured:
            stack, _ = stack_of(own, number_format)
            found = calibrated(
                stack.corrected(found.software.vector()), by_stack[own], widened=_widened(stack, measured)
            )
            level = _level(found)
        numbers = {name: each.software.vector() for name, (each, _) in learned.items()}
        knowledge = replace(
            _uncorrected(profile, transformer, context.catalogue),
            numbers=numbers | {taught: found.software.vector()},
            level=level,
            log_spreads=_spreads(found, devices | measured, context.catalogue, known=known or not framework),
        )
        knowledge = memory_learned(knowledge, Observations.concatenated((profile.observations, profile.memory_runs)))
        return PartitioningModel(knowledge, tuple(_notices(found, framework, known=known)))


def _uncorrected(profile: Profile, transformer: Transformer, catalogue: Catalogue) -> Knowledge:
    """What is known of a job before any run corrects it."""
    framework, number_format = _declared(profile)
    return Knowledge(
        dimensions=Dimensions.of(transformer, Training.of(profile.workload)),
        network=profile.network,
        catalogue=catalogue,
        framework=framework,
        number_format=number_format,
        numbers={},
        level=1.0,
        log_spreads={"": OTHER_LOG_SPREAD},
    )


def _declared(profile: Profile) -> tuple[str, str]:
    """Framework and number format of a job."""
    return profile.workload.framework or "", profile.workload.precision or DEFAULT_FORMAT


@dataclass(frozen=True, slots=True)
class _Held:
    """A catalogue as a key: two of the same digest are alike."""

    digest: str
    catalogue: Catalogue = field(compare=False)


@lru_cache(maxsize=32)
def _learned(
    lessons: tuple[Profile, ...], framework: str, number_format: str, held: _Held
) -> tuple[Calibrated, frozenset[str]]:
    """What the lessons of the same software stack teach, and the devices that they were on."""
    stack, _ = stack_of(framework, number_format)
    runs = [
        run
        for lesson in lessons
        for name, of_stack in _runs_of(lesson, held.catalogue).items()
        if stack_of(name, number_format)[0].framework == stack.framework
        for run in of_stack
    ]
    devices = frozenset(catalogue_key(each.device.name) for each in runs)
    return calibrated(stack, runs, widened=_widened(stack, devices)), devices


def _runs_of(profile: Profile, catalogue: Catalogue) -> Mapping[str, Sequence[Runs]]:
    """The runs that the equations can read, by stack; each of one device and number format."""
    transformer, observations = profile.workload.transformer, profile.observations
    if transformer is None or not len(observations):
        return {}
    dimensions = Dimensions.of(transformer, Training.of(profile.workload))
    configurations = observations.configurations
    framework, own_format = _declared(profile)
    declared, _ = stack_of(framework, own_format)
    asked = asked_of(configurations, dimensions, profile.network, zero_bubble=declared.zero_bubble)
    measured, kinds = observations.steps_per_s[asked.rows], kinds_of(configurations)[asked.rows]
    names = np.array(configurations.device_names(), dtype=object)[asked.rows]
    formats = np.array([configurations.precisions[index] for index in configurations.precision_index[asked.rows]])
    runs: dict[str, list[Runs]] = {}
    for name in sorted(set(names.tolist())):
        for number_format in sorted(set(formats.tolist())):
            rows = np.flatnonzero((names == name) & (formats == number_format) & (measured > 0.0))
            device = device_of(catalogue, name, number_format or own_format)
            if isinstance(device, Refusal):
                continue
            for own, part in by_stack(framework, dimensions, device, as_ints(rows), kinds):
                stack, _ = stack_of(own, device.number_format)
                layout = settled(asked.layout.take(part), dimensions, device, stack)
                runs.setdefault(own, []).append(Runs(dimensions, layout, device, 1.0 / measured[part]))
    return runs


def _widened(stack: Software, devices: Iterable[str]) -> float:
    same = stack.framework == DEFAULT_FRAMEWORK and all(device.startswith(KNOWN_DEVICE) for device in devices)
    return 1.0 if same else OTHER_WIDENED


def _level(found: Calibrated) -> float:
    """What a job's own runs ask for beyond the stack's numbers: their mean residual, shrunk by how few they are."""
    between, within = LOG_SPREAD**2, NOISE**2
    share = found.runs * between / (found.runs * between + within)
    return float(np.exp(-share * np.median(found.log_residuals)))


def _spreads(found: Calibrated, devices: frozenset[str], catalogue: Catalogue, *, known: bool) -> Mapping[str, float]:
    """Deviation of ln(step) by device; the residuals of runs count beside what is usual."""
    usual = LOG_SPREAD if known else OTHER_LOG_SPREAD
    squares = PRIOR_RUNS * usual**2 + float(np.sum(found.log_residuals**2))
    corrected = max(np.sqrt(squares / (PRIOR_RUNS + found.runs)), LEAST_LOG_SPREAD)
    boards = [key for key in catalogue.devices if key.startswith(KNOWN_DEVICE)]
    spreads = {"": OTHER_LOG_SPREAD} | dict.fromkeys(boards, usual)
    return spreads | dict.fromkeys(sorted(devices), float(corrected))


def _notices(found: Calibrated, framework: str, *, known: bool) -> Iterable[Notice]:
    if framework and not known:
        text = f"framework {framework!r} is not known: another's efficiencies stand in for its own"
        yield Notice("FRAMEWORK_ASSUMED", text)
    if found.runs and found.kept:
        text = f"{found.runs} runs corrected the software stack; they say nothing of {', '.join(found.kept)}"
        yield Notice("CALIBRATED", text)


_NO_DIMENSIONS: Final = Refusal.missing(
    "the dimensions of a transformer are not known (layers, hidden size, heads, sequence and vocabulary), nor the "
    "layers of another network",
    "transformer",
    "layers",
)
