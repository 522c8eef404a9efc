"""What models answer to one question: in the event loop where that is quick, else in threads."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace

from nodewise.domain.budget import Budget
from nodewise.domain.predictions import Fidelity
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import AUTO, Answer, Basis, Question
from nodewise.hosting.processes.host import impatient
from nodewise.rpc.calls import Call, computed_in, run_in
from nodewise.rpc.long_call import ANSWER_SHARE

__all__ = ["Answering", "answer_unless_known"]


@dataclass(slots=True, eq=False)
class Answering:
    """Where questions are answered.

    Attributes
    ----------
    answers : Answers
        Answers.
    executor, simulations : Executor
        Threads for fits, large questions and estimators that do not run inline; for simulations of a batch.
    homes : mapping of distribution to Executor
        Threads for questions that go to one plugin host, so that who waits for it keeps no other from its answer.
    """

    answers: Answers
    executor: Executor
    simulations: Executor
    homes: Mapping[str, Executor] = field(default_factory=dict)

    async def answer(self, question: Question, if_none_match: str, call: Call) -> Answer | Basis:
        """Here and now where that takes no longer than a look at a fitted model, else in a thread.

        The basis alone where its digest is the one that the asker has an answer of.
        """
        resolved = self.answers.resolve_now(question, fitted_only=call.threads_are_busy)
        if resolved is None:
            return await self.slowly(question, if_none_match, call)
        if if_none_match and resolved.basis.digest == if_none_match:
            return resolved.basis
        return self.answers.complete(question, resolved)

    async def slowly(self, question: Question, if_none_match: str, call: Call) -> Answer | Basis:
        """In a thread, which learns how long the call still waits."""
        budget = Budget(call.remaining_s() * ANSWER_SHARE)
        asked = replace(question, terms=question.terms.within(budget))
        simulated = question.terms.options.fidelity == Fidelity.SIMULATE
        usual = self.simulations if simulated else self.executor
        home = self.homes.get(self.answers.home(question))
        try:
            answered: Answer | Basis
            if home is None:
                answered = await computed_in(usual, call, answer_unless_known, self.answers, asked, if_none_match)
            else:  # threads of its own: what waits there holds up nobody else
                call.step_aside()
                answered = await run_in(home, answer_unless_known, self.answers, asked, if_none_match)
        finally:
            budget.end()
        return answered


def answer_unless_known(answers: Answers, question: Question, if_none_match: str) -> Answer | Basis:
    """The answer; the basis alone where its digest is the one that the asker has an answer of."""
    token = impatient.set(question.terms.estimator == AUTO)
    try:
        resolved = answers.resolve(question)
        if if_none_match and resolved.basis.digest == if_none_match:
            return resolved.basis
        return answers.complete(question, resolved)
    finally:
        impatient.reset(token)
