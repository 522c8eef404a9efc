"""When to switch from synchronous to asynchronous training, and what may be done about slow workers before."""

from __future__ import annotations

from nodewise.plugin import HybridOutcome, HybridPoint, HybridTimes, Notice, StragglerPolicy
from nodewise_transient.hybrid import SwitchPoint, feasible, hybrid_s, next_fraction

__all__ = ["time_switches"]


def time_switches(question: HybridTimes) -> HybridOutcome:
    """Times of the asked fractions, which of them meet the deadline, and the accuracy that runs have shown."""
    deadline_s = question.deadline_s
    slowed = _slow(question)
    points = tuple(SwitchPoint(fraction=run.fraction, accuracy=run.accuracy) for run in question.runs)
    least = question.least_accuracy
    reached = () if least is None else feasible(points, least_accuracy=least)
    in_time = [share for share in reached if deadline_s is None or _time_s(slowed, share) <= deadline_s]
    return HybridOutcome(
        synchronous_s=slowed.synchronous_s,
        asynchronous_s=slowed.asynchronous_s,
        points=tuple(_point(slowed, share, points) for share in question.fractions),
        latest_fraction=None if deadline_s is None else _latest(slowed, deadline_s),
        feasible_fractions=reached,
        chosen_fraction=min(in_time, key=lambda share: _time_s(slowed, share)) if in_time else None,
        next_fraction=None if least is None else next_fraction(points, least_accuracy=least),
        straggler_policies=_policies(question) if max(question.slowdowns, default=1.0) > 1.0 else (),
        warnings=(
            Notice(
                "ACCURACY_IS_NOT_PREDICTED", "which fractions reach an accuracy is known from runs alone: send runs"
            ),
        ),
    )


def _slow(question: HybridTimes) -> HybridTimes:
    """With slow workers: synchronous training waits for the slowest, asynchronous loses what each is slower."""
    slow = question.slowdowns
    if not slow:
        return question
    share = sum(1.0 / each for each in slow) / len(slow)
    return HybridTimes(
        synchronous_s=question.synchronous_s * max(slow),
        asynchronous_s=question.asynchronous_s / share,
        switch_s=question.switch_s,
        deadline_s=question.deadline_s,
    )


def _time_s(times: HybridTimes, fraction: float) -> float:
    return float(
        hybrid_s(
            fraction,
            synchronous_s=times.synchronous_s,
            asynchronous_s=times.asynchronous_s,
            switch_s=times.switch_s,
        )
    )


def _point(times: HybridTimes, fraction: float, points: tuple[SwitchPoint, ...]) -> HybridPoint:
    time_s = _time_s(times, fraction)
    accuracies = [point.accuracy for point in points if point.fraction == fraction]
    return HybridPoint(
        fraction=fraction,
        time_s=time_s,
        in_time=None if times.deadline_s is None else time_s <= times.deadline_s,
        measured_accuracy=sum(accuracies) / len(accuracies) if accuracies else None,
    )


def _latest(times: HybridTimes, deadline_s: float) -> float | None:
    """The greatest fraction that is done in time: the line between both modes, with the switch on it."""
    if times.synchronous_s <= deadline_s:
        return 1.0
    slope = times.synchronous_s - times.asynchronous_s
    left_s = deadline_s - times.asynchronous_s - times.switch_s
    if slope > 0.0 and left_s > 0.0:
        return min(left_s / slope, 1.0)
    return 0.0 if times.asynchronous_s <= deadline_s else None


def _policies(question: HybridTimes) -> tuple[StragglerPolicy, ...]:
    """Wait for all, go on without the slowest ones, or train asynchronously; fastest first.

    A step without some workers has as many samples fewer, so that as many more steps do the work.
    """
    slow = sorted(question.slowdowns)
    workers = len(slow)
    slowed = _slow(question)
    policies = [
        StragglerPolicy(policy="wait", dropped=0, time_s=slowed.synchronous_s, batch_ratio=1.0),
        StragglerPolicy(policy="asynchronous", dropped=0, time_s=slowed.asynchronous_s, batch_ratio=1.0 / workers),
    ]
    policies += [
        StragglerPolicy(
            policy="drop",
            dropped=workers - kept,
            time_s=question.synchronous_s * slow[kept - 1] * workers / kept,
            batch_ratio=kept / workers,
        )
        for kept in range(1, workers)
        if slow[kept - 1] < slow[kept]
    ]
    return tuple(sorted(policies, key=lambda each: each.time_s))
