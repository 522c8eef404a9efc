"""The estimator: reads dimensions and runs, corrects the software stack by them, and makes the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

import numpy as np

from nodewise.plugin import (
    Assessment,
    Catalogue,
    Configurations,
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
    Recomputation,
    Refusal,
    RowRefusal,
    Transformer,
    Workload,
    as_ints,
    catalogue_key,
    freeze,
)
from nodewise_partitioning.calibration import Calibration, Job, Runs, calibrate, log_residuals
from nodewise_partitioning.evidence import fitted_of, levels_of
from nodewise_partitioning.hardware import DEFAULT_FORMAT, device_of
from nodewise_partitioning.knowledge import Knowledge
from nodewise_partitioning.layered.model import LayeredModel, assess_layers
from nodewise_partitioning.model import PartitioningModel, memory_learned
from nodewise_partitioning.refusals import NO_DIMENSIONS, refuse
from nodewise_partitioning.rows import query_rows_of
from nodewise_partitioning.settling import settled_by_runs
from nodewise_partitioning.software import DEFAULT_FRAMEWORK, Software, is_known, stack_of
from nodewise_partitioning.training import Training
from nodewise_partitioning.unsaid import by_stack, formats_of, kinds_of, settle_open_rows, stack_names
from nodewise_partitioning.workload import Dimensions

__all__ = ["PartitioningEstimator"]

NAME: Final = "partitioning"

FACTS_ALONE: Final = 0.1
OWN_RUNS: Final = 0.6
"""Strength of evidence: dimensions and data sheets; also runs of the job itself."""

KNOWN_DEVICE: Final = "a100"
"""Framework of the runs that the defaults were fitted to."""

OTHER_WIDENED: Final = 2.0
"""Factor on the priors of a stack's numbers for another stack or device than the defaults were fitted to."""

EXPECTED_LOG_ERROR: Final[Mapping[float, float]] = {FACTS_ALONE: 0.10, OWN_RUNS: 0.07}
"""Mean |ln(predicted / measured)| by strength, the middle of tables with their source left out (docs/accuracy.md)."""


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
            raise NodewiseError(Reason.EVIDENCE_MISSING, "no run of a transformer with known dimensions was measured")
        runs = sum(len(each.observations) for each in lessons)
        sources = (f"{runs} runs of transformers, of {len(lessons)} profiles",)
        return Prior.of(NAME, [each.digest for each in lessons], sources=sources, content=lessons)

    def assess(self, profile: Profile, query: Query) -> Assessment:
        """Check whether the dimensions are known and a row is a partition of the model."""
        if (refusal := refuse(profile, query)) is not None:
            return refusal
        transformer = profile.workload.transformer
        if transformer is None:
            return assess_layers(profile, query)
        knowledge = _know_facts(profile, transformer, query.catalogue)
        refusals = PartitioningModel(knowledge, runs=_ran(profile)).refusals(query.configurations)
        answered = RowRefusal.left(len(query.configurations), refusals)
        if not answered.any():
            nothing = Refusal.missing("configurations must hold at least one row", "configurations")
            return Assessment(refusal=refusals[0].refusal if refusals else nothing)
        own = len(profile.observations)
        strength = OWN_RUNS if own else FACTS_ALONE
        words = [f"dimensions of a transformer ({transformer.layers} layers of {transformer.hidden_size})"]
        if own:
            words.append(f"{own} measured run{'s' if own > 1 else ''}")
        error = EXPECTED_LOG_ERROR[strength]
        errors = freeze(np.where(answered, error, np.inf)) if refusals else error
        return Assessment(evidence=tuple(words), strength=strength, expected_log_error=errors)

    def fit(self, profile: Profile, context: Context) -> Model:
        """Correct the stack by the runs of other transformers, then by the job's own."""
        workload = profile.workload
        transformer = workload.transformer
        if transformer is None and workload.layers:
            return LayeredModel(profile, context.catalogue)
        if transformer is None:
            raise NodewiseError(NO_DIMENSIONS.reason, NO_DIMENSIONS.message)
        believed = _settle_facts(profile, transformer, context.catalogue)
        framework, number_format = believed.framework, believed.number_format or DEFAULT_FORMAT
        known_framework = is_known(framework) or not framework
        prior = context.prior
        lessons = prior.content if prior is not None and isinstance(prior.content, tuple) else ()
        switches = _switches(workload)
        learned = {
            name: _learn_from_lessons(
                lessons, f"{name}{switches}", number_format, context.catalogue, known_framework=known_framework
            )
            for name in stack_names(framework)
        }
        if not any(lesson.digest == profile.digest for lesson in lessons):
            for name, runs in _runs_of(profile, context.catalogue).items():
                before, others = learned[name]
                stack, _ = stack_of(f"{name}{switches}", number_format)
                stack, taught = stack.with_numbers(before.software.vector()), (*others, *runs)
                learned[name] = _correct_by_runs(stack, runs, taught, known_framework=known_framework), taught
        taught = tuple(run for _, runs in learned.values() for run in runs)
        residuals = [log_residuals(each.software, runs) for each, runs in learned.values() if runs]
        calibration = max((each for each, _ in learned.values()), key=lambda each: each.runs)
        knowledge = replace(
            believed,
            numbers={name: each.software.vector() for name, (each, _) in learned.items()},
            levels=levels_of(
                believed.dimensions,
                taught,
                np.concatenate([np.zeros(0), *residuals]),
                known_framework=known_framework,
                job=_job_of(profile),
            ),
        )
        knowledge = memory_learned(knowledge, Observations.concatenated((profile.observations, profile.memory_runs)))
        notices = (*_notices(calibration, framework, known_framework=known_framework), *_settled_notices(knowledge))
        return PartitioningModel(knowledge, notices, runs=_ran(profile))


def _settle_facts(profile: Profile, transformer: Transformer, catalogue: Catalogue) -> Knowledge:
    """Knowledge of a job from facts, with other facts determined by its runs."""
    return settled_by_runs(_know_facts(profile, transformer, catalogue), profile.observations)


def _know_facts(profile: Profile, transformer: Transformer, catalogue: Catalogue) -> Knowledge:
    """Knowledge of a job before any run corrects it."""
    framework, _ = _software_of(profile)
    dimensions = Dimensions.of(transformer, Training.of(profile.workload), profile.workload)
    known_framework = is_known(framework) or not framework
    return Knowledge(
        dimensions=dimensions,
        network=profile.network,
        catalogue=catalogue,
        framework=framework,
        number_format=profile.workload.precision or "",
        numbers={},
        levels=levels_of(dimensions, (), np.zeros(0), known_framework=known_framework, job=_job_of(profile)),
        switches=_switches(profile.workload),
    )


MOST_RUNS: Final = 32
"""Most runs that inform the level of a job: the first ones."""


def _ran(profile: Profile) -> Configurations | None:
    """Configurations of the job's own runs; None = none is known."""
    every = Observations.concatenated((profile.observations, profile.memory_runs)).configurations
    return every.take(as_ints(np.arange(min(len(every), MOST_RUNS)))) if len(every) else None


SWITCHES: Final = {
    "zero-bubble": " zero-bubble",
    "gpipe": " gpipe",
    "dualpipe": " dualpipe",
    "compiled": " compile",
    "graphs": " cuda-graphs",
}
"""Schedules and ways to launch kernels, in the words that a framework's name may contain."""


def _switches(workload: Workload) -> str:
    return "".join(SWITCHES.get(word or "", "") for word in (workload.pipeline_schedule, workload.execution))


def _job_of(profile: Profile) -> Job:
    """All revisions of a kept profile are one job."""
    software = "".join(letter for letter in profile.workload.framework or "" if letter.isalnum())
    return Job(profile.uid or profile.digest, software.casefold())


def _software_of(profile: Profile) -> tuple[str, str]:
    """Framework and number format of a job."""
    return profile.workload.framework or "", profile.workload.precision or DEFAULT_FORMAT


@lru_cache(maxsize=128)
def _learn_from_lessons(
    lessons: tuple[Profile, ...],
    framework: str,
    number_format: str,
    catalogue: Catalogue,
    *,
    known_framework: bool,
) -> tuple[Calibration, tuple[Runs, ...]]:
    """Lessons of the same software stack and attention kernel, and their runs."""
    stack, _ = stack_of(framework, number_format)
    runs = tuple(
        run
        for lesson in lessons
        for name, of_stack in _runs_of(lesson, catalogue).items()
        if _kind(stack_of(name, number_format)[0]) == _kind(stack)
        for run in of_stack
    )
    return _correct_by_runs(stack, runs, runs, known_framework=known_framework), runs


def _kind(stack: Software) -> tuple[str, bool]:
    return stack.framework, stack.flash_attention


def _correct_by_runs(
    stack: Software, runs: Sequence[Runs], taught: Sequence[Runs], *, known_framework: bool
) -> Calibration:
    """The stack with numbers that agree with runs, except for the level that these and other runs share."""
    fitted = np.exp(fitted_of(taught, log_residuals(stack, taught), known_framework=known_framework))
    ends = np.cumsum([len(each.step_s) for each in taught])
    levels = dict(zip(map(id, taught), np.split(fitted, ends[:-1]), strict=True)) if taught else {}
    alike = [replace(each, step_s=each.step_s / levels[id(each)]) for each in runs]
    return calibrate(stack, alike, widened=_device_doubt(stack, {catalogue_key(each.device.name) for each in runs}))


def _runs_of(profile: Profile, catalogue: Catalogue) -> Mapping[str, Sequence[Runs]]:
    """The runs that the equations can read, by stack; each of one device and number format."""
    transformer, observations = profile.workload.transformer, profile.observations
    if transformer is None or not len(observations):
        return {}
    dimensions = Dimensions.of(transformer, Training.of(profile.workload), profile.workload)
    believed = _settle_facts(profile, transformer, catalogue)
    configurations = PartitioningModel(believed).cut(observations.configurations)
    framework = believed.framework
    query = query_rows_of(configurations, dimensions, believed.network, catalogue, zero_bubble=believed.zero_bubble)
    measured, kinds = observations.steps_per_s[query.rows], kinds_of(configurations)[query.rows]
    names = np.array(configurations.device_names(), dtype=object)[query.rows]
    formats = np.array([configurations.precisions[index] for index in configurations.precision_index[query.rows]])
    runs: dict[str, list[Runs]] = {}
    for name in sorted(set(names.tolist())):
        for number_format in sorted(set(formats.tolist())):
            rows = np.flatnonzero((names == name) & (formats == number_format) & (measured > 0.0))
            own = number_format or believed.number_format or formats_of(catalogue, name)[0]
            device = device_of(catalogue, name, own)
            if isinstance(device, Refusal):
                continue
            for own, part in by_stack(framework, dimensions, device, as_ints(rows), kinds, query.layout):
                stack, _ = stack_of(own, device.number_format)
                layout = settle_open_rows(
                    query.layout.take(part),
                    dimensions,
                    device,
                    stack,
                    declared=framework,
                    preferred=float(believed.recomputation),
                    ran=True,
                )
                part_runs = Runs(dimensions, layout, device, 1.0 / measured[part], job=_job_of(profile))
                runs.setdefault(own, []).append(part_runs)
    return runs


def _device_doubt(stack: Software, devices: Iterable[str]) -> float:
    same = stack.framework == DEFAULT_FRAMEWORK and all(device.startswith(KNOWN_DEVICE) for device in devices)
    return 1.0 if same else OTHER_WIDENED


def _notices(calibration: Calibration, framework: str, *, known_framework: bool) -> Iterable[Notice]:
    if not known_framework:
        text = f"framework {framework!r} is not known: efficiencies of another framework are used"
        yield Notice("FRAMEWORK_ASSUMED", text)
    if calibration.runs and calibration.unidentified:
        names = ", ".join(calibration.unidentified)
        text = (
            f"{calibration.runs} runs calibrated the efficiencies of the software stack, except {names}, on which "
            "these runs do not depend"
        )
        yield Notice("CALIBRATED", text)


def _settled_notices(knowledge: Knowledge) -> Iterable[Notice]:
    """Facts that the job does not state and its runs have determined."""
    for fact, value in knowledge.assumptions.items():
        word = Recomputation(int(value)).name.casefold() if fact == "recompute" else str(value) or "the usual stack"
        share = 100.0 * knowledge.beliefs[fact].get(value, 0.0)
        text = f"{fact} is not stated: the job's runs fit {word} best ({share:.0f} % likely)"
        yield Notice("SETTLED_BY_RUNS", text)
