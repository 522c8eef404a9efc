"""CompletionService: completion of jobs on machines that a provider may take away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from nodewise.completion.estimate import estimate_completion
from nodewise.completion.questions import CompletionQuestion, CompletionResult, HybridResult
from nodewise.completion.run_estimate import RunQuestion, estimate_run
from nodewise.mapper.mapping import to_message
from nodewise.ports.compute import LongRun
from nodewise.rpc.calls import Call
from nodewise.rpc.errors import write_problem
from nodewise.rpc.long_call import JobService, LongCall, Workshop, unary
from nodewise.rpc.options import read_model_options
from nodewise.rpc.wire_completions import read_completion, write_row
from nodewise.rpc.wire_runs import read_run, write_run
from nodewise_protos.v1beta1 import completion_pb2
from nodewise_protos.v1beta1 import completion_service_pb2 as pb

__all__ = ["Completions"]


class Completions(JobService):
    """Behaviours of CompletionService."""

    __slots__ = ()

    @unary
    async def estimate_completion(self, request: pb.EstimateCompletionRequest, call: Call) -> LongCall:
        """The row of every offer, in order; an error if the time is over before all are computed."""
        options = read_model_options(request.options).required_of(self.answers)
        question = read_completion(request, options)
        if request.HasField("profile"):
            profile = await self.sources.profile(request.profile, options.waiting(call))
            question = replace(question, profile=profile)
        return LongCall(_estimate, question)

    @unary
    async def estimate_run(self, request: pb.EstimateRunRequest, call: Call) -> LongCall:
        """The card of a run."""
        options = read_model_options(request.options).required_of(self.answers)
        profile = await self.sources.profile(request.profile, options.waiting(call))
        return LongCall(_estimate_run, read_run(request, profile, options, self.limits))


def _estimate(workshop: Workshop, question: CompletionQuestion, run: LongRun) -> Iterator[bytes]:
    timed_question = replace(question, terms=question.terms.within(run.budget))
    yield write_completion(estimate_completion(workshop.answers, timed_question, run.budget)).SerializeToString()


def _estimate_run(workshop: Workshop, run_question: RunQuestion, run: LongRun) -> Iterator[bytes]:
    question = replace(run_question.question, terms=run_question.question.terms.within(run.budget))
    result = estimate_run(workshop.answers, replace(run_question, question=question), run.budget)
    yield write_run(result, run_question).SerializeToString()


def write_completion(result: CompletionResult) -> pb.EstimateCompletionResponse:
    """The reply."""
    hybrid = None if result.hybrid is None else _hybrid(result.hybrid)
    rows = [write_row(row) for row in result.rows]
    return to_message(result, pb.EstimateCompletionResponse, rows=rows, hybrid=hybrid)


def _hybrid(result: HybridResult) -> completion_pb2.HybridAnswer:
    if result.outcome is None:
        problem = None if result.error is None else write_problem(result.error)
        return completion_pb2.HybridAnswer(problem=problem)
    bases, warnings = result.bases, result.warnings
    return to_message(result.outcome, completion_pb2.HybridAnswer, problem=None, bases=bases, warnings=warnings)
