"""Checks of planning models, besides those that every search makes."""

from __future__ import annotations

from typing import Final

import numpy as np

from nodewise.conformance.answering import JobModel
from nodewise.conformance.findings import ROUNDING, NonConformanceError, require
from nodewise.domain.columns import Ints, as_ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError
from nodewise.hosting.registry import LoadedPlugin
from nodewise.planning.checked_model import REQUIRED, BoundedSpace, CheckedModel, Values
from nodewise.plugin import EstimatorRecord

__all__ = ["check_bounds", "check_evaluation"]

MOST_PREFIXES: Final = 256
"""Prefixes of a space whose completions are checked: all of a small space, else evenly spaced ones."""


def check_evaluation(plugin: LoadedPlugin[EstimatorRecord], job_model: JobModel) -> None:
    """``evaluate`` gives the numbers of ``predict``, which answers exactly the rows that fit."""
    space, rows, values, _ = _evaluate_space(plugin, job_model)
    name, job, answer, fits = plugin.record.name, job_model.job, job_model.predict(rows), values.fits()
    wrong = np.flatnonzero(fits != answer.answered)
    require(not len(wrong), f"{name}: evaluate and predict disagree on whether row {wrong[:1]} of {job.name!r} fits")
    same = np.array_equal(values.step_s[fits], answer.step_s[fits])
    require(same, f"{name}: evaluate returns another step_s than predict on {job.name!r}")
    if answer.memory_bytes is not None:
        same = np.array_equal(values.memory_bytes, answer.memory_bytes)
        require(same, f"{name}: evaluate returns other memory_bytes than predict on {job.name!r}")
    terms = space.model.memory_terms(rows)
    if terms:
        close = np.allclose(np.sum(list(terms.values()), axis=0), values.memory_bytes, rtol=ROUNDING)
        require(close, f"{name}: memory_terms do not add up to memory_bytes on {job.name!r}")


def check_bounds(plugin: LoadedPlugin[EstimatorRecord], job_model: JobModel) -> None:
    """No completion of a prefix is below its lower bound, and completions keep the final columns of their prefix."""
    space, rows, _, of_prefix = _evaluate_space(plugin, job_model)
    for column in sorted(space.final & REQUIRED):
        same = np.array_equal(getattr(rows, column), getattr(space.prefixes, column)[of_prefix])
        require(same, f"{plugin.record.name}: completions differ from their prefix in {column}, which is final")


def _evaluate_space(
    plugin: LoadedPlugin[EstimatorRecord], job_model: JobModel
) -> tuple[BoundedSpace, Configurations, Values, Ints]:
    """A space as a search has it, completions of some of its prefixes, their values, and the prefix of each."""
    assert job_model.job.constraints is not None
    try:
        space = CheckedModel(plugin, job_model.model).space(job_model.job.constraints)
        step = max(1, -(-len(space.prefixes) // MOST_PREFIXES))
        return space, *space.evaluate(as_ints(np.arange(0, len(space.prefixes), step)))
    except NodewiseError as error:
        raise NonConformanceError(f"on {job_model.job.name!r}: {error.message}") from error
