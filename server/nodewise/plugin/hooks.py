"""Hooks, by which plugins register records. Hooks never compute."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pluggy

from nodewise.plugin.records import (
    DiagnoserRecord,
    EstimatorRecord,
    PolicyRecord,
    SharingModelRecord,
    TraceReaderRecord,
)

__all__ = ["ENTRY_POINT_GROUP", "HookSpecifications", "hookimpl", "new_plugin_manager"]

ENTRY_POINT_GROUP: Final = "nodewise.plugins"

_PROJECT: Final = "nodewise"
hookimpl = pluggy.HookimplMarker(_PROJECT)
"""Marks a function as an implementation of one of Nodewise's hooks."""
_hookspec = pluggy.HookspecMarker(_PROJECT)


class HookSpecifications:
    """Nodewise's hooks. Each returns records; none of them computes."""

    @_hookspec
    def nodewise_estimators(self) -> Iterable[EstimatorRecord]:
        """Estimators that this plugin brings."""
        raise NotImplementedError

    @_hookspec
    def nodewise_policies(self) -> Iterable[PolicyRecord]:
        """Policies that this plugin brings."""
        raise NotImplementedError

    @_hookspec
    def nodewise_sharing_models(self) -> Iterable[SharingModelRecord]:
        """Sharing models that this plugin brings."""
        raise NotImplementedError

    @_hookspec
    def nodewise_trace_readers(self) -> Iterable[TraceReaderRecord]:
        """Trace readers that this plugin brings."""
        raise NotImplementedError

    @_hookspec
    def nodewise_diagnosers(self) -> Iterable[DiagnoserRecord]:
        """Diagnosers that this plugin brings."""
        raise NotImplementedError


def new_plugin_manager() -> pluggy.PluginManager:
    """A manager with Nodewise's hooks and without plugins."""
    manager = pluggy.PluginManager(_PROJECT)
    manager.add_hookspecs(HookSpecifications)
    return manager
