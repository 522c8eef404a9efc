"""PlanService: searches, with the best so far as progress."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from nodewise.estimation.answer.answers import Answers
from nodewise.planning.plan import planned
from nodewise.planning.results import PlanQuestion
from nodewise.planning.search import Progress
from nodewise.ports.compute import Compute, LongRun
from nodewise.ports.limits import Limits
from nodewise.rpc.calls import Call
from nodewise.rpc.long_call import LongCall, Workshop, streamed
from nodewise.rpc.options import read_model_options
from nodewise.rpc.sources import ProfileSources
from nodewise.rpc.wire_plans import read_plan, write_plan, write_progress
from nodewise_protos.v1beta1 import plan_service_pb2 as pb

__all__ = ["Plans"]


@dataclass(slots=True, eq=False)
class Plans:
    """Behaviours of PlanService.

    Attributes
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

    answers: Answers
    sources: ProfileSources
    limits: Limits
    compute: Compute[Workshop]

    @streamed
    async def plan(self, request: pb.PlanRequest, call: Call) -> LongCall:
        """Progress, at least once, then the result: the best so far where time was over before."""
        options = read_model_options(request.options).required_of(self.answers)
        question, budget_s = read_plan(request, options, self.limits)
        profile = await self.sources.profile(request.profile, options.waiting(call))
        return LongCall(_planned, replace(question, profile=profile), budget_s)


def _planned(workshop: Workshop, question: PlanQuestion, run: LongRun) -> Iterator[bytes]:
    def advanced(progress: Progress) -> None:
        run.tell(lambda: pb.PlanResponse(progress=write_progress(progress)).SerializeToString())

    timed = replace(question, terms=question.terms.within(run.budget))
    yield pb.PlanResponse(result=write_plan(planned(workshop.answers, timed, advanced))).SerializeToString()
