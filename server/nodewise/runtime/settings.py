"""Settings: one frozen value from file, environment and flags, in rising order of precedence."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit, urlunsplit

import orjson
from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, EnvSettingsSource, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from nodewise.estimation.weights import CACHE_BYTES
from nodewise.ports.limits import Limits
from nodewise.profiles.artefacts import DEFAULT_ARTEFACT_BYTES
from nodewise.profiles.store import DEFAULT_DELETED_KEPT_S
from nodewise.profiles.traces import DEFAULT_CACHE_BYTES
from nodewise.runtime.groups_of_settings import (
    ConnectionSettings,
    EstimatorSettings,
    HostSettings,
    Quotas,
    RetentionSettings,
)
from nodewise.runtime.identity.settings import CertificateGrant, JwtSettings, TlsSettings, Way

__all__ = ["Settings", "SettingsError", "load_settings", "redact"]

DEFAULT_LISTEN: Final = "127.0.0.1:50551"
DEFAULT_HTTP: Final = "127.0.0.1:50552"
DEFAULT_STORE: Final = "sqlite:nodewise.db"
CONFIG_VARIABLE: Final = "NODEWISE_CONFIG"
REMOVED: Final = ("preload", "warm_spare", "hung_after_s", "recycle_bytes", "pin_workers")
"""Settings of versions before; who states one is told, rather than served otherwise than he asks."""


class SettingsError(Exception):
    """A setting that cannot be used; the text names it and what would be right."""


class Settings(BaseSettings):
    """Everything that an operator can set. Environment: ``NODEWISE_`` and the name, nested with ``__``."""

    model_config = SettingsConfigDict(
        env_prefix="NODEWISE_", env_nested_delimiter="__", frozen=True, extra="ignore", env_ignore_empty=True
    )

    listen: str = Field(DEFAULT_LISTEN, description="HOST:PORT to serve on; port 0 picks one")
    http: str | None = Field(
        None,
        description="HOST:PORT to serve HTTP/JSON on, the Connect protocol and REST; port 0 picks one; off = none; "
        "unset = 127.0.0.1:50552 where listen is unset too, else none",
    )
    http_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="origins of pages whose browsers may call over HTTP, such as https://app.example.com; * = all; "
        "empty = none",
    )
    workers: int = Field(1, ge=1, le=256, description="worker processes that share the port")
    store: str = Field(DEFAULT_STORE, description="memory:, sqlite:PATH or postgresql://HOST/DATABASE")
    durability: Literal["process", "power"] = Field(
        "process", description="what an acknowledged batch survives: death of the process, or loss of power"
    )
    traces: str = Field(
        "",
        description="directory of traces, or s3://BUCKET/PREFIX; empty = beside the store; needed with PostgreSQL, and "
        "shared there",
    )
    trace_cache: str = Field(
        "",
        description="directory for copies of traces that are in a bucket; empty = beside the store, or a temporary one",
    )
    trace_cache_bytes: int = Field(
        DEFAULT_CACHE_BYTES, ge=0, description="most that those copies take; what was used least goes first"
    )
    trace_artefact_bytes: int = Field(
        DEFAULT_ARTEFACT_BYTES,
        ge=0,
        description="most that is kept of what was read of traces, beside them; what was used least goes first",
    )
    deleted_profiles_kept_s: float = Field(
        DEFAULT_DELETED_KEPT_S, ge=0, description="how long a deleted profile can be brought back, seconds"
    )
    retention: RetentionSettings = RetentionSettings()
    store_inspect_interval_s: float = Field(
        21_600.0,
        ge=0,
        description="seconds between two looks for damage in all that is stored, the first at the start, by one "
        "worker of all that share the store; 0 = never",
    )
    catalogue: str = Field("", description="TOML file of devices and links that join the shipped ones; empty = none")
    plugins: Annotated[tuple[str, ...] | None, NoDecode] = Field(
        None,
        description="distributions or entry points allowed besides the shipped ones; unset = all, [] = none",
    )
    trusted_plugins: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="distributions besides the shipped ones whose plugins run in the workers; others run in processes "
        "of their own",
    )
    hosts: HostSettings = HostSettings()
    estimators: dict[str, EstimatorSettings] = Field(
        {},
        description="estimators in servers of their own, by name: unix:///path or host:port (TLS), or a table of "
        "target, ca, certificate, key and plain",
    )
    fallback_estimators: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="who stands in for an estimator that is named and cannot answer, where the call allows it, in this "
        "order; empty, or none of them can = as auto chooses",
    )
    plugins_folder: str = Field("", description="directory of generations of plugins; empty = beside the store")
    admin: bool = Field(
        default=False,
        description="offer AdminService, which swaps plugins; where listen is loopback, or with authentication",
    )
    swap_trial_s: float = Field(
        20.0, ge=0, description="seconds for trying another generation of plugins before it serves; 0 = no trial"
    )
    swap_shadowed_requests: int = Field(
        200, ge=0, le=10_000, description="recent requests that another generation is asked before it serves"
    )
    safe_mode: bool = Field(default=False, description="shipped plugins only")
    reflection: bool | None = Field(
        None, description="offer gRPC server reflection, to callers who are known; unset = where listen is loopback"
    )
    authentication: Annotated[tuple[Way, ...], NoDecode] = Field(
        (),
        description="how callers may say who they are, of tokens, jwt and certificates; empty = nobody is asked, and "
        "everybody may do everything",
    )
    tls: TlsSettings = TlsSettings()
    jwt: JwtSettings = JwtSettings()
    certificates: dict[str, CertificateGrant] = Field(
        {},
        description="what holders of clients' certificates may do, by a name in the certificate: the subject's common "
        "name or an alternative name",
    )
    allow_plaintext: bool = Field(
        default=False, description="listen beyond loopback without TLS, such as behind a proxy that has it"
    )
    allow_anonymous: bool = Field(default=False, description="listen beyond loopback though nobody is asked who he is")
    default_deadline_s: float = Field(60.0, gt=0, description="for calls that state none")
    queue_wait_s: float = Field(
        0.5,
        gt=0,
        description="longest expected wait for a turn in the event loop, seconds; ten times that for a thread; "
        "above it calls are refused as OVERLOADED",
    )
    drain_delay_s: float = Field(0.0, ge=0, description="seconds between NOT_SERVING and the stop, for balancers")
    grace_s: float = Field(10.0, ge=0, description="seconds for calls in flight when stopping")
    default_policy: str = Field("efficiency-capped", description="policy of a Schedule that names none")
    learn_interval_s: float = Field(
        600.0, ge=0, description="seconds between looks for profiles to learn priors and calibrations from; 0 = never"
    )
    shared_namespaces: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="namespaces (first segments of profile ids) whose jobs move each other's answers, each by 5 % "
        "at most; * = all; empty = what one teaches stays its own",
    )
    scoring: bool = Field(
        default=True, description="score every estimator on the observations that arrive, for ListEstimators"
    )
    compute_processes: int | None = Field(
        None,
        ge=0,
        le=256,
        description="processes of each worker for long calls, about 160 MB each once there was one; 0 = threads of the "
        "worker itself; unset = half as many as cores, at least 1",
    )
    cache_bytes: int = Field(
        CACHE_BYTES,
        ge=16 << 20,
        description="what each worker keeps of profiles, models, answers and replies, about 30 kB for each job that is "
        "asked about; a process for long calls keeps a quarter of it",
    )
    threads: int = Field(4, ge=1, le=256, description="threads for what may block")
    crash_budget: int = Field(
        8,
        ge=1,
        le=1_000_000,
        description="deaths of workers, not made up for by serving, before giving up",
    )
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    audit_log: str = Field(
        "",
        description="file of what was administered, deleted, brought back and retracted, and of who was turned away, "
        "one JSON object a line; empty = in the log, with `audit` true, whatever the level",
    )
    limits: Limits = Limits()
    quotas: Quotas = Quotas()
    connections: ConnectionSettings = ConnectionSettings()

    def __hash__(self) -> int:
        """By all that is set, mappings included: processes for long calls are told them once."""
        return hash(self.model_dump_json())

    @property
    def http_listen(self) -> str:
        """HOST:PORT of HTTP; empty = none."""
        if self.http is None:
            return DEFAULT_HTTP if self.listen == DEFAULT_LISTEN else ""
        return "" if self.http == "off" else self.http

    @field_validator(
        *("plugins", "trusted_plugins", "fallback_estimators", "authentication", "shared_namespaces", "http_origins"),
        mode="before",
    )
    @classmethod
    def _names(cls, value: object) -> object:
        """A list in a file; in the environment names separated by commas, or a JSON list (``[]`` = none)."""
        if not isinstance(value, str):
            return value
        try:
            return orjson.loads(value) if value.lstrip().startswith("[") else _split_names(value)
        except orjson.JSONDecodeError:
            raise ValueError("must be names separated by commas, or a JSON list of them") from None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags over environment; :func:`load_settings` puts the file below both."""
        return init_settings, env_settings


def load_settings(config: Path | None = None, **flags: Any) -> Settings:
    """Settings from a TOML file, the environment and flags (None = not given).

    Raises
    ------
    SettingsError
        Naming the file or the setting and what would be right.
    """
    values = {name: value for name, value in flags.items() if value is not None}
    path = config or (Path(os.environ[CONFIG_VARIABLE]) if os.environ.get(CONFIG_VARIABLE) else None)
    from_file: dict[str, Any] = {}
    if path is not None:
        try:
            from_file = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise SettingsError(f"{path}: cannot be read ({error.strerror})") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SettingsError(f"{path}: is no TOML: {error}") from None
    for name in REMOVED:
        for place, is_stated in ((path, name in from_file), ("environment", f"NODEWISE_{name.upper()}" in os.environ)):
            if is_stated:
                raise SettingsError(f"{place}: setting {name} was removed; the server does without it: delete it")
    if path is not None:
        unknown = sorted(set(from_file) - set(Settings.model_fields))
        if unknown:
            names = ", ".join(Settings.model_fields)
            raise SettingsError(f"{path}: unknown setting {unknown[0]!r}; known are: {names}")
    try:
        return Settings(**_merge(_merge(from_file, EnvSettingsSource(Settings)()), values))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise SettingsError(f"setting {name}: {first['msg']}; found {first.get('input')!r}") from None


def _split_names(names: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in names.split(",") if name.strip())


def _merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    result = dict(below)
    for name, value in above.items():
        under = result.get(name)
        result[name] = _merge(under, value) if isinstance(under, dict) and isinstance(value, dict) else value
    return result


def redact(settings: Settings) -> dict[str, Any]:
    """Settings that differ from their defaults, as they may be logged: passwords of URLs replaced."""
    values = settings.model_dump(exclude_defaults=True)
    return values | ({"store": redacted_url(settings.store)} if "store" in values else {})


def redacted_url(url: str) -> str:
    """A URL with its password and query replaced."""
    parts = urlsplit(url)
    if parts.password is None and not parts.query:
        return url
    host = parts.netloc.rsplit("@", 1)[-1]
    user = f"{parts.username}:***@" if parts.password is not None else parts.netloc[: -len(host)]
    return urlunsplit((parts.scheme, user + host, parts.path, "***" if parts.query else "", ""))
