"""PredictionService's questions one at a time: what is predicted, and what is worth measuring."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeVar

from nodewise.domain.configurations import Configurations
from nodewise.domain.objective import KNEE, Recommendation
from nodewise.domain.predictions import Fidelity
from nodewise.domain.profile import Profile
from nodewise.estimation.answer.resolved_query import ResolvedQuery
from nodewise.estimation.question import Answer, Basis, Question
from nodewise.estimation.suggestion.search import MOST_ROWS, Wish
from nodewise.estimation.suggestion.suggest import suggest
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

__all__ = ["Predictions"]

_QuestionT = TypeVar("_QuestionT", pb.PredictRequest, pb.SuggestMeasurementsRequest)

_PREDICTIONS, _RECOMMENDATION, _BASIS = (
    tag_of(pb.PredictResponse.DESCRIPTOR.fields_by_name[name]) for name in ("predictions", "recommendation", "basis")
)
"""What the parts of a reply begin with."""


@dataclass(slots=True, eq=False)
class Predictions:
    """Behaviours of PredictionService that answer one question.

    Attributes
    ----------
    answering : Answering
        Answers.
    sources : ProfileSources
        Finds profiles.
    compute : Compute
        Where measurements are weighed against each other, and jobs simulated.
    """

    answering: Answering
    sources: ProfileSources
    limits: Limits
    compute: Compute[Workshop]
    known: ReplyCache = field(init=False)
    _simulations: LruCache[tuple[object, ...], bytes] = field(init=False)

    def __post_init__(self) -> None:
        """What is kept of questions and replies shares the room of what they were answered with."""
        answers = self.answering.answers
        self.known = ReplyCache(answers, self.sources.confirm)
        self._simulations = LruCache(answers.space)

    def forget(self) -> None:
        """Let go of what is kept, in a room that others go on sharing."""
        self.known.forget()
        self._simulations.clear()

    async def predict(self, request: pb.PredictRequest, call: Call) -> bytes:
        """One job on many configurations; the reply as it goes over the wire."""
        answered = self.answer(request, call)
        return answered if isinstance(answered, bytes) else await answered

    def answer(self, request: pb.PredictRequest, call: Call) -> bytes | Awaitable[bytes]:
        """The reply where it takes no waiting, else an awaitable of it.

        The same question about the same model has the same reply: schedulers ask it every round.
        """
        if counts_nothing(request):
            return self._count_and_predict(request, call)
        data = request.SerializeToString()
        known, state = self.known, self.answering.answers.state
        kept = known.of(data)
        if kept is None:
            kept = CachedRequest(*self._as_read(request))
        else:  # of a stream, or of a caller that writes its fields in another order
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
        """As :meth:`answer`, about a profile; ``state`` is that of the answers before it was read."""
        try:
            options, match = kept.options, request.if_none_match
            question = options.question(profile, kept.job.configurations, kept.job.objective)
            if question.terms.options.fidelity == Fidelity.SIMULATE:
                return self._simulate(question, options, match, call)
            resolved = self.answering.answers.resolve_now(question, fitted_only=call.threads_are_busy)
            if resolved is None:
                return self._predict_slowly(question, options, match, call)
            if match and resolved.basis.digest == match:
                reply, rows = _reply(resolved.basis, options), 0
            elif kept.rows == resolved.number:
                reply, rows = kept.reply, kept.rows
            else:
                reply = self._pack(question, resolved, options.columns)
                rows = resolved.number if resolved.rated is not None else 0
                if not rows:  # somebody is missing that may be back
                    return reply
            generation = self.sources.newest_at(profile) if profile.profile_id else None
            # An exact revision may be an older one than the store's generation goes with.
            current = generation is not None or not profile.profile_id
            if resolved.lasting and current and len(reply) <= self.limits.reply_bytes:
                kept.rows, kept.profile_id = rows, profile.profile_id
                kept.reply, kept.state, kept.generation = reply, state, generation
            return reply
        finally:  # once, with its reply if there is one
            self.known.keep(data, kept)

    async def _predict_slowly(self, question: Question, options: ReadOptions, match: str, call: Call) -> bytes:
        return _reply(await self.answering.slowly(question, match, call), options)

    def recent(self, most: int) -> list[bytes]:
        """Requests that were asked last, each once, the last first: PredictRequests as they came."""
        return self.known.newest(most)

    def _pack(self, question: Question, resolved: ResolvedQuery, columns: frozenset[int]) -> bytes:
        """The reply to a query that is answered here and now.

        Rows that no objective changes are written once for all objectives.
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
        """What is asked, whatever it is asked about."""
        options = read_options(request.options).required_of(self.answering.answers)
        configurations = read_candidates(request.configurations, request.ranges, self.limits)
        if options.terms.options.simulated_steps:
            check_steps(len(configurations), options.terms.options, self.limits)
        objective = KNEE
        if request.ranges or request.configurations.offer_names or says_more(request):
            objective = objective_of(request, configurations, self.limits)
        return options, Job(configurations, objective)

    async def _simulate(self, question: Question, options: ReadOptions, if_none_match: str, call: Call) -> bytes:
        """By the pool, unless the same was asked since something was learned."""
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
        """A question whose ranges count what the job's evidence suggests."""
        profile = await self.sources.profile(request.profile, options.waiting(call))
        return with_counts(request, request.ranges, profile, self.limits)

    @unary
    async def suggest_measurements(self, request: pb.SuggestMeasurementsRequest, call: Call) -> LongCall:
        """What to measure next."""
        wish = from_message(request, Wish)
        options = read_model_options(request.options).required_of(self.answering.answers)
        if counts_nothing(request):
            request = await self._with_counts(request, options, call)
        configurations = read_runnable(request, self.limits)
        objective = objective_of(request, configurations, self.limits)
        profile = await self.sources.profile(request.profile, options.waiting(call))
        return LongCall(_suggest, (options.question(profile, configurations, objective), wish))


def _suggest(workshop: Workshop, asked: tuple[Question, Wish], run: LongRun) -> Iterator[bytes]:
    question, wish = asked
    timed = replace(question, terms=question.terms.within(run.budget))
    found = suggest(workshop.answers, timed, wish)
    yield to_message(found, pb.SuggestMeasurementsResponse).SerializeToString()


def _answer(workshop: Workshop, asked: tuple[Question, ReadOptions, str], run: LongRun) -> Iterator[bytes]:
    question, options, if_none_match = asked
    timed = replace(question, terms=question.terms.within(run.budget))
    yield _reply(answer_unless_known(workshop.answers, timed, if_none_match), options)


def _reply(answered: Answer | Basis, options: ReadOptions) -> bytes:
    """The answer, or that the one that the asker has still holds."""
    if isinstance(answered, Basis):
        return pb.PredictResponse(basis=write_basis(answered), unchanged=True).SerializeToString()
    return _rows(answered, options.columns) + _verdict(answered)


def _rows(answer: Answer, columns: frozenset[int]) -> bytes:
    """A reply of the rows alone: serialised messages, one after the other, are one message."""
    return length_delimited(_PREDICTIONS, packed_predictions([answer], columns))


def _verdict(answer: Answer) -> bytes:
    """A reply of all but the rows."""
    return _recommendation(answer.recommendation) + _rests_on(answer.basis)


def _recommendation(recommendation: Recommendation | None) -> bytes:
    """A reply of the recommendation alone; b"" = there is none."""
    message = write_recommendation(recommendation)
    return b"" if message is None else length_delimited(_RECOMMENDATION, message.SerializeToString())


@lru_cache(maxsize=8192)
def _rests_on(basis: Basis) -> bytes:
    """A reply of what it rests on alone."""
    return length_delimited(_BASIS, write_basis(basis).SerializeToString())


def read_runnable(request: pb.SuggestMeasurementsRequest, limits: Limits) -> Configurations:
    """What may be run, as Predict reads what it is asked about.

    Raises
    ------
    NodewiseError
        INVALID_FIELD, CONTRADICTORY_FACTS or LIMIT_EXCEEDED.
    """
    found = read_candidates(request.configurations, request.ranges, limits)
    if len(found) > MOST_ROWS:
        text = (
            f"configurations: {len(found)} rows, a call takes rows_per_suggestion = {MOST_ROWS}: every row is weighed "
            "against every other; ask for fewer counts, such as powers of two"
        )
        raise too_much(text, "rows_per_suggestion", MOST_ROWS, len(found))
    return found
