"""Kinds of parts of a step, with their names and colours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["GROUPS", "KINDS", "OTHER", "PartKind", "kind_of", "told_part"]


@dataclass(frozen=True, slots=True)
class PartKind:
    """A kind of part.

    Attributes
    ----------
    words : str
        For people, where one is spoken of in a sentence.
    group : str
        What it is on the whole: a key of GROUPS.
    colour : str
        In pictures, on white and on black.
    """

    words: str
    group: str
    colour: str


GROUPS: Final = {
    "computation": "█",
    "transfer": "▓",
    "waiting": "▒",
    "loading": "+",
    "host": "·",
    "dependency": "-",
}
"""Groups of kinds in the order of a bar, each with what fills it where there are no colours."""

KINDS: Final = {
    "computation": PartKind("computation", "computation", "#3d74b3"),
    "transfer": PartKind("exposed transfers", "transfer", "#c4553b"),
    "waiting": PartKind("exposed waiting for other ranks", "waiting", "#e5a173"),
    "loading": PartKind("loading", "loading", "#8a63ad"),
    "startup": PartKind("start-up of the device", "host", "#8a5a33"),
    "synchronisation": PartKind("waits of the host for the device", "host", "#c9a227"),
    "blocking_copy": PartKind("copies that block the host", "host", "#93a83c"),
    "allocation": PartKind("allocation of device memory", "host", "#5f8a3c"),
    "host_computation": PartKind("computation on the host", "host", "#2b8378"),
    "preprocessing": PartKind("preprocessing before the first launch", "host", "#4fb0a2"),
    "garbage_collection": PartKind("garbage collection", "host", "#b0527f"),
    "python": PartKind("the interpreter", "host", "#d193b3"),
    "launch": PartKind("launches", "host", "#8fa1b3"),
    "dependency": PartKind("work that waits for other work", "dependency", "#bcc2cb"),
    "unexplained": PartKind("host activity that was not recorded (unexplained)", "host", "#6d727a"),
}
"""By the name that the contract gives each, in the order of a bar."""

OTHER: Final = "#9a9a9a"


def kind_of(name: str) -> PartKind:
    """A kind by its name; of one that is not known its name is all there is."""
    return KINDS.get(name) or PartKind(name.replace("_", " "), "host", OTHER)


def told_part(kind: str, what: str) -> str:
    """A part for people."""
    return f"{kind.replace('_', ' ')}: {what}"
