"""Proxies in a host for objects of the worker: each calls its object there."""

from __future__ import annotations

import io
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from nodewise.hosting.processes.members import ATTRIBUTES
from nodewise.plugin import Catalogue, Model, Prior, Profile, Trace

__all__ = ["PROFILES_AT_ONCE", "GivenContext", "GivenCorpus", "GivenModel", "GivenRun", "GivenStream"]

REPORT_EVERY_S: Final = 0.05
"""Seconds between two progress reports that are passed on."""
PROFILES_AT_ONCE: Final = 16
"""Profiles per fetch: a profile costs less than the call for it."""

Ask = Callable[..., Any]
"""Calls a method, by name, of the worker's object."""


class GivenContext:
    """Implements Context."""

    def __init__(self, ask: Ask, prior: Prior | None, catalogue: Catalogue, seed: int) -> None:
        self._ask = ask
        self.prior = prior
        self.catalogue = catalogue
        self.seed = seed

    def traces(self) -> Sequence[Trace]:
        """As the protocol says."""
        result: Sequence[Trace] = self._ask("traces")
        return result

    def model(self, estimator: str) -> Model:
        """As the protocol says."""
        result: Model = self._ask("model", estimator)
        return result


class GivenModel:
    """Another estimator's model, which lives elsewhere."""

    def __init__(self, ask: Ask, names: Sequence[str]) -> None:
        self._ask = ask
        self._names = frozenset(names)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._names:
            raise AttributeError(name)
        if name in ATTRIBUTES:
            return self._ask(name)
        return lambda *arguments: self._ask(name, *arguments)


class GivenCorpus:
    """Implements Corpus."""

    def __init__(self, ask: Ask, count: int) -> None:
        self._ask = ask
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Profile]:
        for begin in range(0, self._count, PROFILES_AT_ONCE):
            yield from self._ask("some", begin, begin + PROFILES_AT_ONCE)


class GivenRun:
    """Implements DiagnoserContext."""

    def __init__(self, ask: Ask, catalogue: Catalogue, remaining_s: float | None) -> None:
        self._ask = ask
        self._end_s = time.monotonic() + (math.inf if remaining_s is None else remaining_s)
        self._last_report_s = -math.inf
        self.catalogue = catalogue

    def remaining_s(self) -> float:
        """As the protocol says."""
        return self._end_s - time.monotonic()

    def advanced(self, stage: str, done: int, total: int) -> None:
        """As the protocol says; a report that comes too soon after the last one is dropped, unless it is the end."""
        now_s = time.monotonic()
        if now_s - self._last_report_s >= REPORT_EVERY_S or done >= total:
            self._last_report_s = now_s
            self._ask("advanced", stage, done, total)


class GivenStream(io.RawIOBase):
    """A file that the worker reads."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes."""
        data: bytes = self._ask("read", len(buffer))
        buffer[: len(data)] = data
        return len(data)
