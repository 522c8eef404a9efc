"""Plugins that are still being loaded while the server serves: their callers are told to come back, and they join."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.hosting.registry import Registry, refresh
from nodewise.runtime.generations.serving_state import LoadedPlugins

__all__ = ["awaited", "with_arrivals"]

COME_BACK_S: Final = 1.0
"""A delay for callers: most plugins are imported within about a second."""
_NAMES_NOBODY: Final = {
    Reason.ESTIMATOR_NOT_FOUND: Reason.ESTIMATOR_UNAVAILABLE,
    Reason.POLICY_NOT_FOUND: Reason.COMPUTE_LOST,
    Reason.DIAGNOSER_NOT_FOUND: Reason.COMPUTE_LOST,
    Reason.SHARING_MODEL_NOT_FOUND: Reason.COMPUTE_LOST,
}
"""Reasons of a name that nobody has, and of one that somebody may have later."""


def with_arrivals(plugged: LoadedPlugins, *, serving: bool = True) -> LoadedPlugins:
    """The same with what has arrived by now; ``serving`` and errors as of ``arrived``. Blocks for a moment."""
    registry = refresh(plugged.registry, serving=serving)
    name = f"{plugged.number}.{registry.generation}" if plugged.number else ""
    return replace(plugged, registry=registry, name=name)


def awaited(error: NodewiseError, registry: Registry) -> NodewiseError:
    """What a caller is told of an error: while plugins are arriving, a name that nobody has may come with them."""
    reason = _NAMES_NOBODY.get(error.reason)
    if reason is None or not registry.loading_distributions:
        return error
    coming = ", ".join(registry.loading_distributions)
    message = f"{error.message}; still being loaded, and perhaps to bring it: {coming}"
    return NodewiseError(reason, message, {**error.metadata, "arriving": coming}, (), COME_BACK_S)
