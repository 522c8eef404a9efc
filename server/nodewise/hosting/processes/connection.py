"""A connection to a server of plugins, which numbers profiles and catalogues and sends each once."""

from __future__ import annotations

import itertools
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

import grpc
from google.protobuf.message_factory import GetMessageClass

from nodewise.domain.profile import Profile
from nodewise.hosting.processes.values import UndecodableError
from nodewise.hosting.processes.wire import write_catalogue, write_profile
from nodewise.mapper.scan import plan_of, scan
from nodewise.plugin import Catalogue
from nodewise_protos.plugin.v1 import estimator_service_pb2 as pb
from nodewise_protos.plugin.v1 import plugin_service_pb2

__all__ = ["MOST_BYTES", "MOST_PARTS", "OPTIONS", "Connection", "ForgottenError", "bounded_reader"]

MOST_BYTES: Final = 1 << 28
"""Largest message: more than the unpacked traces of one file."""
MOST_PARTS: Final = 1 << 19
"""Messages within a message and their fields, as many as a client's message has: an empty one takes two bytes on the
wire, and a hundred once it is read. Columns and arrays are one each."""
MOST_REMEMBERED: Final = 64
"""Profiles and catalogues that a server is assumed to remember: those used last."""
OPTIONS: Final = (
    ("grpc.enable_retries", 0),
    ("grpc.max_receive_message_length", MOST_BYTES),
    ("grpc.max_send_message_length", MOST_BYTES),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.use_local_subchannel_pool", 1),
)
_SERVICES: Final = (
    pb.DESCRIPTOR.services_by_name["EstimatorService"],
    plugin_service_pb2.DESCRIPTOR.services_by_name["PluginService"],
)


class ForgottenError(Exception):
    """The server does not know a profile or catalogue by its number."""


def bounded_reader(kind: Any) -> Callable[[bytes], Any]:
    """Reads messages of a type; raises UndecodableError for one of too many parts."""
    plan = plan_of(kind.DESCRIPTOR, lambda field: None if field.message_type is None else ("parts", MOST_PARTS))

    def read(data: bytes) -> Any:
        if scan(data, plan, MOST_PARTS) is not None:
            raise UndecodableError("a message with too many parts")
        return kind.FromString(data)

    return read


class Connection:
    """Calls to one server. Threads share it.

    Parameters
    ----------
    channel : grpc.Channel

    Attributes
    ----------
    methods : dict
        Methods of the server's services, by name.
    remembers : bool
        Whether the server remembers profiles and catalogues.
    """

    def __init__(self, channel: grpc.Channel) -> None:
        self._channel = channel
        self.methods: dict[str, Any] = {
            method.name: channel.unary_unary(
                f"/{service.full_name}/{method.name}",
                GetMessageClass(method.input_type).SerializeToString,
                bounded_reader(GetMessageClass(method.output_type)),
            )
            for service in _SERVICES
            for method in service.methods
        }
        self.remembers = True
        # Every process is a client of its own, and the server identifies evidence by its number alone.
        self._numbers = itertools.count(secrets.randbits(62) + 1)
        self._numbers_by_id: OrderedDict[int, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def with_evidence(self, ask: Callable[[Any], Any], request: Any, profile: Profile, catalogue: Catalogue) -> Any:
        """The response to a request with its evidence, sent in full where the server does not know it.

        Only the server knows that: another thread's message with the evidence may arrive after this one.

        Raises
        ------
        ForgottenError
            The server does not know evidence that it was just sent.
        """
        try:
            request.evidence.CopyFrom(self._evidence(profile, catalogue, in_full=not self.remembers))
            return ask(request)
        except ForgottenError:
            request.evidence.CopyFrom(self._evidence(profile, catalogue, in_full=True))
            return ask(request)

    def _evidence(self, profile: Profile, catalogue: Catalogue, *, in_full: bool) -> pb.Evidence:
        (number, is_new), (catalog_number, catalog_is_new) = self._number(profile), self._number(catalogue)
        return pb.Evidence(
            profile_number=number,
            profile=write_profile(profile) if is_new or in_full else None,
            catalog_number=catalog_number,
            catalog=write_catalogue(catalogue) if catalog_is_new or in_full else None,
        )

    def _number(self, value: Any) -> tuple[int, bool]:
        """The number of a profile or catalogue, and whether it has not been sent yet."""
        with self._lock:
            is_new = id(value) not in self._numbers_by_id
            if is_new:
                self._numbers_by_id[id(value)] = value, next(self._numbers)
            self._numbers_by_id.move_to_end(id(value))
            if len(self._numbers_by_id) > MOST_REMEMBERED:
                self._numbers_by_id.popitem(last=False)
            return self._numbers_by_id[id(value)][1], is_new
