"""Groups of settings: hosts of plugins, quotas, connections, retention. Their names stand before a dot."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field, model_validator

from nodewise.hosting.processes.address import Address
from nodewise.hosting.processes.limits import HostLimits
from nodewise.ports.quotas import CallerQuotas
from nodewise.profiles.quotas import StoreQuotas
from nodewise.profiles.store import Retention

__all__ = [
    "MOST_CONNECTIONS",
    "ConnectionSettings",
    "EstimatorSettings",
    "HostSettings",
    "Quotas",
    "RetentionSettings",
]

MOST_CONNECTIONS: Final = 16_384
"""Of a worker, where nothing is set: 13 kB of memory each, measured with 12,000 silent ones."""


class HostSettings(BaseModel):
    """What the processes of plugins may take; see ``hosting.processes.limits.HostLimits``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    call_budget_s: float = Field(
        HostLimits().call_budget_s, gt=0, description="seconds of a call of a plugin; its process is ended after it"
    )
    long_call_budget_s: float = Field(
        HostLimits().long_call_budget_s,
        gt=0,
        description="the same of long work: learning, reading traces, replays, diagnoses, searches, simulations",
    )
    load_budget_s: float = Field(
        HostLimits().load_budget_s, gt=0, description="seconds to import the plugins of a distribution"
    )
    start_patience_s: float = Field(
        0.0,
        ge=0,
        description="seconds that the first workers wait for plugins that are still being loaded; later ones join",
    )
    auto_patience_s: float = Field(
        HostLimits().auto_patience_s,
        ge=0,
        description="seconds that `auto` waits for who is not known to answer sooner; the next call has the answer",
    )
    memory_bytes: int = Field(
        HostLimits().memory_bytes,
        ge=1 << 26,
        description="what the process of a distribution may allocate beyond what it has as it starts",
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
        """As the lower rooms read them."""
        return HostLimits(**self.model_dump(exclude={"start_patience_s"}))


class EstimatorSettings(BaseModel):
    """Where an estimator answers; see ``hosting.processes.address.Address``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: str = Field(pattern=r"unix:/.+|[^/\s]+:\d+", description="unix:///path or host:port")
    ca: str = Field("", description="PEM file of who signs the server's certificate; empty = the system's")
    certificate: str = Field("", description="PEM file of the server's own certificate as a client; empty = none")
    key: str = Field("", description="PEM file of its key")
    plain: bool = Field(default=False, description="speak to host:port without TLS")

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, value: object) -> object:
        """A target alone stands for a table of it."""
        return {"target": value} if isinstance(value, str) else value

    def address(self) -> Address:
        """As the lower rooms read it."""
        return Address(**self.model_dump())


@dataclass(frozen=True, kw_only=True)
class Quotas(StoreQuotas, CallerQuotas):
    """What callers and namespaces may take; 0 = no limit. Raises ValueError for less."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    def __post_init__(self) -> None:
        for each in fields(self):
            if getattr(self, each.name) < 0:
                raise ValueError(f"{each.name} must be at least 0")


class ConnectionSettings(BaseModel):
    """How long connections are kept, and how many; see ``runtime.connections``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    most: int | None = Field(
        None,
        ge=0,
        description="connections that a worker has open; one more is closed at once; "
        f"0 = no limit; unset = as many as its descriptors allow and at most {MOST_CONNECTIONS:,}",
    )
    calls: int = Field(16_384, ge=1, description="calls that a connection has open at once; more wait at the caller")
    handshake_s: float = Field(
        10.0, gt=0, description="seconds for TLS and HTTP/2 to be agreed on; who is silent is dropped then"
    )
    idle_s: float = Field(
        300.0,
        ge=0,
        description="seconds without a call after which a connection is closed, as gRPC does it, and over HTTP seconds "
        "in which a caller must read 64 KiB of a reply; 0 = never, over HTTP 75",
    )
    alive_s: float = Field(
        120.0, gt=0, description="seconds of silence after which the other end must answer a ping within 20 seconds"
    )
    age_s: float = Field(
        0.0,
        ge=0,
        description="seconds after which calls begin on a new connection, so that callers spread over workers and "
        "replicas again; those under way end as they began; 0 = never",
    )


class RetentionSettings(BaseModel):
    """How long things are kept; unset = for ever."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    profiles_days: float | None = Field(
        None,
        gt=0,
        description="days after its last change that a profile is deleted, to be brought back like any other; not "
        "while a session has begun what it did not commit",
    )
    observations_days: float | None = Field(
        None, gt=0, description="days after its commit that an observation is retracted; it stays in the history"
    )
    unreferenced_traces_days: float | None = Field(
        None,
        gt=0,
        description="days after it was stored that a trace goes to which nothing refers, not even a deleted profile",
    )

    def rules(self) -> Retention:
        """As the lower rooms read them."""
        days = (self.profiles_days, self.observations_days, self.unreferenced_traces_days)
        profiles_s, observations_s, traces_s = (None if each is None else 86_400.0 * each for each in days)
        return Retention(profiles_s=profiles_s, observations_s=observations_s, traces_s=traces_s)
