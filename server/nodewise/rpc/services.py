"""Every method of the contract with its behaviour, found by name; the server does not start if one is missing."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from types import MappingProxyType
from typing import Any, Final, NoReturn

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.ports.limits import Limits
from nodewise.ports.quotas import NO_QUOTAS, CallerQuotas
from nodewise.rpc.access import RULES, Identity, guard_of
from nodewise.rpc.audit import Audit, is_audited, with_audit
from nodewise.rpc.calls import Call, Method
from nodewise.rpc.classes import Admission
from nodewise.rpc.intake import RECEIVED_BYTES, InFlight, Intake
from nodewise.rpc.quotas import OpenCalls, with_open_call_limit
from nodewise.rpc.routes import Router, make_router
from nodewise_protos.v1 import prediction_service_pb2, profile_service_pb2, schedule_service_pb2
from nodewise_protos.v1beta1 import (
    admin_service_pb2,
    completion_service_pb2,
    diagnosis_service_pb2,
    evaluation_service_pb2,
    plan_service_pb2,
    sharing_service_pb2,
    simulation_service_pb2,
)

__all__ = ["METHODS", "SERVICES", "STREAMS", "behaviours_by_name", "handlers", "late_behaviours", "refused_admin"]


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


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
        admin_service_pb2,
    )
    for service in file.DESCRIPTOR.services_by_name.values()
}
SERVICES: Final = tuple(_DESCRIPTORS)
"""Full names of all services."""
METHODS: Final[Mapping[str, MethodDescriptor]] = MappingProxyType(
    {f"/{name}/{each.name}": each for name, service in _DESCRIPTORS.items() for each in service.methods}
)
"""Methods of all services, by ``/package.Service/Method``."""
STREAMS: Final = frozenset(_snake_case(each.name) for each in METHODS.values() if each.server_streaming)
"""Names of the behaviours that send several messages."""
_EXCEPTIONS: Final[Mapping[str, dict[str, Any]]] = MappingProxyType(
    {
        # As large as the content that may be appended, and as a table that may be sent.
        "GetProfile": {"reply_bytes": RECEIVED_BYTES},
        "WatchProfiles": {"default_deadline_s": None},
        "Backtest": {"reply_bytes": RECEIVED_BYTES, "default_deadline_s": None},
        # Loading, conformance checks and recent requests take as long as the operator's settings allow a trial.
        "Reload": {"default_deadline_s": None},
        "SetCanary": {"default_deadline_s": None},
    }
)
"""Properties that do not follow from a method's descriptor. Streams of requests and watches have no default deadline;
all other methods have one."""


def behaviours_by_name(objects: Sequence[object]) -> dict[str, Callable[..., Any]]:
    """The behaviours of objects by the names of their methods, which are those of the contract in snake case."""
    names = [_snake_case(each.name) for service in _DESCRIPTORS.values() for each in service.methods]
    return {name: getattr(each, name) for each in objects for name in names if hasattr(each, name)}


def late_behaviours(services: Mapping[str, Callable[[], object]]) -> dict[str, Callable[..., Any]]:
    """The behaviours of services by the names of their methods; the first call of one makes the service's object.

    Parameters
    ----------
    services : mapping of name to callable
        Return the object of each service, by the service's name without its package.
    """

    def behaviour(make: Callable[[], object], name: str) -> Callable[..., Any]:
        def late(request: Any, call: Call) -> Any:
            return getattr(make(), name)(request, call)

        return late

    return {
        name: behaviour(services[service.name], name)
        for service in _DESCRIPTORS.values()
        if service.name in services
        for name in (_snake_case(each.name) for each in service.methods)
    }


def refused_admin() -> dict[str, Callable[..., Any]]:
    """Behaviours of AdminService where the operator did not enable it."""

    async def refuse(_request: Any, _call: Call) -> NoReturn:
        text = "AdminService is off; set admin to true to enable it, or send SIGHUP to the server to reload plugins"
        raise NodewiseError(Reason.PERMISSION_DENIED, text)

    (service,) = admin_service_pb2.DESCRIPTOR.services_by_name.values()
    return {_snake_case(each.name): refuse for each in service.methods}


def handlers(
    behaviours: Mapping[str, Callable[..., Any]],
    default_deadline_s: float,
    limits: Limits,
    admission: Admission,
    known: Mapping[str, Callable[[bytes], bytes | None]] | None = None,
    identity: Identity | None = None,
    quotas: CallerQuotas = NO_QUOTAS,
    audit: Audit | None = None,
) -> list[Router]:
    """Handlers of all services.

    Parameters
    ----------
    behaviours : mapping of name to callable
        For every method of the contract, by its name in snake case; see :class:`Method`.
    default_deadline_s : float
        Deadline of calls that state none.
    limits : Limits
        Limits of a call.
    admission : Admission
        Queues of the classes of work.
    known : mapping of name to callable, or None
        For methods with cached replies, the lookup by the bytes of a request; see :class:`Method`.
    identity : Identity or None
        Identifies callers; None = every caller may do everything.
    quotas : CallerQuotas
        Calls that a caller may have open at once.
    audit : Audit or None
        Writes audit entries of administration, deletions and rejected callers.
    """
    in_flight = InFlight(limits.bytes_in_flight)
    unread = InFlight(limits.unread_reply_bytes, "unread_reply_bytes", "replies not yet read")
    open_calls = {each.name: OpenCalls(each.name, getattr(quotas, each.name)) for each in fields(quotas)}
    admission.on_error = None if audit is None else audit.record_refusal

    def method(descriptor: MethodDescriptor) -> Method:
        usual: dict[str, Any] = {
            "default_deadline_s": None if descriptor.client_streaming else default_deadline_s,
            "reply_bytes": limits.reply_bytes,
        }
        request, rule = GetMessageClass(descriptor.input_type), RULES[descriptor.full_name]
        result = Method(
            behaviour=behaviours[_snake_case(descriptor.name)],
            request=request,
            intake=Intake(request, rule.most_bytes, limits, in_flight),
            admission=admission,
            guard=None if identity is None else guard_of(descriptor, identity),
            known=(known or {}).get(_snake_case(descriptor.name)),
            queue=getattr(admission, rule.queue) if rule.queue else None,
            streams_in=descriptor.client_streaming,
            streams_out=descriptor.server_streaming,
            unread=unread,
            **usual | _EXCEPTIONS.get(descriptor.name, {}),
        )
        if rule.open_calls:
            result = with_open_call_limit(result, open_calls[rule.open_calls])
        if audit is not None and is_audited(descriptor.full_name):
            result = with_audit(descriptor.full_name, result, audit)
        return result

    return [
        make_router(name, {each.name: method(each) for each in service.methods})
        for name, service in _DESCRIPTORS.items()
    ]
