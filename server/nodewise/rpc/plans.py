"""PlanService: searches, with the best so far as progress."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from nodewise.domain.errors import invalid_field
from nodewise.domain.predictions import Fidelity
from nodewise.estimation.answer.answers import Answers
from nodewise.planning.plan import planned
from nodewise.planning.results import PlanQuestion
from nodewise.planning.search import Progress
from nodewise.ports.compute import Compute, LongRun
from nodewise.ports.limits import Limits
from nodewise.rpc.calls import Call
from nodewise.rpc.long_call import LongCall, Workshop, streamed
from nodewise.rpc.sources import ProfileSources
from nodewise.rpc.wire_plans import read_plan, write_plan, write_progress
from nodewise.rpc.wire_predictions import ReadOptions, read_options
from nodewise_protos.v1 import plan_service_pb2 as pb

__all__ = ["Plans"]


class Plans:
    """Behaviours of PlanService.

    Parameters
    ----------
    answers : Answers
        Knows the estimators.
    sources : ProfileSources
        Finds profiles.
    limits : Limits
        Caps of a call.
    compute : Compute
        Where searches are made.
    """

    def __init__(self, answers: Answers, sources: ProfileSources, limits: Limits, compute: Compute[Workshop]) -> None:
        self._answers = answers
        self._sources = sources
        self._limits = limits
        self.compute = compute

    @streamed
    async def plan(self, request: pb.PlanRequest, call: Call) -> LongCall:
        """Progress, at least once, then the result: the best so far where time was over before."""
        options = read_options(request.options)
        _require_search(options)
        self._answers.estimators.require(options.terms.estimator)
        plan = read_plan(request, self._limits)
        question = PlanQuestion(
            profile=await self._sources.profile(request.profile),
            constraints=plan.constraints,
            objective=plan.objective,
            terms=options.terms,
            exhaustive=request.exhaustive,
            frontier_points=plan.frontier_points,
            explain=not request.skip_explanation,
        )
        return LongCall(_planned, (question, options), plan.budget_s)


def _require_search(options: ReadOptions) -> None:
    if options.terms.options.fidelity == Fidelity.SIMULATE:
        raise invalid_field("options.fidelity", "must be FIDELITY_MODEL: a search evaluates a model")
    if options.terms.allow_fallback:
        raise invalid_field("options.allow_fallback", "must be false: another estimator has another space")


def _planned(workshop: Workshop, asked: tuple[PlanQuestion, ReadOptions], run: LongRun) -> Iterator[bytes]:
    question, options = asked

    def advanced(progress: Progress) -> None:
        run.tell(lambda: pb.PlanResponse(progress=write_progress(progress)).SerializeToString())

    timed = replace(question, terms=question.terms.within(run.budget))
    result = planned(workshop.answers, timed, advanced)
    yield pb.PlanResponse(result=write_plan(result, options.columns)).SerializeToString()
