"""Plugins: what answers, and what could not be loaded. Absence, as on the whole wire: see configuration.proto."""

from __future__ import annotations

from dataclasses import dataclass

from nodewise_values.v1.problem import Problem
from nodewise_values.value import Value, Word

__all__ = [
    "Plugin",
    "PluginKind",
    "PluginMode",
    "PluginParameter",
    "PluginProblem",
]


class PluginKind(Word):
    """What a plugin does."""

    ESTIMATOR = "estimator"
    """Predicts."""
    POLICY = "policy"
    """Schedules."""
    TRACE_READER = "trace_reader"
    """Reads traces."""
    DIAGNOSER = "diagnoser"
    """Replays and diagnoses traces."""
    SHARING_MODEL = "sharing_model"
    """Predicts what jobs keep that share a device."""


class PluginMode(Word):
    """Where a plugin runs."""

    INLINE = "inline"
    """In the thread that answers."""
    THREAD = "thread"
    """In a thread of its own."""
    PROCESS = "process"
    """In a process of its own."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Plugin(Value):
    """A plugin that is loaded."""

    kind: PluginKind | None = None
    """What it does."""
    name: str = ""
    """Name to ask for; of a trace reader, the name of its format."""
    version: str = ""
    """Version."""
    description: str = ""
    """What it does, for people."""
    distribution: str = ""
    """Distribution that brought it, with its version."""
    mode: PluginMode | None = None
    """Where it runs."""
    parameters: tuple[PluginParameter, ...] = ()
    """What requests may set."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PluginParameter(Value):
    """A parameter of a plugin."""

    name: str = ""
    """Name."""
    description: str = ""
    """Meaning, with unit."""
    default_value: float = 0.0
    """Value when not given."""
    minimum: float | None = None
    """Least value allowed. Absent = none."""
    maximum: float | None = None
    """Greatest value allowed. Absent = none."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PluginProblem(Value):
    """A plugin that was left out, and why."""

    name: str = ""
    """Entry point or record."""
    distribution: str = ""
    """Distribution that brought it, with its version."""
    kind: PluginKind | None = None
    """What it would have done."""
    problem: Problem | None = None
    """Why, e.g. reason "PLUGIN_BROKEN"."""
