"""PredictionService's batches: many jobs, or many architectures of one job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nodewise.domain.errors import NodewiseError, invalid_field
from nodewise.domain.objective import Objective
from nodewise.estimation.question import Answer, Basis
from nodewise.ports.limits import Limits
from nodewise.rpc.answering import Answering
from nodewise.rpc.architectures import ArchitectureBatches
from nodewise.rpc.calls import Call, Stint
from nodewise.rpc.candidates import counts_nothing, read_candidates, with_counts
from nodewise.rpc.caps import check_steps, too_many
from nodewise.rpc.errors import with_prefix, write_problem
from nodewise.rpc.options import ReadOptions, read_options
from nodewise.rpc.questions import Job, objective_of, says_more
from nodewise.rpc.sources import ProfileSources
from nodewise.rpc.varint import length_delimited, tag_of
from nodewise.rpc.wire_objectives import write_recommendation
from nodewise.rpc.wire_predictions import columns_of, packed_predictions, write_basis
from nodewise_protos.v1 import prediction_service_pb2 as pb
from nodewise_protos.v1 import profile_pb2

__all__ = ["Batches"]

_PREDICTIONS = tag_of(pb.BatchPredictResponse.DESCRIPTOR.fields_by_name["predictions"])
"""The tag before the rows of a reply."""


@dataclass(slots=True, eq=False)
class Batches:
    """The behaviour of PredictionService that answers batches.

    Attributes
    ----------
    answering : Answering
        Answers each job.
    architectures : ArchitectureBatches
        Answers batches of architectures.
    sources : ProfileSources
        Finds profiles.
    answering_of : callable or None
        From the source of a job's profile to what answers it; None = ``answering`` answers all jobs.
    """

    answering: Answering
    architectures: ArchitectureBatches
    sources: ProfileSources
    limits: Limits
    answering_of: Callable[[profile_pb2.ProfileSource], Answering] | None = None

    async def batch_predict(self, request: pb.BatchPredictRequest, call: Call) -> bytes:
        """Predict many jobs, or many architectures of one job; each job fails alone."""
        if request.HasField("architectures"):
            return await self.architectures.rank(request, call)
        if not request.jobs:
            raise invalid_field("jobs", "must hold at least one job unless architectures is given")
        if request.HasField("profile"):
            raise invalid_field("profile", "must be absent without architectures: each job has its own profile")
        options = read_options(request.options).required_of(self.answering.answers)
        stint = Stint(call)
        jobs = await self._jobs(request, options, call, stint)
        rows = sum(len(job.configurations) for job in jobs if isinstance(job, Job))
        check_steps(rows, options.terms.options, self.limits)
        results: list[Answer | Basis | NodewiseError] = []
        for number, (job, message) in enumerate(zip(jobs, request.jobs)):
            results.append(await self._job_answer(job, message, options, number, call))
            await stint.over(f"{len(results)} of {len(jobs)} jobs were answered in time")
        return _batch_reply(results, options)

    async def _jobs(
        self, request: pb.BatchPredictRequest, options: ReadOptions, call: Call, stint: Stint
    ) -> list[Job | NodewiseError]:
        """The jobs as read, or their errors. Raises LIMIT_EXCEEDED as soon as they have more rows than a call may."""
        shared_rows = None
        if not counts_nothing(request):
            shared_rows = read_candidates(request.configurations, request.ranges, self.limits)
        common: Objective | None = None
        if shared_rows is not None:
            common = objective_of(pb.BatchJob(), shared_rows, self.limits, request)
        jobs: list[Job | NodewiseError] = []
        rows = 0
        for number, batch_job in enumerate(request.jobs):
            await stint.over(f"{number} of {len(request.jobs)} jobs were read in time")
            try:
                message, configurations = await self._with_counts(batch_job, request, options, call), shared_rows
                if configurations is None or message.HasField("configurations") or message.ranges:
                    configurations = read_candidates(message.configurations, message.ranges, self.limits)
                if configurations is not shared_rows or common is None or says_more(message):
                    jobs.append(Job(configurations, objective_of(message, configurations, self.limits, request)))
                else:
                    jobs.append(Job(configurations, common))
            except NodewiseError as error:
                jobs.append(with_prefix(error, f"jobs[{number}]."))
                continue
            rows += len(configurations)
            if rows > self.limits.rows_per_call:
                raise too_many("rows of all jobs together", "rows_per_call", self.limits.rows_per_call, rows)
        return jobs

    async def _with_counts(
        self, job: pb.BatchJob, request: pb.BatchPredictRequest, options: ReadOptions, call: Call
    ) -> pb.BatchJob:
        """The job with counts in all of its ranges, own or shared ones; unchanged if they have counts."""
        own = bool(job.HasField("configurations") or job.ranges)
        if not counts_nothing(job if own else request):
            return job
        profile = await self.sources.profile(job.profile, options.waiting(call))
        job_with_counts = with_counts(job, (job if own else request).ranges, profile, self.limits)
        if not own:
            job_with_counts.configurations.CopyFrom(request.configurations)
        return job_with_counts

    async def _job_answer(
        self, job: Job | NodewiseError, message: pb.BatchJob, options: ReadOptions, number: int, call: Call
    ) -> Answer | Basis | NodewiseError:
        if isinstance(job, NodewiseError):
            return job
        try:
            profile = await self.sources.profile(message.profile, options.waiting(call))
            question = options.question(profile, job.configurations, job.objective)
            answering = self.answering if self.answering_of is None else self.answering_of(message.profile)
            return await answering.answer(question, message.if_none_match, call)
        except NodewiseError as error:
            return with_prefix(error, f"jobs[{number}].")


def _batch_reply(results: Sequence[Answer | Basis | NodewiseError], options: ReadOptions) -> bytes:
    reply = pb.BatchPredictResponse(row_offsets=[0])
    places: dict[Basis, int] = {}
    columns, answers, rows = sorted(options.columns), list[Answer](), 0
    for result in results:
        if isinstance(result, NodewiseError):
            reply.outcomes.add(problem=write_problem(result))
        else:
            basis = result if isinstance(result, Basis) else result.basis
            place = places.setdefault(basis, len(places))
            if place == len(reply.bases):
                reply.bases.append(write_basis(basis))
            if isinstance(result, Basis):
                reply.outcomes.add(basis_index=place, unchanged=True)
            else:
                answers.append(result)
                rows += len(result.predictions)
                reply.outcomes.add(
                    basis_index=place,
                    recommendation=write_recommendation(result.recommendation),
                    columns=columns_of(result, columns),
                    interval_basis=0 if result.interval is None else int(result.interval.basis),
                )
        reply.row_offsets.append(rows)
    rows_of_all = packed_predictions(answers, options.columns) if answers else b""
    return reply.SerializeToString() + length_delimited(_PREDICTIONS, rows_of_all)
