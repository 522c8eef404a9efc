"""The registry: an immutable snapshot of every plugin that could be loaded, and of those that could not."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

import structlog
from packaging.utils import canonicalize_name

from nodewise.hosting.breaker import Breaker
from nodewise.hosting.counts import CallCounts
from nodewise.hosting.processes.host import Host, Listing
from nodewise.hosting.processes.limits import HostLimits
from nodewise.hosting.processes.listing import listed
from nodewise.hosting.records import HOOKS, Hook, PluginProblem, records_of
from nodewise.plugin import (
    ENTRY_POINT_GROUP,
    DiagnoserRecord,
    EstimatorRecord,
    PolicyRecord,
    SharingModelRecord,
    TraceReaderRecord,
)

__all__ = ["Hosting", "Loaded", "PluginConflictError", "PluginProblem", "Registry", "load_registry", "origin_of"]

_log = structlog.get_logger(__name__)

RecordT = TypeVar("RecordT", EstimatorRecord, PolicyRecord, TraceReaderRecord, DiagnoserRecord, SharingModelRecord)

SHIPPED_DISTRIBUTION: Final = "nodewise"
"""Plugins of this distribution run in the server's workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosting:
    """That plugins run in hosts, and which do not.

    Attributes
    ----------
    limits : HostLimits
        Of each host.
    trusted : collection of str
        Distributions besides the shipped one that run inline.
    listings : mapping of distribution to Listing
        What other processes know already of plugins that run in hosts: these start when they are first asked.
    """

    limits: HostLimits = field(default_factory=HostLimits)
    trusted: Collection[str] = ()
    listings: Mapping[str, Listing] = field(default_factory=dict)


class PluginConflictError(RuntimeError):
    """Two distributions bring a record of one kind under one name: nothing may choose between them."""


@dataclass(frozen=True, slots=True)
class Loaded(Generic[RecordT]):
    """A record, the distribution (with version) that brought it, and where it runs.

    Attributes
    ----------
    mode : str
        ``inline``, ``thread`` or ``process``.
    origin : str
        Tells two loadings of one version from each other, such as the folder that it was loaded from; "" = there was
        but one.
    calls : CallCounts
        What was asked of it since it was loaded.
    breaker : Breaker or None
        What keeps it from being asked while it fails; None = nothing does.
    """

    record: RecordT
    distribution: str
    mode: str
    origin: str = ""
    calls: CallCounts = field(default_factory=CallCounts, compare=False, repr=False)
    breaker: Breaker | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """What can be asked. Immutable: a change is a new snapshot."""

    estimators: Mapping[str, Loaded[EstimatorRecord]]
    policies: Mapping[str, Loaded[PolicyRecord]]
    trace_readers: Mapping[str, Loaded[TraceReaderRecord]]
    diagnosers: Mapping[str, Loaded[DiagnoserRecord]]
    problems: tuple[PluginProblem, ...] = ()
    sharing_models: Mapping[str, Loaded[SharingModelRecord]] = field(default_factory=dict)
    hosts: tuple[Host, ...] = ()
    """Processes of the plugins of mode ``process``."""

    @property
    def listings(self) -> dict[str, Listing]:
        """What the hosts said of themselves, for other processes."""
        return {host.distribution: known for host in self.hosts if (known := host.known) is not None}

    def close(self) -> None:
        """End the hosts; whoever asks their plugins afterwards is refused."""
        for kind in self.by_kind.values():
            for loaded in kind.values():
                if loaded.breaker is not None:
                    loaded.breaker.end()
        for host in self.hosts:
            host.close()

    @property
    def predicting(self) -> Mapping[str, Loaded[EstimatorRecord]]:
        """Estimators that predict throughput: who is asked where nobody is named."""
        return {name: loaded for name, loaded in self.estimators.items() if loaded.record.predicts}

    @property
    def by_kind(self) -> Mapping[str, Mapping[str, Loaded[Any]]]:
        """All of them by the kinds that the contract lists."""
        return {
            "estimator": self.estimators,
            "policy": self.policies,
            "trace_reader": self.trace_readers,
            "diagnoser": self.diagnosers,
            "sharing_model": self.sharing_models,
        }

    @property
    def generation(self) -> str:
        """Tells one set of plugins from another: a digest of names, versions and distributions by kind."""
        loaded = [
            sorted((name, each.record.version, each.distribution) for name, each in kind.items())
            for kind in self.by_kind.values()
        ]
        return hashlib.sha256(repr(loaded).encode()).hexdigest()[:16]


def load_registry(
    *,
    allowed: Collection[str] | None = None,
    safe_mode: bool = False,
    entry_points: Callable[[], Iterable[metadata.EntryPoint]] | None = None,
    hosting: Hosting | None = None,
) -> Registry:
    """Load every plugin that is installed and allowed.

    Parameters
    ----------
    allowed : collection of str or None
        Distributions or entry points, besides the shipped ones, that may be loaded. None = all; empty = none.
    safe_mode : bool
        Shipped plugins only.
    entry_points : callable or None
        Where entry points come from; None = the installed distributions.
    hosting : Hosting or None
        None = everything is imported here, and what is not shipped runs in threads.

    Raises
    ------
    PluginConflictError
        If two distributions bring the same name. Everything else that is wrong with a plugin leaves that plugin out and
        is listed among the problems.
    """
    found: dict[str, dict[str, Loaded[Any]]] = {hook.kind: {} for hook in HOOKS.values()}
    problems: list[PluginProblem] = []
    here: list[metadata.EntryPoint] = []
    apart: dict[str, list[metadata.EntryPoint]] = {}
    trusted = _canonical(hosting.trusted) if hosting is not None else frozenset[str]()
    for entry_point in _wanted(entry_points, allowed, safe_mode=safe_mode):
        name = _distribution_name(entry_point)
        if hosting is None or name == SHIPPED_DISTRIBUTION or canonicalize_name(name) in trusted:
            here.append(entry_point)
        else:
            apart.setdefault(_distribution(entry_point), []).append(entry_point)
    terms = hosting or Hosting()
    hosts = [
        Host(
            distribution,
            tuple((point.name, point.value) for point in points),
            terms.limits,
            terms.listings.get(distribution),
            _folder(points[0]),
        )
        for distribution, points in apart.items()
    ]
    for host in hosts:
        host.begin()  # all at once: each takes a moment

    def add(hook: Hook, records: Iterable[Any], problem: PluginProblem | None, loaded: Callable[[Any], Any]) -> None:
        if problem is not None:
            problems.append(problem)
            about = {name: value for name, value in asdict(problem).items() if name != "name"}
            _log.warning("plugin_left_out", plugin=problem.name, **about)
        for record in records:
            _register(found[hook.kind], hook, loaded(record))

    try:
        for entry_point in here:
            _add_here(entry_point, add, "thread" if hosting is None else "inline")
        for host in hosts:
            for hook, records, problem in listed(host):
                origin = origin_of(apart[host.distribution][0])
                add(hook, records, problem, partial(_hosted, host=host, origin=origin))
    except BaseException:
        for host in hosts:
            host.close()
        raise
    kinds = {hook.kinds: MappingProxyType(dict(sorted(found[hook.kind].items()))) for hook in HOOKS.values()}
    return Registry(**kinds, problems=tuple(problems), hosts=tuple(hosts))


def _wanted(
    entry_points: Callable[[], Iterable[metadata.EntryPoint]] | None,
    allowed: Collection[str] | None,
    *,
    safe_mode: bool,
) -> Iterable[metadata.EntryPoint]:
    """The entry points that may be loaded, in order of distributions and names."""
    permitted = None if allowed is None else {*allowed, *_canonical(allowed)}
    source = entry_points or (lambda: metadata.entry_points(group=ENTRY_POINT_GROUP))
    for entry_point in sorted(source(), key=lambda point: (_distribution_name(point), point.name)):
        name, distribution = _distribution_name(entry_point), _distribution(entry_point)
        wanted = permitted is None or canonicalize_name(name) in permitted or entry_point.name in permitted
        if name != SHIPPED_DISTRIBUTION and (safe_mode or not wanted):
            _log.info("plugin_not_allowed", plugin=entry_point.name, distribution=distribution)
            continue
        yield entry_point


def _canonical(names: Iterable[str]) -> frozenset[str]:
    return frozenset(str(canonicalize_name(name)) for name in names)


def _add_here(entry_point: metadata.EntryPoint, add: Callable[..., None], mode: str) -> None:
    """Import a plugin into this process, and register what it brings."""
    distribution = _distribution(entry_point)
    shipped = _distribution_name(entry_point) == SHIPPED_DISTRIBUTION

    def tell(error: BaseException) -> None:
        _log.warning("plugin_broken", plugin=entry_point.name, distribution=distribution, exc_info=error)

    for hook, records, problem in records_of(entry_point.name, entry_point.value, entry_point.load, distribution, tell):
        add(hook, records, problem, lambda record: Loaded(record, distribution, "inline" if shipped else mode))


def _hosted(record: Any, host: Host, origin: str) -> Loaded[Any]:
    return Loaded(record, host.distribution, "process", origin, breaker=Breaker())


def _register(known: dict[str, Loaded[Any]], hook: Hook, loaded: Loaded[Any]) -> None:
    name = loaded.record.name
    if name in known:
        first, second = known[name].distribution, loaded.distribution
        raise PluginConflictError(
            f"{hook.kind} {name!r} is provided by both {first} and {second}: uninstall one, "
            "or leave it off the allow-list"
        )
    known[name] = loaded


def origin_of(entry_point: metadata.EntryPoint) -> str:
    """Where its distribution lies, and since when: pip writes files anew each time. "" = it belongs to none."""
    if entry_point.dist is None:
        return ""
    described = getattr(entry_point.dist, "_path", None)
    try:
        written_ns = 0 if described is None else Path(described).stat().st_mtime_ns
    except OSError:
        written_ns = 0
    return f"{entry_point.dist.locate_file('')} {written_ns}"


def _folder(entry_point: metadata.EntryPoint) -> str:
    """The folder of a distribution that this process would not find; "" = it would."""
    if entry_point.dist is None:
        return ""
    place = str(entry_point.dist.locate_file(""))
    return "" if place in {path or str(Path.cwd()) for path in sys.path} else place


def _distribution_name(entry_point: metadata.EntryPoint) -> str:
    return entry_point.dist.name if entry_point.dist is not None else "(unknown)"


def _distribution(entry_point: metadata.EntryPoint) -> str:
    dist = entry_point.dist
    return f"{dist.name} {dist.version}" if dist is not None else "(unknown)"
