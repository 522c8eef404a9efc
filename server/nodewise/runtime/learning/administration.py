"""The methods of AdminService that list and pin lessons."""

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
from nodewise.mapper.reading import quote
from nodewise.rpc.calls import Call, run_in
from nodewise.rpc.paging import page
from nodewise.runtime.application import Application
from nodewise.runtime.learning.effects import Effects
from nodewise.runtime.learning.learning import Learning, NamespaceLessons
from nodewise.runtime.learning.saved_lessons import Learnt
from nodewise.runtime.learning.sources import Corpora
from nodewise_protos.v1beta1 import admin_service_pb2 as pb

__all__ = ["LearnedPriors"]

SHIPPED: Final = "shipped"
"""Id for a state without lessons: only the priors that estimators ship with."""


@dataclass(slots=True, eq=False)
class LearnedPriors:
    """Methods of AdminService about lessons.

    Attributes
    ----------
    learning : Learning
    effects : Effects or None
        None = lessons are not scored.
    stable : callable
        Returns the answers of the stable track.
    """

    learning: Learning
    effects: Effects | None
    stable: Callable[[], Answers]

    @classmethod
    def of(cls, application: Application) -> LearnedPriors:
        """Make the methods for a serving process."""
        return cls(application.learning, application.effects, lambda: application.tracks.stable.answers)

    async def list_priors(self, request: pb.ListPriorsRequest, call: Call) -> pb.ListPriorsResponse:  # noqa: ARG002
        """Return the lessons of all namespaces, or of the requested one."""
        response: pb.ListPriorsResponse = await run_in(None, self._list, request)
        return response

    async def set_prior(self, request: pb.SetPriorRequest, call: Call) -> pb.SetPriorResponse:  # noqa: ARG002
        """Pin lessons, unpin them, or return to earlier ones."""
        await run_in(None, self._set, request)
        await self.learning.learn_now()
        namespace_lessons = self._namespace_lessons(request.namespace)
        return pb.SetPriorResponse(learned=await run_in(None, self._write, namespace_lessons))

    def _list(self, request: pb.ListPriorsRequest) -> pb.ListPriorsResponse:
        by_namespace = {each.namespace: each for each in self.learning.namespace_lessons}
        if request.HasField("namespace"):
            by_namespace = {name: each for name, each in by_namespace.items() if name == request.namespace}
        # Names get a prefix, because the empty name of a namespace cannot be the start of a page.
        names, next_token = page([f"/{name}" for name in sorted(by_namespace)], request)
        return pb.ListPriorsResponse(
            learned=[self._write(by_namespace[name[1:]]) for name in names],
            next_page_token=next_token,
            shared_namespaces=self.learning.shared,
        )

    def _namespace_lessons(self, namespace: str) -> NamespaceLessons:
        for each in self.learning.namespace_lessons:
            if each.namespace == namespace:
                return each
        text = quote(namespace) if namespace != UNNAMED else "without a name"
        raise NodewiseError(Reason.PRIOR_NOT_FOUND, f"namespace {text} has learned nothing yet")

    def _set(self, request: pb.SetPriorRequest) -> None:
        if request.HasField("lessons_id") and request.action != pb.PRIOR_ACTION_ROLL_BACK:
            raise invalid_field("lessons_id", "must be absent unless action is PRIOR_ACTION_ROLL_BACK")
        saved_lessons, namespace_lessons = self.learning.saved_lessons, self._namespace_lessons(request.namespace)
        if not saved_lessons.lasting and not self.learning.alone:
            message = "lessons cannot be pinned: set plugins_folder to a folder that all processes share"
            raise NodewiseError(Reason.PERMISSION_DENIED, message)
        match request.action:
            case pb.PRIOR_ACTION_PIN:
                saved_lessons.pin(namespace_lessons.learnt)
            case pb.PRIOR_ACTION_UNPIN:
                saved_lessons.unpin(request.namespace)
            case pb.PRIOR_ACTION_ROLL_BACK:
                lessons_id = request.lessons_id if request.HasField("lessons_id") else None
                saved_lessons.pin(self._earlier(namespace_lessons, lessons_id))
            case _:
                raise invalid_field("action", "must be PRIOR_ACTION_PIN, _UNPIN or _ROLL_BACK")

    def _earlier(self, namespace_lessons: NamespaceLessons, lessons_id: str | None) -> Learnt:
        """Return the earlier lessons to return to."""
        if lessons_id == SHIPPED:
            return Learnt(namespace=namespace_lessons.namespace, corpora=Corpora(), learned_unix_s=0.0)
        before = self.learning.saved_lessons.before(namespace_lessons.namespace)
        if lessons_id is not None:
            matches = [each for each in before if each.corpora.lessons_id == lessons_id]
        else:
            now = [place for place, each in enumerate(before) if each == namespace_lessons.learnt]
            matches = list(before[now[0] + 1 :] if now else before)
        if not matches:
            what = "earlier lessons" if lessons_id is None else quote(lessons_id)
            ids = ", ".join(each.corpora.lessons_id for each in before) or "none"
            raise NodewiseError(
                Reason.PRIOR_NOT_FOUND,
                f"lessons_id: this namespace has no {what}; there are: {ids}; {SHIPPED!r} = the shipped ones",
                {"namespace": namespace_lessons.namespace},
            )
        return matches[0]

    def _write(self, namespace_lessons: NamespaceLessons) -> pb.LearnedPriors:
        learnt, answers = namespace_lessons.learnt, self.stable()
        lessons = namespace_lessons.lessons.get(answers) or answers.teachings.common
        message = pb.LearnedPriors(
            namespace=namespace_lessons.namespace,
            lessons_id=learnt.corpora.lessons_id,
            learn_time=timestamp(learnt.learned_unix_s) if learnt.learned_unix_s else None,
            pin_time=timestamp(learnt.pinned_unix_s) if learnt.pinned_unix_s else None,
            jobs_count=namespace_lessons.jobs,
            owners_count=namespace_lessons.owners,
            profile_ids=namespace_lessons.profiles,
            trimmed_jobs=[pb.TrimmedJob(profile_id=name, reason=reason) for name, reason in namespace_lessons.trimmed],
            groups_count=len(learnt.corpora.others),
            lost_profiles_count=namespace_lessons.lost,
            priors=[self._prior(namespace_lessons.namespace, lessons, name) for name in answers.registry.predicting],
        )
        for each in self.learning.saved_lessons.before(namespace_lessons.namespace):
            message.past.add(
                lessons_id=each.corpora.lessons_id,
                learn_time=timestamp(each.learned_unix_s),
                profiles_count=len({source for part in each.corpora.parts for source in part}),
            )
        return message

    def _prior(self, namespace: str, lessons: Lessons, estimator: str) -> pb.EstimatorPrior:
        prior, calibration = lessons.priors.get(estimator), lessons.calibration(estimator)
        message = pb.EstimatorPrior(
            estimator=estimator,
            prior_id=prior.prior_id if prior else "",
            sources=prior.sources if prior else (),
            spread_factor=calibration.factor,
            tried_jobs_count=calibration.jobs,
        )
        sums = None if self.effects is None else self.effects.of(namespace, estimator)
        if sums is not None:
            message.effect.CopyFrom(_effect(*sums))
        return message


def _effect(with_lessons: ScoreSums, without: ScoreSums) -> pb.PriorEffect:
    return pb.PriorEffect(
        observations_count=with_lessons.observations,
        mean_absolute_log_error=with_lessons.mean_absolute_log_error,
        mean_absolute_log_error_without=without.mean_absolute_log_error,
        coverage=with_lessons.coverage,
        coverage_without=without.coverage,
    )
