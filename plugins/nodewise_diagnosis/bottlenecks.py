"""Candidates replayed without what they cost, and ranked by what the step gains."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from nodewise.plugin import Bottleneck
from nodewise_diagnosis.accounting import Accounting
from nodewise_diagnosis.candidates import Candidate, Tier, candidates
from nodewise_diagnosis.case import Case
from nodewise_diagnosis.stopwatch import NS, RECORDED, persistence_ns

__all__ = ["UNKNOWN_PERSISTENCE", "RankedBottleneck", "rank_candidates"]

_ROUNDING_S: Final = 2e-6
"""Gains below are rounding of recorders."""


_FLOOR: Final = 0.005
"""A gain below this share of the step does not matter, however alike the steps are."""

_FAULT_FLOOR: Final = 0.01
"""The same for faults: of many ranks or steps some is the slowest by chance."""

UNKNOWN_PERSISTENCE: Final = 0.01
"""Share of the step taken for what steps differ by where a single one was recorded: stable jobs' differ by 1 to 3 %."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RankedBottleneck:
    """A bottleneck, what it came from, and whether the search was over before the budget."""

    bottleneck: Bottleneck
    candidate: Candidate


@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    candidate: Candidate
    gain_s: float
    worth_s: float
    noise_s: float


def rank_candidates(case: Case, accounting: Accounting) -> tuple[list[RankedBottleneck], float, bool]:
    """Replay every candidate, and rank them: faults before overheads and work, what does not matter last.

    A gain matters if it is more than what steps differ by anyway. A fault of single steps makes these differ itself, so
    what counts is by how much the steps would differ without it: that is the second of what is returned, in seconds.
    The third is whether all were tried within the budget.
    """
    watch, run, base_ns = case.watch, case.context, case.base_ns
    lengths = watch.lengths_ns()
    noise = persistence_ns(lengths) * NS if len(lengths) > 1 else UNKNOWN_PERSISTENCE * base_ns * NS
    trials: list[_Trial] = []
    complete = True
    for candidate in candidates(case, accounting):
        if trials and run.remaining_s() <= 0:
            complete = False
            break
        run.advanced("bottlenecks", len(trials), len(trials) + 1)
        worth = gain = min((base_ns - watch.step_ns(candidate.removed)) * NS, candidate.holds_s)
        if candidate.alone is not None and gain > noise:
            worth = gain = min(gain, (watch.step_ns(candidate.alone[0]) - watch.step_ns(candidate.alone[1])) * NS)
        own_noise, is_fault = noise, candidate.tier == Tier.FAULT
        if is_fault and gain > _ROUNDING_S:
            own_noise = min(noise, persistence_ns(watch.lengths_ns(candidate.removed)) * NS or noise)
        if candidate.reduced is not None and gain > _ROUNDING_S:
            worth = min((base_ns - watch.step_ns(candidate.reduced)) * NS, candidate.holds_s)
        # Columns of all nodes: only faults are mended later on.
        mendable = candidate.removed if is_fault and gain > _ROUNDING_S else RECORDED
        trials.append(_Trial(replace(candidate, removed=mendable, reduced=None, alone=None), gain, worth, own_noise))
    # What makes single steps late hides no other fault.
    calm = min([one.noise_s for one in trials if one.gain_s > max(one.noise_s, _ROUNDING_S)], default=noise)
    calm = max(calm, _FLOOR * base_ns * NS)
    bottlenecks = []
    for one in trials:
        floor = _FAULT_FLOOR if one.candidate.tier == Tier.FAULT else _FLOOR
        least = max(min(one.noise_s, calm), floor * base_ns * NS)
        bottlenecks.append((one, _bottleneck(one, least, base_ns * NS)))
    bottlenecks.sort(key=lambda one: _order(one[0], matters=one[1].matters))
    return (
        [RankedBottleneck(bottleneck=bottleneck, candidate=one.candidate) for one, bottleneck in bottlenecks],
        calm,
        complete,
    )


def _order(trial: _Trial, *, matters: bool) -> tuple[bool, bool, float]:
    """Place in the list: what matters before what does not, faults before the rest.

    Then by what the step gains; faults that do not matter by their seconds, so that the largest are reported.
    """
    fault = trial.candidate.tier == Tier.FAULT
    size = trial.worth_s if matters else trial.candidate.seconds if fault else trial.gain_s
    return not matters, not fault, -size


def _bottleneck(trial: _Trial, noise_s: float, step_s: float) -> Bottleneck:
    candidate, gain = trial.candidate, trial.gain_s
    matters = gain > max(noise_s, _ROUNDING_S)
    parts = [candidate.why] if candidate.why else []
    if candidate.reduced_share < 1:
        parts.append(f"with {candidate.reduced_share:.0%} less of it the step is {trial.worth_s * 1e3:.3f} ms shorter")
    if matters:
        parts.append(f"without it the step is {gain / step_s:.1%} shorter")
    elif gain > _ROUNDING_S:
        parts.append(
            f"does not matter: without it the step is {gain * 1e3:.3f} ms shorter, and less than {noise_s * 1e3:.3f} "
            "ms is noise"
        )
    else:
        parts.append("does not matter: without it the step is no shorter")
    return Bottleneck(
        kind=candidate.kind,
        what=candidate.what,
        rank=candidate.rank,
        seconds=candidate.seconds,
        gain_if_removed_s=gain,
        matters=matters,
        why="; ".join(parts),
    )
