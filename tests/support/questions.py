"""PredictionService without a socket: its behaviours over the shipped plugins, asked as a call would."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from serving import inline, registry_with

from nodewise.catalogue.loading import load_catalogue
from nodewise.domain.scores import RunningScore
from nodewise.estimation.answer.answers import Answers
from nodewise.hosting.registry import Registry
from nodewise.ports.limits import Limits
from nodewise.profiles.reader import ProfileReader
from nodewise.profiles.store import ProfileStore
from nodewise.rpc.answering import Answering
from nodewise.rpc.architectures import ArchitectureBatches
from nodewise.rpc.batches import Batches
from nodewise.rpc.calls import Call
from nodewise.rpc.listing import Listing
from nodewise.rpc.predictions import Predictions
from nodewise.rpc.sources import ProfileSources
from nodewise.rpc.streams import Streams
from nodewise_protos.v1 import prediction_service_pb2 as pb


class NothingLong:
    """Compute of questions that none of them has."""


class NoStore:
    """Of questions that all bring their profiles."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"nobody asked the store to {name}")


class Asked:
    """Behaviours of PredictionService in one event loop each call; what is begun ahead is kept until it is let go."""

    def __init__(
        self, registry: Registry | None = None, limits: Limits | None = None, store: ProfileStore | None = None
    ) -> None:
        self.begun: list[Callable[[], None]] = []
        self._threads = ThreadPoolExecutor(2)
        self._answers = Answers(registry or registry_with(), catalogue=load_catalogue(), ahead=self.begun.append)
        kept_profiles: Any = store or NoStore()
        kept = limits or Limits()
        sources = ProfileSources(ProfileReader(kept_profiles), kept, self._threads)
        compute: Any = NothingLong()
        answering = Answering(self._answers, self._threads, self._threads)
        architectures = ArchitectureBatches(self._answers, sources, kept, self._threads, compute)
        self.predictions = Predictions(answering, sources, kept, compute)
        self.batches = Batches(answering, architectures, sources, kept)
        known = self.predictions.known.get
        self.streams = Streams(self.predictions.predict, self.batches.batch_predict, kept.reply_bytes, known)
        self.lists = Listing(self._answers, self._scores)

    async def _scores(self) -> list[RunningScore]:
        return []

    def predict(self, *, remaining_s: float | None = None, **request: Any) -> pb.PredictResponse:
        """Predict about the profile of one asynchronous worker, unless another is given."""
        asked = pb.PredictRequest(**({"profile": inline()} | request))
        return pb.PredictResponse.FromString(self.run(self.predictions.predict(asked, call_of(remaining_s))))

    def batch(self, **request: Any) -> pb.BatchPredictResponse:
        """BatchPredict."""
        reply = self.run(self.batches.batch_predict(pb.BatchPredictRequest(**request), call_of()))
        return pb.BatchPredictResponse.FromString(reply)

    def stream(self, *requests: pb.StreamPredictRequest) -> list[pb.StreamPredictResponse]:
        """StreamPredict."""

        async def sent() -> Any:
            for each in requests:
                yield each

        async def received() -> list[bytes]:
            return [reply async for reply in self.streams.stream_predict(sent(), call_of())]

        return [pb.StreamPredictResponse.FromString(reply) for reply in self.run(received())]

    def listed(self, name: str, request: Any) -> Any:
        """One of the lists."""
        return self.run(getattr(self.lists, name)(request, call_of()))

    def run(self, coroutine: Any) -> Any:
        """What a behaviour returns or raises."""
        return asyncio.run(coroutine)

    def let_go(self) -> None:
        """Do what was begun ahead."""
        while self.begun:
            self.begun.pop(0)()


def call_of(remaining_s: float | None = None) -> Call:
    """A call that waits for so many seconds; None = for ever."""
    return Call("test", None if remaining_s is None else time.monotonic() + remaining_s)
