"""The registry: an immutable snapshot of all loaded plugins, and of the problems of those that are not loaded."""

from __future__ import annotations

import hashlib
import math
import textwrap
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib import metadata
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import structlog
from packaging.utils import canonicalize_name

from nodewise.hosting.background import Background
from nodewise.hosting.breaker import Breaker
from nodewise.hosting.counts import CallCounts
from nodewise.hosting.distributions import (
    SHIPPED_DISTRIBUTION,
    allowed_entry_points,
    canonical,
    distribution_of,
    folder_of,
    name_of,
    origin_of,
)
from nodewise.hosting.processes.address import Address
from nodewise.hosting.processes.limits import HostLimits
from nodewise.hosting.records import HOOKS, Hook, Listing, PluginProblem, RecordOrProblem, records_of
from nodewise.hosting.shared_plugins import Key, SharedPlugin, shared_from
from nodewise.plugin import (
    DiagnoserRecord,
    EstimatorRecord,
    PolicyRecord,
    SharingModelRecord,
    TraceReaderRecord,
)

if TYPE_CHECKING:
    # A tenth of a short command: imported where a plugin runs in another process.
    from nodewise.hosting.processes.host import Host
    from nodewise.hosting.processes.peer import Peer

__all__ = ["Hosting", "LoadedPlugin", "PluginConflictError", "PluginProblem", "Registry", "load_registry", "refresh"]

_log = structlog.get_logger(__name__)

MOST_RECORDS: Final = 32
"""Most records of one kind and distribution; the shipped distribution has no limit."""

RecordT = TypeVar("RecordT", EstimatorRecord, PolicyRecord, TraceReaderRecord, DiagnoserRecord, SharingModelRecord)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosting:
    """Settings of plugin hosts.

    Attributes
    ----------
    limits : HostLimits
        Of each host.
    trusted : collection of str
        Distributions besides the shipped one that run inline.
    listings : mapping of distribution to Listing, or None
        Listings of hosts by another process: these hosts start at their first call, and there are
        no others. None = each host lists its own records.
    wait_s : float
        Seconds to wait for hosts that are still loading; see :func:`refresh`.
    addresses : mapping of name to Address
        Addresses of estimator servers.
    """

    limits: HostLimits = field(default_factory=HostLimits)
    trusted: Collection[str] = ()
    listings: Mapping[str, Listing] | None = None
    wait_s: float = math.inf
    addresses: Mapping[str, Address] = field(default_factory=dict)


class PluginConflictError(RuntimeError):
    """Two distributions provide a record of one kind under one name, and the server does not choose between them."""


@dataclass(frozen=True, slots=True)
class LoadedPlugin(Generic[RecordT]):
    """A record, its distribution (with version), and where it runs.

    Attributes
    ----------
    mode : str
        ``inline``, ``thread`` or ``process``.
    origin : str
        Distinguishes two loadings of one version, such as the folder that it was loaded from; "" = there was
        but one.
    calls : CallCounts
        Its calls since it was loaded.
    breaker : Breaker or None
        Pauses calls to it while it fails; None = no breaker.
    background : Background or None
        Runs calls of callers that can do without it; None = they call it directly.
    """

    record: RecordT
    distribution: str
    mode: str
    origin: str = ""
    calls: CallCounts = field(default_factory=CallCounts, compare=False, repr=False)
    breaker: Breaker | None = field(default=None, compare=False, repr=False)
    background: Background | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """All loaded plugins. Immutable: a change is a new snapshot."""

    estimators: Mapping[str, LoadedPlugin[EstimatorRecord]]
    policies: Mapping[str, LoadedPlugin[PolicyRecord]]
    trace_readers: Mapping[str, LoadedPlugin[TraceReaderRecord]]
    diagnosers: Mapping[str, LoadedPlugin[DiagnoserRecord]]
    problems: tuple[PluginProblem, ...] = ()
    sharing_models: Mapping[str, LoadedPlugin[SharingModelRecord]] = field(default_factory=dict)
    plugins: tuple[SharedPlugin, ...] = ()
    """The same by distribution, as other registries may share it."""

    @property
    def _peers(self) -> tuple[Peer, ...]:
        return tuple(plugin.host for plugin in self.plugins if plugin.host is not None)

    @property
    def hosts(self) -> tuple[Host, ...]:
        """Processes of the plugins of mode ``process``."""
        if not self._peers:
            return ()
        from nodewise.hosting.processes.host import Host  # noqa: PLC0415  # see above

        return tuple(host for host in self._peers if isinstance(host, Host))

    @property
    def loading_distributions(self) -> tuple[str, ...]:
        """Distributions that are still loading: their records are not known yet."""
        return tuple(plugin.key.distribution for plugin in self.plugins if plugin.is_loading)

    @property
    def is_stale(self) -> bool:
        """Whether :func:`refresh` would find more than this."""
        return any(plugin.is_stale for plugin in self.plugins)

    def wait_until_known(self, wait_s: float) -> bool:
        """Whether all plugins that are still loading have loaded within so many seconds."""
        end_s = time.monotonic() + wait_s
        return all(_wait_until_known(plugin, end_s) for plugin in self.plugins if plugin.is_loading)

    @property
    def listings(self) -> dict[str, Listing]:
        """Listings of the hosts, for other processes."""
        return {host.distribution: host.known_listing for host in self._peers if host.known_listing is not None}

    def close(self) -> None:
        """Release the hosts: those that no other registry uses end, and later calls to their plugins are refused."""
        for plugin in self.plugins:
            plugin.end()

    @property
    def predicting(self) -> Mapping[str, LoadedPlugin[EstimatorRecord]]:
        """Estimators that predict throughput: those that ``auto`` chooses among."""
        return {name: plugin for name, plugin in self.estimators.items() if plugin.record.predicts}

    @property
    def by_kind(self) -> Mapping[str, Mapping[str, LoadedPlugin[Any]]]:
        """All plugins by the contract's kinds."""
        return {hook.kind: getattr(self, hook.kinds) for hook in HOOKS.values()}

    @property
    def generation(self) -> str:
        """Identifies a set of plugins: a digest of names, versions and distributions by kind."""
        records = [
            sorted((name, each.record.version, each.distribution) for name, each in kind.items())
            for kind in self.by_kind.values()
        ]
        return hashlib.sha256(repr(records).encode()).hexdigest()[:16]


def load_registry(
    *,
    allowed: Collection[str] | None = None,
    safe_mode: bool = False,
    entry_points: Callable[[], Iterable[metadata.EntryPoint]] | None = None,
    hosting: Hosting | None = None,
    registries: Sequence[Registry] = (),
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
        None = all plugins are imported here, and those that are not shipped run in threads.
    registries : sequence of Registry
        Other registries of this process: equal plugins are shared with them, hosts with their models included.

    Raises
    ------
    PluginConflictError
        If two distributions provide the same name. Any other fault of a plugin leaves that plugin out and
        is listed among the problems.
    """
    terms = hosting or Hosting()
    trusted_names = canonical(terms.trusted)
    here: dict[str, list[metadata.EntryPoint]] = {}
    apart: dict[str, list[metadata.EntryPoint]] = {}
    for entry_point in allowed_entry_points(entry_points, allowed, safe_mode=safe_mode):
        name = name_of(entry_point)
        inline = hosting is None or name == SHIPPED_DISTRIBUTION or canonicalize_name(name) in trusted_names
        distribution = distribution_of(entry_point)
        if inline or terms.listings is None or distribution in terms.listings:
            (here if inline else apart).setdefault(distribution, []).append(entry_point)
    peers: dict[Key, Callable[[], Peer]] = {
        **{_key(each, points, "process"): partial(_host, each, points, terms) for each, points in apart.items()},
        **({} if safe_mode else _address_peers(terms)),
    }
    # All of them begin at once: each takes a moment.
    plugins = [_share(key, registries) or _start(key, make()) for key, make in peers.items()]
    try:
        for distribution, points in here.items():
            mode = "thread" if hosting is None else "inline"
            existing = _share(_key(distribution, points, mode), registries)
            plugins.append(existing or _import(distribution, points, mode))
        end_s = time.monotonic() + terms.wait_s
        plugins = [
            _with_listing(plugin) if plugin.is_loading and _wait_until_known(plugin, end_s) else plugin
            for plugin in plugins
        ]
        return _registry(plugins)
    except BaseException:
        for plugin in plugins:
            plugin.end()
        raise


def _wait_until_known(plugin: SharedPlugin, end_s: float) -> bool:
    return plugin.host is not None and plugin.host.wait_until_known(max(0.0, end_s - time.monotonic()))


def _address_peers(terms: Hosting) -> dict[Key, Callable[[], Peer]]:
    """Constructors of peers at addresses; where listings are given, only of the listed ones."""
    if not terms.addresses:
        return {}
    from nodewise.hosting.processes.address_peer import AddressedEstimator  # noqa: PLC0415  # see above

    peers: dict[Key, Callable[[], Peer]] = {}
    for name, address in terms.addresses.items():
        key = Key(f"{name} at {address.target}", "process", repr(address), ((name, address.target),))
        if terms.listings is None or key.distribution in terms.listings:
            listing = None if terms.listings is None else terms.listings[key.distribution]
            peers[key] = partial(AddressedEstimator, name, address, terms.limits, listing)
    return peers


def _start(key: Key, host: Peer) -> SharedPlugin:
    """The shared plugin of a host that lists its records now."""
    host.begin()
    message = "it is still loading; the server uses it as soon as it has loaded"
    loading = [PluginProblem(name, key.distribution, "plugin", "PLUGIN_LOADING", message) for name, _ in key.points]
    return SharedPlugin(key=key, problems=tuple(loading), host=host, lease=host.lease(), is_loading=True)


def refresh(registry: Registry, *, serving: bool = True) -> Registry:
    """A registry with the plugins that have finished loading by now; the rest is shared.

    Parameters
    ----------
    serving : bool
        Whether the server answers callers already: then, of two distributions that bring one name, the one that comes
        later in the alphabet is left out, in all processes alike, and listed as a problem.

    Raises
    ------
    PluginConflictError
        Two distributions bring one name, and the server answers no callers yet.
    """
    plugins: list[SharedPlugin] = []
    for each in registry.plugins:
        plugin = each.with_new_lease()
        if plugin is not None:  # else its host ended with the server
            plugins.append(_with_listing(plugin) if plugin.is_stale else plugin)
    return _registry(_without_duplicates(plugins) if serving else plugins)


def _without_duplicates(plugins: Sequence[SharedPlugin]) -> list[SharedPlugin]:
    """Remove duplicate names: inline plugins keep theirs, then the distribution that comes first."""
    names: set[tuple[str, str]] = set()
    by_key: dict[Key, SharedPlugin] = {}
    for plugin in sorted(plugins, key=lambda plugin: (plugin.host is not None, plugin.key.distribution)):
        by_key[plugin.key] = _without_names(plugin, names)
        names |= {(hook.kind, each.record.name) for hook, each in by_key[plugin.key].records}
    return [by_key[plugin.key] for plugin in plugins]


def _without_names(plugin: SharedPlugin, names: Collection[tuple[str, str]]) -> SharedPlugin:
    """A plugin without the records that have one of these names, by kind."""
    late = [(hook, entry) for hook, entry in plugin.records if (hook.kind, entry.record.name) in names]
    if not late:
        return plugin
    message = "another distribution provides the same name; uninstall one, or remove it from the allow-list"
    records = [each for each in plugin.records if each not in late]
    return _leave_out(plugin, records, [(hook.kind, entry.record.name, message) for hook, entry in late])


def _leave_out(
    plugin: SharedPlugin, records: Iterable[tuple[Hook, Any]], left: Iterable[tuple[str, str, str]]
) -> SharedPlugin:
    """A plugin without some records; their kind, name and fault become problems, which are logged."""
    problems = [PluginProblem(name, plugin.key.distribution, kind, "PLUGIN_INVALID", why) for kind, name, why in left]
    for problem in problems:
        _log_left_out(problem)
    return replace(plugin, records=tuple(records), problems=(*plugin.problems, *problems))


def _registry(plugins: Sequence[SharedPlugin]) -> Registry:
    """The registry of all plugins, without others' records under shipped names. Raises PluginConflictError."""
    shipped_names = {
        (hook.kind, entry.record.name)
        for plugin in plugins
        if _is_shipped(plugin.key)
        for hook, entry in plugin.records
    }
    plugins = [plugin if _is_shipped(plugin.key) else _without_names(plugin, shipped_names) for plugin in plugins]
    by_kind: dict[str, dict[str, LoadedPlugin[Any]]] = {hook.kind: {} for hook in HOOKS.values()}
    for plugin in plugins:
        for hook, entry in plugin.records:
            _register(by_kind[hook.kind], hook, entry)
    kinds = {hook.kinds: MappingProxyType(dict(sorted(by_kind[hook.kind].items()))) for hook in HOOKS.values()}
    problems = tuple(problem for plugin in plugins for problem in plugin.problems)
    return Registry(**kinds, problems=problems, plugins=tuple(plugins))


def _is_shipped(key: Key) -> bool:
    return key.distribution.partition(" ")[0] == SHIPPED_DISTRIBUTION


def _share(key: Key, registries: Sequence[Registry]) -> SharedPlugin | None:
    """The same plugin from another registry; None = none has it."""
    return shared_from(key, (plugin for registry in registries for plugin in registry.plugins))


def _key(distribution: str, points: list[metadata.EntryPoint], mode: str) -> Key:
    # A module that was imported into this process stays, even where another build of it is installed.
    origin = origin_of(points[0]) if mode == "process" else ""
    return Key(distribution, mode, origin, tuple((point.name, point.value) for point in points))


def _host(distribution: str, points: list[metadata.EntryPoint], terms: Hosting) -> Host:
    from nodewise.hosting.processes.host import Host  # noqa: PLC0415  # see above

    points_by_name = tuple((point.name, point.value) for point in points)
    listing = None if terms.listings is None else terms.listings[distribution]
    return Host(distribution, points_by_name, terms.limits, listing, folder_of(points[0]))


def _with_records(
    plugin: SharedPlugin,
    outcomes: Iterable[RecordOrProblem],
    make_entry: Callable[[Any], LoadedPlugin[Any]],
) -> SharedPlugin:
    """A plugin with its distribution's records and problems, which are logged."""
    records: list[tuple[Hook, Any]] = []
    problems: list[PluginProblem] = []
    for each in outcomes:
        if isinstance(each, PluginProblem):
            problems.append(each)
            _log_left_out(each)
        else:
            records.append((each[0], make_entry(each[1])))
    return _limit_records(replace(plugin, records=tuple(records), problems=tuple(problems)))


def _limit_records(plugin: SharedPlugin) -> SharedPlugin:
    """A plugin with at most MOST_RECORDS of each kind, unless it is shipped: each costs every question of ``auto``."""
    if _is_shipped(plugin.key):
        return plugin
    some: list[tuple[Hook, Any]] = []
    left: list[tuple[str, str, str]] = []
    for kind in {hook.kind: None for hook, _ in plugin.records}:
        records = [each for each in plugin.records if each[0].kind == kind]
        some += records[:MOST_RECORDS]
        names = [entry.record.name for _, entry in records[MOST_RECORDS:]]
        if names:
            text = textwrap.shorten(", ".join(names), 400, placeholder=" ...")
            limit = f"one distribution may bring {MOST_RECORDS} of this kind"
            left.append((kind, names[0], f"{limit}; {len(names)} more are not loaded: {text}"))
    return _leave_out(plugin, some, left)


def _log_left_out(problem: PluginProblem) -> None:
    about = {name: value for name, value in asdict(problem).items() if name != "name"}
    _log.warning("plugin_left_out", plugin=problem.name, **about)


def _import(distribution: str, points: list[metadata.EntryPoint], mode: str) -> SharedPlugin:
    """Import a distribution into this process."""
    is_shipped = name_of(points[0]) == SHIPPED_DISTRIBUTION

    def read_records() -> Iterator[RecordOrProblem]:
        for point in points:

            def tell(error: BaseException, name: str = point.name) -> None:
                _log.warning("plugin_broken", plugin=name, distribution=distribution, exc_info=error)

            yield from records_of(point.name, point.value, point.load, distribution, tell)

    def make_entry(record: Any) -> LoadedPlugin[Any]:
        return LoadedPlugin(record, distribution, "inline" if is_shipped else mode)

    return _with_records(SharedPlugin(key=_key(distribution, points, mode)), read_records(), make_entry)


def _with_listing(plugin: SharedPlugin) -> SharedPlugin:
    """A plugin with the records that its host lists."""
    from nodewise.hosting.processes.listing_records import listing_records  # noqa: PLC0415  # see above

    host = plugin.host
    assert host is not None
    # Models live in one process: a model of another process must not be used in this one.
    origin = f"{plugin.key.origin} in host {host.number}"
    background = Background(host.limits.auto_patience_s)

    def make_entry(record: Any) -> LoadedPlugin[Any]:
        return LoadedPlugin(
            record, plugin.key.distribution, "process", origin, breaker=Breaker(), background=background
        )

    return _with_records(
        replace(plugin, is_loading=False, listing=host.known_listing), listing_records(host), make_entry
    )


def _register(entries: dict[str, LoadedPlugin[Any]], hook: Hook, entry: LoadedPlugin[Any]) -> None:
    name = entry.record.name
    if name in entries:
        first, second = entries[name].distribution, entry.distribution
        raise PluginConflictError(
            f"{hook.kind} {name!r} is provided by both {first} and {second}; uninstall one, "
            "or remove it from the allow-list"
        )
    entries[name] = entry
