"""Nodewise's options of a job, called wishes: lines `#NODEWISE --name=value`, and options of the command line."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nodewise_integrations.counts import counted
from nodewise_integrations.slurm.submission import OURS, directives

__all__ = ["AUTO", "DIRECTIVE", "Wishes", "WrongWishError", "read_wishes"]

DIRECTIVE: Final = "#NODEWISE"
OBJECTIVES: Final = ("knee", "highest-throughput", "least-time", "fewest-devices")
AUTO: Final = "auto"


class WrongWishError(Exception):
    """A wish is invalid; the text names it and says what is valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """Wishes by their names, in which `_` stands for `-`. None = not stated."""

    profile: str = ""
    """The stored job. Without it nothing is predicted or recorded."""
    nodes: tuple[int, ...] = ()
    """Numbers of nodes that may be chosen."""
    objective: str = "knee"
    share: float | None = None
    max_nodes: int | None = None
    deadline_s: float | None = None
    confidence: float | None = None
    steps: float | None = None
    """Steps left to train."""
    samples: float | None = None
    """Samples left to train on."""
    margin: float = 0.2
    """Share of the predicted time that is added to the limit."""
    gpus_per_node: str = ""
    """A number, or `auto`: the workers per node of the job's evidence."""
    device: str = ""
    sync: str = ""
    batch_per_worker: float | None = None
    global_batch: float | None = None
    measured: str = "nodewise-%j.json"
    """File that the job writes its throughput into."""
    pattern: str = ""
    """Regular expression with one group: the steps per second in a line of the job's output."""
    server: str = ""
    timeout_s: float = 5.0
    """Longest wait for each answer."""
    explain: bool = False
    """Whether to print what would be submitted, and submit nothing."""

    @property
    def columns(self) -> dict[str, Any]:
        """How the job runs independent of its scale, by the names of the client's configurations."""
        stated = {
            "devices": self.device,
            "sync_modes": self.sync,
            "batch_per_worker_samples": self.batch_per_worker,
            "global_batch_samples": self.global_batch,
        }
        return {name: value for name, value in stated.items() if value}

    @property
    def works(self) -> bool:
        """Whether the remaining work is stated."""
        return self.steps is not None or self.samples is not None


def read_wishes(script: str, ours: Sequence[str]) -> Wishes:
    """Read the wishes of a script and of the command line, which takes precedence. Raises WrongWishError."""
    try:
        words = directives(script, DIRECTIVE)
    except ValueError as error:
        raise WrongWishError(str(error)) from None
    found: dict[str, Any] = {}
    for word in words:
        if not word.startswith("--"):
            raise WrongWishError(f"{DIRECTIVE}: must be --name=value, found {word!r}")
        found |= _wish(word[2:], f"{DIRECTIVE} --")
    for word in ours:
        found |= _wish(word, OURS)
    wishes = Wishes(**found)
    _check(wishes)
    return wishes


def _wish(word: str, prefix: str) -> dict[str, Any]:
    name, given, text = word.partition("=")
    field = name.replace("-", "_")
    if field not in _READERS or name != name.replace("_", "-"):
        known = ", ".join(each.replace("_", "-") for each in _READERS)
        raise WrongWishError(f"{prefix}{name}: is not a known option; the options are {known}")
    if field == "explain":
        if given or prefix != OURS:
            raise WrongWishError(f"{prefix}explain: takes no value, and is only allowed on the command line")
        return {field: True}
    if not text:
        raise WrongWishError(f"{prefix}{name}: must be given a value: {prefix}{name}=...")
    try:
        return {field: _READERS[field](text)}
    except ValueError as error:
        raise WrongWishError(f"{prefix}{name}: {error}") from None


def _check(wishes: Wishes) -> None:
    if wishes.steps is not None and wishes.samples is not None:
        raise WrongWishError(f"{OURS}steps, {OURS}samples: state the same work; give only one of them")
    needs_samples = wishes.objective in {"least-time", "fewest-devices"}
    if wishes.nodes and needs_samples and wishes.samples is None:
        raise WrongWishError(f"{OURS}samples: must be given with {OURS}objective={wishes.objective}")
    if wishes.objective == "fewest-devices" and wishes.deadline_s is None:
        raise WrongWishError(f"{OURS}deadline-s: must be given with {OURS}objective=fewest-devices")


def _number(least: float = 0.0, most: float = float("inf"), *, exclusive: bool = True) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            value = float(text.replace("_", ""))
        except ValueError:
            value = float("nan")
        if not ((least < value if exclusive else least <= value) and value <= most and value < float("inf")):
            above = "above" if exclusive else "at least"
            below = "" if most == float("inf") else f" and at most {most:g}"
            raise ValueError(f"must be a number {above} {least:g}{below}, found {text!r}")
        return value

    return read


def _whole(text: str) -> int:
    if not re.fullmatch(r"[1-9]\d{0,8}", text, re.ASCII):
        raise ValueError(f"must be a whole number from 1, found {text!r}")
    return int(text)


def _one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"must be one of {', '.join(words)}, found {text!r}")
        return text

    return read


def _gpus(text: str) -> str:
    return text if text == AUTO else str(_whole(text))


def _pattern(text: str) -> str:
    try:
        groups = re.compile(text).groups
    except re.error as error:
        raise ValueError(f"must be a regular expression, found {text!r}: {error}") from None
    if groups != 1:
        raise ValueError(f"must have one group, the steps per second, such as 'steps/s=([0-9.]+)', found {text!r}")
    return text


_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "profile": str,
    "nodes": counted,
    "objective": _one_of(*OBJECTIVES),
    "share": _number(most=1.0),
    "max_nodes": _whole,
    "deadline_s": _number(),
    "confidence": _number(0.5, 0.9999),
    "steps": _number(),
    "samples": _number(),
    "margin": _number(most=100.0, exclusive=False),
    "gpus_per_node": _gpus,
    "device": str,
    "sync": _one_of("allreduce", "sync", "async"),
    "batch_per_worker": _number(),
    "global_batch": _number(),
    "measured": str,
    "pattern": _pattern,
    "server": str,
    "timeout_s": _number(most=60.0),
    "explain": str,
}
