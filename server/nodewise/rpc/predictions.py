"""PredictionService: thin behaviours over the one way to an answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Final

import structlog

from nodewise.domain.budget import Budget
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason, Violation
from nodewise.domain.objective import Objective
from nodewise.domain.predictions import Fidelity
from nodewise.domain.scores import RunningScore
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import AUTO, Answer, Question
from nodewise.estimation.suggestion.search import HIGHEST_THROUGHPUT, Wish
from nodewise.estimation.suggestion.suggest import suggest
from nodewise.evaluation.running_scores import auto_version
from nodewise.ports.cache import LruCache
from nodewise.ports.compute import Compute, LongRun
from nodewise.ports.limits import Limits
from nodewise.rpc.calls import Call, run_in
from nodewise.rpc.errors import internal_error, status_of
from nodewise.rpc.long_call import ANSWER_SHARE, LongCall, Workshop, unary
from nodewise.rpc.paging import page
from nodewise.rpc.sources import ProfileSources, prefixed
from nodewise.rpc.varint import encode_varint
from nodewise.rpc.wire_configurations import read_candidates
from nodewise.rpc.wire_plugins import write_problem, write_score
from nodewise.rpc.wire_predictions import (
    ReadOptions,
    columns_of,
    read_objective,
    read_options,
    too_large,
    too_long,
    too_many,
    write_basis,
    write_predictions,
    write_recommendation,
)
from nodewise.rpc.wire_suggestions import read_runnable, read_wish, require_model, write_suggestions
from nodewise_protos.v1 import objective_pb2, prediction_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb

__all__ = ["Predictions"]

_log = structlog.get_logger("nodewise.rpc")

TURN_S: Final = 0.002
"""Longest time a batch keeps the event loop from other calls."""
REPLIES_BYTES: Final = 32 * 1024 * 1024
"""Replies that are kept, together: about ten thousand of the usual size."""
_PREDICT_TAG: Final = bytes([pb.StreamPredictResponse.PREDICT_FIELD_NUMBER << 3 | 2])


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    """One job of a batch, read; or why it could not be."""

    configurations: Configurations | None
    objective: Objective | None
    error: NodewiseError | None = None


class Predictions:
    """Behaviours of PredictionService.

    Parameters
    ----------
    answers : Answers
        Answers.
    sources : ProfileSources
        Finds profiles.
    executor : Executor
        Threads for fits, large questions and estimators that do not run inline.
    scores : callable
        Finds running scores.
    compute : Compute
        Where measurements are weighed against each other.
    simulations : Executor or None
        Threads for simulations, which take long; None = the same.
    """

    def __init__(
        self,
        answers: Answers,
        sources: ProfileSources,
        limits: Limits,
        executor: Executor,
        scores: Callable[[], Awaitable[Sequence[RunningScore]]],
        compute: Compute[Workshop],
        simulations: Executor | None = None,
    ) -> None:
        self._answers = answers
        self._sources = sources
        self._limits = limits
        self._executor = executor
        self._scores = scores
        self.compute = compute
        self._simulations = simulations or executor
        self._replies: LruCache[tuple[object, ...], bytes] = LruCache(REPLIES_BYTES)

    async def predict(self, request: pb.PredictRequest, call: Call) -> bytes:
        """One job on many configurations; the reply as it goes over the wire.

        The same question about the same model has the same reply: schedulers ask it every round.
        """
        options = read_options(request.options)
        configurations = read_candidates(request.configurations, request.ranges, self._limits)
        if options.terms.options.simulated_steps:
            self._check_steps(len(configurations), options)
        objective = read_objective(request.objective) if request.HasField("objective") else None
        profile = await self._sources.profile(request.profile)
        question = Question(
            profile=profile,
            configurations=configurations,
            objective=objective,
            terms=options.terms,
        )
        prepared = self._answers.ready(question)
        if prepared is None:
            return _reply(await self._slowly(question, call), options)
        key = (prepared.key, options.columns)
        reply = self._replies.get(key)
        if reply is None:
            reply = _reply(self._answers.complete(prepared), options)
            self._replies.put(key, reply, len(reply))
        return reply

    async def answer(self, question: Question, call: Call) -> Answer:
        """Here and now where that takes no longer than a look at a fitted model, else in a thread."""
        prepared = self._answers.ready(question)
        return await self._slowly(question, call) if prepared is None else self._answers.complete(prepared)

    async def _slowly(self, question: Question, call: Call) -> Answer:
        """In a thread, which learns how long the call still waits."""
        budget = Budget(call.remaining_s() * ANSWER_SHARE)
        asked = replace(question, terms=question.terms.within(budget))
        executor = self._simulations if question.terms.options.fidelity == Fidelity.SIMULATE else self._executor
        try:
            answered: Answer = await run_in(executor, self._answers.answer, asked)
        finally:
            budget.end()
        return answered

    def _check_steps(self, rows: int, options: ReadOptions) -> None:
        refused = too_long(rows, options.terms.options, self._limits)
        if refused is not None:
            raise refused

    async def batch_predict(self, request: pb.BatchPredictRequest, call: Call) -> pb.BatchPredictResponse:
        """Many jobs; each fails alone."""
        if not request.jobs:
            raise NodewiseError.invalid([Violation("jobs", "must hold at least one job")])
        if len(request.jobs) > self._limits.jobs_per_call:
            raise too_many("jobs", "jobs_per_call", self._limits.jobs_per_call, len(request.jobs))
        options = read_options(request.options)
        self._answers.estimators.require(options.terms.estimator)
        turn = _Turn(call)
        jobs = await self._jobs(request, turn)
        if options.terms.options.simulated_steps:
            rows = sum(len(job.configurations) for job in jobs if job.configurations is not None)
            self._check_steps(rows, options)
        results: list[Answer | NodewiseError] = []
        for number, (job, message) in enumerate(zip(jobs, request.jobs)):
            results.append(await self._job_answer(job, message, options, number, call))
            await turn.over(f"{len(results)} of {len(jobs)} jobs were answered in time")
        return _batch_reply(results, options)

    async def _jobs(self, request: pb.BatchPredictRequest, turn: _Turn) -> list[_Job]:
        """The jobs as read; stops as soon as they hold more rows than a call takes."""
        shared = None
        if request.HasField("configurations") or request.ranges:
            shared = read_candidates(request.configurations, request.ranges, self._limits)
        shared_objective = read_objective(request.objective) if request.HasField("objective") else None
        jobs: list[_Job] = []
        rows = 0
        for number, message in enumerate(request.jobs):
            await turn.over(f"{number} of {len(request.jobs)} jobs were read in time")
            try:
                configurations = shared
                if message.HasField("configurations") or message.ranges:
                    configurations = read_candidates(message.configurations, message.ranges, self._limits)
                if configurations is None:
                    raise NodewiseError.invalid(
                        [Violation("configurations", "must be given here or for the whole batch")]
                    )
                objective = read_objective(message.objective) if message.HasField("objective") else shared_objective
                jobs.append(_Job(configurations, objective))
            except NodewiseError as error:
                jobs.append(_Job(None, None, prefixed(error, f"jobs[{number}].")))
                continue
            rows += len(configurations)
            if rows > self._limits.rows_per_call:
                raise too_many("rows of all jobs together", "rows_per_call", self._limits.rows_per_call, rows)
        return jobs

    async def _job_answer(
        self, job: _Job, message: pb.BatchJob, options: ReadOptions, number: int, call: Call
    ) -> Answer | NodewiseError:
        if job.error is not None or job.configurations is None:
            assert job.error is not None
            return job.error
        try:
            profile = await self._sources.profile(message.profile)
            return await self.answer(
                Question(
                    profile=profile,
                    configurations=job.configurations,
                    objective=job.objective,
                    terms=options.terms,
                ),
                call,
            )
        except NodewiseError as error:
            return prefixed(error, f"jobs[{number}].")

    async def stream_predict(
        self, requests: AsyncIterator[pb.StreamPredictRequest], call: Call
    ) -> AsyncIterator[bytes]:
        """Answers in the order of the requests; an error ends its request only."""
        async for request in requests:
            try:
                reply = await self._stream_reply(request, call)
                if len(reply) > self._limits.reply_bytes:
                    raise too_large(len(reply), self._limits.reply_bytes)
            except NodewiseError as error:
                reply = _stream_error(request.request_id, error)
            except Exception as error:  # noqa: BLE001  # ends the request that it befell, not the stream
                _log.error("call_failed", method="StreamPredict", request_id=call.request_id, exc_info=error)
                reply = _stream_error(request.request_id, internal_error())
            yield reply

    async def _stream_reply(self, request: pb.StreamPredictRequest, call: Call) -> bytes:
        question = request.WhichOneof("question")
        if question == "predict":
            return _on_stream(request.request_id, await self.predict(request.predict, call))
        if question == "batch":
            batch = await self.batch_predict(request.batch, call)
            return pb.StreamPredictResponse(request_id=request.request_id, batch=batch).SerializeToString()
        raise NodewiseError.invalid([Violation("question", "must be predict or batch")])

    @unary
    async def suggest_measurements(self, request: pb.SuggestMeasurementsRequest, call: Call) -> LongCall:
        """What to measure next."""
        wish = read_wish(request)
        options = read_options(request.options)
        require_model(options)
        self._answers.estimators.require(options.terms.estimator)
        question = Question(
            configurations=read_runnable(request, self._limits),
            objective=read_objective(request.objective) if request.HasField("objective") else HIGHEST_THROUGHPUT,
            profile=await self._sources.profile(request.profile),
            terms=options.terms,
        )
        return LongCall(_suggested, (question, wish))

    async def list_estimators(self, request: pb.ListEstimatorsRequest, call: Call) -> pb.ListEstimatorsResponse:
        """What can be asked."""
        registry = self._answers.registry
        names, next_token = page(sorted(registry.estimators), request.page_size, request.page_token)
        found = [score for score in await self._scores() if score.sums.observations]
        scores = {(score.estimator, score.version): write_score(score) for score in found}
        response = pb.ListEstimatorsResponse(
            next_page_token=next_token, auto_score=scores.get((AUTO, auto_version(registry)))
        )
        for name in names:
            loaded = registry.estimators[name]
            response.estimators.add(
                name=name,
                version=loaded.record.version,
                description=loaded.record.description,
                distribution=loaded.distribution,
                mode=loaded.mode,
                capabilities=sorted(loaded.record.capabilities),
                score=scores.get((name, loaded.record.version)),
            )
        response.problems.extend(
            write_problem(problem) for problem in registry.problems if problem.kind in ("estimator", "plugin")
        )
        return response


def _suggested(workshop: Workshop, asked: tuple[Question, Wish], run: LongRun) -> Iterator[bytes]:
    question, wish = asked
    timed = replace(question, terms=question.terms.within(run.budget))
    yield write_suggestions(suggest(workshop.answers, timed, wish)).SerializeToString()


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


def _stream_error(request_id: str, error: NodewiseError) -> bytes:
    return pb.StreamPredictResponse(request_id=request_id, error=status_of(error)).SerializeToString()


def _reply(answer: Answer, options: ReadOptions) -> bytes:
    recommendation = answer.recommendation
    return pb.PredictResponse(
        predictions=write_predictions([answer], options.columns),
        recommendation=None if recommendation is None else write_recommendation(recommendation),
        basis=write_basis(answer.basis),
    ).SerializeToString()


def _on_stream(request_id: str, reply: bytes) -> bytes:
    """A StreamPredictResponse around a PredictResponse that is serialised already: field 2, by its length."""
    head = pb.StreamPredictResponse(request_id=request_id).SerializeToString()
    return b"".join((head, _PREDICT_TAG, encode_varint(len(reply)), reply))


def _batch_reply(results: Sequence[Answer | NodewiseError], options: ReadOptions) -> pb.BatchPredictResponse:
    outcomes, offsets, bases = [], [0], dict[int, int]()
    basis_messages: list[prediction_pb2.Basis] = []
    answers = []
    for result in results:
        if isinstance(result, NodewiseError):
            outcomes.append(pb.BatchJobOutcome(error=status_of(result), basis_index=-1))
            offsets.append(offsets[-1])
            continue
        answers.append(result)
        # Bases are shared objects of the model cache: identity tells them apart cheaply.
        index = bases.get(id(result.basis))
        if index is None:
            index = bases[id(result.basis)] = len(basis_messages)
            basis_messages.append(write_basis(result.basis))
        recommendation: objective_pb2.Recommendation | None = None
        if result.recommendation is not None:
            recommendation = write_recommendation(result.recommendation)
        outcomes.append(
            pb.BatchJobOutcome(
                basis_index=index,
                recommendation=recommendation,
                columns=columns_of(result, options.columns),  # type: ignore[arg-type]  # the same numbers, tested
                interval_basis=0 if result.interval is None else int(result.interval.basis),  # type: ignore[arg-type]
            )
        )
        offsets.append(offsets[-1] + len(result.predictions))
    predictions = write_predictions(answers, options.columns) if answers else prediction_pb2.Predictions()
    return pb.BatchPredictResponse(
        outcomes=outcomes, row_offsets=offsets, predictions=predictions, bases=basis_messages
    )
