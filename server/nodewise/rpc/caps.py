"""Errors of calls that exceed a limit, with what to do instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodewise.domain.errors import NodewiseError
from nodewise.domain.predictions import Options
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import Answer, Question
from nodewise.ports.limits import Limits, too_much

if TYPE_CHECKING:
    from nodewise.scheduling.request import ScheduleLimits

__all__ = ["above_cap", "answered_within", "check_counts", "check_steps", "schedule_limits", "too_large", "too_many"]


def too_large(found_bytes: int, limit_bytes: int) -> NodewiseError:
    """The error of a reply that clients with gRPC's default settings could not receive."""
    text = (
        f"the {found_bytes} bytes of the reply exceed reply_bytes = {limit_bytes}; ask for fewer rows or columns, or "
        "send the parts over StreamPredict"
    )
    return too_much(text, "reply_bytes", limit_bytes, found_bytes, "StreamPredict")


def check_steps(rows: int, options: Options, limits: Limits) -> None:
    """Refuse a simulation of more steps than a call may have.

    Raises
    ------
    NodewiseError
        LIMIT_EXCEEDED.
    """
    steps, most = rows * options.simulated_steps, limits.simulated_steps_per_call
    if steps > most:
        text = (
            f"options.simulated_steps_count: {rows} rows of {options.simulated_steps} simulated steps are {steps}, "
            f"which exceeds simulated_steps_per_call = {most}; ask for fewer steps or rows, or send the parts over "
            "StreamPredict"
        )
        raise too_much(text, "simulated_steps_per_call", most, steps, "StreamPredict")


def answered_within(limits: Limits, answers: Answers, question: Question) -> Answer:
    """The answer to a question within the limits of a call.

    Raises
    ------
    NodewiseError
        LIMIT_EXCEEDED; the reason why no row can be answered.
    """
    check_steps(len(question.configurations), question.terms.options, limits)
    return answers.answer(question)


def schedule_limits(limits: Limits, jobs: int) -> ScheduleLimits:
    """Limits of a call about at most so many jobs on a cluster."""
    from nodewise.scheduling.request import ScheduleLimits  # noqa: PLC0415 - slow, and most questions need none

    return ScheduleLimits(
        jobs=jobs,
        pools=limits.cluster_pools_per_call,
        nodes=limits.cluster_nodes_per_call,
        devices=limits.cluster_devices_per_call,
        devices_per_node=limits.devices_per_node,
        candidate_rows=limits.schedule_rows_per_call,
    )


def above_cap(what: str, limit: str, value: int, count: int) -> NodewiseError:
    """The error of a call that exceeds a limit, where no other method can help."""
    return too_much(f"{count} {what} exceed {limit} = {value}", limit, value, count)


def check_counts(limits: Limits, *counts: tuple[str, str, int]) -> None:
    """Refuse a call that exceeds a limit; each entry has what is counted, the name of its limit, and the count.

    Raises
    ------
    NodewiseError
        LIMIT_EXCEEDED.
    """
    for what, name, count in counts:
        if count > getattr(limits, name):
            raise above_cap(what, name, getattr(limits, name), count)


def too_many(what: str, limit: str, value: int, count: int) -> NodewiseError:
    """The error of a question that exceeds a limit, which StreamPredict can take in parts."""
    text = f"{count} {what} exceed {limit} = {value}; send the parts over StreamPredict"
    return too_much(text, limit, value, count, "StreamPredict")
