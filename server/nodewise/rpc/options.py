"""Options on the wire: who answers, how fresh and how sure, and which columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.objective import Objective
from nodewise.domain.predictions import Fidelity, Options
from nodewise.domain.profile import Profile
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import AUTO, Freshness, Question, Terms
from nodewise.evaluation.running_scores import auto_version
from nodewise.mapper.reading import Reader, quote
from nodewise.rpc.calls import Call
from nodewise_protos.v1 import options_pb2 as pb

__all__ = ["ALL_COLUMNS", "ReadOptions", "read_model_options", "read_options"]

ALL_COLUMNS: Final = frozenset(pb.PredictionColumn.values()) - {
    pb.PREDICTION_COLUMN_UNSPECIFIED,
    pb.PREDICTION_COLUMN_ALL,
    pb.PREDICTION_COLUMN_THROUGHPUT,
}
"""Groups of columns besides those that are always there."""
_USUAL_COLUMNS: Final = ALL_COLUMNS - {pb.PREDICTION_COLUMN_GOODPUT, pb.PREDICTION_COLUMN_RISK}
"""Those of a question that names none: a closed set, which later releases do not widen."""
_LONGEST_NAME: Final = 63

_TERMS: Final = Terms()


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to answer, and the columns wanted, as read off the wire.

    ``version`` empty = the estimator's version that is loaded.
    """

    terms: Terms = _TERMS
    version: str = ""
    columns: frozenset[int] = _USUAL_COLUMNS

    def question(
        self, profile: Profile, configurations: Configurations, objective: Objective | None = None
    ) -> Question:
        """A question asked with these options; without an objective nothing is recommended."""
        return Question(profile=profile, configurations=configurations, objective=objective, terms=self.terms)

    def waiting(self, call: Call) -> Call | None:
        """The call, whose time a revision may be waited for, if its asker waits."""
        return call if self.terms.freshness == Freshness.WAIT else None

    def required_of(self, answers: Answers) -> ReadOptions:
        """These options, unless their estimator is not loaded, or not in this version.

        Raises
        ------
        NodewiseError
            ESTIMATOR_NOT_FOUND.
        """
        name = self.terms.estimator
        if name == AUTO:
            loaded = auto_version(answers.registry) if self.version else ""
        else:
            loaded = answers.estimators.by_name(name).record.version
        if self.version not in ("", loaded):
            raise NodewiseError(
                Reason.ESTIMATOR_NOT_FOUND,
                f"estimator {name!r} is loaded in version {loaded!r}, not in {quote(self.version)}",
                {"estimator": name, "estimator_version": self.version, "available": loaded},
            )
        return self


_DEFAULT: Final = ReadOptions()


def read_options(message: pb.PredictOptions, path: str = "options") -> ReadOptions:
    """How to answer a question about rows.

    Raises
    ------
    NodewiseError
        INVALID_FIELD.
    """
    data = message.SerializeToString()
    return _options(data, path) if data else _DEFAULT


def read_model_options(message: pb.ModelOptions, path: str = "options") -> ReadOptions:
    """Who answers, how fresh and how sure.

    Raises
    ------
    NodewiseError
        INVALID_FIELD.
    """
    data = message.SerializeToString()
    return _model_options(data, path) if data else _DEFAULT


@lru_cache(maxsize=256)
def _options(data: bytes, path: str) -> ReadOptions:
    message = pb.PredictOptions.FromString(data)
    reader = Reader()
    found = _model(message.model, f"{path}.model", reader)
    fidelity = reader.whole(message.fidelity, f"{path}.fidelity", most=int(max(Fidelity))) or Fidelity.MODEL
    steps = reader.read_scalars(message, f"{path}.").get("simulated_steps_count", 0)
    if steps and fidelity != Fidelity.SIMULATE:
        reader.wrong(f"{path}.simulated_steps_count", "must be absent unless fidelity is FIDELITY_SIMULATE")
    columns = _columns(message.columns, f"{path}.columns", reader)
    reader.finish()
    options = replace(found.terms.options, fidelity=Fidelity(fidelity), simulated_steps=steps)
    return replace(found, columns=columns, terms=replace(found.terms, options=options))


@lru_cache(maxsize=256)
def _model_options(data: bytes, path: str) -> ReadOptions:
    reader = Reader()
    found = _model(pb.ModelOptions.FromString(data), path, reader)
    reader.finish()
    return found


def _model(message: pb.ModelOptions, path: str, reader: Reader) -> ReadOptions:
    stated = reader.read_scalars(message, f"{path}.")
    freshness = reader.whole(message.freshness, f"{path}.freshness", most=int(max(Freshness))) or Freshness.WAIT
    name = reader.text(message.estimator, f"{path}.estimator", _LONGEST_NAME) or AUTO
    for parameter in message.parameters:
        text = f"must be left out: estimator {quote(name)} has no parameters"
        reader.wrong(f"{path}.parameters[{quote(parameter)}]", text)
    version = reader.text(message.estimator_version, f"{path}.estimator_version", 4096)
    terms = Terms(
        estimator=name,
        options=Options(seed=message.seed),
        coverage=stated.get("interval_coverage", 0.9),
        freshness=Freshness(freshness) if reader.clean else Freshness.WAIT,
        allow_fallback=message.allow_fallback,
    )
    return ReadOptions(terms, version)


def _columns(wanted: Iterable[int], path: str, reader: Reader) -> frozenset[int]:
    columns = frozenset(wanted)
    if not columns:
        return _USUAL_COLUMNS
    for column in columns - ALL_COLUMNS - {pb.PREDICTION_COLUMN_ALL, pb.PREDICTION_COLUMN_THROUGHPUT}:
        reader.wrong(path, f"must name columns of PredictionColumn, found {column}")
    return ALL_COLUMNS if pb.PREDICTION_COLUMN_ALL in columns else columns & ALL_COLUMNS
