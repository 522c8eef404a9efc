"""What both ends say to each other: operations, what objects have, and what methods are given besides values."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["ANSWERS_WITH_OBJECTS", "ATTRIBUTES", "GIVEN", "GIVEN_METHODS", "LONG", "METHODS", "Op"]


class Op:
    """First value of a message."""

    LOAD: Final = 1
    """To a host: import these entry points. It answers with its listing."""
    CALL: Final = 2
    """To a host: call a method of one of its objects."""
    READ: Final = 3
    """To a host: read an attribute of one of its objects."""
    RESULT: Final = 4
    """To a host: what it asked for."""
    RAISED: Final = 5
    """To a host: why there is no result."""
    ANSWER: Final = 6
    """From a host: what was called for."""
    REFUSED: Final = 7
    """From a host: the refusal that the plugin raised."""
    FAILED: Final = 8
    """From a host: the name of what the plugin raised, and its traceback."""
    GONE: Final = 9
    """From a host: it has that object no longer."""
    ASK: Final = 10
    """From a host, in the midst of a call: a method of something that the call was given."""


METHODS: Final = frozenset(
    [
        "assess",
        "fit",
        "learn",
        "warm_up",
        "complete",
        "play",
        "switch",
        "predict",
        "log_covariance",
        "predict_architectures",
        "space",
        "evaluate",
        "lower_bound",
        "completed",
        "decide",
        "predict_shares",
        "recognises",
        "read",
        "replay",
        "diagnose",
        "diagnose_steps",
    ]
)
"""Methods of plugins' objects."""
ATTRIBUTES: Final = frozenset(["measurement_log_spread", "memory_terms", "prefixes", "sizes", "final", "exclusions"])
"""Attributes of plugins' objects that are read."""
LONG: Final = frozenset(
    ["learn", "warm_up", "complete", "play", "space", "completed", "read", "replay", "diagnose", "diagnose_steps"]
)
"""Methods that do long work."""
ANSWERS_WITH_OBJECTS: Final = frozenset({"fit", "space"})
"""Methods whose answers stay in the host."""
GIVEN: Final[Mapping[str, Mapping[int, str]]] = MappingProxyType(
    {"fit": {1: "context"}, "learn": {0: "corpus"}, "read": {0: "stream"}, "replay": {2: "run"}, "diagnose": {3: "run"}}
)
"""Methods that are given something to ask besides values: which argument is what."""
GIVEN_METHODS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "context": frozenset({"traces", "model"}),
        "corpus": frozenset({"some"}),
        "stream": frozenset({"read"}),
        "run": frozenset({"advanced"}),
        "model": METHODS | ATTRIBUTES,
    }
)
"""What a host may ask of it."""
