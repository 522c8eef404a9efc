"""The model of a layered network: step times and memory of its configurations, from facts only."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np

from nodewise.plugin import (
    Assessment,
    Catalogue,
    Configurations,
    Floats,
    Ints,
    NodewiseError,
    Notice,
    Options,
    PlanConstraints,
    Predictions,
    Profile,
    Query,
    Refusal,
    RowRefusal,
    freeze,
    sum_columns,
)
from nodewise_partitioning.layered.bounds import least_of
from nodewise_partitioning.layered.questions import ASSUMED_PRECISION, Inner, Question, question_of
from nodewise_partitioning.layered.replica_plan import ReplicaPlan
from nodewise_partitioning.layered.space import LayeredSpace
from nodewise_partitioning.layered.times import EXTRA, MEMORY_COLUMNS, MESSAGE_S, PARTS, Times

__all__ = ["COLUMNS", "EXPECTED_LOG_ERROR", "LayeredModel", "assess_layers"]

EXPECTED_LOG_ERROR: Final = 0.6
"""Mean |ln(predicted / measured)| of facts alone, as on the measured tables of CNNs that were scored
(research/partitioning_layered.md)."""
MOST_LAYOUTS: Final = 8
"""Layouts that an answer describes: the first ones of a long question."""
COLUMNS: Final = ("step_s", "memory_bytes", "memory_capacity_bytes", *PARTS, *MEMORY_COLUMNS)
"""What :meth:`LayeredModel.evaluate` tells."""


def assess_layers(profile: Profile, query: Query) -> Assessment:
    """Accept if the facts of a layered network answer some row. The strength of evidence is 0, as no run is used."""
    layers = profile.workload.layers
    if not layers or not any(layer.forward_flops_per_sample for layer in layers):
        refusal = Refusal.missing(
            ("the workload does not state its layers: FLOPs, parameters and activations of each are needed"),
            "workload.layers",
        )
        return Assessment(refusal=refusal, of_profile=True)
    question = question_of(query.configurations, profile, query.catalogue)
    if not question.groups:
        nothing = Refusal.missing("configurations must hold at least one row", "configurations")
        return Assessment(refusal=question.refusals[0].refusal if question.refusals else nothing)
    answered = RowRefusal.left(len(query.configurations), question.refusals)
    return Assessment(
        evidence=(f"facts only: {len(layers)} layers, device and link",),
        strength=0.0,
        expected_log_error=freeze(np.where(answered, EXPECTED_LOG_ERROR, np.inf)),
    )


class LayeredModel:
    """Model that predicts from the facts of a profile and of the catalogue."""

    def __init__(self, profile: Profile, catalogue: Catalogue) -> None:
        self._profile = profile
        self._catalogue = catalogue
        self._times = Times(profile, catalogue)

    def predict(self, configurations: Configurations, options: Options) -> Predictions:  # noqa: ARG002 - the protocol's
        """Predict every row. Refuse rows with an unsupported split and rows that lack facts."""
        question = question_of(configurations, self._profile, self._catalogue)
        columns = self._columns(configurations, question, dense=True)
        return Predictions.assembled(
            {name: columns[name] for name in PARTS},
            log_spread=columns["spread"],
            utilisation={"parameter_servers": columns["busy"]} if columns["busy"].any() else {},
            memory_bytes=columns["memory"],
            memory_capacity_bytes=columns["capacity"],
            extra={name: columns[name] for name in (*EXTRA, *MEMORY_COLUMNS)},
            refusals=question.refusals,
            notices=self._notices(question.groups),
        )

    def evaluate(self, chunk: Configurations, columns: Sequence[str]) -> Mapping[str, Floats]:
        """Return some of :data:`COLUMNS` for rows that can all be answered, such as those of the model's space.

        Raises
        ------
        ValueError
            A column is unknown.
        NodewiseError
            The refusal of a row that cannot be answered.
        """
        unknown = [name for name in columns if name not in COLUMNS]
        if unknown:
            raise ValueError(f"column {unknown[0]!r} is not known; known are {', '.join(COLUMNS)}")
        question = question_of(chunk, self._profile, self._catalogue)
        if question.refusals:
            raise NodewiseError.refused(question.refusals[0].refusal)
        columns_by_name = self._columns(chunk, question, dense=False)
        columns_by_name |= {
            "step_s": sum_columns(columns_by_name[name] for name in PARTS),
            "memory_bytes": columns_by_name["memory"],
            "memory_capacity_bytes": columns_by_name["capacity"],
        }
        return {name: freeze(columns_by_name[name]) for name in columns}

    @property
    def memory_terms(self) -> Sequence[str]:
        """Return the terms that add up to ``memory_bytes``."""
        return MEMORY_COLUMNS

    def space(self, constraints: PlanConstraints) -> LayeredSpace:
        """Return the space of all divisions of nodes into parts, stages, replicas and servers within the constraints.

        Raises
        ------
        NodewiseError
            EVIDENCE_MISSING for an unknown device or link; INVALID_FIELD if the constraints state no batch or no number
            of servers; LIMIT_EXCEEDED.
        """
        precision = self._profile.workload.precision or ASSUMED_PRECISION

        def refusals(rows: Configurations) -> Sequence[RowRefusal]:
            return question_of(rows, self._profile, self._catalogue).refusals

        return LayeredSpace(len(self._times.costs), constraints, refusals, partial(least_of, self._times, precision))

    def _columns(self, rows: Configurations, question: Question, *, dense: bool) -> dict[str, Floats]:
        """Return the columns of all rows, with 0 in refused rows."""
        beside = ("spread", "busy", *EXTRA) if dense else ()
        columns = {name: np.zeros(len(rows)) for name in (*PARTS, "memory", "capacity", *MEMORY_COLUMNS, *beside)}
        for inner, members in question.groups.items():
            replicas = np.floor(rows.workers[members] / (inner.width * inner.stages))
            stated_replicas = rows.data_parallel[members]
            replicas = np.where(stated_replicas > 0, stated_replicas, replicas).astype(np.float64)
            for name, values in self._times.columns(inner, rows, members, replicas, dense=dense).items():
                if name in columns:
                    columns[name][members] = values
            if dense:
                columns["replicas"][members] = replicas
        return columns

    def _notices(self, groups: Mapping[Inner, Ints]) -> tuple[Notice, ...]:
        notices = [
            Notice(
                "FACTS_ALONE",
                ("no run of the job was used: the times follow from the facts of layers, device and link"),
            )
        ]
        if not self._times.message_known and groups:
            text = f"the time per message was not measured: {MESSAGE_S:g} s is assumed (per_message_s, round_trip_s)"
            notices.append(Notice("MESSAGE_TIME_ASSUMED", text))
        if not self._profile.workload.precision and any(inner.precision == ASSUMED_PRECISION for inner in groups):
            notices.append(Notice("PRECISION_ASSUMED", f"precision is not stated: {ASSUMED_PRECISION} is assumed"))
        names = [layer.name or f"layer {index}" for index, layer in enumerate(self._profile.workload.layers or ())]
        shared = [inner for inner in groups if inner.width * inner.stages > 1][:MOST_LAYOUTS]
        for inner in shared:
            message = (
                f"a replica of {inner.width * inner.stages} workers: {_laid_out(names, self._times.plan_of(inner))}"
            )
            rows = tuple(groups[inner].tolist()) if len(groups) > 1 else ()
            notices.append(Notice("LAYOUT", message, rows))
        return tuple(notices)


def _laid_out(costs_names: Sequence[str], planned_by: ReplicaPlan) -> str:
    """Describe the layout: consecutive layers with equally many parts, stage by stage."""
    layout = planned_by.layout
    stages = []
    for stage in range(layout.stages):
        members = [layer for layer, of_stage in enumerate(layout.stage) if of_stage == stage]
        runs = [list(run) for _, run in itertools.groupby(members, key=lambda layer: layout.parts[layer])]
        words = []
        for run in runs:
            first, last, parts = costs_names[run[0]], costs_names[run[-1]], layout.parts[run[0]]
            span = first if len(run) == 1 else f"{first} to {last}"
            plural = "s" if parts > 1 else ""
            words.append(span if layout.width == 1 else f"{span} in {parts} part{plural}")
        stages.append(", ".join(words))
    return "; then ".join(stages)
