"""SharingService: what jobs keep that share a device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from nodewise.domain.errors import NodewiseError
from nodewise.estimation.answer.answers import Answers
from nodewise.ports.compute import Compute, LongRun
from nodewise.ports.limits import Limits
from nodewise.rpc.calls import Call
from nodewise.rpc.errors import prefixed
from nodewise.rpc.long_call import LongCall, Workshop, unary
from nodewise.rpc.sources import ProfileSources
from nodewise.rpc.wire_sharing import check_sizes, read_sharing, write_sharing
from nodewise.sharing.predict import predicted_sharing
from nodewise.sharing.request import AskedJob, AskedShares
from nodewise_protos.v1beta1 import sharing_service_pb2 as pb

__all__ = ["Sharing"]


@dataclass(slots=True, eq=False)
class Sharing:
    """Behaviours of SharingService.

    Attributes
    ----------
    answers : Answers
        Knows the catalogue.
    sources : ProfileSources
        Finds profiles.
    limits : Limits
        Caps of a call.
    compute : Compute
        Where pairs are learned from.
    """

    answers: Answers
    sources: ProfileSources
    limits: Limits
    compute: Compute[Workshop]

    @unary
    async def predict_sharing(self, request: pb.PredictSharingRequest, call: Call) -> LongCall:
        """Shares and verdict of every set."""
        check_sizes(request, self.limits)
        asked = read_sharing(request, self.answers.estimators.catalogue)
        jobs = [
            await self._with_profile(job, message, f"jobs[{number}].profile", call)
            for number, (job, message) in enumerate(zip(asked.jobs, request.jobs, strict=True))
        ]
        return LongCall(_predicted, replace(asked, jobs=tuple(jobs)))

    async def _with_profile(self, job: AskedJob, message: pb.SharingJob, path: str, call: Call) -> AskedJob:
        """The job with its profile; one that is missing is told with the sets that hold the job."""
        if not message.HasField("profile"):
            return job
        try:
            return replace(job, profile=await self.sources.profile(message.profile, call, path))
        except NodewiseError as error:
            return replace(job, profile=prefixed(error, f"{path.removesuffix('profile')}"))


def _predicted(workshop: Workshop, asked: AskedShares, run: LongRun) -> Iterator[bytes]:
    answers, most_runs = workshop.answers, workshop.limits.sharing_runs_per_call
    found = predicted_sharing(
        answers.registry.sharing_models, asked, answers.estimators.catalogue, run.budget, most_runs
    )
    yield write_sharing(found, asked).SerializeToString()
