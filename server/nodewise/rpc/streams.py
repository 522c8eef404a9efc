"""PredictionService's stream: questions and batches in order, each answered like a single call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import structlog

from nodewise.domain.errors import NodewiseError, invalid_field
from nodewise.rpc.calls import Call
from nodewise.rpc.caps import too_large
from nodewise.rpc.errors import internal_error, write_problem
from nodewise.rpc.varint import encode_varint, length_delimited, tag_of
from nodewise_protos.v1 import prediction_service_pb2 as pb

__all__ = ["Streams"]

_log = structlog.get_logger("nodewise.rpc")

_ID_TAG: Final = tag_of(pb.StreamPredictRequest.DESCRIPTOR.fields_by_name["question_id"])
_PREDICT_TAG, _BATCH_TAG = (
    tag_of(pb.StreamPredictResponse.DESCRIPTOR.fields_by_name[name]) for name in ("predict", "batch")
)
"""Tags of length-delimited fields; requests and replies have the same tags for the id, questions and answers."""


@dataclass(slots=True, eq=False)
class Streams:
    """The behaviour of PredictionService that answers a stream.

    Attributes
    ----------
    answer_one, answer_batch : callable
        Answer a question, and a batch, with a serialised reply; a question with an awaitable of it only where something
        is waited for.
    reply_bytes : int
        Largest reply.
    known_one : callable
        The cached reply to a PredictRequest of these bytes; None = there is none.
    """

    answer_one: Callable[[pb.PredictRequest, Call], bytes | Awaitable[bytes]]
    answer_batch: Callable[[pb.BatchPredictRequest, Call], Awaitable[bytes]]
    reply_bytes: int
    known_one: Callable[[bytes], bytes | None]

    async def stream_predict(
        self, requests: AsyncIterator[pb.StreamPredictRequest | bytes], call: Call
    ) -> AsyncIterator[bytes]:
        """Answers in the order of the requests; an error affects its request alone."""
        async for request in requests:
            if isinstance(request, bytes):  # a cached reply
                yield request
                continue
            try:
                call.check(request)
                reply = await self._reply(request, call)
                if len(reply) > self.reply_bytes:
                    raise too_large(len(reply), self.reply_bytes)
            except NodewiseError as error:
                reply = _error(request.question_id, error)
            except Exception as error:  # noqa: BLE001  # affects its request, not the stream
                _log.error("call_failed", method="StreamPredict", request_id=call.request_id, exc_info=error)
                reply = _error(request.question_id, internal_error())
            yield reply

    def known_reply(self, message: bytes) -> bytes | None:
        """The serialised reply to a question of a stream, if the reply to its PredictRequest is cached.

        Of messages as gRPC's libraries write them: the question's id, of up to 127 ASCII characters, and the question.
        """
        start = 0
        if message[:1] == _ID_TAG:
            start = 2 + message[1] if b"" < message[1:2] < b"\x80" else len(message)
        begins = start + 2
        while message[begins - 1 : begins] >= b"\x80":
            begins += 1
        head, question = message[:start], message[begins:]
        if message[start:begins] != _PREDICT_TAG + encode_varint(len(question)) or not head.isascii():
            return None
        reply = self.known_one(question)
        if reply is None:
            return None
        answer = head + length_delimited(_PREDICT_TAG, reply)
        return answer if len(answer) <= self.reply_bytes else None

    async def _reply(self, request: pb.StreamPredictRequest, call: Call) -> bytes:
        question = request.WhichOneof("question")
        if question == "predict":
            answered = self.answer_one(request.predict, call)
            reply = answered if isinstance(answered, bytes) else await answered
            return _on_stream(request.question_id, reply, _PREDICT_TAG)
        if question == "batch":
            return _on_stream(request.question_id, await self.answer_batch(request.batch, call), _BATCH_TAG)
        raise invalid_field("question", "must be predict or batch")


def _error(question_id: str, error: NodewiseError) -> bytes:
    return pb.StreamPredictResponse(question_id=question_id, problem=write_problem(error)).SerializeToString()


def _on_stream(question_id: str, reply: bytes, tag: bytes) -> bytes:
    """A serialised StreamPredictResponse with a serialised answer as its length-delimited field."""
    return pb.StreamPredictResponse(question_id=question_id).SerializeToString() + length_delimited(tag, reply)
