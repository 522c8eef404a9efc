"""Calls a sharing model with facts from profiles and the catalogue, and checks its answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nodewise.domain.budget import Budget
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.profile import Profile
from nodewise.domain.sharing import DeviceShares, PairRun, SharingQuestion, SoloJob
from nodewise.hosting.calls import call, unless_wrong
from nodewise.hosting.registry import LoadedPlugin
from nodewise.plugin import Catalogue, SharingModelRecord
from nodewise.plugin.catalogue import catalogue_key
from nodewise.sharing.checks import wrong_shares
from nodewise.sharing.evidence import with_profile
from nodewise.sharing.request import PredictedShares, PredictedSharing, SharingJob, SharingRequest
from nodewise.sharing.words import why

__all__ = ["predict_sharing"]


def predict_sharing(
    models: Mapping[str, LoadedPlugin[SharingModelRecord]],
    request: SharingRequest,
    catalogue: Catalogue,
    budget: Budget,
    most_runs: int,
) -> PredictedSharing:
    """Answers for all sets; a set with a job whose profile could not be loaded has that error.

    Raises
    ------
    NodewiseError
        LIMIT_EXCEEDED for more measured pairs than ``most_runs``, those of profiles included;
        SHARING_MODEL_NOT_FOUND, SHARING_MODEL_FAILED, SHARING_MODEL_INVALID_RESULT; what the model raises.
    """
    plugin = _model_of(models, request.model)
    memory_bytes = request.memory_bytes
    if memory_bytes is None and request.device:
        memory_bytes = (catalogue.device(request.device) or {}).get("memory_bytes")
    jobs = [_solo_job(job, request.device, catalogue) for job in request.jobs]
    sets: list[tuple[SoloJob, ...] | NodewiseError] = []
    for each in request.sets:
        errors = () if isinstance(each, NodewiseError) else [jobs[index] for index in each]
        members = each if isinstance(each, NodewiseError) else tuple(job for job in errors if isinstance(job, SoloJob))
        error = next((job for job in errors if isinstance(job, NodewiseError)), None)
        sets.append(members if error is None else error)
    question = SharingQuestion(
        device=request.device,
        mode=request.mode,
        runs=_runs(request, jobs, most_runs),
        sets=tuple(each for each in sets if not isinstance(each, NodewiseError)),
        memory_bytes=memory_bytes,
        processors=request.processors,
        coverage=request.coverage,
    )
    shares: list[DeviceShares] = []
    if question.sets:
        model, check = plugin.record.model, unless_wrong(lambda answer: wrong_shares(answer, question))
        shares = list(call(plugin, model, "predict_shares", question, budget, check=check))
    answers = iter(shares)
    return PredictedSharing(
        sets=tuple(each if isinstance(each, NodewiseError) else _label(next(answers), each, question) for each in sets),
        sharing_model=plugin.record.name,
        sharing_model_version=plugin.record.version,
        device_memory_bytes=memory_bytes,
        coverage=request.coverage,
    )


def _model_of(models: Mapping[str, LoadedPlugin[SharingModelRecord]], name: str) -> LoadedPlugin[SharingModelRecord]:
    """The sharing model of a name; without a name the only one, else the only shipped one."""
    available = ", ".join(sorted(models)) or "none"
    if name in models:
        return models[name]
    if not name:
        for candidates in (list(models.values()), [each for each in models.values() if each.mode == "inline"]):
            if len(candidates) == 1:
                return candidates[0]
    what = f"{name!r} is not loaded" if name else "must be stated unless exactly one is loaded"
    raise NodewiseError(
        Reason.SHARING_MODEL_NOT_FOUND,
        f"sharing_model: {what}; loaded are: {available}",
        {"sharing_model": name, "available": available},
    )


def _solo_job(job: SharingJob, device: str, catalogue: Catalogue) -> SoloJob | NodewiseError:
    if job.profile is None:
        return job.solo
    if isinstance(job.profile, NodewiseError):
        return job.profile
    return with_profile(job.solo, job.profile, device, catalogue)


def _runs(request: SharingRequest, jobs: list[SoloJob | NodewiseError], most: int) -> tuple[PairRun, ...]:
    """Measured pairs; a job whose profile could not be loaded has the facts that it states itself."""
    solo_jobs = [request.jobs[index].solo if isinstance(job, NodewiseError) else job for index, job in enumerate(jobs)]
    pairs = (*request.runs, *_matching_runs(request))
    if len(pairs) > most:
        text = f"the call has {len(pairs)} runs, those of profiles included, of at most sharing_runs_per_call = {most}"
        limit = {"limit": "sharing_runs_per_call", "value": str(most), "found": str(len(pairs))}
        raise NodewiseError(Reason.LIMIT_EXCEEDED, text, limit)
    return tuple(PairRun((solo_jobs[one], solo_jobs[other]), (share, others)) for one, other, share, others in pairs)


def _matching_runs(request: SharingRequest) -> Iterator[tuple[int, int, float, float]]:
    """Runs of pairs of the request's jobs on this device in this mode, from the jobs' profiles."""
    profiles = [each.profile for each in request.jobs]
    places = {
        each.profile_id: index for index, each in enumerate(profiles) if isinstance(each, Profile) and each.profile_id
    }
    for index, each in enumerate(profiles):
        for run in each.shared_runs if isinstance(each, Profile) else ():
            here = run.mode is request.mode and catalogue_key(run.device) == catalogue_key(request.device)
            if here and run.partner_profile_id in places:
                yield index, places[run.partner_profile_id], run.share, run.partner_share


def _label(shares: DeviceShares, jobs: tuple[SoloJob, ...], question: SharingQuestion) -> PredictedShares:
    return PredictedShares(shares, why(shares, jobs, question))
