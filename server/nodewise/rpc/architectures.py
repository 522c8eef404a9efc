"""A batch about architectures: what is asked, and its answer here and now or as long work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from nodewise.domain.budget import Budget
from nodewise.domain.profile import Profile
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.answer.architectures import ArchitecturesQuestion, ranked
from nodewise.ports.compute import LongRun
from nodewise.ports.limits import Limits
from nodewise.rpc.calls import Call
from nodewise.rpc.caps import check_steps, too_many
from nodewise.rpc.long_call import Workshop
from nodewise.rpc.options import ReadOptions, read_options
from nodewise.rpc.sources import ProfileSources
from nodewise.rpc.wire_architectures import read_architectures, write_ranked
from nodewise.rpc.wire_configurations import read_candidates
from nodewise_protos.v1 import prediction_service_pb2 as pb

__all__ = ["AskedArchitectures", "asked_architectures", "ranked_singly", "ranked_together"]

AskedArchitectures = tuple[ArchitecturesQuestion, ReadOptions]


async def asked_architectures(
    request: pb.BatchPredictRequest, call: Call, answers: Answers, sources: ProfileSources, limits: Limits
) -> AskedArchitectures:
    """What a batch asks about architectures.

    Raises
    ------
    NodewiseError
        INVALID_FIELD, LIMIT_EXCEEDED, ESTIMATOR_NOT_FOUND; as ``sources.profile``.
    """
    options = read_options(request.options).required_of(answers)
    architectures, refusals = read_architectures(request, limits)
    configurations = read_candidates(request.configurations, request.ranges, limits)
    rows = len(architectures) * len(configurations)
    if rows > limits.rows_per_call:
        raise too_many("rows of all architectures together", "rows_per_call", limits.rows_per_call, rows)
    check_steps(rows, options.terms.options, limits)
    profile = Profile()
    if request.HasField("profile"):
        profile = await sources.profile(request.profile, options.waiting(call))
    asked = ArchitecturesQuestion(
        profile=profile,
        architectures=architectures,
        configurations=configurations,
        terms=options.terms,
        refusals=refusals,
    )
    return asked, options


def ranked_together(answers: Answers, asked: AskedArchitectures, budget: Budget) -> bytes | None:
    """The reply of estimators that take many architectures at once; None = one by one it is."""
    question, options = asked
    found = ranked(answers, replace(question, terms=question.terms.within(budget)), together=True)
    return None if found is None else write_ranked(found, options.columns).SerializeToString()


def ranked_singly(workshop: Workshop, asked: AskedArchitectures, run: LongRun) -> Iterator[bytes]:
    """The reply of whichever estimators, as long work."""
    question, options = asked
    found = ranked(workshop.answers, replace(question, terms=question.terms.within(run.budget)))
    assert found is not None
    yield write_ranked(found, options.columns).SerializeToString()
