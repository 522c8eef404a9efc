"""The same behaviours behind handlers in threads, or in an event loop: what the transport of either costs.

Argument: threads or asyncio. Predict and StreamPredict of the jobs that the benchmark asks about, and nothing else of
the service around them.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import rpc

from nodewise.catalogue.loading import load_catalogue
from nodewise.domain.profile import Profile
from nodewise.estimation.answer.answers import Answers
from nodewise.hosting.registry import load_registry
from nodewise.ports.limits import Limits
from nodewise.rpc.answering import Answering
from nodewise.rpc.calls import Call
from nodewise.rpc.predictions import Predictions
from nodewise.rpc.sources import read_content
from nodewise.runtime.event_loop import new_event_loop
from nodewise_protos.v1 import prediction_service_pb2 as pb

THREADS = 80
"""More than streams in flight: each holds one."""
PREDICT, STREAM = "Predict", "StreamPredict"


class OneProfile:
    """Every job is the same one."""

    def __init__(self) -> None:
        self._profile = read_content(rpc.profile(), "profile", Limits())

    def at_hand(self, _: Any) -> Profile:
        return self._profile

    def confirm(self, _: str, generation: int) -> int:
        return generation

    def newest_at(self, _: Profile) -> int:
        return 0


def behaviour() -> Any:
    answers, sources, nothing = Answers(load_registry(), catalogue=load_catalogue()), OneProfile(), None
    pool: Any = ThreadPoolExecutor(1)
    kind: Any = Predictions
    predict = kind(Answering(answers, pool, pool), sources, Limits(), nothing).predict
    with asyncio.Runner() as runner:  # fits the model: what is asked later does not wait
        for question in rpc.requests():
            runner.run(predict(pb.PredictRequest.FromString(question), Call("", None)))
    return predict


def at_once(answer: Coroutine[Any, Any, bytes]) -> bytes:
    """What a coroutine returns that waits for nothing."""
    try:
        answer.send(None)
    except StopIteration as done:
        found: bytes = done.value
        return found
    raise RuntimeError("the behaviour waits for something: ask what is fitted")


def on_stream(reply: bytes) -> bytes:
    return pb.StreamPredictResponse(question_id="1", predict=pb.PredictResponse.FromString(reply)).SerializeToString()


def handlers(unary: Any, stream: Any) -> tuple[grpc.GenericRpcHandler, ...]:
    methods = {
        PREDICT: grpc.unary_unary_rpc_method_handler(unary, pb.PredictRequest.FromString, None),
        STREAM: grpc.stream_stream_rpc_method_handler(stream, pb.StreamPredictRequest.FromString, None),
    }
    return (grpc.method_handlers_generic_handler(rpc.SERVICE.strip("/"), methods),)


def serve_in_threads(predict: Any) -> None:
    def unary(request: Any, _: Any) -> bytes:
        return at_once(predict(request, Call("", None)))

    def stream(requests: Iterator[Any], _: Any) -> Iterator[bytes]:
        for request in requests:
            yield on_stream(at_once(predict(request.predict, Call("", None))))

    server = grpc.server(ThreadPoolExecutor(THREADS), options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers(handlers(unary, stream))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(f"listening on 127.0.0.1:{port}", flush=True)
    server.wait_for_termination()


async def serve_in_loop(predict: Any) -> None:
    async def unary(request: Any, _: Any) -> bytes:
        reply: bytes = await predict(request, Call("", None))
        return reply

    async def stream(requests: AsyncIterator[Any], _: Any) -> AsyncIterator[bytes]:
        async for request in requests:
            yield on_stream(await predict(request.predict, Call("", None)))

    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers(handlers(unary, stream))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(f"listening on 127.0.0.1:{port}", flush=True)
    await server.wait_for_termination()


def main() -> None:
    if sys.argv[1] == "threads":
        serve_in_threads(behaviour())
        return
    answering = behaviour()
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(serve_in_loop(answering))


if __name__ == "__main__":
    main()
