"""Every method of the contract and what answers it, found by name: a method that nothing answers stops the start."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass

from nodewise.ports.limits import Limits
from nodewise.rpc.calls import Method
from nodewise.rpc.doors import Door, generic_handler
from nodewise.rpc.gate import Gate
from nodewise.rpc.intake import RECEIVED_BYTES, InFlight, Intake, most_bytes
from nodewise_protos.v1 import prediction_service_pb2, profile_service_pb2, schedule_service_pb2
from nodewise_protos.v1beta1 import (
    completion_service_pb2,
    diagnosis_service_pb2,
    evaluation_service_pb2,
    plan_service_pb2,
    sharing_service_pb2,
    simulation_service_pb2,
)

__all__ = ["SERVICES", "handlers"]

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


def handlers(behaviours: Sequence[object], default_deadline_s: float, limits: Limits, gate: Gate) -> list[Door]:
    """Handlers of all services, from objects with a behaviour for each of their methods, by its name in snake case.

    Parameters
    ----------
    default_deadline_s : float
        Of calls that state none.
    limits : Limits
        Caps of a call.
    gate : Gate
        Who is let in.
    """
    in_flight = InFlight(limits.bytes_in_flight)

    def method(described: MethodDescriptor) -> Method:
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", described.name).lower()
        (behaviour,) = (found for each in behaviours if (found := getattr(each, name, None)) is not None)
        usual: dict[str, Any] = {
            "default_deadline_s": None if described.client_streaming else default_deadline_s,
            "reply_bytes": limits.reply_bytes,
        }
        request = GetMessageClass(described.input_type)
        return Method(
            behaviour=behaviour,
            request=request,
            intake=Intake(request, most_bytes(described.name), limits, in_flight),
            gate=gate,
            lane=gate.lane(described.name),
            streams_in=described.client_streaming,
            streams_out=described.server_streaming,
            **usual | _EXCEPTIONS.get(described.name, {}),
        )

    return [
        generic_handler(name, {each.name: method(each) for each in service.methods})
        for name, service in _DESCRIPTORS.items()
    ]
