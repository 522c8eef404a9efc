"""AdminService: what was learned, over the wire."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from nodewise.domain.errors import NodewiseError, Reason, invalid_field
from nodewise.domain.namespaces import UNNAMED
from nodewise.domain.scores import ScoreSums
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.lessons.lessons import Lessons
from nodewise.mapper.mapping import timestamp
from nodewise.mapper.reading import shown
from nodewise.rpc.calls import Call, run_in
from nodewise.rpc.paging import page
from nodewise.runtime.application import Application
from nodewise.runtime.learning.effects import Effects
from nodewise.runtime.learning.kept import Learnt
from nodewise.runtime.learning.learning import Learning, Taught
from nodewise.runtime.learning.sources import Corpora
from nodewise_protos.v1beta1 import admin_service_pb2 as pb

__all__ = ["LearnedPriors"]

SHIPPED: Final = "shipped"
"""Names the lessons of nobody."""


@dataclass(slots=True, eq=False)
class LearnedPriors:
    """Behaviours of AdminService about what was learned.

    Attributes
    ----------
    learning : Learning
    effects : Effects or None
        None = nothing is scored.
    stable : callable
        The answers of the track that is told about.
    """

    learning: Learning
    effects: Effects | None
    stable: Callable[[], Answers]

    @classmethod
    def of(cls, application: Application) -> LearnedPriors:
        """Of a process that serves."""
        return cls(application.learning, application.effects, lambda: application.tracks.stable.answers)

    async def list_priors(self, request: pb.ListPriorsRequest, call: Call) -> pb.ListPriorsResponse:  # noqa: ARG002
        """What was learned."""
        found: pb.ListPriorsResponse = await run_in(None, self._listed, request)
        return found

    async def set_prior(self, request: pb.SetPriorRequest, call: Call) -> pb.SetPriorResponse:  # noqa: ARG002
        """Pin, let go, or return."""
        await run_in(None, self._set, request)
        await self.learning.learn_now()
        taught = self._taught(request.namespace)
        return pb.SetPriorResponse(learned=await run_in(None, self._written, taught))

    def _listed(self, request: pb.ListPriorsRequest) -> pb.ListPriorsResponse:
        known = {each.namespace: each for each in self.learning.taught}
        if request.HasField("namespace"):
            known = {name: each for name, each in known.items() if name == request.namespace}
        # The namespace without a name is no name that a page could begin after.
        names, next_token = page([f"/{name}" for name in sorted(known)], request)
        return pb.ListPriorsResponse(
            learned=[self._written(known[name[1:]]) for name in names],
            next_page_token=next_token,
            shared_namespaces=self.learning.shared,
        )

    def _taught(self, namespace: str) -> Taught:
        for each in self.learning.taught:
            if each.namespace == namespace:
                return each
        told = shown(namespace) if namespace != UNNAMED else "without a name"
        raise NodewiseError(Reason.PRIOR_NOT_FOUND, f"namespace {told} has learned nothing yet")

    def _set(self, request: pb.SetPriorRequest) -> None:
        if request.HasField("lessons_id") and request.action != pb.PRIOR_ACTION_ROLL_BACK:
            raise invalid_field("lessons_id", "must be absent unless action is PRIOR_ACTION_ROLL_BACK")
        kept, taught = self.learning.kept, self._taught(request.namespace)
        if not kept.lasting and not self.learning.alone:
            told = "nothing can be pinned: the setting plugins_folder names no place that all processes share"
            raise NodewiseError(Reason.PERMISSION_DENIED, told)
        match request.action:
            case pb.PRIOR_ACTION_PIN:
                kept.pin(taught.learnt)
            case pb.PRIOR_ACTION_UNPIN:
                kept.unpin(request.namespace)
            case pb.PRIOR_ACTION_ROLL_BACK:
                wanted = request.lessons_id if request.HasField("lessons_id") else None
                kept.pin(self._earlier(taught, wanted))
            case _:
                raise invalid_field("action", "must be PRIOR_ACTION_PIN, _UNPIN or _ROLL_BACK")

    def _earlier(self, taught: Taught, lessons_id: str | None) -> Learnt:
        """Lessons to return to."""
        if lessons_id == SHIPPED:
            return Learnt(namespace=taught.namespace, corpora=Corpora(), learned_unix_s=0.0)
        before = self.learning.kept.before(taught.namespace)
        if lessons_id is not None:
            found = [each for each in before if each.corpora.lessons_id == lessons_id]
        else:
            now = [place for place, each in enumerate(before) if each == taught.learnt]
            found = list(before[now[0] + 1 :] if now else before)
        if not found:
            wanted = "none is known from before" if lessons_id is None else f"none is named {shown(lessons_id)}"
            known = ", ".join(each.corpora.lessons_id for each in before) or "none"
            raise NodewiseError(
                Reason.PRIOR_NOT_FOUND,
                f"of the lessons of this namespace {wanted}; there are: {known}; {SHIPPED!r} = what ships",
                {"namespace": taught.namespace},
            )
        return found[0]

    def _written(self, taught: Taught) -> pb.LearnedPriors:
        learnt, answers = taught.learnt, self.stable()
        lessons = taught.lessons.get(answers) or answers.teachings.common
        found = pb.LearnedPriors(
            namespace=taught.namespace,
            lessons_id=learnt.corpora.lessons_id,
            learn_time=timestamp(learnt.learned_unix_s) if learnt.learned_unix_s else None,
            pin_time=timestamp(learnt.pinned_unix_s) if learnt.pinned_unix_s else None,
            jobs_count=taught.jobs,
            owners_count=taught.owners,
            profile_ids=taught.profiles,
            trimmed_jobs=[pb.TrimmedJob(profile_id=name, reason=reason) for name, reason in taught.trimmed],
            groups_count=len(learnt.corpora.others),
            lost_profiles_count=taught.lost,
            priors=[self._prior(taught.namespace, lessons, name) for name in answers.registry.predicting],
        )
        for each in self.learning.kept.before(taught.namespace):
            found.past.add(
                lessons_id=each.corpora.lessons_id,
                learn_time=timestamp(each.learned_unix_s),
                profiles_count=len({source for part in each.corpora.parts for source in part}),
            )
        return found

    def _prior(self, namespace: str, lessons: Lessons, estimator: str) -> pb.EstimatorPrior:
        prior, calibration = lessons.priors.get(estimator), lessons.calibration(estimator)
        found = pb.EstimatorPrior(
            estimator=estimator,
            prior_id=prior.prior_id if prior else "",
            sources=prior.sources if prior else (),
            spread_factor=calibration.factor,
            tried_jobs_count=calibration.jobs,
        )
        sums = None if self.effects is None else self.effects.of(namespace, estimator)
        if sums is not None:
            found.effect.CopyFrom(_effect(*sums))
        return found


def _effect(learned: ScoreSums, without: ScoreSums) -> pb.PriorEffect:
    return pb.PriorEffect(
        observations_count=learned.observations,
        mean_absolute_log_error=learned.mean_absolute_log_error,
        mean_absolute_log_error_without=without.mean_absolute_log_error,
        coverage=learned.coverage,
        coverage_without=without.coverage,
    )
