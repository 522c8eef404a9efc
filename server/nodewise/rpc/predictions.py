"""PredictionService: what is predicted, alone, in batches and on streams, and what is worth measuring."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

import structlog

from nodewise.domain.budget import Budget
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason, invalid_field
from nodewise.domain.objective import HIGHEST_THROUGHPUT, Objective
from nodewise.domain.predictions import Fidelity
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import Answer, Basis, Question
from nodewise.estimation.suggestion.search import Wish
from nodewise.estimation.suggestion.suggest import suggest
from nodewise.ports.cache import LruCache
from nodewise.ports.compute import Compute, LongRun
from nodewise.ports.limits import Limits
from nodewise.rpc.architectures import AskedArchitectures, asked_architectures, ranked_singly, ranked_together
from nodewise.rpc.calls import Call, run_in
from nodewise.rpc.caps import check_steps, too_large, too_many
from nodewise.rpc.errors import internal_error, prefixed, write_problem
from nodewise.rpc.long_call import ANSWER_SHARE, LongCall, Workshop, unary
from nodewise.rpc.options import ReadOptions, read_model_options, read_options
from nodewise.rpc.sources import ProfileSources
from nodewise.rpc.varint import encode_varint
from nodewise.rpc.wire_configurations import read_candidates, read_parts
from nodewise.rpc.wire_objectives import read_objective, write_recommendation
from nodewise.rpc.wire_offers import read_offers_of_rows
from nodewise.rpc.wire_predictions import columns_of, write_basis, write_predictions
from nodewise.rpc.wire_suggestions import read_runnable, read_wish, write_suggestions
from nodewise_protos.v1 import prediction_service_pb2 as pb

__all__ = ["Predictions"]

_log = structlog.get_logger("nodewise.rpc")

TURN_S: Final = 0.002
"""Longest time a batch keeps the event loop from other calls."""
READ_BYTES: Final = 32 * 1024 * 1024
"""Questions that are kept as they were read, together with what their configurations take."""
ROW_BYTES: Final = 128
"""About what the columns of a row take."""
REPLIES_BYTES: Final = 32 * 1024 * 1024
"""Replies that are kept, together: about ten thousand of the usual size."""
_PREDICT_TAG: Final = bytes([pb.StreamPredictResponse.PREDICT_FIELD_NUMBER << 3 | 2])
_BATCH_TAG: Final = bytes([pb.StreamPredictResponse.BATCH_FIELD_NUMBER << 3 | 2])

_OWN_PARTS: Final = ("current", "efficiency", "batch_bounds")
"""What an objective is judged by that is one job's own."""

_Question = pb.PredictRequest | pb.BatchJob | pb.SuggestMeasurementsRequest
_AboutRows = _Question | pb.BatchPredictRequest


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    """One question as read: of a batch all but what it shares with the others."""

    configurations: Configurations
    objective: Objective


@dataclass(slots=True, eq=False)
class Predictions:
    """Behaviours of PredictionService that answer questions.

    Attributes
    ----------
    answers : Answers
        Answers.
    sources : ProfileSources
        Finds profiles.
    executor, simulations : Executor
        Threads for fits, large questions and estimators that do not run inline; for simulations of a batch.
    compute : Compute
        Where measurements are weighed against each other, and jobs simulated.
    """

    answers: Answers
    sources: ProfileSources
    limits: Limits
    executor: Executor
    compute: Compute[Workshop]
    simulations: Executor
    _read: LruCache[bytes, tuple[ReadOptions, _Job]] = field(init=False, default_factory=lambda: LruCache(READ_BYTES))
    _replies: LruCache[tuple[object, ...], bytes] = field(init=False, default_factory=lambda: LruCache(REPLIES_BYTES))

    async def predict(self, request: pb.PredictRequest, call: Call) -> bytes:
        """One job on many configurations; the reply as it goes over the wire.

        The same question about the same model has the same reply: schedulers ask it every round.
        """
        data = request.SerializeToString()
        read = self._read.get(data)
        if read is None:
            options, asked = read = self._as_read(request)
            self._read.put(data, read, len(data) + ROW_BYTES * len(asked.configurations))
        else:
            options, asked = read
        profile = await self.sources.profile(request.profile, options.waiting(call))
        question = options.question(profile, asked.configurations, asked.objective)
        if question.terms.options.fidelity == Fidelity.SIMULATE:
            return await self._simulated(question, options, request.if_none_match, call)
        prepared = self.answers.ready(question)
        if prepared is None:
            return _reply(await self._slowly(question, request.if_none_match, call), options)
        if request.if_none_match and prepared.basis.digest == request.if_none_match:
            return _reply(prepared.basis, options)
        key = (prepared.key, options.columns)
        reply = self._replies.get(key)
        if reply is None:
            reply = self._written(self.answers.complete(prepared), options.columns)
            self._replies.put(key, reply, len(reply))
        return reply

    def _written(self, answer: Answer, columns: frozenset[int]) -> bytes:
        """The reply; rows that no objective changes are written once for all objectives."""
        key = (answer.predictions, answer.basis, answer.notices, columns)
        alike = answer.finish_s is None and answer.costs is None and answer.goodput_per_s is None
        rows = self._replies.get(key) if alike else None
        if rows is None:
            rows = _rows(answer, columns)
            if alike:
                self._replies.put(key, rows, len(rows))
        return rows + _verdict(answer)

    def _as_read(self, request: pb.PredictRequest) -> tuple[ReadOptions, _Job]:
        """What is asked, whatever it is asked about."""
        options = read_options(request.options).required_of(self.answers)
        configurations = read_candidates(request.configurations, request.ranges, self.limits)
        check_steps(len(configurations), options.terms.options, self.limits)
        objective = HIGHEST_THROUGHPUT
        if request.ranges or request.configurations.offer_names or _says_more(request):
            objective = self._objective(request, configurations)
        return options, _Job(configurations, objective)

    async def _simulated(self, question: Question, options: ReadOptions, if_none_match: str, call: Call) -> bytes:
        """By the pool, unless the same was asked since something was learned."""
        profile = question.profile
        learned, asked = self.answers.lessons, (question.configurations, question.objective, options)
        known = (learned, profile.digest, profile.revision, *asked)
        reply = None if if_none_match or not profile.digest else self._replies.get(known)
        if reply is None:
            reply = await self._computed((question, options, if_none_match), call)
            if profile.digest and not if_none_match:
                self._replies.put(known, reply, len(reply))
        return reply

    @unary
    async def _computed(self, asked: tuple[Question, ReadOptions, str], call: Call) -> LongCall:
        return LongCall(_answered, asked)

    def _objective(
        self,
        request: _Question,
        configurations: Configurations,
        shared: pb.BatchPredictRequest | None = None,
    ) -> Objective:
        """What best means in a question of so many rows, with all that it is computed from."""
        best, offers = request.objective, request.offers
        rows_of: _AboutRows = request
        if shared is not None:
            best = best if request.HasField("objective") else shared.objective
            offers = offers or shared.offers
            rows_of = request if request.HasField("configurations") or request.ranges else shared
        own = () if isinstance(request, pb.SuggestMeasurementsRequest) else _OWN_PARTS
        judged: dict[str, Any] = {name: getattr(request, name) for name in own if request.HasField(name)}
        found = read_objective(best, request.work, offers, **judged)
        rows = len(configurations)
        if found.current is not None and found.current.row >= rows:
            raise invalid_field("current.row", f"must be a row of the question, 0 to {rows - 1}")
        if found.batch_bounds is not None:
            self._check_candidates(found, configurations)
        configured, ranges = rows_of.configurations, rows_of.ranges
        parts = ((path, len(part)) for path, part in read_parts(configured, ranges, self.limits))
        named = read_offers_of_rows(configured, ranges, parts, found.offers)
        return found if named is None else _with_named(found, named)

    def _check_candidates(self, objective: Objective, configurations: Configurations) -> None:
        assert objective.batch_bounds is not None
        open_rows = int((configurations.global_batch == 0).sum())
        count = len(configurations) + open_rows * (len(objective.batch_bounds.candidates) - 1)
        if count > self.limits.rows_per_call:
            what = "rows, each with every batch that may be chosen"
            raise too_many(what, "rows_per_call", self.limits.rows_per_call, count)

    async def _answer(self, question: Question, if_none_match: str, call: Call) -> Answer | Basis:
        """Here and now where that takes no longer than a look at a fitted model, else in a thread.

        The basis alone where its digest is the one that the asker has an answer of.
        """
        prepared = self.answers.ready(question)
        if prepared is None:
            return await self._slowly(question, if_none_match, call)
        if if_none_match and prepared.basis.digest == if_none_match:
            return prepared.basis
        return self.answers.complete(prepared)

    async def _slowly(self, question: Question, if_none_match: str, call: Call) -> Answer | Basis:
        """In a thread, which learns how long the call still waits."""
        budget = Budget(call.remaining_s() * ANSWER_SHARE)
        asked = replace(question, terms=question.terms.within(budget))
        executor = self.simulations if question.terms.options.fidelity == Fidelity.SIMULATE else self.executor
        try:
            answered: Answer | Basis = await run_in(executor, _found, self.answers, asked, if_none_match)
        finally:
            budget.end()
        return answered

    async def batch_predict(self, request: pb.BatchPredictRequest, call: Call) -> bytes:
        """Many jobs, or many architectures of one; each fails alone."""
        if request.HasField("architectures"):
            return await self._ranked(request, call)
        if not request.jobs:
            raise invalid_field("jobs", "must hold at least one job, or architectures be given")
        if request.HasField("profile"):
            raise invalid_field("profile", "must be absent without architectures: jobs bring their own")
        if len(request.jobs) > self.limits.jobs_per_call:
            raise too_many("jobs", "jobs_per_call", self.limits.jobs_per_call, len(request.jobs))
        options = read_options(request.options).required_of(self.answers)
        turn = _Turn(call)
        jobs = await self._jobs(request, turn)
        rows = sum(len(job.configurations) for job in jobs if isinstance(job, _Job))
        check_steps(rows, options.terms.options, self.limits)
        results: list[Answer | Basis | NodewiseError] = []
        for number, (job, message) in enumerate(zip(jobs, request.jobs)):
            results.append(await self._job_answer(job, message, options, number, call))
            await turn.over(f"{len(results)} of {len(jobs)} jobs were answered in time")
        return _batch_reply(results, options).SerializeToString()

    async def _ranked(self, request: pb.BatchPredictRequest, call: Call) -> bytes:
        """Many architectures of one job: in a thread where models take them together, else one by one in the pool."""
        asked = await asked_architectures(request, call, self.answers, self.sources, self.limits)
        budget = Budget(call.remaining_s() * ANSWER_SHARE)
        try:
            reply: bytes | None = await run_in(self.executor, ranked_together, self.answers, asked, budget)
        finally:
            budget.end()
        return await self._ranked_singly(asked, call) if reply is None else reply

    @unary
    async def _ranked_singly(self, asked: AskedArchitectures, call: Call) -> LongCall:
        return LongCall(ranked_singly, asked)

    async def _jobs(self, request: pb.BatchPredictRequest, turn: _Turn) -> list[_Job | NodewiseError]:
        """The jobs as read, or why they could not be; stops as soon as they hold more rows than a call takes."""
        shared = None
        if request.HasField("configurations") or request.ranges:
            shared = read_candidates(request.configurations, request.ranges, self.limits)
        common: Objective | None = None
        if shared is not None:
            common = self._objective(pb.BatchJob(), shared, request)
        jobs: list[_Job | NodewiseError] = []
        rows = 0
        for number, message in enumerate(request.jobs):
            await turn.over(f"{number} of {len(request.jobs)} jobs were read in time")
            try:
                configurations = shared
                if message.HasField("configurations") or message.ranges:
                    configurations = read_candidates(message.configurations, message.ranges, self.limits)
                if configurations is None:
                    raise invalid_field("configurations", "must be given here or for the whole batch")
                if configurations is not shared or common is None or _says_more(message):
                    jobs.append(_Job(configurations, self._objective(message, configurations, request)))
                else:
                    jobs.append(_Job(configurations, common))
            except NodewiseError as error:
                jobs.append(prefixed(error, f"jobs[{number}]."))
                continue
            rows += len(configurations)
            if rows > self.limits.rows_per_call:
                raise too_many("rows of all jobs together", "rows_per_call", self.limits.rows_per_call, rows)
        return jobs

    async def _job_answer(
        self, job: _Job | NodewiseError, message: pb.BatchJob, options: ReadOptions, number: int, call: Call
    ) -> Answer | Basis | NodewiseError:
        if isinstance(job, NodewiseError):
            return job
        try:
            profile = await self.sources.profile(message.profile, options.waiting(call))
            question = options.question(profile, job.configurations, job.objective)
            return await self._answer(question, message.if_none_match, call)
        except NodewiseError as error:
            return prefixed(error, f"jobs[{number}].")

    async def stream_predict(
        self, requests: AsyncIterator[pb.StreamPredictRequest], call: Call
    ) -> AsyncIterator[bytes]:
        """Answers in the order of the requests; an error ends its request only."""
        async for request in requests:
            try:
                reply = await self._stream_reply(request, call)
                if len(reply) > self.limits.reply_bytes:
                    raise too_large(len(reply), self.limits.reply_bytes)
            except NodewiseError as error:
                reply = _stream_error(request.question_id, error)
            except Exception as error:  # noqa: BLE001  # ends the request that it befell, not the stream
                _log.error("call_failed", method="StreamPredict", request_id=call.request_id, exc_info=error)
                reply = _stream_error(request.question_id, internal_error())
            yield reply

    async def _stream_reply(self, request: pb.StreamPredictRequest, call: Call) -> bytes:
        question = request.WhichOneof("question")
        if question == "predict":
            return _on_stream(request.question_id, await self.predict(request.predict, call))
        if question == "batch":
            return _on_stream(request.question_id, await self.batch_predict(request.batch, call), _BATCH_TAG)
        raise invalid_field("question", "must be predict or batch")

    @unary
    async def suggest_measurements(self, request: pb.SuggestMeasurementsRequest, call: Call) -> LongCall:
        """What to measure next."""
        wish = read_wish(request)
        options = read_model_options(request.options).required_of(self.answers)
        configurations = read_runnable(request, self.limits)
        objective = self._objective(request, configurations)
        profile = await self.sources.profile(request.profile, options.waiting(call))
        return LongCall(_suggested, (options.question(profile, configurations, objective), wish))


def _suggested(workshop: Workshop, asked: tuple[Question, Wish], run: LongRun) -> Iterator[bytes]:
    question, wish = asked
    timed = replace(question, terms=question.terms.within(run.budget))
    yield write_suggestions(suggest(workshop.answers, timed, wish)).SerializeToString()


def _says_more(request: pb.PredictRequest | pb.BatchJob) -> bool:
    """Whether a question asks for more than its rows: most do not, and are answered often."""
    return bool(
        request.HasField("objective")
        or request.HasField("work")
        or request.offers
        or request.HasField("current")
        or request.HasField("efficiency")
        or request.HasField("batch_bounds")
    )


@lru_cache(maxsize=1024)
def _with_named(objective: Objective, offers_of_rows: tuple[int, ...]) -> Objective:
    """The objective with the offers that rows name; the same ones give one object."""
    return replace(objective, offers_of_rows=offers_of_rows)


def _found(answers: Answers, question: Question, if_none_match: str) -> Answer | Basis:
    """The answer; the basis alone where its digest is the one that the asker has an answer of."""
    prepared = answers.prepared(question)
    if if_none_match and prepared.basis.digest == if_none_match:
        return prepared.basis
    return answers.complete(prepared)


def _answered(workshop: Workshop, asked: tuple[Question, ReadOptions, str], run: LongRun) -> Iterator[bytes]:
    question, options, if_none_match = asked
    timed = replace(question, terms=question.terms.within(run.budget))
    yield _reply(_found(workshop.answers, timed, if_none_match), options)


class _Turn:
    """Lets other calls have the event loop every few milliseconds, and ends a call whose time is over."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._ends_s = time.monotonic() + TURN_S

    async def over(self, done: str) -> None:
        """Yield if the turn is over; ``done`` says how far the work is."""
        if time.monotonic() <= self._ends_s:
            return
        if self._call.remaining_s() <= 0:
            raise NodewiseError(Reason.DEADLINE_EXCEEDED, f"the call's time was over: {done}", {"progress": done})
        await asyncio.sleep(0)
        self._ends_s = time.monotonic() + TURN_S


def _stream_error(question_id: str, error: NodewiseError) -> bytes:
    return pb.StreamPredictResponse(question_id=question_id, problem=write_problem(error)).SerializeToString()


def _reply(found: Answer | Basis, options: ReadOptions) -> bytes:
    """The answer, or that the one that the asker has still holds."""
    if isinstance(found, Basis):
        return pb.PredictResponse(basis=write_basis(found), unchanged=True).SerializeToString()
    return _rows(found, options.columns) + _verdict(found)


def _rows(answer: Answer, columns: frozenset[int]) -> bytes:
    """A reply of the rows alone: serialised messages, one after the other, are one message."""
    reply = pb.PredictResponse()
    write_predictions(reply.predictions, [answer], columns)
    return reply.SerializeToString()


def _verdict(answer: Answer) -> bytes:
    """A reply of all but the rows."""
    recommendation, basis = write_recommendation(answer.recommendation), write_basis(answer.basis)
    return pb.PredictResponse(recommendation=recommendation, basis=basis).SerializeToString()


def _on_stream(question_id: str, reply: bytes, tag: bytes = _PREDICT_TAG) -> bytes:
    """A StreamPredictResponse around an answer that is serialised already: its field, by its length."""
    head = pb.StreamPredictResponse(question_id=question_id).SerializeToString()
    return b"".join((head, tag, encode_varint(len(reply)), reply))


def _batch_reply(results: Sequence[Answer | Basis | NodewiseError], options: ReadOptions) -> pb.BatchPredictResponse:
    reply = pb.BatchPredictResponse(row_offsets=[0])
    # Bases are shared objects of the model cache: identity tells them apart cheaply.
    places: dict[int, int] = {}
    wanted, answers, rows = sorted(options.columns), list[Answer](), 0
    for result in results:
        if isinstance(result, NodewiseError):
            reply.outcomes.add(problem=write_problem(result))
        else:
            basis = result if isinstance(result, Basis) else result.basis
            place = places.setdefault(id(basis), len(places))
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
                    columns=columns_of(result, wanted),
                    interval_basis=0 if result.interval is None else int(result.interval.basis),
                )
        reply.row_offsets.append(rows)
    reply.predictions.SetInParent()
    if answers:
        write_predictions(reply.predictions, answers, options.columns)
    return reply
