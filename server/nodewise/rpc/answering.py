"""Answers single questions: in the event loop if that is quick, else in threads."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace

from nodewise.domain.budget import Budget
from nodewise.domain.predictions import Fidelity
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import AUTO, Answer, Basis, Question
from nodewise.hosting.background import impatient
from nodewise.rpc.calls import Call, computed_in, run_in
from nodewise.rpc.long_call import ANSWER_SHARE

__all__ = ["Answering", "answer_unless_known"]


@dataclass(slots=True, eq=False)
class Answering:
    """Answers questions, in the event loop or in threads.

    Attributes
    ----------
    answers : Answers
        The answers of one generation.
    executor, simulations : Executor
        Threads for fits, large questions and estimators that do not run inline; for simulations of a batch.
    homes : mapping of distribution to Executor
        Threads for questions to one plugin host, so that questions that wait for it do not delay others.
    """

    answers: Answers
    executor: Executor
    simulations: Executor
    homes: Mapping[str, Executor] = field(default_factory=dict)

    async def answer(self, question: Question, if_none_match: str, call: Call) -> Answer | Basis:
        """The answer, computed in the event loop if the models are fitted and fast, else in a thread.

        The basis alone if ``if_none_match`` is its digest, so that the caller has the answer already.
        """
        query = self.answers.resolve_now(question, fitted_only=call.threads_are_busy)
        if query is None:
            return await self.slowly(question, if_none_match, call)
        if if_none_match and query.basis.digest == if_none_match:
            return query.basis
        return self.answers.complete(question, query)

    async def slowly(self, question: Question, if_none_match: str, call: Call) -> Answer | Basis:
        """The answer, computed in a thread, within the remaining time of the call."""
        budget = Budget(call.remaining_s() * ANSWER_SHARE)
        query = replace(question, terms=question.terms.within(budget))
        is_simulation = question.terms.options.fidelity == Fidelity.SIMULATE
        usual = self.simulations if is_simulation else self.executor
        home = self.homes.get(self.answers.home(question))
        try:
            answer: Answer | Basis
            if home is None:
                answer = await computed_in(usual, call, answer_unless_known, self.answers, query, if_none_match)
            else:  # threads of its own, so that waiting for this host delays no other question
                call.step_aside()
                answer = await run_in(home, answer_unless_known, self.answers, query, if_none_match)
        finally:
            budget.end()
        return answer


def answer_unless_known(answers: Answers, question: Question, if_none_match: str) -> Answer | Basis:
    """The answer; the basis alone if ``if_none_match`` is its digest."""
    token = impatient.set(question.terms.estimator == AUTO)
    try:
        query = answers.resolve(question)
        if if_none_match and query.basis.digest == if_none_match:
            return query.basis
        return answers.complete(question, query)
    finally:
        impatient.reset(token)
