"""Settings: one frozen value from file, environment and flags, in ascending order of precedence."""

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
REMOVED_SETTINGS: Final = ("preload", "warm_spare", "hung_after_s", "recycle_bytes", "pin_workers")
"""Settings of earlier versions; a server that states one does not start, since it could not do what they say."""


class SettingsError(Exception):
    """A setting that cannot be used; the text names the setting and says what it must be."""


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
        "process", description="what an acknowledged batch survives: the end of the process, or loss of power"
    )
    traces: str = Field(
        "",
        description="directory of traces, or s3://BUCKET/PREFIX; empty = beside the store; needed with PostgreSQL, and "
        "shared there",
    )
    trace_cache: str = Field(
        "", description="directory for copies of traces of a bucket; empty = beside the store, or a temporary one"
    )
    trace_cache_bytes: int = Field(
        DEFAULT_CACHE_BYTES, ge=0, description="most bytes of those copies; the least recently used are deleted first"
    )
    trace_artefact_bytes: int = Field(
        DEFAULT_ARTEFACT_BYTES,
        ge=0,
        description="most bytes of stored results of reading traces; the least recently used are deleted first",
    )
    deleted_profiles_kept_s: float = Field(
        DEFAULT_DELETED_KEPT_S, ge=0, description="seconds for which a deleted profile can be restored"
    )
    retention: RetentionSettings = RetentionSettings()
    store_inspect_interval_s: float = Field(
        21_600.0,
        ge=0,
        description="seconds between two inspections of the whole store for damage, the first at the start, by one "
        "worker of all that share the store; 0 = never",
    )
    catalogue: str = Field("", description="TOML file of devices and links that join the shipped ones; empty = none")
    plugins: Annotated[tuple[str, ...] | None, NoDecode] = Field(
        None, description="distributions or entry points allowed besides the shipped ones; unset = all, [] = none"
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
        description="estimators that replace a named one that cannot answer, if the call allows it, in this order; "
        "empty, or if none of them can answer = as auto chooses",
    )
    plugins_folder: str = Field("", description="directory of generations of plugins; empty = beside the store")
    admin: bool = Field(
        default=False,
        description="offer AdminService, which swaps plugins; needs a loopback listen address or authentication",
    )
    swap_trial_s: float = Field(
        20.0, ge=0, description="seconds for trying another generation of plugins before it serves; 0 = no trial"
    )
    swap_shadowed_requests: int = Field(
        200, ge=0, le=10_000, description="recent requests that another generation answers in a trial before it serves"
    )
    safe_mode: bool = Field(default=False, description="shipped plugins only")
    reflection: bool | None = Field(
        None, description="offer gRPC server reflection to authenticated callers; unset = where listen is loopback"
    )
    authentication: Annotated[tuple[Way, ...], NoDecode] = Field(
        (),
        description="how callers may authenticate: any of tokens, jwt and certificates; empty = no authentication, "
        "every caller may do everything",
    )
    tls: TlsSettings = TlsSettings()
    jwt: JwtSettings = JwtSettings()
    certificates: dict[str, CertificateGrant] = Field(
        {},
        description="what holders of clients' certificates may do, by a name in the certificate: the subject's common "
        "name or an alternative name",
    )
    allow_plaintext: bool = Field(
        default=False, description="listen beyond loopback without TLS, such as behind a proxy with TLS"
    )
    allow_anonymous: bool = Field(default=False, description="listen beyond loopback without authentication")
    default_deadline_s: float = Field(60.0, gt=0, description="seconds for calls that state no deadline")
    queue_wait_s: float = Field(
        0.5,
        gt=0,
        description="longest expected wait for a turn in the event loop, seconds; ten times that for a thread; "
        "above it calls are refused as OVERLOADED",
    )
    drain_delay_s: float = Field(0.0, ge=0, description="seconds between NOT_SERVING and the stop, for load balancers")
    grace_s: float = Field(10.0, ge=0, description="seconds for calls in flight when stopping")
    default_policy: str = Field("efficiency-capped", description="policy of a Schedule that names none")
    learn_interval_s: float = Field(
        600.0, ge=0, description="seconds between two runs of learning priors and calibrations from profiles; 0 = never"
    )
    shared_namespaces: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="namespaces (first segments of profile ids) whose jobs change each other's answers, each by 5 % "
        "at most; * = all; empty = each namespace learns from its own jobs alone",
    )
    scoring: bool = Field(
        default=True, description="score every estimator on the observations that arrive, for ListEstimators"
    )
    compute_processes: int | None = Field(
        None,
        ge=0,
        le=256,
        description="processes of each worker for long calls, about 160 MB each after the first call; 0 = threads of "
        "the worker itself; unset = half as many as cores, at least 1",
    )
    cache_bytes: int = Field(
        CACHE_BYTES,
        ge=16 << 20,
        description="bytes of each worker's cache of profiles, models, answers and replies, about 30 kB for each job "
        "with questions; a process for long calls has a quarter of it",
    )
    threads: int = Field(4, ge=1, le=256, description="threads of each worker for work that may block")
    crash_budget: int = Field(
        8, ge=1, le=1_000_000, description="crashes of workers, offset by time of serving, after which the server stops"
    )
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    audit_log: str = Field(
        "",
        description="file for administration, deletions, restorations, retractions and rejected callers, one JSON "
        "object a line; empty = the log, with `audit` true, at every level",
    )
    limits: Limits = Limits()
    quotas: Quotas = Quotas()
    connections: ConnectionSettings = ConnectionSettings()

    def __hash__(self) -> int:
        """Of all settings, mappings included; processes for long calls get equal settings once."""
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
        """Names: a list in a file; in the environment names separated by commas, or a JSON list (``[]`` = none)."""
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
        """Flags take precedence over the environment; :func:`load_settings` puts the file below both."""
        return init_settings, env_settings


def load_settings(config: Path | None = None, **flags: Any) -> Settings:
    """Settings from a TOML file, the environment and flags (None = not given).

    Raises
    ------
    SettingsError
        With the file or the setting, and what it must be.
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
            raise SettingsError(f"{path}: is not valid TOML: {error}") from None
    for name in REMOVED_SETTINGS:
        for place, is_stated in ((path, name in from_file), ("environment", f"NODEWISE_{name.upper()}" in os.environ)):
            if is_stated:
                raise SettingsError(f"{place}: setting {name} no longer exists: delete it")
    if path is not None:
        unknown = sorted(set(from_file) - set(Settings.model_fields))
        if unknown:
            names = ", ".join(Settings.model_fields)
            raise SettingsError(f"{path}: unknown setting {unknown[0]!r}; the settings are: {names}")
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
