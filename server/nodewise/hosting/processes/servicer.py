"""The services of a host, which run one call after another."""

from __future__ import annotations

import pickle
import traceback
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

import grpc

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.hosting.processes.connection import MOST_REMEMBERED
from nodewise.hosting.processes.members import KNOWN
from nodewise.hosting.processes.models import Models
from nodewise.hosting.processes.proxies import GivenContext
from nodewise.hosting.processes.statuses import FAILED, FORGOTTEN, GONE, status_of, status_with
from nodewise.hosting.processes.values import Opaque, write_value
from nodewise.hosting.processes.wire import (
    read_catalogue,
    read_configurations,
    read_options,
    read_prior,
    read_profile,
    write_assessment,
    write_predictions,
)
from nodewise.plugin import Catalogue, Prior, Profile, Query
from nodewise_protos.plugin.v1 import estimator_service_pb2 as pb
from nodewise_protos.plugin.v1 import estimator_service_pb2_grpc, plugin_service_pb2, value_pb2

__all__ = ["Estimators", "abilities", "failure", "write_answer"]

MOST_TRACEBACK: Final = 3_000
"""Bytes of a traceback that are sent for the log: its end. Trailing metadata of a call hold 8 KiB."""
_SEQUENCES: Final = frozenset({"final", "exclusions", "memory_terms", "predict_shares", "read"})
"""Methods that may return any sequence."""

ResponseT = TypeVar("ResponseT")


class Estimators(estimator_service_pb2_grpc.EstimatorServiceServicer):
    """Estimators of this process by name, and the models that they have fitted.

    Parameters
    ----------
    estimators : mapping of name to object
    models : Models
        Shared with other services of this process.
    listings : list of Estimator
        Their descriptions, for clients.
    instance : str
    context : callable or None
        Makes a fit's context from its number, the prior, the catalogue and the seed; None = only these.
    """

    def __init__(
        self,
        estimators: Mapping[str, Any],
        models: Models,
        *,
        listings: list[pb.Estimator] | None = None,
        instance: str = "",
        context: Callable[[int, Prior | None, Catalogue, int], Any] | None = None,
    ) -> None:
        self._estimators = estimators
        self._models = models
        self._listings = listings or []
        self._instance = instance
        self._context = context or (lambda _, *facts: GivenContext(_ask_nothing, *facts))
        # A server that other programs can reach unpickles nothing.
        self._content: Callable[[bytes], Any] = bytes if context is None else pickle.loads
        self._evidence: OrderedDict[int, Any] = OrderedDict()
        self.calls: list[int] = [0]
        """Numbers of the running calls, each within the one before."""

    def ListEstimators(self, request: Any, context: grpc.ServicerContext) -> pb.ListEstimatorsResponse:  # noqa: N802, ARG002  # gRPC's
        """As the contract says."""
        return pb.ListEstimatorsResponse(estimators=self._listings, instance=self._instance, remembers=True)

    def Assess(self, request: pb.AssessRequest, context: grpc.ServicerContext) -> pb.AssessResponse:  # noqa: N802  # gRPC's
        """As the contract says."""
        estimator = self._estimators[request.estimator]
        profile, catalogue = self._read_evidence(request.evidence, context)
        rows, options = read_configurations(request.configurations), read_options(request.options)

        def assess() -> pb.AssessResponse:
            answer = estimator.assess(profile, Query(configurations=rows, options=options, catalogue=catalogue))
            assessment = write_assessment(answer)
            if assessment is None:
                return pb.AssessResponse(other=write_answer(answer))
            prediction = None
            if request.model and answer.refusal is None:
                try:
                    prediction = _predict(self._models.use(request.model), rows, options)
                except BaseException:  # noqa: BLE001  # it is asked again, alone
                    prediction = None
            return pb.AssessResponse(assessment=assessment, predicted=prediction)

        return self.answer(0, assess, context)

    def Fit(self, request: pb.FitRequest, context: grpc.ServicerContext) -> pb.FitResponse:  # noqa: N802  # gRPC's
        """As the contract says."""
        estimator = self._estimators[request.estimator]
        profile, catalogue = self._read_evidence(request.evidence, context)

        def fit() -> pb.FitResponse:
            prior = read_prior(request.prior, self._content) if request.HasField("prior") else None
            model = estimator.fit(profile, self._context(request.context, prior, catalogue, request.seed))
            return pb.FitResponse(model=self.keep_answer(model))

        return self.answer(request.call, fit, context)

    def Predict(self, request: pb.PredictRequest, context: grpc.ServicerContext) -> pb.PredictResponse:  # noqa: N802  # gRPC's
        """As the contract says."""
        model = self.use(request.model, context)
        rows, options = read_configurations(request.configurations), read_options(request.options)
        return self.answer(request.call, lambda: _predict(model, rows, options), context)

    def Release(self, request: pb.ReleaseRequest, context: grpc.ServicerContext) -> pb.ReleaseResponse:  # noqa: N802, ARG002  # gRPC's
        """As the contract says."""
        for model in request.models:
            self._models.drop(model)
        return pb.ReleaseResponse()

    def answer(self, call: int, work: Callable[[], ResponseT], context: grpc.ServicerContext) -> ResponseT:
        """The response to a call; an exception of the plugin ends the call with a status."""
        self.calls.append(call)
        try:
            return work()
        except BaseException as error:  # noqa: BLE001  # the process belongs to the plugin, its loop does not
            status = failure(error)
        finally:
            self.calls.pop()
        context.abort_with_status(status)
        raise AssertionError

    def use(self, number: int, context: grpc.ServicerContext) -> Any:
        """A model; a dropped one ends the call with a status."""
        try:
            return self._models.use(number)
        except KeyError:
            context.abort_with_status(status_with("NOT_FOUND", "the model is no longer kept", GONE, {}))

    def keep_answer(self, answer: Any) -> plugin_service_pb2.KeptObject:
        """Keep an object here; returns its number and its methods."""
        number = self._models.keep(answer, (*self._estimators.values(), *self._evidence.values()))
        return plugin_service_pb2.KeptObject(number=number, type=_name_of(answer), abilities=abilities(answer))

    def _read_evidence(self, evidence: pb.Evidence, context: grpc.ServicerContext) -> tuple[Profile, Catalogue]:
        try:
            profile = self._remember(evidence.profile_number, evidence, "profile", read_profile)
            return profile, self._remember(evidence.catalog_number, evidence, "catalog", read_catalogue)
        except KeyError:
            text = "a handle of an object that was not sent, or is no longer kept"
            context.abort_with_status(status_with("FAILED_PRECONDITION", text, FORGOTTEN, {}))
        raise AssertionError

    def _remember(self, number: int, evidence: pb.Evidence, field: str, read: Callable[[Any], Any]) -> Any:
        if evidence.HasField(field):
            self._evidence[number] = read(getattr(evidence, field))
        self._evidence.move_to_end(number)
        while len(self._evidence) > MOST_REMEMBERED:
            self._evidence.popitem(last=False)
        return self._evidence[number]


def _ask_nothing(method: str, *arguments: Any) -> Any:
    """The context of a fit in an estimator server, which has no traces and no other estimators."""
    if method == "traces":
        return ()
    raise NodewiseError(Reason.NOT_IMPLEMENTED, f"an estimator server cannot call the estimator {arguments[0]!r}")


def _predict(model: Any, rows: Any, options: Any) -> pb.PredictResponse:
    answer = model.predict(rows, options)
    predictions = write_predictions(answer, len(rows))
    return (
        pb.PredictResponse(other=write_answer(answer))
        if predictions is None
        else pb.PredictResponse(predictions=predictions)
    )


def failure(error: BaseException) -> grpc.Status:
    """The status of a plugin's exception, whose attributes may do anything."""
    details = {"raised": type(error).__name__[:100]}
    try:
        if isinstance(error, NodewiseError):
            return status_of(error)
        text = "".join(traceback.format_exception(error)).encode(errors="replace")[-MOST_TRACEBACK:]
        details["detail"] = text.decode(errors="replace")
    except BaseException:  # noqa: BLE001  # as above
        details.pop("detail", None)
    return status_with("UNKNOWN", "", FAILED, details)


def abilities(answer: Any) -> list[str]:
    """The methods and attributes of an object."""
    names = []
    for name in KNOWN:
        try:
            has = hasattr(type(answer), name) or hasattr(answer, name)
        except BaseException:  # noqa: BLE001  # it has it; its user learns what it raises
            has = True
        if has:
            names.append(name)
    return names


def write_answer(answer: Any, name: str = "") -> value_pb2.Value:
    """An answer as a message; one that cannot be sent, by the name of its type."""
    try:
        if isinstance(answer, Prior):
            answer = replace(answer, content=Opaque(pickle.dumps(answer.content)))
        elif name in _SEQUENCES and not isinstance(answer, str | frozenset | Mapping):
            answer = tuple(answer)
        return write_value(answer, lambda value: value_pb2.Value(unsendable=_name_of(value)))
    except BaseException:  # noqa: BLE001  # an answer may do anything where it is touched
        return value_pb2.Value(unsendable="Unsendable")


def _name_of(value: Any) -> str:
    """The name of a value's type, as it can be sent."""
    return type(value).__name__[:100].encode(errors="replace").decode()
