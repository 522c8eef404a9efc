"""The registry: an immutable snapshot of every plugin that could be loaded, and of those that could not."""

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
from typing import Any, Final, Generic, TypeVar

import structlog
from packaging.utils import canonicalize_name

from nodewise.hosting.breaker import Breaker
from nodewise.hosting.counts import CallCounts
from nodewise.hosting.distributions import (
    SHIPPED_DISTRIBUTION,
    canonical,
    distribution_of,
    folder_of,
    name_of,
    origin_of,
    wanted,
)
from nodewise.hosting.impatience import Background
from nodewise.hosting.parts import Key, Part, unchanged
from nodewise.hosting.processes.address import Address, AddressedEstimator
from nodewise.hosting.processes.host import Host
from nodewise.hosting.processes.limits import HostLimits
from nodewise.hosting.processes.listing import listed
from nodewise.hosting.processes.peer import Listing, Peer
from nodewise.hosting.records import HOOKS, Described, Hook, PluginProblem, records_of
from nodewise.plugin import (
    DiagnoserRecord,
    EstimatorRecord,
    PolicyRecord,
    SharingModelRecord,
    TraceReaderRecord,
)

__all__ = ["Hosting", "Loaded", "PluginConflictError", "PluginProblem", "Registry", "arrived", "load_registry"]

_log = structlog.get_logger(__name__)

MOST_RECORDS: Final = 32
"""Of one kind and distribution; the shipped one alone has as many as it likes."""

RecordT = TypeVar("RecordT", EstimatorRecord, PolicyRecord, TraceReaderRecord, DiagnoserRecord, SharingModelRecord)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosting:
    """That plugins run in hosts, and which do not.

    Attributes
    ----------
    limits : HostLimits
        Of each host.
    trusted : collection of str
        Distributions besides the shipped one that run inline.
    listings : mapping of distribution to Listing, or None
        What another process knows of plugins that run in hosts: these start when they are first asked, and there are
        no others. None = each tells what it brings.
    wait_s : float
        Seconds until the registry goes without what still loads; see :func:`arrived`.
    addresses : mapping of name to Address
        Estimators that answer in servers of their own.
    """

    limits: HostLimits = field(default_factory=HostLimits)
    trusted: Collection[str] = ()
    listings: Mapping[str, Listing] | None = None
    wait_s: float = math.inf
    addresses: Mapping[str, Address] = field(default_factory=dict)


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
    background : Background or None
        Where it is asked by those who can do without it; None = they ask it as all do.
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
    """What can be asked. Immutable: a change is a new snapshot."""

    estimators: Mapping[str, Loaded[EstimatorRecord]]
    policies: Mapping[str, Loaded[PolicyRecord]]
    trace_readers: Mapping[str, Loaded[TraceReaderRecord]]
    diagnosers: Mapping[str, Loaded[DiagnoserRecord]]
    problems: tuple[PluginProblem, ...] = ()
    sharing_models: Mapping[str, Loaded[SharingModelRecord]] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    """The same by distribution, as other registries may share it."""

    @property
    def _peers(self) -> tuple[Peer, ...]:
        return tuple(part.host for part in self.parts if part.host is not None)

    @property
    def hosts(self) -> tuple[Host, ...]:
        """Processes of the plugins of mode ``process``."""
        return tuple(host for host in self._peers if isinstance(host, Host))

    @property
    def arriving(self) -> tuple[str, ...]:
        """Distributions that are still being loaded: what they bring is not known yet."""
        return tuple(part.key.distribution for part in self.parts if part.arriving)

    @property
    def arrived(self) -> bool:
        """Whether :func:`arrived` would find more than this."""
        return any(part.arrived for part in self.parts)

    def settled(self, wait_s: float) -> bool:
        """Whether all that is arriving has arrived within so many seconds."""
        end_s = time.monotonic() + wait_s
        return all(_settled(part, end_s) for part in self.parts if part.arriving)

    @property
    def listings(self) -> dict[str, Listing]:
        """What the hosts said of themselves, for other processes."""
        return {host.distribution: host.known for host in self._peers if host.known is not None}

    def close(self) -> None:
        """Give up the hosts: plugins of those that no other registry has refuse what they are asked afterwards."""
        for part in self.parts:
            part.end()

    @property
    def predicting(self) -> Mapping[str, Loaded[EstimatorRecord]]:
        """Estimators that predict throughput: who is asked where nobody is named."""
        return {name: loaded for name, loaded in self.estimators.items() if loaded.record.predicts}

    @property
    def by_kind(self) -> Mapping[str, Mapping[str, Loaded[Any]]]:
        """All of them by the kinds that the contract lists."""
        return {hook.kind: getattr(self, hook.kinds) for hook in HOOKS.values()}

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
    known: Sequence[Registry] = (),
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
    known : sequence of Registry
        Of this process: what is the same in one of them is shared with it, hosts with their models among it.

    Raises
    ------
    PluginConflictError
        If two distributions bring the same name. Everything else that is wrong with a plugin leaves that plugin out and
        is listed among the problems.
    """
    terms = hosting or Hosting()
    trusted = canonical(terms.trusted)
    here: dict[str, list[metadata.EntryPoint]] = {}
    apart: dict[str, list[metadata.EntryPoint]] = {}
    for entry_point in wanted(entry_points, allowed, safe_mode=safe_mode):
        name = name_of(entry_point)
        inline = hosting is None or name == SHIPPED_DISTRIBUTION or canonicalize_name(name) in trusted
        distribution = distribution_of(entry_point)
        if inline or terms.listings is None or distribution in terms.listings:
            (here if inline else apart).setdefault(distribution, []).append(entry_point)
    peers: dict[Key, Callable[[], Peer]] = {
        **{_key(each, points, "process"): partial(_host, each, points, terms) for each, points in apart.items()},
        **({} if safe_mode else _addressed(terms)),
    }
    # All of them begin at once: each takes a moment.
    parts = [_shared(key, known) or _begun(key, made()) for key, made in peers.items()]
    try:
        for distribution, points in here.items():
            mode = "thread" if hosting is None else "inline"
            shared = _shared(_key(distribution, points, mode), known)
            parts.append(shared or _imported(distribution, points, mode))
        end_s = time.monotonic() + terms.wait_s
        parts = [_listed(part) if part.arriving and _settled(part, end_s) else part for part in parts]
        return _registry(parts)
    except BaseException:
        for part in parts:
            part.end()
        raise


def _settled(part: Part, end_s: float) -> bool:
    return part.host is not None and part.host.settled(max(0.0, end_s - time.monotonic()))


def _addressed(terms: Hosting) -> dict[Key, Callable[[], Peer]]:
    """What answers at addresses; of a process that is told what there is, no others."""
    found: dict[Key, Callable[[], Peer]] = {}
    for name, address in terms.addresses.items():
        key = Key(f"{name} at {address.target}", "process", repr(address), ((name, address.target),))
        if terms.listings is None or key.distribution in terms.listings:
            known = None if terms.listings is None else terms.listings[key.distribution]
            found[key] = partial(AddressedEstimator, name, address, terms.limits, known)
    return found


def _begun(key: Key, host: Peer) -> Part:
    """What a host brings that finds out now."""
    host.begin()
    message = "it is still being loaded, and joins when it is"
    loading = [PluginProblem(name, key.distribution, "plugin", "PLUGIN_LOADING", message) for name, _ in key.points]
    return Part(key=key, problems=tuple(loading), host=host, lease=host.lease(), arriving=True)


def arrived(registry: Registry, *, serving: bool = True) -> Registry:
    """A registry with what has arrived by now; the rest is shared.

    Parameters
    ----------
    serving : bool
        Whether somebody is served already: of two distributions that bring one name that of the later name is left out
        then, in all processes alike, and listed as a problem.

    Raises
    ------
    PluginConflictError
        Two distributions bring one name, and nobody is served yet.
    """
    parts: list[Part] = []
    for each in registry.parts:
        part = each.again()
        if part is not None:  # else its host ended with the server
            parts.append(_listed(part) if part.arrived else part)
    return _registry(_told_apart(parts) if serving else parts)


def _told_apart(parts: Sequence[Part]) -> list[Part]:
    """No two with one name: what runs in this process keeps it, then whose distribution comes first."""
    known: set[tuple[str, str]] = set()
    told: dict[Key, Part] = {}
    for part in sorted(parts, key=lambda part: (part.host is not None, part.key.distribution)):
        told[part.key] = _without_known(part, known)
        known |= {(hook.kind, loaded.record.name) for hook, loaded in told[part.key].records}
    return [told[part.key] for part in parts]


def _without_known(part: Part, known: Collection[tuple[str, str]]) -> Part:
    """A part without the records whose names, by kind, are known already."""
    late = [(hook, loaded) for hook, loaded in part.records if (hook.kind, loaded.record.name) in known]
    if not late:
        return part
    message = "another distribution provides the same name: uninstall one, or leave it off the allow-list"
    kept = [each for each in part.records if each not in late]
    return _left_out(part, kept, [(hook.kind, loaded.record.name, message) for hook, loaded in late])


def _left_out(part: Part, kept: Iterable[tuple[Hook, Any]], left: Iterable[tuple[str, str, str]]) -> Part:
    """A part with the records that it keeps, and kind, name and fault of those that it does not, which are logged."""
    told = [PluginProblem(name, part.key.distribution, kind, "PLUGIN_INVALID", why) for kind, name, why in left]
    for problem in told:
        _log_left_out(problem)
    return replace(part, records=tuple(kept), problems=(*part.problems, *told))


def _registry(parts: Sequence[Part]) -> Registry:
    """Of what all parts bring, without others' claims to shipped names. Raises PluginConflictError."""
    shipped = {
        (hook.kind, loaded.record.name) for part in parts if _is_shipped(part.key) for hook, loaded in part.records
    }
    parts = [part if _is_shipped(part.key) else _without_known(part, shipped) for part in parts]
    found: dict[str, dict[str, Loaded[Any]]] = {hook.kind: {} for hook in HOOKS.values()}
    for part in parts:
        for hook, loaded in part.records:
            _register(found[hook.kind], hook, loaded)
    kinds = {hook.kinds: MappingProxyType(dict(sorted(found[hook.kind].items()))) for hook in HOOKS.values()}
    problems = tuple(problem for part in parts for problem in part.problems)
    return Registry(**kinds, problems=problems, parts=tuple(parts))


def _is_shipped(key: Key) -> bool:
    return key.distribution.partition(" ")[0] == SHIPPED_DISTRIBUTION


def _shared(key: Key, known: Sequence[Registry]) -> Part | None:
    """What another registry has already; None = none has it."""
    return unchanged(key, (part for registry in known for part in registry.parts))


def _key(distribution: str, points: list[metadata.EntryPoint], mode: str) -> Key:
    # What was imported into this process stays, wherever another build of it may lie.
    origin = origin_of(points[0]) if mode == "process" else ""
    return Key(distribution, mode, origin, tuple((point.name, point.value) for point in points))


def _host(distribution: str, points: list[metadata.EntryPoint], terms: Hosting) -> Host:
    named = tuple((point.name, point.value) for point in points)
    known = None if terms.listings is None else terms.listings[distribution]
    return Host(distribution, named, terms.limits, known, folder_of(points[0]))


def _described(
    part: Part,
    described: Iterable[Described],
    loaded: Callable[[Any], Loaded[Any]],
) -> Part:
    """A part with what its distribution brings, and what is wrong with it, which is logged."""
    records: list[tuple[Hook, Any]] = []
    problems: list[PluginProblem] = []
    for each in described:
        if isinstance(each, PluginProblem):
            problems.append(each)
            _log_left_out(each)
        else:
            records.append((each[0], loaded(each[1])))
    return _capped(replace(part, records=tuple(records), problems=tuple(problems)))


def _capped(part: Part) -> Part:
    """A part with at most MOST_RECORDS of each kind, unless it is shipped: each costs every question of ``auto``."""
    if _is_shipped(part.key):
        return part
    kept: list[tuple[Hook, Any]] = []
    left: list[tuple[str, str, str]] = []
    for kind in {hook.kind: None for hook, _ in part.records}:
        records = [each for each in part.records if each[0].kind == kind]
        kept += records[:MOST_RECORDS]
        names = [loaded.record.name for _, loaded in records[MOST_RECORDS:]]
        if names:
            told = textwrap.shorten(", ".join(names), 400, placeholder=" ...")
            limit = f"one distribution may bring {MOST_RECORDS} of this kind"
            left.append((kind, names[0], f"{limit}; left out are {len(names)} more: {told}"))
    return _left_out(part, kept, left)


def _log_left_out(problem: PluginProblem) -> None:
    about = {name: value for name, value in asdict(problem).items() if name != "name"}
    _log.warning("plugin_left_out", plugin=problem.name, **about)


def _imported(distribution: str, points: list[metadata.EntryPoint], mode: str) -> Part:
    """Import a distribution into this process."""
    shipped = name_of(points[0]) == SHIPPED_DISTRIBUTION

    def described() -> Iterator[Described]:
        for point in points:

            def tell(error: BaseException, name: str = point.name) -> None:
                _log.warning("plugin_broken", plugin=name, distribution=distribution, exc_info=error)

            yield from records_of(point.name, point.value, point.load, distribution, tell)

    def loaded(record: Any) -> Loaded[Any]:
        return Loaded(record, distribution, "inline" if shipped else mode)

    return _described(Part(key=_key(distribution, points, mode)), described(), loaded)


def _listed(part: Part) -> Part:
    """Have the host of a part tell what it brings."""
    host = part.host
    assert host is not None
    # Models live in one process: what was fitted in another one must not be taken for its own.
    origin = f"{part.key.origin} in host {host.number}"
    background = Background(host.limits.auto_patience_s)

    def loaded(record: Any) -> Loaded[Any]:
        return Loaded(record, part.key.distribution, "process", origin, breaker=Breaker(), background=background)

    return _described(replace(part, arriving=False, seen=host.known), listed(host), loaded)


def _register(known: dict[str, Loaded[Any]], hook: Hook, loaded: Loaded[Any]) -> None:
    name = loaded.record.name
    if name in known:
        first, second = known[name].distribution, loaded.distribution
        raise PluginConflictError(
            f"{hook.kind} {name!r} is provided by both {first} and {second}: uninstall one, "
            "or leave it off the allow-list"
        )
    known[name] = loaded
