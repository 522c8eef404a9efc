"""PredictionService's stream: questions and batches as they come, each by what answers it alone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import structlog

from nodewise.domain.errors import NodewiseError, invalid_field
from nodewise.rpc.calls import Call
from nodewise.rpc.caps import too_large
from nodewise.rpc.errors import internal_error, write_problem
from nodewise.rpc.varint import encode_varint
from nodewise_protos.v1 import prediction_service_pb2 as pb

__all__ = ["Streams"]

_log = structlog.get_logger("nodewise.rpc")

_PREDICT_TAG: Final = bytes([pb.StreamPredictResponse.PREDICT_FIELD_NUMBER << 3 | 2])
_BATCH_TAG: Final = bytes([pb.StreamPredictResponse.BATCH_FIELD_NUMBER << 3 | 2])
"""Tags of fields of stated length, as they stand before a reply."""


@dataclass(slots=True, eq=False)
class Streams:
    """The behaviour of PredictionService that answers a stream.

    Attributes
    ----------
    answer_one, answer_batch : callable
        Answer a question, and a batch, by a reply as it goes over the wire.
    reply_bytes : int
        Largest reply.
    """

    answer_one: Callable[[pb.PredictRequest, Call], Awaitable[bytes]]
    answer_batch: Callable[[pb.BatchPredictRequest, Call], Awaitable[bytes]]
    reply_bytes: int

    async def stream_predict(
        self, requests: AsyncIterator[pb.StreamPredictRequest], call: Call
    ) -> AsyncIterator[bytes]:
        """Answers in the order of the requests; an error ends its request only."""
        async for request in requests:
            try:
                reply = await self._reply(request, call)
                if len(reply) > self.reply_bytes:
                    raise too_large(len(reply), self.reply_bytes)
            except NodewiseError as error:
                reply = _error(request.question_id, error)
            except Exception as error:  # noqa: BLE001  # ends the request that it befell, not the stream
                _log.error("call_failed", method="StreamPredict", request_id=call.request_id, exc_info=error)
                reply = _error(request.question_id, internal_error())
            yield reply

    async def _reply(self, request: pb.StreamPredictRequest, call: Call) -> bytes:
        question = request.WhichOneof("question")
        if question == "predict":
            return _on_stream(request.question_id, await self.answer_one(request.predict, call), _PREDICT_TAG)
        if question == "batch":
            return _on_stream(request.question_id, await self.answer_batch(request.batch, call), _BATCH_TAG)
        raise invalid_field("question", "must be predict or batch")


def _error(question_id: str, error: NodewiseError) -> bytes:
    return pb.StreamPredictResponse(question_id=question_id, problem=write_problem(error)).SerializeToString()


def _on_stream(question_id: str, reply: bytes, tag: bytes) -> bytes:
    """A StreamPredictResponse around an answer that is serialised already: its field, by its length."""
    head = pb.StreamPredictResponse(question_id=question_id).SerializeToString()
    return b"".join((head, tag, encode_varint(len(reply)), reply))
