"""The policy that a request names."""

from __future__ import annotations

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.hosting.registry import Loaded, Registry
from nodewise.plugin import PolicyRecord

__all__ = ["policy_named"]


def policy_named(registry: Registry, name: str) -> Loaded[PolicyRecord]:
    """A loaded policy.

    Raises
    ------
    NodewiseError
        POLICY_NOT_FOUND.
    """
    loaded = registry.policies.get(name)
    if loaded is None:
        available = ", ".join(registry.policies)
        raise NodewiseError(
            Reason.POLICY_NOT_FOUND,
            f"no policy is named {name!r}; loaded are: {available}",
            {"policy": name, "available": available},
        )
    return loaded
