"""Lanes, numbered at their first use: streams by (device, stream), threads by (process, thread)."""

from __future__ import annotations

from struct import Struct
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import NO_EVENT, Ints, Lane
from nodewise_traces.events.names import KeyNumbers, Names, public_name
from nodewise_traces.scanning.alike import number_texts
from nodewise_traces.scanning.decode import text_of
from nodewise_traces.scanning.fields import MISSING, PID, TID
from nodewise_traces.scanning.numbers import UNRESOLVED, integer_or
from nodewise_traces.scanning.stream import Batch

__all__ = ["Lanes"]

_STREAM: Final = b"stream "
"""Beginning of the thread of older recorders' work on devices."""
_KEY: Final = Struct("3q")
_WORDS_FROM: Final = 2**62
"""Processes and threads that are words are numbered from here on; no operating system gets there."""


class Lanes(KeyNumbers[tuple[bool, int, int]]):
    """Dictionary of (on a device, device or process, stream or thread)."""

    def __init__(self) -> None:
        super().__init__()
        self.words = Names()
        self.thread_names: dict[tuple[int, int], str] = {}
        self.process_names: dict[int, str] = {}
        self.device_processes: dict[int, int] = {}
        """Devices by the process that represents each, where a recorder has no numbers of devices."""

    def of_stream(self, device: int, stream: int) -> int:
        """The lane of a stream, also of one on which nothing ran; -1 = the stream is not resolved."""
        if stream in {MISSING, UNRESOLVED} or stream < 0:
            return NO_EVENT
        return self[True, max(device, 0), stream]

    def of_rows(self, batch: Batch, rows: Ints, on_device: NDArray[np.bool_], device: Ints, stream: Ints) -> Ints:
        """Lanes of some rows; ``device`` and ``stream`` as their arguments state them, where they do."""
        processes, threads = self.numbers(batch, rows, PID), self.numbers(batch, rows, TID)
        first = np.where(on_device & (device >= 0), device, processes)
        second = np.where(on_device & (stream >= 0), stream, threads)
        keys = np.stack((on_device, first, second), axis=1)
        begin = np.arange(len(keys)) * _KEY.size
        return number_texts(keys.tobytes(), begin, begin + _KEY.size, self._of_key)

    def _of_key(self, key: bytes) -> int:
        on_device, first, second = _KEY.unpack(key)
        return self[bool(on_device), first, second]

    def numbers(self, batch: Batch, rows: Ints, column: int) -> Ints:
        """Processes or threads as numbers: words have numbers of their own, "stream 7" is 7."""
        numbers: Ints = batch.rows[rows, column].copy()
        words = np.flatnonzero(numbers == MISSING)
        if len(words):
            numbers[words] = batch.number_texts(column + 1, self._of_word, rows[words])
        return numbers

    def _of_word(self, word: bytes) -> int:
        number = integer_or(text_of(word[len(_STREAM) :]), MISSING) if word.startswith(_STREAM) else MISSING
        return number if number != MISSING else _WORDS_FROM + self.words[word]

    def device_lanes(self) -> NDArray[np.bool_]:
        """Which lanes belong to devices."""
        return np.array([on_device or first in self.device_processes for on_device, first, _ in self], dtype=np.bool_)

    def values_by_number(self) -> tuple[Lane, ...]:
        """All lanes by number."""
        words = [public_name(word) for word in self.words.texts()]
        values = []
        for on_device, first, second in self:
            word = words[second - _WORDS_FROM] if second >= _WORDS_FROM else ""
            number = _WORDS_FROM - second - 1 if word or second >= _WORDS_FROM else second
            name = public_name(self.thread_names.get((first, second), "")) or word
            if on_device:
                device = first if first < _WORDS_FROM else 0
                values.append(Lane(device=device, number=number, name=name or f"stream {number}"))
            else:
                values.append(Lane(device=self.device_processes.get(first, -1), number=number, name=name))
        return tuple(values)
