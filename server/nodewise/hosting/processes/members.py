"""Methods and attributes of plugins' objects, and the methods whose arguments are objects."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final

__all__ = ["ANSWERS_WITH_OBJECTS", "ATTRIBUTES", "KNOWN", "LONG", "OBJECT_ARGUMENTS", "OBJECT_METHODS", "members_of"]


def members_of(protocol: type) -> dict[str, Any]:
    """The methods and attributes of a protocol by name."""
    bases = [base for base in protocol.__mro__ if getattr(base, "_is_protocol", False)]
    names = {name for base in bases for name in (*vars(base), *base.__annotations__) if not name.startswith("_")}
    return {name: getattr(protocol, name, None) for name in names}


_PROTOCOLS: Final = (
    *("architectures", "completions", "diagnosers", "estimators", "plans", "policies", "readers", "sharing"),
)
"""Modules of ``nodewise.plugin`` with protocols."""
_MEMBERS: Final = {
    name: member
    for module in _PROTOCOLS
    for protocol in vars(import_module(f"nodewise.plugin.{module}")).values()
    if getattr(protocol, "_is_protocol", False)
    for name, member in members_of(protocol).items()
}
KNOWN: Final = frozenset(_MEMBERS)
"""Methods and attributes that may be called: those of the protocols in ``nodewise.plugin``."""
ATTRIBUTES: Final = frozenset(name for name, member in _MEMBERS.items() if not callable(member))
"""Those that are attributes."""
LONG: Final = frozenset(
    {"learn", "warm_up", "complete", "play", "space", "completed", "read", "replay", "diagnose", "diagnose_steps"}
)
"""Methods of long work."""
ANSWERS_WITH_OBJECTS: Final = frozenset({"fit", "space"})
"""Methods whose answers stay in the host."""
OBJECT_ARGUMENTS: Final[Mapping[str, Mapping[int, str]]] = MappingProxyType(
    {"fit": {1: "context"}, "learn": {0: "corpus"}, "read": {0: "stream"}, "replay": {2: "run"}, "diagnose": {3: "run"}}
)
"""Methods with arguments that are objects of the worker: the kind of each such argument."""
OBJECT_METHODS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "context": frozenset({"traces", "model"}),
        "corpus": frozenset({"some"}),
        "stream": frozenset({"read"}),
        "run": frozenset({"advanced"}),
        "model": KNOWN,
    }
)
"""Methods that a host may call of each kind."""
