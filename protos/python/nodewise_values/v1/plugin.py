"""Plugins: those that answer, and those that could not be loaded.

For what an absent or empty value means, see configuration.proto.
"""

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
    """Predicts the speed of jobs."""
    POLICY = "policy"
    """Schedules jobs."""
    TRACE_READER = "trace_reader"
    """Reads traces."""
    DIAGNOSER = "diagnoser"
    """Replays and diagnoses traces."""
    SHARING_MODEL = "sharing_model"
    """Predicts how much speed jobs keep that share a device."""


class PluginMode(Word):
    """Where a plugin runs."""

    INLINE = "inline"
    """In the thread that answers the call."""
    THREAD = "thread"
    """In a separate thread."""
    PROCESS = "process"
    """In a separate process."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Plugin(Value):
    """A plugin that is loaded."""

    kind: PluginKind | None = None
    """What the plugin does."""
    name: str = ""
    """Name that requests use; of a trace reader, the name of its format."""
    version: str = ""
    """Version of the plugin."""
    description: str = ""
    """What the plugin does, for people."""
    distribution: str = ""
    """Distribution that provides it, with its version."""
    mode: PluginMode | None = None
    """Where the plugin runs."""
    parameters: tuple[PluginParameter, ...] = ()
    """Parameters that requests may set."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PluginParameter(Value):
    """A parameter of a plugin."""

    name: str = ""
    """Name."""
    description: str = ""
    """Meaning, with unit."""
    default_value: float = 0.0
    """Value of the parameter where the request does not set it."""
    minimum: float | None = None
    """Least value allowed. Absent = no limit."""
    maximum: float | None = None
    """Greatest value allowed. Absent = no limit."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PluginProblem(Value):
    """A plugin that was not loaded, and why."""

    name: str = ""
    """Name of the entry point or record."""
    distribution: str = ""
    """Distribution that provides it, with its version."""
    kind: PluginKind | None = None
    """Kind of the plugin."""
    problem: Problem | None = None
    """Why it was not loaded, e.g. reason "PLUGIN_BROKEN"."""
