"""Plugins that are still loading while the server serves: callers must retry, and the plugins are added later."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.hosting.registry import Registry, refresh
from nodewise.runtime.generations.serving_state import LoadedPlugins

__all__ = ["error_while_loading", "with_arrivals"]

COME_BACK_S: Final = 1.0
"""Suggested delay of a retry: most plugins load within about a second."""
_NAMES_NOBODY: Final = {
    Reason.ESTIMATOR_NOT_FOUND: Reason.ESTIMATOR_UNAVAILABLE,
    Reason.POLICY_NOT_FOUND: Reason.COMPUTE_LOST,
    Reason.DIAGNOSER_NOT_FOUND: Reason.COMPUTE_LOST,
    Reason.SHARING_MODEL_NOT_FOUND: Reason.COMPUTE_LOST,
}
"""Reasons of a name that no plugin has, and of one that a plugin may have later."""


def with_arrivals(loaded_plugins: LoadedPlugins, *, serving: bool = True) -> LoadedPlugins:
    """The same with what has arrived by now; ``serving`` and errors as of ``arrived``. Blocks for a moment."""
    registry = refresh(loaded_plugins.registry, serving=serving)
    name = f"{loaded_plugins.number}.{registry.generation}" if loaded_plugins.number else ""
    return replace(loaded_plugins, registry=registry, name=name)


def error_while_loading(error: NodewiseError, registry: Registry) -> NodewiseError:
    """The error for a caller: while plugins are loading, a name that no plugin has may come with them."""
    reason = _NAMES_NOBODY.get(error.reason)
    if reason is None or not registry.loading_distributions:
        return error
    coming = ", ".join(registry.loading_distributions)
    message = f"{error.message}; still loading, and may have it: {coming}"
    return NodewiseError(reason, message, {**error.metadata, "arriving": coming}, (), COME_BACK_S)
