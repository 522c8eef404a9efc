"""Checks of sharing models: one record against sets of jobs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from nodewise.conformance.evidence import Evidence
from nodewise.conformance.findings import ROUNDING, Checks, difference, for_each, require, sound_answer
from nodewise.domain.budget import Budget
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.sharing import DeviceShares, SharingQuestion, SoloJob
from nodewise.hosting.calls import unless_wrong
from nodewise.hosting.registry import LoadedPlugin
from nodewise.plugin import SharingModelRecord
from nodewise.sharing.checks import wrong_shares

__all__ = ["SHARING_CHECKS"]

ASKED_S: Final = 60.0
"""Budget of a model in seconds, unless the check is about the budget."""

_Loaded = LoadedPlugin[SharingModelRecord]


def _answer(plugin: _Loaded, question: SharingQuestion, seconds: float = ASKED_S) -> list[DeviceShares] | None:
    """Checked answers; None = the model refuses."""
    ask = partial(plugin.record.model.predict_shares, question, Budget(seconds))
    try:
        return list(sound_answer("predict_shares", ask, unless_wrong(partial(wrong_shares, question=question))))
    except NodewiseError as error:
        may_refuse = error.reason is Reason.NOT_IMPLEMENTED or (
            seconds <= 0 and error.reason is Reason.DEADLINE_EXCEEDED
        )
        require(may_refuse, f"predict_shares refuses with {error.reason}; it may only refuse with NOT_IMPLEMENTED")
        return None


def _answers(plugin: _Loaded, evidence: Evidence) -> None:
    answers = [_answer(plugin, question) for question in evidence.sharings]
    require(any(each is not None for each in answers), "the sharing model refuses every mode of sharing")


def _order(plugin: _Loaded, question: SharingQuestion) -> None:
    """The order of the jobs in a set, or in a run, makes no difference."""
    reverse = replace(
        question,
        sets=tuple(jobs[::-1] for jobs in question.sets),
        runs=tuple(replace(run, jobs=run.jobs[::-1], shares=run.shares[::-1]) for run in question.runs),
    )
    for one, other, jobs in zip(
        _answer(plugin, question) or (), _answer(plugin, reverse) or (), question.sets, strict=True
    ):
        for name in ("low", "middle", "high"):
            same = np.allclose(getattr(one, name), getattr(other, name)[::-1], rtol=0.0, atol=1e-6)
            require(same, f"{name} shares of {_name(jobs)} depend on the order of the jobs")


def _company(plugin: _Loaded, question: SharingQuestion) -> None:
    """A set gets the same answer when it is asked alone."""
    for place, whole in enumerate(_answer(plugin, question) or ()):
        (alone,) = _answer(plugin, replace(question, sets=question.sets[place : place + 1])) or (whole,)
        same = np.allclose(alone.middle, whole.middle, rtol=ROUNDING, atol=0.0)
        require(same, f"shares of {_name(question.sets[place])} depend on the other sets of the question")


def _check_measured(plugin: _Loaded, question: SharingQuestion) -> None:
    """The prediction of a pair that ran is its measurement."""
    ran = replace(question, sets=tuple(run.jobs for run in question.runs))
    for run, shares in zip(question.runs, _answer(plugin, ran) or (), strict=False):
        bounds = [shares.low.tolist(), shares.middle.tolist(), shares.high.tolist()]
        same = np.allclose(bounds, [run.shares] * 3, rtol=ROUNDING, atol=0.0)
        require(same, f"{_name(run.jobs)} ran with the shares {run.shares}; predicted are {shares.middle.tolist()}")


def _purity(plugin: _Loaded, question: SharingQuestion) -> None:
    first = _answer(plugin, question)
    # Another question in between, to detect a model that keeps state between calls.
    _answer(plugin, replace(question, runs=()))
    where = difference(first, _answer(plugin, question), "the answer")
    require(where is None, f"the same question gets different answers: {where} differs")


def _time(plugin: _Loaded, question: SharingQuestion) -> None:
    """Without time left: an answer, or DEADLINE_EXCEEDED."""
    _answer(plugin, question, seconds=0.0)


def _name(jobs: tuple[SoloJob, ...]) -> str:
    return " and ".join(job.name for job in jobs)


SHARING_CHECKS: Final[Checks] = {
    "answers": _answers,
    "order of jobs": for_each("sharings", _order),
    "company of sets": for_each("sharings", _company),
    "measured pairs": for_each("sharings", _check_measured),
    "purity": for_each("sharings", _purity),
    "no time left": for_each("sharings", _time),
}
