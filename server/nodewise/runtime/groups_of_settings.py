"""Groups of settings: plugin hosts, estimators, quotas, connections, retention. A setting is GROUP.NAME."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field, model_validator

from nodewise.hosting.processes.address import Address
from nodewise.hosting.processes.limits import HostLimits
from nodewise.ports.quotas import CallerQuotas
from nodewise.profiles.quotas import StoreQuotas
from nodewise.profiles.store import Retention

__all__ = ["MOST_CONNECTIONS", "ConnectionSettings", "EstimatorSettings", "HostSettings", "Quotas", "RetentionSettings"]

MOST_CONNECTIONS: Final = 16_384
"""Default limit of a worker: 13 kB of memory each, measured with 12,000 silent connections."""


class HostSettings(BaseModel):
    """Limits of the processes of plugins; see ``hosting.processes.limits.HostLimits``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    call_budget_s: float = Field(
        HostLimits().call_budget_s, gt=0, description="most seconds of a call of a plugin; then its process is ended"
    )
    long_call_budget_s: float = Field(
        HostLimits().long_call_budget_s,
        gt=0,
        description="the same for long work: learning, reading traces, replays, diagnoses, searches, simulations",
    )
    load_budget_s: float = Field(
        HostLimits().load_budget_s, gt=0, description="seconds to import the plugins of a distribution"
    )
    start_patience_s: float = Field(
        0.0,
        ge=0,
        description="seconds that the first workers wait for plugins to load; plugins that load later are added then",
    )
    auto_patience_s: float = Field(
        HostLimits().auto_patience_s,
        ge=0,
        description="seconds that `auto` waits for a slow or new estimator; the next call has its answer",
    )
    memory_bytes: int = Field(
        HostLimits().memory_bytes,
        ge=1 << 26,
        description="bytes that the process of a distribution may allocate beyond those at its start",
    )

    paths: tuple[str, ...] = Field(
        (),
        description="files and folders that plugins may read and write besides those of their modules, where the "
        "kernel has Landlock",
    )

    environment: tuple[str, ...] = Field(
        (), description="names of variables that plugins see besides a few harmless ones, such as PATH"
    )

    def limits(self) -> HostLimits:
        """The same as the value that lower layers use."""
        return HostLimits(**self.model_dump(exclude={"start_patience_s"}))


class EstimatorSettings(BaseModel):
    """Address of an estimator's server; see ``hosting.processes.address.Address``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: str = Field(pattern=r"unix:/.+|[^/\s]+:\d+", description="unix:///path or host:port")
    ca: str = Field("", description="PEM file of the authority of the server's certificate; empty = the system's")
    certificate: str = Field("", description="PEM file of Nodewise's own client certificate; empty = none")
    key: str = Field("", description="PEM file of that certificate's key")
    plain: bool = Field(default=False, description="connect to host:port without TLS")

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, value: object) -> object:
        """Accept a target alone instead of a table."""
        return {"target": value} if isinstance(value, str) else value

    def address(self) -> Address:
        """The same as the value that lower layers use."""
        return Address(**self.model_dump())


@dataclass(frozen=True, kw_only=True)
class Quotas(StoreQuotas, CallerQuotas):
    """Quotas of callers and namespaces; 0 = no limit. Raises ValueError for a negative number."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    def __post_init__(self) -> None:
        for each in fields(self):
            if getattr(self, each.name) < 0:
                raise ValueError(f"{each.name} must be at least 0")


class ConnectionSettings(BaseModel):
    """Limits of connections; see ``runtime.connections``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    most: int | None = Field(
        None,
        ge=0,
        description="most open connections of a worker; one more is closed at once; "
        f"0 = no limit; unset = as many as its descriptors allow and at most {MOST_CONNECTIONS:,}",
    )
    calls: int = Field(16_384, ge=1, description="most concurrent calls of a connection; more wait at the caller")
    handshake_s: float = Field(
        10.0, gt=0, description="seconds for the handshakes of TLS and HTTP/2; then the connection is closed"
    )
    idle_s: float = Field(
        300.0,
        ge=0,
        description="seconds without a call after which gRPC closes a connection, and over HTTP seconds in which a "
        "caller must read 64 KiB of a reply; 0 = never, over HTTP 75",
    )
    alive_s: float = Field(
        120.0, gt=0, description="seconds of silence after which the other end must answer a ping within 20 seconds"
    )
    age_s: float = Field(
        0.0,
        ge=0,
        description="seconds after which new calls need a new connection, so that callers spread over workers and "
        "replicas again; calls in flight finish; 0 = never",
    )


class RetentionSettings(BaseModel):
    """Retention of stored content; unset = no limit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    profiles_days: float | None = Field(
        None,
        gt=0,
        description="days after its last change that a profile is deleted; it can be restored like any other; not "
        "while an ingest session is open",
    )
    observations_days: float | None = Field(
        None, gt=0, description="days after its commit that an observation is retracted; it stays in the history"
    )
    unreferenced_traces_days: float | None = Field(
        None,
        gt=0,
        description="days after it was stored that a trace is deleted, if no profile refers to it, not even a deleted "
        "one",
    )

    def rules(self) -> Retention:
        """The same as the value that lower layers use."""
        days = (self.profiles_days, self.observations_days, self.unreferenced_traces_days)
        profiles_s, observations_s, traces_s = (None if each is None else 86_400.0 * each for each in days)
        return Retention(profiles_s=profiles_s, observations_s=observations_s, traces_s=traces_s)
