"""The estimator: assesses the evidence of a profile, and fits the model that it allows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Assessment, Context, Fidelity, Model, Profile, Query, Reason, Refusal, SyncMode, freeze
from nodewise_laws import exact_mva, overlapped_mva
from nodewise_queueing.curve_model import WELL_CONDITIONED_WORKERS, CurveModel, shows_saturation
from nodewise_queueing.evidence import DeviceEvidence, Runs, evidence_of, facts_of
from nodewise_queueing.model import QueueingModel
from nodewise_queueing.phase_model import PhaseModel
from nodewise_queueing.rows import CurveKey, Group, Plan, plan_of
from nodewise_queueing.servers_share import expected_of
from nodewise_queueing.support import RefusalError, Support

__all__ = ["QueueingEstimator"]

PHASES_AND_SATURATION: Final = 1.0
PHASES: Final = 0.9
SATURATION: Final = 0.7
CURVE: Final = 0.3
"""Strength of evidence: phases determine every demand, and a saturated run the effect of load; phases alone;
throughputs of which one shows contention beyond noise; throughputs without contention, so that it is extrapolated."""

EXPECTED_LOG_ERROR: Final[Mapping[float, float]] = {
    PHASES_AND_SATURATION: 0.06,
    PHASES: 0.06,
    SATURATION: 0.10,
    CURVE: 0.06,
}
"""Mean |ln(predicted / measured)| by strength, as measured on the tables of research/queueing.md."""

POORLY_CONDITIONED_LOG_ERROR: Final = 0.15
"""The same where no run had four workers: CM-DARE's curves from 1 and 2 workers."""


KEPT_ASSESSMENTS: Final = 4096
"""Curves of profiles whose assessments are cached: some hundred bytes each."""

WARM_UP_WORKERS: Final = 1024
"""Enough for the recursions to run compiled: shorter ones are plain Python until they are loaded."""


class QueueingEstimator:
    """Closed queueing networks of workers, links and parameter servers."""

    def __init__(self) -> None:
        self._assessments: dict[tuple[str, CurveKey, bool], Assessment] = {}

    def warm_up(self) -> None:
        """Load or compile the recursions ahead of time: otherwise the first answer would wait for it."""
        exact_mva((1.0, 1.0, 1.0), 1.0, WARM_UP_WORKERS)
        overlapped_mva((1.0, 1.0, 1.0), (0.5, 0.5, 0.0), 1.0, WARM_UP_WORKERS)

    def assess(self, profile: Profile, query: Query) -> Assessment:
        """Assess which rows the evidence supports, and how well; refuse when it supports none."""
        plan = plan_of(query.configurations, profile.workload.devices_per_worker or 1)
        phases_needed = query.options.fidelity == Fidelity.SIMULATE
        if not plan.refusals and len(plan.groups) == 1 and profile.digest:
            return self._of_curve(profile, plan, phases_needed=phases_needed)
        return _assess_rows(profile, plan, len(query.configurations), phases_needed=phases_needed)[0]

    def _of_curve(self, profile: Profile, plan: Plan, *, phases_needed: bool) -> Assessment:
        """Whether rows of a curve have one assessment for any workers: unless a single number was measured."""
        about = (profile.digest, plan.groups[0].key, phases_needed)
        judgement = self._assessments.get(about)
        if judgement is None:
            rows = len(plan.groups[0].workers)
            judgement, everywhere = _assess_rows(profile, plan, rows, phases_needed=phases_needed)
            if everywhere:
                if len(self._assessments) >= KEPT_ASSESSMENTS:
                    self._assessments.clear()
                self._assessments[about] = judgement
        return judgement

    def fit(self, profile: Profile, context: Context) -> Model:
        """Fit every device and mode that the evidence supports."""
        evidence = evidence_of(profile)
        facts = facts_of(profile)
        phases: dict[str, PhaseModel] = {}
        curves: dict[tuple[str, int], CurveModel] = {}
        for device, found in evidence.items():
            if found.phases is not None:
                phases[device] = PhaseModel.fit(found.phases, facts, found.runs, device, context.catalogue)
                continue
            for mode, runs in found.runs.items():
                expected = expected_of(device, facts.byte_share(runs.usual_setting.servers), context.catalogue)
                curves[device, mode] = CurveModel.fit(SyncMode(mode), runs, facts, expected, device, context.catalogue)
        devices_per_worker = profile.workload.devices_per_worker or 1
        model = QueueingModel(Support(evidence), phases=phases, fits=curves, devices_per_worker=devices_per_worker)
        # The curves of the first questions are made here, outside of any request.
        for device, found in evidence.items():
            for mode, runs in found.runs.items():
                model.prepare(CurveKey(device, SyncMode(mode), runs.settings[-1]))
        return model


_Judgement = tuple[float, tuple[str, ...], float]
"""Strength, evidence in words, and expected error."""


def _weakest(judged: list[_Judgement]) -> _Judgement:
    """The weakest strength, and of it the largest error, with the words of all."""
    strength, _, error = min(judged, key=lambda judgement: (judgement[0], -judgement[2]))
    return strength, tuple(dict.fromkeys(text for _, texts, _ in judged for text in texts)), error


def _assess_rows(profile: Profile, plan: Plan, rows: int, *, phases_needed: bool) -> tuple[Assessment, bool]:
    """The assessment of some rows, and whether it holds for every other number of workers on their curves."""
    evidence = evidence_of(profile)
    support = Support(evidence)
    refusals = [refusal for _, refusal in plan.refusals]
    judged: list[_Judgement] = []
    errors = np.full(rows, np.inf)
    anywhere = True
    for group in plan.groups:
        try:
            judgement, answered = _of_group(profile, support, group, phases_needed=phases_needed)
            judged.append(judgement)
            at = slice(None) if group.rows is None else group.rows
            errors[at] = np.where(True if answered is None else answered, judgement[2], np.inf)
            anywhere = anywhere and answered is None
        except RefusalError as refused:
            refusals.append(refused.refusal)
    if not judged:
        missing = [refusal for refusal in refusals if refusal.reason == Reason.EVIDENCE_MISSING]
        nothing = Refusal.missing("configurations must hold at least one row", "configurations")
        return Assessment(refusal=(missing or refusals or [nothing])[0]), False
    strength, texts, error = _weakest(judged)
    alike = anywhere and len(judged) == 1 and not plan.refusals
    return Assessment(evidence=texts, strength=strength, expected_log_error=error if alike else freeze(errors)), alike


def _of_group(
    profile: Profile, support: Support, group: Group, *, phases_needed: bool
) -> tuple[_Judgement, NDArray[np.bool_] | None]:
    """The weakest evidence of one group's rows; RefusalError where none of them is answered.

    Also the rows that are answered; None = every number of workers is.
    """
    judged: list[_Judgement] = []
    answered: NDArray[np.bool_] | None = None
    for key in group.key.by_mode():
        for device in dict.fromkeys(support.devices_of(key, phases_needed=phases_needed)):
            only = support.only(device, key)
            if only is not None:
                answered = np.asarray(group.workers == only) if answered is None else answered & (group.workers == only)
                if not answered.any():
                    raise support.elsewhere(key.mode, only)
            judged.append(_judge(profile, support.devices[device], key))
    return _weakest(judged), answered


def _judge(profile: Profile, evidence: DeviceEvidence, key: CurveKey) -> _Judgement:
    """Strength, words and expected error of the evidence behind one curve."""
    runs = evidence.runs.get(key.mode)
    texts = []
    if evidence.phases is None:
        assert runs is not None  # Support refuses a row without either
        strength = SATURATION if shows_saturation(key.mode, runs) else CURVE
    else:
        count = evidence.phases.runs
        texts.append(f"phase timings of {count} run{'s' if count > 1 else ''} (1 worker)")
        strength = PHASES
        if runs is not None:
            knee = PhaseModel(evidence.phases, facts_of(profile)).knee(key.mode, key.setting)
            strength = PHASES_AND_SATURATION if runs.worker_counts[-1] >= knee else PHASES
    if runs is not None:
        texts.append(_describe(key.mode, runs))
    error = EXPECTED_LOG_ERROR[strength]
    if evidence.phases is None and runs is not None and runs.worker_counts[-1] < WELL_CONDITIONED_WORKERS:
        error = POORLY_CONDITIONED_LOG_ERROR
    return strength, tuple(texts), error


def _describe(mode: SyncMode, runs: Runs) -> str:
    counts = ", ".join(str(count) for count in runs.worker_counts[:8])
    more = ", ..." if len(runs.worker_counts) > 8 else ""
    plural = "s" if len(runs) > 1 else ""
    return f"throughput of {len(runs)} {mode.name} run{plural} ({counts}{more} workers)"
