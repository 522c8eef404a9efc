"""The registry: an immutable snapshot of every plugin that could be loaded, and of those that could not."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from importlib import metadata
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

import pluggy
import structlog
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from nodewise.hosting.counts import CallCounts
from nodewise.hosting.interrupts import is_interrupt
from nodewise.hosting.soundness import is_name, is_text
from nodewise.plugin import (
    ENTRY_POINT_GROUP,
    PLUGIN_API_VERSION,
    Configurations,
    Diagnoser,
    DiagnoserRecord,
    Estimator,
    EstimatorRecord,
    Policy,
    PolicyParameter,
    PolicyRecord,
    SharingModel,
    SharingModelRecord,
    TraceReader,
    TraceReaderRecord,
    new_plugin_manager,
)

__all__ = ["Loaded", "PluginConflictError", "PluginProblem", "Registry", "load_registry"]

_log = structlog.get_logger(__name__)

RecordT = TypeVar("RecordT", EstimatorRecord, PolicyRecord, TraceReaderRecord, DiagnoserRecord, SharingModelRecord)

_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,62}")
RESERVED_NAMES: Final = frozenset({"auto", "all"})

_COLUMNS: Final = {field.name for field in fields(Configurations)} | {"groups", "precision"}
"""Names that ``EstimatorRecord.columns`` may hold; ``groups`` and ``precision`` stand for what they are kept in."""

SHIPPED_DISTRIBUTION: Final = "nodewise"
"""Plugins of this distribution run in the server's workers; everyone else's run in threads of their own."""


@dataclass(frozen=True, slots=True)
class _Hook:
    """One hook: the kind of its records, their type, the attribute that answers and the protocol it must satisfy."""

    kind: str
    record: type
    attribute: str
    protocol: type
    kinds: str = ""
    """Where the registry has them."""


_HOOKS: Final[Mapping[str, _Hook]] = MappingProxyType(
    {
        "nodewise_estimators": _Hook("estimator", EstimatorRecord, "estimator", Estimator, "estimators"),
        "nodewise_policies": _Hook("policy", PolicyRecord, "policy", Policy, "policies"),
        "nodewise_sharing_models": _Hook("sharing_model", SharingModelRecord, "model", SharingModel, "sharing_models"),
        "nodewise_trace_readers": _Hook("trace_reader", TraceReaderRecord, "reader", TraceReader, "trace_readers"),
        "nodewise_diagnosers": _Hook("diagnoser", DiagnoserRecord, "diagnoser", Diagnoser, "diagnosers"),
    }
)


class PluginConflictError(RuntimeError):
    """Two distributions bring a record of one kind under one name: nothing may choose between them."""


@dataclass(frozen=True, slots=True)
class Loaded(Generic[RecordT]):
    """A record, the distribution (with version) that brought it, and where it runs: ``inline`` or ``thread``.

    ``calls`` counts what was asked of it since it was loaded.
    """

    record: RecordT
    distribution: str
    mode: str
    calls: CallCounts = field(default_factory=CallCounts, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginProblem:
    """A plugin or record that was left out. ``reason`` is PLUGIN_BROKEN, PLUGIN_INVALID or PLUGIN_API_MISMATCH."""

    name: str
    distribution: str
    kind: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """What can be asked. Immutable: a change is a new snapshot."""

    estimators: Mapping[str, Loaded[EstimatorRecord]]
    policies: Mapping[str, Loaded[PolicyRecord]]
    trace_readers: Mapping[str, Loaded[TraceReaderRecord]]
    diagnosers: Mapping[str, Loaded[DiagnoserRecord]]
    problems: tuple[PluginProblem, ...] = ()
    sharing_models: Mapping[str, Loaded[SharingModelRecord]] = field(default_factory=dict)

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

    Raises
    ------
    PluginConflictError
        If two distributions bring the same name. Everything else that is wrong with a plugin leaves that plugin out and
        is listed among the problems.
    """
    found: dict[str, dict[str, Loaded[Any]]] = {hook.kind: {} for hook in _HOOKS.values()}
    problems: list[PluginProblem] = []
    permitted = None if allowed is None else {*allowed, *(str(canonicalize_name(name)) for name in allowed)}
    source = entry_points or (lambda: metadata.entry_points(group=ENTRY_POINT_GROUP))
    for entry_point in sorted(source(), key=lambda point: (_distribution_name(point), point.name)):
        name, distribution = _distribution_name(entry_point), _distribution(entry_point)
        shipped = name == SHIPPED_DISTRIBUTION
        wanted = permitted is None or canonicalize_name(name) in permitted or entry_point.name in permitted
        if not shipped and (safe_mode or not wanted):
            _log.info("plugin_not_allowed", plugin=entry_point.name, distribution=distribution)
            continue
        for hook, records, problem in _records(entry_point, distribution):
            if problem is not None:
                problems.append(problem)
                _log.warning(
                    "plugin_left_out", plugin=problem.name, **{n: v for n, v in asdict(problem).items() if n != "name"}
                )
            for record in records:
                _register(found[hook.kind], hook, Loaded(record, distribution, "inline" if shipped else "thread"))
    kinds = {hook.kinds: MappingProxyType(dict(sorted(found[hook.kind].items()))) for hook in _HOOKS.values()}
    return Registry(**kinds, problems=tuple(problems))


_PLUGIN: Final = _Hook("plugin", object, "", object)


def _records(
    entry_point: metadata.EntryPoint, distribution: str
) -> Iterable[tuple[_Hook, tuple[Any, ...], PluginProblem | None]]:
    """The valid records of one plugin, hook by hook, with at most one problem beside each."""

    def left_out(kind: str, name: str, reason: str, message: str) -> PluginProblem:
        return PluginProblem(name=name, distribution=distribution, kind=kind, reason=reason, message=message)

    def broken(kind: str, doing: str, error: BaseException) -> PluginProblem:
        if is_interrupt(error):
            raise error
        _log.warning("plugin_broken", plugin=entry_point.name, distribution=distribution, exc_info=error)
        return left_out(kind, entry_point.name, "PLUGIN_BROKEN", f"{doing} raised {type(error).__name__}")

    manager = new_plugin_manager()
    try:
        manager.register(entry_point.load(), name=entry_point.name)
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        yield _PLUGIN, (), left_out("plugin", entry_point.name, "PLUGIN_INVALID", str(error))
        return
    except BaseException as error:  # noqa: BLE001  # a plugin's SystemExit must not end the server
        yield _PLUGIN, (), broken("plugin", f"loading {entry_point.value}", error)
        return
    for hook_name, hook in _HOOKS.items():
        try:
            records = [record for records in getattr(manager.hook, hook_name)() for record in records]
        except BaseException as error:  # noqa: BLE001  # as above
            yield hook, (), broken(hook.kind, hook_name, error)
            continue
        for record in records:
            try:
                wrong = _wrong_with(record, hook)
                name = str(getattr(record, "name", entry_point.name))
            except BaseException as error:  # noqa: BLE001  # as above
                yield hook, (), broken(hook.kind, f"a record of {hook_name}", error)
                continue
            if wrong is None:
                yield hook, (record,), None
            else:
                yield hook, (), left_out(hook.kind, name, *wrong)


def _wrong_with(record: Any, hook: _Hook) -> tuple[str, str] | None:
    """Reason and message if a record cannot be used, else None."""
    expected = isinstance(record, hook.record)
    if not expected:
        return "PLUGIN_INVALID", f"expected {hook.record.__name__}, found {type(record).__name__}"
    if not isinstance(record.name, str) or not _NAME.fullmatch(record.name) or record.name in RESERVED_NAMES:
        return "PLUGIN_INVALID", "the name must be lower case letters, digits and dashes, at most 63, not auto or all"
    if not record.version or not isinstance(record.version, str) or not isinstance(record.description, str):
        return "PLUGIN_INVALID", "the version must be text that is not empty, the description text"
    answering = getattr(record, hook.attribute)
    if isinstance(answering, type):
        return "PLUGIN_INVALID", f"{hook.attribute} is the class {answering.__name__}; register an instance of it"
    if not isinstance(answering, hook.protocol):
        return "PLUGIN_INVALID", f"{hook.attribute} does not have the methods of {hook.protocol.__name__}"
    if isinstance(record, PolicyRecord) and not all(_is_parameter(each) for each in record.parameters):
        return "PLUGIN_INVALID", "parameters must be PolicyParameters whose default lies between minimum and maximum"
    unknown = _unknown_columns(record)
    if unknown:
        return "PLUGIN_INVALID", f"columns names {unknown}, which is no set of columns of Configurations"
    try:
        supported = SpecifierSet(record.plugin_api)
    except (InvalidSpecifier, TypeError, AttributeError):
        return "PLUGIN_INVALID", f"plugin_api {record.plugin_api!r} is no version range such as '>=1.0,<2'"
    if PLUGIN_API_VERSION not in supported:
        return "PLUGIN_API_MISMATCH", f"supports plugin API {record.plugin_api}, this server has {PLUGIN_API_VERSION}"
    return None


def _is_parameter(parameter: Any) -> bool:
    """A parameter that can be listed and checked against."""
    return (
        isinstance(parameter, PolicyParameter)
        and is_name(parameter.name)
        and is_text(parameter.description)
        and parameter.minimum <= parameter.default <= parameter.maximum
    )


def _unknown_columns(record: Any) -> str:
    """What an estimator's ``columns`` hold that is no column; empty = nothing."""
    if not isinstance(record, EstimatorRecord):
        return ""
    columns: Any = record.columns
    if not isinstance(columns, frozenset):
        return f"a {type(columns).__name__}"
    return ", ".join(sorted(str(name) for name in columns - _COLUMNS))


def _register(known: dict[str, Loaded[Any]], hook: _Hook, loaded: Loaded[Any]) -> None:
    name = loaded.record.name
    if name in known:
        first, second = known[name].distribution, loaded.distribution
        raise PluginConflictError(
            f"{hook.kind} {name!r} is provided by both {first} and {second}: uninstall one, "
            "or leave it off the allow-list"
        )
    known[name] = loaded


def _distribution_name(entry_point: metadata.EntryPoint) -> str:
    return entry_point.dist.name if entry_point.dist is not None else "(unknown)"


def _distribution(entry_point: metadata.EntryPoint) -> str:
    dist = entry_point.dist
    return f"{dist.name} {dist.version}" if dist is not None else "(unknown)"
