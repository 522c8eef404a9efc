"""The connection: options, credentials and metadata of a channel, the same for both clients."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any, Final

import grpc
from google.protobuf import wrappers_pb2

from nodewise_client._access import TokenSource
from nodewise_client._version import version
from nodewise_protos.v1 import prediction_service_pb2_grpc, profile_service_pb2_grpc, schedule_service_pb2_grpc
from nodewise_protos.v1beta1 import (
    admin_service_pb2_grpc,
    completion_service_pb2_grpc,
    diagnosis_service_pb2_grpc,
    evaluation_service_pb2_grpc,
    plan_service_pb2_grpc,
    sharing_service_pb2_grpc,
    simulation_service_pb2_grpc,
)

SERVICE_CONFIG: Final = "nodewise_grpc_service_config.json"
DEFAULT_MAX_RECEIVE_BYTES: Final = 4 * 1024 * 1024
STREAM_TIMEOUT_S: Final = 600.0
# Of calls that the shared file does not name.
_TIMEOUT_S: Final = 10.0
_STUBS: Final[tuple[Any, ...]] = (
    prediction_service_pb2_grpc.PredictionServiceStub,
    profile_service_pb2_grpc.ProfileServiceStub,
    schedule_service_pb2_grpc.ScheduleServiceStub,
    completion_service_pb2_grpc.CompletionServiceStub,
    simulation_service_pb2_grpc.SimulationServiceStub,
    plan_service_pb2_grpc.PlanServiceStub,
    diagnosis_service_pb2_grpc.DiagnosisServiceStub,
    evaluation_service_pb2_grpc.EvaluationServiceStub,
    sharing_service_pb2_grpc.SharingServiceStub,
    admin_service_pb2_grpc.AdminServiceStub,
)
HEALTH_CHECK: Final = "/grpc.health.v1.Health/Check"


class HealthStatus(StrEnum):
    """Health of a server or of one of its services, in the order of grpc.health.v1."""

    UNKNOWN = "unknown"
    SERVING = "serving"
    NOT_SERVING = "not_serving"
    SERVICE_UNKNOWN = "service_unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """The address of the server, and the options of the connection."""

    target: str
    timeout_s: float | None
    token: TokenSource | None = field(repr=False)
    tls: bool | bytes = field(repr=False)
    tls_certificate: bytes | None = field(default=None, repr=False)
    tls_key: bytes | None = field(default=None, repr=False)
    retry: bool
    max_receive_bytes: int
    user_agent: str | None = None

    def __post_init__(self) -> None:
        if not self.target:
            raise ValueError('target is empty; give the server as "host:port"')
        if self.timeout_s is not None and not self.timeout_s > 0:
            raise ValueError(f"timeout_s is {self.timeout_s}; every call has a deadline, so give a number above 0")
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key belong together; give both, as PEM")
        if self.tls_certificate is not None and not self.tls:
            raise ValueError("tls_certificate needs tls: True for the system's root certificates, or these as PEM")

    def timeout_of(self, method: str) -> float:
        """Seconds of a call that is given no deadline of its own."""
        return _timeouts().get(method, _TIMEOUT_S) if self.timeout_s is None else self.timeout_s

    @property
    def options(self) -> list[tuple[str, Any]]:
        """Options of the channel."""
        own = f"nodewise-python/{version()}"
        options: list[tuple[str, Any]] = [
            ("grpc.primary_user_agent", f"{self.user_agent} {own}" if self.user_agent else own),
            ("grpc.max_receive_message_length", self.max_receive_bytes),
            # A server that comes back is found at once: the default waits a second before it knocks again.
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 1000),
            ("grpc.enable_retries", int(self.retry)),
        ]
        if self.retry:
            options.append(("grpc.service_config", _retries()))
        return options

    @property
    def credentials(self) -> grpc.ChannelCredentials | None:
        """Credentials of the channel; None = plain text."""
        if not self.tls:
            return None
        roots = None if isinstance(self.tls, bool) else self.tls
        return grpc.ssl_channel_credentials(roots, self.tls_key, self.tls_certificate)

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What accompanies every call."""
        if self.token is None:
            return ()
        token = self.token if isinstance(self.token, str) else self.token()
        return (("authorization", f"Bearer {token}"),)


def methods_of(channel: Any) -> dict[str, Any]:
    """The methods of all services by their names, which are unique."""
    return {name: method for stub in _STUBS for name, method in vars(stub(channel)).items()}


def service_config() -> str:
    """Which calls are retried, how often and on what: the one file that the SDKs of all languages share."""
    return resources.files(__package__).joinpath(SERVICE_CONFIG).read_text(encoding="utf-8")


def _retries() -> str:
    """What the file says of retries. Every call here states a deadline; gRPC would take the shorter of the two."""
    config: dict[str, Any] = json.loads(service_config())
    for entry in config["methodConfig"]:
        entry.pop("timeout", None)
    return json.dumps(config)


@cache
def _timeouts() -> Mapping[str, float]:
    """Seconds of each method, as the file says."""
    return {
        name["method"]: float(entry["timeout"].removesuffix("s"))
        for entry in json.loads(service_config())["methodConfig"]
        if "timeout" in entry
        for name in entry["name"]
    }


# grpc.health.v1 asks with one string in field 1 and answers with one number in field 1. The well-known wrappers are the
# same bytes, so that neither stubs nor another distribution are needed.
def encode_health_request(service: str) -> bytes:
    """HealthCheckRequest of a service's name; empty = the server as a whole."""
    return wrappers_pb2.StringValue(value=service).SerializeToString()


def decode_health_response(data: bytes) -> HealthStatus:
    """The status in a HealthCheckResponse."""
    number = wrappers_pb2.Int32Value.FromString(data).value
    return dict(enumerate(HealthStatus)).get(number, HealthStatus.UNKNOWN)
