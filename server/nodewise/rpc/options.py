"""Options on the wire: estimator, freshness, confidence and columns."""

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
"""Groups of columns in addition to those of every answer."""
_USUAL_COLUMNS: Final = ALL_COLUMNS - {pb.PREDICTION_COLUMN_GOODPUT, pb.PREDICTION_COLUMN_RISK}
"""Default columns of a question: a closed set, to which later releases add none."""
_LONGEST_NAME: Final = 63

_TERMS: Final = Terms()


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to answer, and the requested columns, as read from the wire.

    An empty ``version`` = the loaded version of the estimator.
    """

    terms: Terms = _TERMS
    version: str = ""
    columns: frozenset[int] = _USUAL_COLUMNS

    def question(
        self, profile: Profile, configurations: Configurations, objective: Objective | None = None
    ) -> Question:
        """A question with these options; without an objective the answer has no recommendation."""
        return Question(profile=profile, configurations=configurations, objective=objective, terms=self.terms)

    def waiting(self, call: Call) -> Call | None:
        """The call, if the options allow to wait for a revision; else None."""
        return call if self.terms.freshness == Freshness.WAIT else None

    def required_of(self, answers: Answers) -> ReadOptions:
        """These options, if their estimator is loaded in their version.

        Raises
        ------
        NodewiseError
            ESTIMATOR_NOT_FOUND.
        """
        name = self.terms.estimator
        if name == AUTO:
            loaded_version = auto_version(answers.registry) if self.version else ""
        else:
            loaded_version = answers.estimators.by_name(name).record.version
        if self.version not in ("", loaded_version):
            raise NodewiseError(
                Reason.ESTIMATOR_NOT_FOUND,
                f"the loaded version of estimator {name!r} is {loaded_version!r}, not {quote(self.version)}",
                {"estimator": name, "estimator_version": self.version, "available": loaded_version},
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
    """How to answer: estimator, freshness and confidence.

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
    model = _model(message.model, f"{path}.model", reader)
    fidelity = reader.whole(message.fidelity, f"{path}.fidelity", most=int(max(Fidelity))) or Fidelity.MODEL
    steps = reader.read_scalars(message, f"{path}.").get("simulated_steps_count", 0)
    if steps and fidelity != Fidelity.SIMULATE:
        reader.wrong(f"{path}.simulated_steps_count", "must be absent unless fidelity is FIDELITY_SIMULATE")
    columns = _columns(message.columns, f"{path}.columns", reader)
    reader.finish()
    options = replace(model.terms.options, fidelity=Fidelity(fidelity), simulated_steps=steps)
    return replace(model, columns=columns, terms=replace(model.terms, options=options))


@lru_cache(maxsize=256)
def _model_options(data: bytes, path: str) -> ReadOptions:
    reader = Reader()
    options = _model(pb.ModelOptions.FromString(data), path, reader)
    reader.finish()
    return options


def _model(message: pb.ModelOptions, path: str, reader: Reader) -> ReadOptions:
    scalars = reader.read_scalars(message, f"{path}.")
    freshness = reader.whole(message.freshness, f"{path}.freshness", most=int(max(Freshness))) or Freshness.WAIT
    name = reader.text(message.estimator, f"{path}.estimator", _LONGEST_NAME) or AUTO
    for parameter in message.parameters:
        text = f"must be left out: estimator {quote(name)} has no parameters"
        reader.wrong(f"{path}.parameters[{quote(parameter)}]", text)
    version = reader.text(message.estimator_version, f"{path}.estimator_version", 4096)
    terms = Terms(
        estimator=name,
        options=Options(seed=message.seed),
        coverage=scalars.get("interval_coverage", 0.9),
        freshness=Freshness(freshness) if reader.clean else Freshness.WAIT,
        allow_fallback=message.allow_fallback,
    )
    return ReadOptions(terms, version)


def _columns(numbers: Iterable[int], path: str, reader: Reader) -> frozenset[int]:
    columns = frozenset(numbers)
    if not columns:
        return _USUAL_COLUMNS
    for column in columns - ALL_COLUMNS - {pb.PREDICTION_COLUMN_ALL, pb.PREDICTION_COLUMN_THROUGHPUT}:
        reader.wrong(path, f"must name columns of PredictionColumn, found {column}")
    return ALL_COLUMNS if pb.PREDICTION_COLUMN_ALL in columns else columns & ALL_COLUMNS
