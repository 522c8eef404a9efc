"""A connection to a server of plugins: calls of ``EstimatorService`` and ``PluginService``, written and read.

Profiles and catalogues are numbered, and sent once where the server remembers them.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import grpc
from google.protobuf.message import Message

from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError
from nodewise.domain.predictions import Options
from nodewise.domain.profile import Profile
from nodewise.hosting.processes.bounds import bounded
from nodewise.hosting.processes.evidence import write_profile
from nodewise.hosting.processes.statuses import FORGOTTEN, read_error
from nodewise.hosting.processes.values import Opaque, UndecodableError
from nodewise.hosting.processes.wire import write_catalogue, write_configurations, write_options, write_prior
from nodewise.plugin import Catalogue, Query
from nodewise_protos.plugin.v1 import estimator_service_pb2 as pb
from nodewise_protos.plugin.v1 import plugin_service_pb2

__all__ = ["MOST_BYTES", "OPTIONS", "Connection", "local_channel", "predict_request"]

MOST_BYTES: Final = 1 << 28
"""Of a message: more than the traces of one file are, unpacked."""
MOST_REMEMBERED: Final = 64
"""Profiles and catalogues that a server is taken to remember: those used last."""
OPTIONS: Final = (
    ("grpc.enable_retries", 0),
    ("grpc.max_receive_message_length", MOST_BYTES),
    ("grpc.max_send_message_length", MOST_BYTES),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.use_local_subchannel_pool", 1),
)


def local_channel(place: Path) -> grpc.Channel:
    """To the host whose socket lies in a folder."""
    return grpc.insecure_channel(f"unix:{place}/host", OPTIONS)


class Connection:
    """Calls to one server. Threads share it.

    Parameters
    ----------
    channel : grpc.Channel
    remembers : bool
        Whether the server remembers profiles and catalogues.
    """

    def __init__(self, channel: grpc.Channel, *, remembers: bool = True) -> None:
        def method(service: str, name: str, response: type[Message]) -> Any:
            path = f"/nodewise.plugin.v1.{service}/{name}"
            return channel.unary_unary(path, lambda request: request.SerializeToString(), bounded(response))

        self.list_estimators = method("EstimatorService", "ListEstimators", pb.ListEstimatorsResponse)
        self.assess = method("EstimatorService", "Assess", pb.AssessResponse)
        self.fit = method("EstimatorService", "Fit", pb.FitResponse)
        self.predict = method("EstimatorService", "Predict", pb.PredictResponse)
        self.release = method("EstimatorService", "Release", pb.ReleaseResponse)
        self.load = method("PluginService", "Load", plugin_service_pb2.LoadResponse)
        self.call = method("PluginService", "Call", plugin_service_pb2.CallResponse)
        self.remembers = remembers
        self._numbers = itertools.count(1)
        self._sent: OrderedDict[int, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def evidence(self, profile: Profile, catalogue: Catalogue) -> pb.Evidence:
        """What calls have in common, in full where it was not sent before."""
        with self._lock:
            number, is_new = self._number(profile)
            catalog_number, catalog_is_new = self._number(catalogue)
        return pb.Evidence(
            profile_number=number,
            profile=write_profile(profile) if is_new else None,
            catalog_number=catalog_number,
            catalog=write_catalogue(catalogue) if catalog_is_new else None,
        )

    def _number(self, value: Any) -> tuple[int, bool]:
        known = self._sent.get(id(value))
        if known is not None:
            self._sent.move_to_end(id(value))
            return known[1], not self.remembers
        number = next(self._numbers)
        self._sent[id(value)] = value, number
        if len(self._sent) > MOST_REMEMBERED:
            self._sent.popitem(last=False)
        return number, True

    def remembered(self, ask: Callable[[], Any]) -> Any:
        """What a call comes to that refers to evidence: asked again in full where the server has forgotten some."""
        try:
            return ask()
        except grpc.RpcError as error:
            told = read_error(error)
            if told is None and error.code() != grpc.StatusCode.FAILED_PRECONDITION:
                raise
            if isinstance(told, NodewiseError) or (told is not None and told["reason"] != FORGOTTEN):
                raise
        self.forget()
        return ask()

    def forget(self) -> None:
        """Take nothing for remembered by the server."""
        with self._lock:
            self._sent.clear()

    def assess_request(self, estimator: str, profile: Profile, query: Query, model: int = 0) -> pb.AssessRequest:
        """Whether rows can be answered; ``model`` = a fitted one that may answer them as well."""
        return pb.AssessRequest(
            estimator=estimator,
            evidence=self.evidence(profile, query.catalogue),
            configurations=write_configurations(query.configurations),
            options=write_options(query.options),
            model=model,
        )

    def fit_request(
        self, estimator: str, profile: Profile, context: Any, number: int = 0, call: int = 0
    ) -> pb.FitRequest:
        """A fit; ``number`` = that of its context, ``call`` its own."""
        return pb.FitRequest(
            estimator=estimator,
            evidence=self.evidence(profile, context.catalogue),
            prior=write_prior(context.prior, _content),
            seed=context.seed,
            context=number,
            call=call,
        )


def predict_request(model: int, rows: Configurations, options: Options | None, call: int = 0) -> pb.PredictRequest:
    """A question to a model."""
    return pb.PredictRequest(
        model=model, configurations=write_configurations(rows), options=write_options(options or Options()), call=call
    )


def _content(content: Any) -> bytes:
    """What a host made of its own learned values; that of an estimator which runs here belongs to no host."""
    if not isinstance(content, Opaque):
        raise UndecodableError("a prior that this host did not learn")
    return content.content
