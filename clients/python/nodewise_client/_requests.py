"""Requests on their way out: what the client fills in, and what is wrong in them before they are sent."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from nodewise_client._errors import Code, InvalidArgumentError
from nodewise_values import BatchPredictRequest, FieldViolation, PredictRequest, StreamPredictRequest
from nodewise_values.value import Value
from nodewise_values.wire import InvalidValueError, to_message

if TYPE_CHECKING:
    from nodewise_values import AppendProfileRequest, RetractEvidenceRequest

Changing = TypeVar("Changing", "AppendProfileRequest", "RetractEvidenceRequest")


def new_id() -> str:
    """A unique id."""
    return str(uuid.uuid4())


def with_id(request: Changing) -> Changing:
    """The request with an id of its own, chosen once: every retry carries the same."""
    return request if request.request_id else replace(request, request_id=new_id())


def method_of(request: Value) -> str:
    """The method that a request asks: the contract names every request after its method."""
    return type(request).__name__.removesuffix("Request")


def stream_request(
    request: PredictRequest | BatchPredictRequest | StreamPredictRequest, number: int
) -> StreamPredictRequest:
    """A question of a stream; `number` becomes its id if it has none."""
    if isinstance(request, PredictRequest):
        return StreamPredictRequest(question_id=str(number), predict=request)
    if isinstance(request, BatchPredictRequest):
        return StreamPredictRequest(question_id=str(number), batch=request)
    return request if request.question_id else replace(request, question_id=str(number))


def message_of(value: Value) -> Any:
    """The message that a value says.

    Raises
    ------
        InvalidArgumentError: with all that the contract does not allow in it, as the server would say it.
    """
    try:
        return to_message(value)
    except InvalidValueError as wrong:
        raise InvalidArgumentError(
            str(wrong),
            code=Code.INVALID_ARGUMENT,
            reason="INVALID_FIELD",
            violations=[FieldViolation(field=each.field, description=each.description) for each in wrong.violations],
        ) from None
