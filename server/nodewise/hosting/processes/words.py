"""What objects of plugins have, and what methods are given besides values."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["ANSWERS_WITH_OBJECTS", "ATTRIBUTES", "GIVEN", "GIVEN_METHODS", "LONG", "METHODS"]

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
