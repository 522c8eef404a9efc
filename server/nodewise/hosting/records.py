"""Records of a plugin, collected hook by hook and validated."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Final

import pluggy
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from nodewise.hosting.interrupts import is_interrupt
from nodewise.hosting.soundness import is_name, is_text
from nodewise.plugin import (
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

__all__ = ["HOOKS", "Hook", "Listing", "PluginProblem", "RecordOrProblem", "records_of", "wrong_with"]

_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,62}")
RESERVED_NAMES: Final = frozenset({"auto", "all"})

_COLUMNS: Final = {field.name for field in fields(Configurations)} | {"groups", "precision"}
"""Names that ``EstimatorRecord.columns`` may hold; ``groups`` and ``precision`` stand for several columns each."""


@dataclass(frozen=True, slots=True)
class Hook:
    """One hook: the kind of its records, their type, the attribute that answers and the protocol it must satisfy."""

    kind: str
    record: type
    attribute: str
    protocol: type
    kinds: str = ""
    """The attribute of the registry that holds them."""


HOOKS: Final[Mapping[str, Hook]] = MappingProxyType(
    {
        "nodewise_estimators": Hook("estimator", EstimatorRecord, "estimator", Estimator, "estimators"),
        "nodewise_policies": Hook("policy", PolicyRecord, "policy", Policy, "policies"),
        "nodewise_trace_readers": Hook("trace_reader", TraceReaderRecord, "reader", TraceReader, "trace_readers"),
        "nodewise_diagnosers": Hook("diagnoser", DiagnoserRecord, "diagnoser", Diagnoser, "diagnosers"),
        "nodewise_sharing_models": Hook("sharing_model", SharingModelRecord, "model", SharingModel, "sharing_models"),
    }
)


@dataclass(frozen=True, slots=True)
class PluginProblem:
    """A plugin or record that was not loaded.

    ``reason`` is PLUGIN_BROKEN, PLUGIN_INVALID or PLUGIN_API_MISMATCH, or PLUGIN_LOADING for one that is still loading.
    """

    name: str
    distribution: str
    kind: str
    reason: str
    message: str


Listing = tuple[list[Any], list[Any]]
"""Records and problems of a host's plugins, as plain values."""
RecordOrProblem = tuple[Hook, Any] | PluginProblem
"""A record, or the reason why one was not loaded."""


def records_of(
    name: str, value: str, load: Callable[[], Any], distribution: str, tell: Callable[[BaseException], None]
) -> Iterator[RecordOrProblem]:
    """The valid records of one plugin, hook by hook, and the problems of the others.

    Parameters
    ----------
    name, value : str
        Name and value of the entry point.
    load : callable
        Imports the object that the entry point names.
    tell : callable
        Called with the exception that the plugin raised.
    """

    def problem_of(kind: str, doing: str, error: BaseException) -> PluginProblem:
        if is_interrupt(error):
            raise error
        tell(error)
        return PluginProblem(name, distribution, kind, "PLUGIN_BROKEN", f"{doing} raised {type(error).__name__}")

    manager = new_plugin_manager()
    try:
        manager.register(load(), name=name)
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        yield PluginProblem(name, distribution, "plugin", "PLUGIN_INVALID", str(error))
        return
    except BaseException as error:  # noqa: BLE001  # a plugin's SystemExit must not end the server
        yield problem_of("plugin", f"loading {value}", error)
        return
    for hook_name, hook in HOOKS.items():
        try:
            records = [record for records in getattr(manager.hook, hook_name)() for record in records]
        except BaseException as error:  # noqa: BLE001  # as above
            yield problem_of(hook.kind, hook_name, error)
            continue
        for record in records:
            try:
                wrong = wrong_with(record, hook)
                record_name = str(getattr(record, "name", name))
            except BaseException as error:  # noqa: BLE001  # as above
                yield problem_of(hook.kind, f"a record of {hook_name}", error)
                continue
            yield (hook, record) if wrong is None else PluginProblem(record_name, distribution, hook.kind, *wrong)


def wrong_with(record: Any, hook: Hook, *, answers: bool = True) -> tuple[str, str] | None:
    """Reason and message if a record cannot be used, else None; ``answers``: whether to check its object, too."""
    is_expected = isinstance(record, hook.record)
    if not is_expected:
        return "PLUGIN_INVALID", f"expected {hook.record.__name__}, found {type(record).__name__}"
    if not isinstance(record.name, str) or not _NAME.fullmatch(record.name) or record.name in RESERVED_NAMES:
        return "PLUGIN_INVALID", "name must be at most 63 lower-case letters, digits and dashes, and not auto or all"
    if not record.version or not isinstance(record.version, str) or not isinstance(record.description, str):
        return "PLUGIN_INVALID", "version must be a string that is not empty, description a string"
    answering = getattr(record, hook.attribute)
    if answers and isinstance(answering, type):
        return "PLUGIN_INVALID", f"{hook.attribute} is the class {answering.__name__}; register an instance of it"
    if answers and not isinstance(answering, hook.protocol):
        return "PLUGIN_INVALID", f"{hook.attribute} does not have the methods of {hook.protocol.__name__}"
    if isinstance(record, PolicyRecord) and not all(_is_parameter(each) for each in record.parameters):
        return "PLUGIN_INVALID", "parameters must be PolicyParameters whose default lies between minimum and maximum"
    unknown = _unknown_columns(record)
    if unknown:
        return "PLUGIN_INVALID", f"columns names {unknown}, which is not a set of columns of Configurations"
    try:
        versions = SpecifierSet(record.plugin_api)
    except (InvalidSpecifier, TypeError, AttributeError):
        return "PLUGIN_INVALID", f"plugin_api {record.plugin_api!r} is not a version range such as '>=1.0,<2'"
    if PLUGIN_API_VERSION not in versions:
        return ("PLUGIN_API_MISMATCH", f"supports plugin API {record.plugin_api}, this server has {PLUGIN_API_VERSION}")
    return None


def _is_parameter(parameter: Any) -> bool:
    """Whether a parameter can be listed, and values checked against it."""
    return (
        isinstance(parameter, PolicyParameter)
        and is_name(parameter.name)
        and is_text(parameter.description)
        and parameter.minimum <= parameter.default <= parameter.maximum
    )


def _unknown_columns(record: Any) -> str:
    """Entries of an estimator's ``columns`` that are not columns; empty = none."""
    if not isinstance(record, EstimatorRecord):
        return ""
    columns: Any = record.columns
    if not isinstance(columns, frozenset):
        return f"a {type(columns).__name__}"
    return ", ".join(sorted(str(name) for name in columns - _COLUMNS))
