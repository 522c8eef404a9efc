"""What models that make the search over partitionings fast must hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from nodewise.conformance.evidence import Job
from nodewise.conformance.findings import ROUNDING, require, sound
from nodewise.domain.columns import Floats, as_ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.predictions import Predictions
from nodewise.planning.checked_model import COLUMNS, REQUIRED
from nodewise.plugin import PlanningModel, PlanSpace

__all__ = ["check_bounds", "check_evaluation"]

MOST_PREFIXES: Final = 256
"""Prefixes of a space whose completions are looked at: all of a small one, else evenly many."""

Predict = Callable[[Configurations], Predictions]


def check_evaluation(name: str, model: PlanningModel, job: Job, predict: Predict) -> None:
    """``evaluate`` gives the numbers of ``predict``, which answers exactly the rows that fit."""
    space, chosen = _space(model, job)
    rows = sound("completed", lambda: space.completed(chosen))
    found = _evaluate(model, rows, (*COLUMNS, *model.memory_terms))
    answer = predict(rows)
    fits = (found["memory_capacity_bytes"] == 0.0) | (found["memory_bytes"] <= found["memory_capacity_bytes"])
    wrong = np.flatnonzero(fits != answer.answered)
    require(not len(wrong), f"{name}: evaluate and predict disagree whether row {wrong[:1]} of {job.name!r} fits")
    require(
        np.array_equal(found["step_s"][fits], answer.step_s[fits]),
        f"{name}: evaluate tells another step_s than predict on {job.name!r}",
    )
    if answer.memory_bytes is not None:
        same = np.array_equal(found["memory_bytes"], answer.memory_bytes)
        require(same, f"{name}: evaluate tells other memory_bytes than predict on {job.name!r}")
    if model.memory_terms:
        total = np.sum([found[term] for term in model.memory_terms], axis=0)
        close = np.allclose(total, found["memory_bytes"], rtol=ROUNDING)
        require(close, f"{name}: memory_terms do not add up to memory_bytes on {job.name!r}")


def check_bounds(name: str, model: PlanningModel, job: Job, predict: Predict) -> None:  # noqa: ARG001  # as the other
    """No completion of a prefix is below its lower bound, and completions keep what their prefix has made final."""
    space, chosen = _space(model, job)
    rows = sound("completed", lambda: space.completed(chosen))
    require(
        len(rows) == space.sizes[chosen].sum(),
        f"{name}: sizes say {space.sizes[chosen].sum()} completions, and there are {len(rows)}",
    )
    require(space.final >= REQUIRED, f"{name}: final must hold {', '.join(sorted(REQUIRED - space.final))}")
    of_prefix = np.repeat(chosen, space.sizes[chosen])
    for column in sorted(space.final & REQUIRED):
        kept = np.array_equal(getattr(rows, column), getattr(space.prefixes, column)[of_prefix])
        require(kept, f"{name}: completions differ from their prefix in {column}, which is final")
    bounds = sound("lower_bound", space.lower_bound)
    found = _evaluate(model, rows, COLUMNS)
    for column in ("step_s", "memory_bytes"):
        below = np.flatnonzero(found[column] < bounds[column][of_prefix])
        require(
            not len(below), f"{name}: {len(below)} completions of {job.name!r} are below the lower bound of {column}"
        )


def _space(model: PlanningModel, job: Job) -> tuple[PlanSpace, np.ndarray]:
    assert job.constraints is not None
    constraints = job.constraints
    space = sound("space", lambda: model.space(constraints))
    prefixes = len(space.prefixes)
    require(len(space.sizes) == prefixes, f"space has {prefixes} prefixes and {len(space.sizes)} sizes")
    step = max(1, -(-prefixes // MOST_PREFIXES))
    return space, as_ints(np.arange(0, prefixes, step))


def _evaluate(model: PlanningModel, rows: Configurations, columns: tuple[str, ...]) -> Mapping[str, Floats]:
    found = sound("evaluate", lambda: model.evaluate(rows, columns))
    require(set(found) == set(columns), f"evaluate answers {sorted(found)}; asked were {sorted(columns)}")
    for column, values in found.items():
        right = values.shape == (len(rows),) and np.isfinite(values).all() and not (values < 0.0).any()
        require(right, f"evaluate: {column} is no column of {len(rows)} numbers of 0 or more")
    return found
