"""SharingService: the speed of jobs that share a device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, Final

from nodewise.domain.errors import NodewiseError, invalid_field
from nodewise.domain.sharing import KernelShape, Processors, SharingMode, SoloJob
from nodewise.mapper.mapping import from_message, to_message
from nodewise.mapper.profiles import read_mode
from nodewise.mapper.reading import Reader, quote
from nodewise.plugin import Catalogue
from nodewise.ports.compute import LongRun
from nodewise.ports.limits import Limits
from nodewise.rpc.calls import Call
from nodewise.rpc.caps import check_counts
from nodewise.rpc.errors import with_prefix, write_problem
from nodewise.rpc.long_call import JobService, LongCall, Workshop, unary
from nodewise.sharing.evidence import peak_ratio
from nodewise.sharing.predict import predict_sharing
from nodewise.sharing.request import PredictedShares, PredictedSharing, SharingJob, SharingRequest
from nodewise_protos.v1beta1 import sharing_service_pb2 as pb

__all__ = ["Sharing", "check_sizes", "read_sharing", "write_sharing"]


class Sharing(JobService):
    """Behaviours of SharingService."""

    __slots__ = ()

    @unary
    async def predict_sharing(self, request: pb.PredictSharingRequest, call: Call) -> LongCall:
        """Shares and verdict of every set."""
        check_sizes(request, self.limits)
        question = read_sharing(request, self.answers.estimators.catalogue)
        jobs = [
            await self._with_profile(job, message, f"jobs[{number}].profile", call)
            for number, (job, message) in enumerate(zip(question.jobs, request.jobs, strict=True))
        ]
        return LongCall(_predict, replace(question, jobs=tuple(jobs)))

    async def _with_profile(self, job: SharingJob, message: pb.SharingJob, path: str, call: Call) -> SharingJob:
        """The job with its profile, or with the error of loading it, which the job's sets get."""
        if not message.HasField("profile"):
            return job
        try:
            return replace(job, profile=await self.sources.profile(message.profile, call, path))
        except NodewiseError as error:
            return replace(job, profile=with_prefix(error, f"{path.removesuffix('profile')}"))


def _predict(workshop: Workshop, question: SharingRequest, run: LongRun) -> Iterator[bytes]:
    answers, most_runs = workshop.answers, workshop.limits.sharing_runs_per_call
    prediction = predict_sharing(
        answers.registry.sharing_models, question, answers.estimators.catalogue, run.budget, most_runs
    )
    yield write_sharing(prediction, question).SerializeToString()


MOST_JOBS: Final = 16
"""Most jobs of a set: contexts of more processes hardly fit a device."""
MOST_PARTS: Final = 64
"""Most steps_elsewhere, and most kernels, of a job."""


def check_sizes(request: pb.PredictSharingRequest, limits: Limits) -> None:
    """Refuse a request of too many pairs, before reading it; intake has checked the lists.

    Raises
    ------
    NodewiseError
        LIMIT_EXCEEDED.
    """
    jobs = len(request.jobs)
    sets = len(request.sets) or jobs * (jobs - 1) // 2
    check_counts(limits, ("sets (every pair if none is stated)", "sharing_sets_per_call", sets))


def read_sharing(request: pb.PredictSharingRequest, catalogue: Catalogue) -> SharingRequest:
    """The request as read, without profiles.

    Raises
    ------
    NodewiseError
        INVALID_FIELD, CONTRADICTORY_FACTS. The error of a single set takes its place.
    """
    reader = Reader()
    device = reader.read_scalars(request.device, "device.")
    mode = read_mode(request.mode, "mode", reader)
    processors = None
    if request.device.HasField("processors"):
        processors = from_message(request.device.processors, Processors, "device.processors.", reader)
    if not request.jobs:
        reader.wrong("jobs", "must hold at least one job")
    places: dict[str, int] = {}
    jobs = []
    for number, message in enumerate(request.jobs):
        path = f"jobs[{number}]"
        if not message.name:
            reader.wrong(f"{path}.name", "must be given, since sets and runs refer to jobs by name")
        elif places.setdefault(message.name, number) != number:
            reader.wrong(f"{path}.name", f"must be unique; jobs[{places[message.name]}] has this name too")
        name = device.get("device", "")
        jobs.append(SharingJob(_job(message, path, mode, name, catalogue, reader)))
    scalars = reader.read_scalars(request, "")
    runs = tuple(_runs(request.runs, places, reader))
    if not request.sets and len(jobs) == 1:
        reader.wrong("sets", "must be given for a single job, which has no pairs")
    reader.finish()
    sets = [_set(each.job_names, f"sets[{number}].job_names", places) for number, each in enumerate(request.sets)]
    return SharingRequest(
        device=device.get("device", ""),
        memory_bytes=device.get("memory_bytes"),
        processors=processors,
        mode=mode,
        jobs=tuple(jobs),
        runs=runs,
        sets=tuple(sets or combinations(range(len(jobs)), 2)),
        coverage=scalars.get("coverage", 0.9),
        model=request.sharing_model,
    )


def _job(
    message: pb.SharingJob, path: str, mode: SharingMode, device: str, catalogue: Catalogue, reader: Reader
) -> SoloJob:
    scalars: dict[str, Any] = reader.read_scalars(message, f"{path}.")
    if "step_s" in scalars:
        scalars["step_seconds"] = scalars.pop("step_s")
    if mode is not SharingMode.MIG:
        for field, row in (("slice_ratio", "slice_share"), ("slice_memory_bytes", "slice_memory_bytes")):
            if row in scalars:
                reader.wrong(f"{path}.{field}", "must be absent unless mode is SHARING_MODE_MIG")
    for name in ("steps_elsewhere", "kernels"):
        reader.at_most(getattr(message, name), f"{path}.{name}", MOST_PARTS)
    kernels = (
        from_message(kernel, KernelShape, f"{path}.kernels[{number}].", reader)
        for number, kernel in enumerate(message.kernels[:MOST_PARTS])
    )
    elsewhere: dict[str, tuple[float, float]] = {}
    for number, step in enumerate(message.steps_elsewhere[:MOST_PARTS]):
        place = f"{path}.steps_elsewhere[{number}]"
        step_scalars = reader.read_scalars(step, f"{place}.")
        name = step_scalars.get("device", "")
        ratio = step_scalars.get("speed_ratio") or peak_ratio(catalogue, name, device)
        if not name or name in elsewhere:
            reader.wrong(f"{place}.device_name", f"must be given and unique, found {quote(name)}")
        elif ratio is None:
            text = f"must be given: the catalog does not know the peak of both {quote(name)} and {quote(device)}"
            reader.wrong(f"{place}.speed_ratio", text)
        else:
            elsewhere[name] = step_scalars.get("step_s", step_scalars.get("step_seconds", 0.0)), ratio
    return SoloJob(**{"name": "", **scalars}, elsewhere=elsewhere, kernels=tuple(kernels))


def _runs(
    messages: Sequence[pb.SharedRun], places: Mapping[str, int], reader: Reader
) -> Iterator[tuple[int, int, float, float]]:
    for number, message in enumerate(messages):
        path = f"runs[{number}]"
        jobs = []
        for field in ("first_job", "second_job"):
            name = getattr(message, field)
            if name not in places:
                reader.wrong(f"{path}.{field}", f"must name one of the jobs, found {quote(name)}")
            jobs.append(places.get(name, 0))
        scalars = reader.read_scalars(message, f"{path}.", but=("first_job", "second_job"))
        yield jobs[0], jobs[1], scalars["first_share"], scalars["second_share"]


def _set(names: Sequence[str], path: str, places: Mapping[str, int]) -> tuple[int, ...] | NodewiseError:
    """The jobs of a set, or its error."""
    if not 1 <= len(names) <= MOST_JOBS:
        return invalid_field(path, f"must name 1 to {MOST_JOBS} jobs, found {len(names)}")
    for number, name in enumerate(names):
        if name not in places:
            return invalid_field(f"{path}[{number}]", f"must name one of the jobs, found {quote(name)}")
    return tuple(places[name] for name in names)


def write_sharing(prediction: PredictedSharing, question: SharingRequest) -> pb.PredictSharingResponse:
    """The reply, with the answers of all sets in order."""
    names = [job.solo.name for job in question.jobs]
    sets = [
        _write_shares(each, [] if isinstance(jobs, NodewiseError) else [names[index] for index in jobs])
        for each, jobs in zip(prediction.sets, question.sets, strict=True)
    ]
    return to_message(prediction, pb.PredictSharingResponse, sets=sets)


def _write_shares(outcome: PredictedShares | NodewiseError, names: Sequence[str]) -> pb.SetShares:
    if isinstance(outcome, NodewiseError):
        return pb.SetShares(job_names=names, problem=write_problem(outcome))
    shares = outcome.shares
    totals = dict(zip(("low_total", "middle_total", "high_total"), shares.total, strict=True))
    others: dict[str, Any] = {"job_names": names, "why": outcome.why, "problem": None, "basis": shares.basis or None}
    return to_message(shares, pb.SetShares, **totals, **others)  # type: ignore[arg-type]  # fields
