"""The checks that a plugin must pass, one case each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from typing import Any, Final

from nodewise.conformance.completions import COMPLETION_CHECKS
from nodewise.conformance.diagnosers import DIAGNOSER_CHECKS
from nodewise.conformance.estimators import ESTIMATOR_CHECKS
from nodewise.conformance.evidence import Evidence
from nodewise.conformance.findings import Checks, NonConformanceError
from nodewise.conformance.made_up import made_up
from nodewise.conformance.policies import POLICY_CHECKS
from nodewise.conformance.readers import READER_CHECKS
from nodewise.conformance.sharing import SHARING_CHECKS
from nodewise.hosting.processes.address import Address
from nodewise.hosting.registry import Hosting, Registry, load_registry
from nodewise.plugin import ENTRY_POINT_GROUP

__all__ = ["Case", "address_cases", "cases", "installed_cases", "registry_cases"]


@dataclass(frozen=True, slots=True)
class Case:
    """One check of one record. ``str`` names it: ``estimator mine: purity``."""

    kind: str
    name: str
    check: str
    _run: Callable[[], None] = field(repr=False, compare=False)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.check}"

    def run(self) -> None:
        """Run the check.

        Raises
        ------
        NonConformanceError
            Says what the plugin does, and what it must do.
        """
        self._run()


@dataclass(frozen=True)
class _EntryPoint:
    """A module (or object) in place of an installed entry point."""

    plugin: Any
    name: str
    value: str
    dist: None = None

    def load(self) -> Any:
        """The plugin."""
        return self.plugin


def cases(plugin: Any, evidence: Evidence | None = None) -> list[Case]:
    """The cases of every record that a plugin registers: a module, or an object with hooks.

    ``evidence`` is used besides the suite's own: data that an estimator needs beyond measured
    throughputs, phase timings and facts; files that a reader reads.
    """
    name = getattr(plugin, "__name__", type(plugin).__name__)
    return _cases(load_registry(entry_points=lambda: (_EntryPoint(plugin, name, name),)), evidence)  # type: ignore[arg-type, return-value]  # all that is asked of an entry point


def registry_cases(registry: Registry, names: Iterable[str], evidence: Evidence | None = None) -> list[Case]:
    """The cases of records of these names in a registry, wherever they run."""
    requested_names = set(names)
    return [case for case in _cases(registry, evidence) if case.name in requested_names]


def address_cases(name: str, target: str, evidence: Evidence | None = None) -> list[Case]:
    """The cases of an estimator that answers in a server of its own, at ``unix:///path`` or ``host:port`` without TLS.

    Raises
    ------
    LookupError
        The server has no estimator of that name; the text says what it has.
    """
    addresses = {name: Address(target=target, plain=True)}
    registry = load_registry(entry_points=list, hosting=Hosting(addresses=addresses))
    if name not in registry.estimators:
        raise LookupError("; ".join(f"{each.name}: {each.message}" for each in registry.problems))
    return _cases(registry, evidence)


def installed_cases(names: Iterable[str], evidence: Evidence | None = None) -> list[Case]:
    """The cases of installed plugins: of entry points or distributions of these names, or of records so named.

    Raises
    ------
    LookupError
        A name is not one of these.
    """
    points = {point: _calls(point) for point in metadata.entry_points(group=ENTRY_POINT_GROUP)}
    cases: dict[Case, None] = {}
    for name in names:
        whole = [point for point, known in points.items() if name in known]
        registry = load_registry(entry_points=lambda whole=whole: whole or points)  # type: ignore[misc]  # a default argument
        of_it = [case for case in _cases(registry, evidence) if whole or case.name == name]
        if not of_it:
            known = ", ".join(sorted({label for each in points.values() for label in each}))
            raise LookupError(f"no plugin, distribution or record is named {name!r}; installed plugins: {known}")
        cases.update(dict.fromkeys(of_it))
    return list(cases)


def _calls(point: metadata.EntryPoint) -> set[str]:
    return {point.name} if point.dist is None else {point.name, point.dist.name}


_CHECKS: Final[Mapping[str, tuple[str, Checks]]] = {
    "estimator": ("estimators", ESTIMATOR_CHECKS),
    "policy": ("policies", POLICY_CHECKS),
    "trace_reader": ("trace_readers", READER_CHECKS),
    "diagnoser": ("diagnosers", DIAGNOSER_CHECKS),
    "sharing_model": ("sharing_models", SHARING_CHECKS),
}


@cache
def _made_up() -> Evidence:
    return made_up()


def _cases(registry: Registry, evidence: Evidence | None) -> list[Case]:
    all_evidence = Evidence.merge((_made_up(), evidence or Evidence()))
    cases = [_left_out(problem.kind, problem.name, problem.message) for problem in registry.problems]
    for kind, (attribute, checks) in _CHECKS.items():
        for name, plugin in getattr(registry, attribute).items():
            other = kind == "estimator" and not plugin.record.predicts
            cases += [
                Case(kind, name, check, lambda run=run, plugin=plugin: run(plugin, all_evidence))  # type: ignore[misc]  # defaults
                for check, run in (COMPLETION_CHECKS if other else checks).items()
            ]
    return cases or [_left_out("plugin", "", "the plugin registers nothing: no hook with @hookimpl returns records")]


def _left_out(kind: str, name: str, message: str) -> Case:
    def fail() -> None:
        raise NonConformanceError(f"the server would not load it: {message}")

    return Case(kind, name, "record", fail)
