"""CompletionService: what becomes of a job on machines that can be taken away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from nodewise.completion.estimate import estimated
from nodewise.completion.questions import CompletionQuestion
from nodewise.estimation.answer.answers import Answers
from nodewise.ports.compute import Compute, LongRun
from nodewise.rpc.calls import Call
from nodewise.rpc.long_call import LongCall, Workshop, unary
from nodewise.rpc.options import read_model_options
from nodewise.rpc.sources import ProfileSources
from nodewise.rpc.wire_completion_answers import write_completion
from nodewise.rpc.wire_completions import read_completion
from nodewise_protos.v1beta1 import completion_service_pb2 as pb

__all__ = ["Completions"]


@dataclass(slots=True, eq=False)
class Completions:
    """Behaviours of CompletionService.

    Attributes
    ----------
    answers : Answers
        Knows the estimators.
    sources : ProfileSources
        Finds profiles.
    compute : Compute
        Where runs are made.
    """

    answers: Answers
    sources: ProfileSources
    compute: Compute[Workshop]

    @unary
    async def estimate_completion(self, request: pb.EstimateCompletionRequest, call: Call) -> LongCall:
        """Every offer's row, in order; all or nothing where time is over."""
        options = read_model_options(request.options).required_of(self.answers)
        question = read_completion(request, options)
        if request.HasField("profile"):
            profile = await self.sources.profile(request.profile, options.waiting(call))
            question = replace(question, profile=profile)
        return LongCall(_estimated, question)


def _estimated(workshop: Workshop, question: CompletionQuestion, run: LongRun) -> Iterator[bytes]:
    timed = replace(question, terms=question.terms.within(run.budget))
    yield write_completion(estimated(workshop.answers, timed, run.budget)).SerializeToString()
