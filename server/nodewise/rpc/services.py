"""Every method of the contract and what answers it, found by name: a method that nothing answers stops the start."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass

from nodewise.rpc.calls import Method, generic_handler
from nodewise_protos.v1 import prediction_service_pb2, profile_service_pb2, schedule_service_pb2
from nodewise_protos.v1beta1 import (
    completion_service_pb2,
    diagnosis_service_pb2,
    evaluation_service_pb2,
    plan_service_pb2,
    sharing_service_pb2,
    simulation_service_pb2,
)

__all__ = ["RECEIVED_BYTES", "SERVICES", "handlers"]

RECEIVED_BYTES: Final = 16 * 1024 * 1024
"""Largest message taken from a client: ten thousand observations of every column, or four trace chunks."""

_DESCRIPTORS: Final = {
    service.full_name: service
    for file in (
        prediction_service_pb2,
        profile_service_pb2,
        schedule_service_pb2,
        simulation_service_pb2,
        plan_service_pb2,
        completion_service_pb2,
        diagnosis_service_pb2,
        evaluation_service_pb2,
        sharing_service_pb2,
    )
    for service in file.DESCRIPTOR.services_by_name.values()
}
SERVICES: Final = tuple(_DESCRIPTORS)
"""Their full names."""
_EXCEPTIONS: Final[Mapping[str, dict[str, Any]]] = MappingProxyType(
    {
        # As large as what was appended to it; as a table that is taken.
        "GetProfile": {"reply_bytes": RECEIVED_BYTES},
        "WatchProfiles": {"default_deadline_s": None},
        "Backtest": {"reply_bytes": RECEIVED_BYTES, "default_deadline_s": None},
    }
)
"""What does not follow from a method's descriptor. Streams of requests and watches live as long as
their caller likes, all else is over after the usual time unless the caller states one."""


def handlers(behaviours: Sequence[object], default_deadline_s: float, reply_bytes: int) -> list[grpc.GenericRpcHandler]:
    """Handlers of all services, from objects with a behaviour for each of their methods, by its name in snake case.

    Parameters
    ----------
    default_deadline_s : float
        Of calls that state none.
    reply_bytes : int
        Largest reply.
    """

    def method(described: MethodDescriptor) -> Method:
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", described.name).lower()
        (behaviour,) = (found for each in behaviours if (found := getattr(each, name, None)) is not None)
        usual: dict[str, Any] = {
            "default_deadline_s": None if described.client_streaming else default_deadline_s,
            "reply_bytes": reply_bytes,
        }
        return Method(
            behaviour=behaviour,
            request=GetMessageClass(described.input_type),
            streams_in=described.client_streaming,
            streams_out=described.server_streaming,
            **usual | _EXCEPTIONS.get(described.name, {}),
        )

    return [
        generic_handler(name, {each.name: method(each) for each in service.methods})
        for name, service in _DESCRIPTORS.items()
    ]
