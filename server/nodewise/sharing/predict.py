"""Ask a sharing model: with facts from profiles and the catalogue, and its answers checked."""

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
from nodewise.sharing.request import AskedJob, AskedShares, PredictedShares, PredictedSharing
from nodewise.sharing.words import why

__all__ = ["predicted_sharing"]


def predicted_sharing(
    models: Mapping[str, LoadedPlugin[SharingModelRecord]],
    asked: AskedShares,
    catalogue: Catalogue,
    budget: Budget,
    most_runs: int,
) -> PredictedSharing:
    """Answers for all sets; a set that holds a job whose profile could not be loaded has that error.

    Raises
    ------
    NodewiseError
        LIMIT_EXCEEDED for more pairs, with those that profiles hold, than ``most_runs``; SHARING_MODEL_NOT_FOUND,
        SHARING_MODEL_FAILED, SHARING_MODEL_INVALID_RESULT; what the model refuses with.
    """
    loaded = _model_of(models, asked.model)
    memory_bytes = asked.memory_bytes
    if memory_bytes is None and asked.device:
        memory_bytes = (catalogue.device(asked.device) or {}).get("memory_bytes")
    jobs = [_solo_job(job, asked.device, catalogue) for job in asked.jobs]
    sets: list[tuple[SoloJob, ...] | NodewiseError] = []
    for each in asked.sets:
        errors = () if isinstance(each, NodewiseError) else [jobs[index] for index in each]
        found = each if isinstance(each, NodewiseError) else tuple(job for job in errors if isinstance(job, SoloJob))
        failed = next((job for job in errors if isinstance(job, NodewiseError)), None)
        sets.append(found if failed is None else failed)
    question = SharingQuestion(
        device=asked.device,
        mode=asked.mode,
        runs=_runs(asked, jobs, most_runs),
        sets=tuple(each for each in sets if not isinstance(each, NodewiseError)),
        memory_bytes=memory_bytes,
        processors=asked.processors,
        coverage=asked.coverage,
    )
    shares: list[DeviceShares] = []
    if question.sets:
        model, check = loaded.record.model, unless_wrong(lambda answer: wrong_shares(answer, question))
        shares = list(call(loaded, model, "predict_shares", question, budget, check=check))
    answers = iter(shares)
    return PredictedSharing(
        sets=tuple(each if isinstance(each, NodewiseError) else _label(next(answers), each, question) for each in sets),
        sharing_model=loaded.record.name,
        sharing_model_version=loaded.record.version,
        device_memory_bytes=memory_bytes,
        coverage=asked.coverage,
    )


def _model_of(models: Mapping[str, LoadedPlugin[SharingModelRecord]], name: str) -> LoadedPlugin[SharingModelRecord]:
    """The sharing model of a name; without one the only one, else the only shipped one."""
    available = ", ".join(sorted(models)) or "none"
    if name in models:
        return models[name]
    if not name:
        for kept in (list(models.values()), [each for each in models.values() if each.mode == "inline"]):
            if len(kept) == 1:
                return kept[0]
    what = f"no sharing model is named {name!r}" if name else "no sharing model is named, and there is no only one"
    raise NodewiseError(
        Reason.SHARING_MODEL_NOT_FOUND,
        f"{what}; loaded are: {available}",
        {"sharing_model": name, "available": available},
    )


def _solo_job(job: AskedJob, device: str, catalogue: Catalogue) -> SoloJob | NodewiseError:
    if job.profile is None:
        return job.solo
    if isinstance(job.profile, NodewiseError):
        return job.profile
    return with_profile(job.solo, job.profile, device, catalogue)


def _runs(asked: AskedShares, jobs: list[SoloJob | NodewiseError], most: int) -> tuple[PairRun, ...]:
    """Measured pairs; a job whose profile could not be loaded brings what it states itself."""
    known = [asked.jobs[index].solo if isinstance(job, NodewiseError) else job for index, job in enumerate(jobs)]
    pairs = (*asked.runs, *_matching_runs(asked))
    if len(pairs) > most:
        text = f"{len(pairs)} runs with those that profiles hold, a call takes sharing_runs_per_call = {most}"
        limit = {"limit": "sharing_runs_per_call", "value": str(most), "found": str(len(pairs))}
        raise NodewiseError(Reason.LIMIT_EXCEEDED, text, limit)
    return tuple(PairRun((known[one], known[other]), (share, others)) for one, other, share, others in pairs)


def _matching_runs(asked: AskedShares) -> Iterator[tuple[int, int, float, float]]:
    """Runs of this device and mode that the jobs' profiles hold beside other jobs of the question."""
    profiles = [each.profile for each in asked.jobs]
    places = {
        each.profile_id: index for index, each in enumerate(profiles) if isinstance(each, Profile) and each.profile_id
    }
    for index, each in enumerate(profiles):
        for run in each.shared_runs if isinstance(each, Profile) else ():
            here = run.mode is asked.mode and catalogue_key(run.device) == catalogue_key(asked.device)
            if here and run.partner_profile_id in places:
                yield index, places[run.partner_profile_id], run.share, run.partner_share


def _label(shares: DeviceShares, jobs: tuple[SoloJob, ...], question: SharingQuestion) -> PredictedShares:
    return PredictedShares(shares, why(shares, jobs, question))
