"""Bytes as values: whoever sent them, nothing comes of them but what is listed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import orjson

from nodewise.domain.budget import Budget
from nodewise.domain.errors import NodewiseError, Reason, Violation
from nodewise.domain.predictions import Fidelity, Options
from nodewise.hosting.processes.codec import NUMBER, SECONDS, UndecodableError
from nodewise.hosting.processes.kinds import ENUMS, FIELDS, VALUES
from nodewise.hosting.processes.laid import DTYPES, MOST_ALIKE, MOST_SHARED, shared_column
from nodewise.hosting.processes.plans import Planned, Plans
from nodewise.hosting.processes.rows import read_configurations, read_predictions

__all__ = ["Decoder"]


class Decoder:
    """Reads one message.

    Parameters
    ----------
    tree, arrays : bytes
        As the header measures them.
    others : mapping of tag to callable
        Reads what is no value: gets this decoder and the entry.
    plans : Plans or None
        Of messages that came before, from the same other side.
    """

    __slots__ = ("_others", "_plans", "_shared", "_tree", "arrays")

    def __init__(
        self,
        tree: Any,
        arrays: Any,
        others: Mapping[str, Callable[[Decoder, list[Any]], Any]],
        plans: Plans | None = None,
    ) -> None:
        self._tree = tree
        self.arrays = arrays
        self._others = others
        self._plans = plans
        self._shared: dict[tuple[str, int, Any], Any] = {}

    def values(self) -> list[Any]:
        """The values of the message.

        Raises
        ------
        UndecodableError
            For whatever is not in order.
        """
        try:
            plans = self._plans
            if plans is None:
                return self._read(self._tree)[1]
            text = bytes(self._tree)
            plan = plans.get(text)
            if plan is not None:
                return [build(self) for build in plan]
            entries, found = self._read(text)
            plans.saw(text, entries, self)
            return found
        except UndecodableError:
            raise
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError) as error:
            raise UndecodableError(f"a message that makes no sense ({type(error).__name__})") from None

    def _read(self, tree: Any) -> tuple[list[Any], list[Any]]:
        """The entries of a tree, and their values."""
        one = self.one
        entries = orjson.loads(tree)
        return entries, [one(entry) for entry in entries]

    def one(self, entry: Any) -> Any:
        """A part of the tree as a value."""
        kind = type(entry)
        if kind is list:
            tag = entry[0]
            read = _READERS.get(tag)
            return read(self, entry) if read is not None else self._others[tag](self, entry)
        if kind is dict:
            one = self.one
            return {key: one(each) for key, each in entry.items()}
        return entry.build(self) if kind is Planned else entry

    def content(self, size: int, begin: int) -> bytes:
        """Bytes behind the tree."""
        if size < 0 or begin < 0 or begin + size > len(self.arrays):
            raise UndecodableError("bytes that are not there")
        return bytes(memoryview(self.arrays)[begin : begin + size])

    def number(self, begin: int) -> int:
        """A number behind the tree."""
        found: int = NUMBER.unpack(self.content(NUMBER.size, begin))[0]
        return found

    def array(self, entry: list[Any]) -> Any:
        """A read-only array."""
        tag, char, shape, begin = entry
        if char not in DTYPES:
            raise UndecodableError("an array of another kind")
        if tag == "a":
            # frombuffer refuses what lies outside, and -1 alone would mean as many as there are
            return np.frombuffer(self.arrays, char, shape, begin) if shape > 0 else _empty(char)
        if tag == "c":
            if shape > MOST_ALIKE:
                raise UndecodableError("an array that is too long")
            return np.broadcast_to(np.frombuffer(self.arrays, char, 1, begin), (int(shape),))
        count = math.prod(shape)
        if not count:
            return np.zeros(shape, char)
        return np.frombuffer(self.arrays, char, count, begin).reshape(shape)

    def shared(self, entry: list[Any]) -> Any:
        """A column of one number, the same object as all that are alike here."""
        told = tuple(entry[1:])
        found = self._shared.get(told)
        if found is None:
            if len(self._shared) >= MOST_SHARED:
                raise UndecodableError("too many columns of one number")
            found = self._shared[told] = shared_column(*told)
        return found


def _empty(char: str) -> Any:
    array = np.zeros(0, char)
    array.flags.writeable = False
    return array


def _read_value(decoder: Decoder, entry: list[Any]) -> Any:
    kind = VALUES[entry[1]]
    one = decoder.one
    return kind(**dict(zip(FIELDS[kind], [one(each) for each in entry[2:]], strict=True)))


def _read_options(decoder: Decoder, entry: list[Any]) -> Options:
    _, fidelity, *others = entry
    seed, simulated_steps, budget = map(decoder.one, others)
    return Options(fidelity=Fidelity(fidelity), seed=seed, simulated_steps=simulated_steps, budget=budget)


def _read_error(_: Decoder, entry: list[Any]) -> NodewiseError:
    _, reason, message, metadata, violations, retry_after_s = entry
    found = tuple(Violation(str(field), str(text)) for field, text in violations)
    return NodewiseError(Reason(reason), message, metadata, found, retry_after_s)


def _read_budget(decoder: Decoder, entry: list[Any]) -> Budget:
    (remaining_s,) = SECONDS.unpack(decoder.content(SECONDS.size, entry[1]))
    if math.isnan(remaining_s):
        raise UndecodableError("a budget that is no number")
    return Budget(remaining_s)


def _read_mapping(decoder: Decoder, entry: list[Any]) -> dict[Any, Any]:
    parts = [decoder.one(each) for each in entry[1:]]
    return dict(zip(parts[::2], parts[1::2], strict=True))


_READERS: Final[dict[str, Callable[[Decoder, list[Any]], Any]]] = {
    "a": Decoder.array,
    "c": Decoder.array,
    "A": Decoder.array,
    "k": Decoder.shared,
    "o": _read_value,
    "C": read_configurations,
    "P": read_predictions,
    "O": _read_options,
    "t": lambda decoder, entry: tuple([decoder.one(each) for each in entry[1:]]),
    "l": lambda decoder, entry: [decoder.one(each) for each in entry[1:]],
    "s": lambda decoder, entry: frozenset(decoder.one(each) for each in entry[1:]),
    "m": _read_mapping,
    "M": lambda decoder, entry: MappingProxyType(decoder.one(entry[1])),
    "e": lambda _, entry: ENUMS[entry[1]](entry[2]),
    "i": lambda _, entry: int(entry[1]),
    "f": lambda _, entry: float(entry[1]),
    "b": lambda decoder, entry: decoder.content(entry[1], entry[2]),
    "B": _read_budget,
    "#": lambda decoder, entry: decoder.number(entry[1]),
    "E": _read_error,
}
