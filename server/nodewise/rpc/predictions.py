"""PredictionService's single questions: Predict and SuggestMeasurements."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from nodewise.domain.configurations import Configurations
from nodewise.domain.objective import KNEE, Recommendation
from nodewise.domain.predictions import Fidelity
from nodewise.domain.profile import Profile
from nodewise.estimation.answer.resolved_query import ResolvedQuery
from nodewise.estimation.question import Answer, Basis, Question
from nodewise.estimation.weights import ENTRY_BYTES, part_of_rows
from nodewise.mapper.mapping import from_message, to_message
from nodewise.ports.cache import LruCache
from nodewise.ports.compute import Compute, LongRun
from nodewise.ports.limits import Limits, too_much
from nodewise.rpc.answering import Answering, answer_unless_known
from nodewise.rpc.calls import Call
from nodewise.rpc.candidates import counts_nothing, read_candidates, with_counts
from nodewise.rpc.caps import check_steps
from nodewise.rpc.long_call import LongCall, Workshop, unary
from nodewise.rpc.options import ReadOptions, read_model_options, read_options
from nodewise.rpc.questions import Job, objective_of, says_more
from nodewise.rpc.reply_cache import CachedRequest, ReplyCache
from nodewise.rpc.sources import ProfileSources
from nodewise.rpc.varint import length_delimited, tag_of
from nodewise.rpc.wire_objectives import write_recommendation
from nodewise.rpc.wire_predictions import packed_predictions, write_basis
from nodewise_protos.v1 import prediction_service_pb2 as pb

if TYPE_CHECKING:
    from nodewise.estimation.suggestion.search import Wish

__all__ = ["Predictions"]

_QuestionT = TypeVar("_QuestionT", pb.PredictRequest, pb.SuggestMeasurementsRequest)

_PREDICTIONS, _RECOMMENDATION, _BASIS = (
    tag_of(pb.PredictResponse.DESCRIPTOR.fields_by_name[name]) for name in ("predictions", "recommendation", "basis")
)
"""The tags before the parts of a reply."""


@dataclass(slots=True, eq=False)
class Predictions:
    """Behaviours of PredictionService that answer one question.

    Attributes
    ----------
    answering : Answering
        Answers questions.
    sources : ProfileSources
        Finds profiles.
    compute : Compute
        The pool that compares measurements and simulates jobs.
    """

    answering: Answering
    sources: ProfileSources
    limits: Limits
    compute: Compute[Workshop]
    known: ReplyCache = field(init=False)
    _simulations: LruCache[tuple[object, ...], bytes] = field(init=False)

    def __post_init__(self) -> None:
        """Caches of questions and replies share the bytes of the cache of answers."""
        answers = self.answering.answers
        self.known = ReplyCache(answers, self.sources.confirm)
        self._simulations = LruCache(answers.space)

    def forget(self) -> None:
        """Clear the caches; others keep their part of the shared bytes."""
        self.known.forget()
        self._simulations.clear()

    async def predict(self, request: pb.PredictRequest, call: Call) -> bytes:
        """Predict one job on many configurations; returns the serialised reply."""
        answered = self.answer(request, call)
        return answered if isinstance(answered, bytes) else await answered

    def answer(self, request: pb.PredictRequest, call: Call) -> bytes | Awaitable[bytes]:
        """The reply if nothing has to be waited for, else an awaitable of it.

        The same question about the same model has the same reply, which is cached: schedulers repeat it every round.
        """
        if counts_nothing(request):
            return self._count_and_predict(request, call)
        data = request.SerializeToString()
        known, state = self.known, self.answering.answers.state
        kept = known.of(data)
        if kept is None:
            kept = CachedRequest(*self._as_read(request))
        else:  # a message of a stream, or of a caller that serialises fields in another order
            reply = known.reply_of(kept)
            if reply is not None:
                return reply
        profile = self.sources.at_hand(request.profile)
        if profile is None:
            return self._read_and_predict(request, call, data, kept, state)
        return self._predict(request, call, data, kept, state, profile)

    async def _read_and_predict(
        self, request: pb.PredictRequest, call: Call, data: bytes, kept: CachedRequest, state: tuple[int, int]
    ) -> bytes:
        """The reply once the profile is read."""
        profile = await self.sources.profile(request.profile, kept.options.waiting(call))
        answered = self._predict(request, call, data, kept, state, profile)
        return answered if isinstance(answered, bytes) else await answered

    def _predict(
        self,
        request: pb.PredictRequest,
        call: Call,
        data: bytes,
        kept: CachedRequest,
        state: tuple[int, int],
        profile: Profile,
    ) -> bytes | Awaitable[bytes]:
        """As :meth:`answer`, about a profile; ``state`` is that of the answers before the profile was read."""
        try:
            options, match = kept.options, request.if_none_match
            question = options.question(profile, kept.job.configurations, kept.job.objective)
            if question.terms.options.fidelity == Fidelity.SIMULATE:
                return self._simulate(question, options, match, call)
            resolved = self.answering.answers.resolve_now(question, fitted_only=call.threads_are_busy)
            if resolved is None:
                return self._predict_slowly(question, match, call, data, kept, state)
            if match and resolved.basis.digest == match:
                reply, rows = _reply(resolved.basis, options), 0
            elif kept.rows == resolved.number:
                reply, rows = kept.reply, kept.rows
            else:
                reply = self._pack(question, resolved, options.columns)
                rows = resolved.number if resolved.rated is not None else 0
                if not rows:  # an estimator did not answer, but may answer the next call
                    return reply
            self._note_reply(kept, reply, rows, resolved, state, profile)
            return reply
        finally:  # once, with its reply if it has one
            self.known.keep(data, kept)

    async def _predict_slowly(
        self, question: Question, match: str, call: Call, data: bytes, kept: CachedRequest, state: tuple[int, int]
    ) -> bytes:
        answered = await self.answering.slowly(question, match, call)
        reply, query = _reply(answered, kept.options), self.answering.answers.cached_query(question)
        basis, has_rows = (answered, False) if isinstance(answered, Basis) else (answered.basis, True)
        if query is not None and query.basis is basis:  # else a stale answer, or one of another estimator
            self._note_reply(kept, reply, query.number if has_rows else 0, query, state, question.profile)
            self.known.keep(data, kept)
        return reply

    def _note_reply(
        self,
        kept: CachedRequest,
        reply: bytes,
        rows: int,
        query: ResolvedQuery,
        state: tuple[int, int],
        profile: Profile,
    ) -> None:
        """Note the reply with its request if the same would be answered until something changes."""
        generation = self.sources.newest_at(profile) if profile.profile_id else None
        # An exact revision may be older than the store's generation.
        current = generation is not None or not profile.profile_id
        if query.lasting and current and len(reply) <= self.limits.reply_bytes:
            kept.rows, kept.profile_id = rows, profile.profile_id
            kept.reply, kept.state, kept.generation = reply, state, generation

    def recent(self, most: int) -> list[bytes]:
        """The last distinct requests, the newest first, as serialised PredictRequests."""
        return self.known.newest(most)

    def _pack(self, question: Question, resolved: ResolvedQuery, columns: frozenset[int]) -> bytes:
        """The reply to a query that is answered in the event loop.

        Rows that do not depend on the objective are serialised once for all objectives.
        """
        answers = self.answering.answers
        resolved, rows = answers.rate(question, resolved)
        verdict = answers.verdict(question, resolved)
        if verdict is None:
            answer = answers.judge(question, resolved, rows)
            return _rows(answer, columns) + _verdict(answer)
        packed = resolved.packed
        if packed is None or packed[0] != columns:
            packed = resolved.packed = columns, _rows(rows, columns), _rests_on(resolved.basis)
        return packed[1] + _recommendation(verdict.recommendation) + packed[2]

    def _as_read(self, request: pb.PredictRequest) -> tuple[ReadOptions, Job]:
        """The request as read, without its profile."""
        options = read_options(request.options).required_of(self.answering.answers)
        configurations = read_candidates(request.configurations, request.ranges, self.limits)
        if options.terms.options.simulated_steps:
            check_steps(len(configurations), options.terms.options, self.limits)
        objective = KNEE
        if request.ranges or request.configurations.offer_names or says_more(request):
            objective = objective_of(request, configurations, self.limits)
        return options, Job(configurations, objective)

    async def _simulate(self, question: Question, options: ReadOptions, if_none_match: str, call: Call) -> bytes:
        """Simulate in the pool, unless a reply with the same lessons is cached."""
        profile = question.profile
        learned = self.answering.answers.lessons_for(question)
        known = (learned, profile.digest, profile.revision, question.configurations, question.objective, options)
        reply = None if if_none_match or not profile.digest else self._simulations.get(known)
        if reply is None:
            reply = await self._compute((question, options, if_none_match), call)
            if profile.digest and not if_none_match:
                held = (part_of_rows(question.configurations),)
                self._simulations.put(known, reply, len(reply) + ENTRY_BYTES, held)
        return reply

    @unary
    async def _compute(self, asked: tuple[Question, ReadOptions, str], call: Call) -> LongCall:
        return LongCall(_answer, asked)

    async def _count_and_predict(self, request: pb.PredictRequest, call: Call) -> bytes:
        return await self.predict(await self._with_counts(request, read_options(request.options), call), call)

    async def _with_counts(self, request: _QuestionT, options: ReadOptions, call: Call) -> _QuestionT:
        """The question with counts in its ranges that the job's evidence suggests."""
        profile = await self.sources.profile(request.profile, options.waiting(call))
        return with_counts(request, request.ranges, profile, self.limits)

    @unary
    async def suggest_measurements(self, request: pb.SuggestMeasurementsRequest, call: Call) -> LongCall:
        """Suggest what to measure next."""
        from nodewise.estimation.suggestion.search import Wish  # noqa: PLC0415 - slow, and Predict needs none

        wish = from_message(request, Wish)
        options = read_model_options(request.options).required_of(self.answering.answers)
        if counts_nothing(request):
            request = await self._with_counts(request, options, call)
        configurations = read_runnable(request, self.limits)
        objective = objective_of(request, configurations, self.limits)
        profile = await self.sources.profile(request.profile, options.waiting(call))
        return LongCall(_suggest, (options.question(profile, configurations, objective), wish))


def _suggest(workshop: Workshop, asked: tuple[Question, Wish], run: LongRun) -> Iterator[bytes]:
    from nodewise.estimation.suggestion.suggest import suggest  # noqa: PLC0415 - as above

    question, wish = asked
    timed = replace(question, terms=question.terms.within(run.budget))
    found = suggest(workshop.answers, timed, wish)
    yield to_message(found, pb.SuggestMeasurementsResponse).SerializeToString()


def _answer(workshop: Workshop, asked: tuple[Question, ReadOptions, str], run: LongRun) -> Iterator[bytes]:
    question, options, if_none_match = asked
    timed = replace(question, terms=question.terms.within(run.budget))
    yield _reply(answer_unless_known(workshop.answers, timed, if_none_match), options)


def _reply(answered: Answer | Basis, options: ReadOptions) -> bytes:
    """The answer; a basis alone tells the caller that its answer is still valid."""
    if isinstance(answered, Basis):
        return pb.PredictResponse(basis=write_basis(answered), unchanged=True).SerializeToString()
    return _rows(answered, options.columns) + _verdict(answered)


def _rows(answer: Answer, columns: frozenset[int]) -> bytes:
    """A part of a reply with the rows alone: concatenated serialised messages are one message."""
    return length_delimited(_PREDICTIONS, packed_predictions([answer], columns))


def _verdict(answer: Answer) -> bytes:
    """A part of a reply with everything but the rows."""
    return _recommendation(answer.recommendation) + _rests_on(answer.basis)


def _recommendation(recommendation: Recommendation | None) -> bytes:
    """A part of a reply with the recommendation; b"" = there is none."""
    message = write_recommendation(recommendation)
    return b"" if message is None else length_delimited(_RECOMMENDATION, message.SerializeToString())


@lru_cache(maxsize=8192)
def _rests_on(basis: Basis) -> bytes:
    """A part of a reply with the basis alone."""
    return length_delimited(_BASIS, write_basis(basis).SerializeToString())


def read_runnable(request: pb.SuggestMeasurementsRequest, limits: Limits) -> Configurations:
    """The configurations that may be measured, read as those of Predict.

    Raises
    ------
    NodewiseError
        INVALID_FIELD, CONTRADICTORY_FACTS or LIMIT_EXCEEDED.
    """
    from nodewise.estimation.suggestion.search import MOST_ROWS  # noqa: PLC0415 - as above

    found = read_candidates(request.configurations, request.ranges, limits)
    if len(found) > MOST_ROWS:
        text = (
            f"configurations: {len(found)} rows exceed rows_per_suggestion = {MOST_ROWS}, since every row is compared "
            "with every other; ask for fewer counts, such as powers of two"
        )
        raise too_much(text, "rows_per_suggestion", MOST_ROWS, len(found))
    return found
