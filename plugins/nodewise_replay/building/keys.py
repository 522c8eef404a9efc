"""Digests of where in the program an event is: its enclosing events by name, and which of several alike it is."""

from __future__ import annotations

import hashlib
import re
from itertools import pairwise
from typing import Final

import numpy as np

from nodewise.plugin import Ints
from nodewise_laws.object_code import object_code
from nodewise_replay.building.view import View

__all__ = ["device_keys", "host_keys", "mix"]

_COUNTER: Final = re.compile(r"#\d+")
"""A number that a name counts steps with, as in ``ProfilerStep#12``."""


def mix(left: Ints | int, right: Ints | int) -> Ints:
    """One 64-bit digest of two numbers (the finaliser of SplitMix64; overflow is meant)."""
    with np.errstate(over="ignore"):
        state = np.asarray(left).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.asarray(right).astype(np.uint64)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state = state ^ (state >> np.uint64(31))
    digest: Ints = state.astype(np.int64)
    return digest


def host_keys(view: View, step: Ints) -> Ints:
    """Digest per event of the host; 0 for others.

    Events alike (same name under the same event; outermost ones: within the same step, on the main thread or on any
    other) are told apart by which of them they are, so that one more or less shifts only its own like.
    """
    host = np.sort(view.nesting.order)
    names = [_COUNTER.sub("#", name) for name in view.trace.names]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    name = np.array([numbers[text] for text in names], dtype=np.int64)[view.trace.name] if names else np.zeros(0, "i8")
    digest_of = np.array([_text_digest(text) for text in numbers], dtype=np.int64)
    main = (view.lane == view.main_lane).astype(np.int64)
    # The parent that counts equal names: its number, or one beyond all events per step and kind of thread.
    within = np.where(view.nesting.parent >= 0, view.nesting.parent, len(name) + 2 * (step + 1) + main)
    capacity = 1 << max(4, int(2 * len(host)).bit_length())
    slots, counts = np.full(capacity, -1, dtype=np.int64), np.zeros(capacity, dtype=np.int64)
    occurrence = np.zeros(len(name), dtype=np.int64)
    _count(host, within * len(numbers) + name, slots, counts, occurrence)
    own = mix(digest_of[name], occurrence) if len(name) else np.zeros(0, dtype=np.int64)
    return _digest_chain(host, view.nesting.parent, own, main)


def device_keys(view: View, host_key: Ints, step: Ints) -> Ints:
    """Digest per position of ``View.device``: of the call behind it and which of the call's work it is."""
    linked = view.launch >= 0
    names = np.array([_text_digest(name) for name in view.trace.names], dtype=np.int64)
    lanes = np.array([lane.number for lane in view.trace.lanes], dtype=np.int64)
    base = np.where(
        linked,
        host_key[np.maximum(view.launch, 0)],
        mix(names[view.trace.name[view.device]], lanes[view.lane[view.device]]),
    )
    order = np.lexsort((view.begin_ns[view.device], base, step))
    fresh = np.ones(len(order), dtype=np.bool_)
    fresh[1:] = (base[order][1:] != base[order][:-1]) | (step[order][1:] != step[order][:-1])
    start = np.maximum.accumulate(np.where(fresh, np.arange(len(order)), 0))
    which = np.empty(len(order), dtype=np.int64)
    which[order] = np.arange(len(order)) - start
    return mix(base, which + 3)


def _digest_chain(events: Ints, parent: Ints, own: Ints, main: Ints) -> Ints:
    """Digest of every event's own and of those around it, level by level."""
    keys, depth = np.zeros(len(own), dtype=np.int64), np.zeros(len(own), dtype=np.int64)
    _depths(events, np.ascontiguousarray(parent), depth)
    by_depth = events[np.argsort(depth[events], kind="stable")]
    levels = np.searchsorted(depth[by_depth], np.arange(int(depth.max(initial=0)) + 2))
    for first, last in pairwise(levels.tolist()):
        rows = by_depth[first:last]
        outer = np.where(parent[rows] >= 0, keys[parent[rows]], main[rows] + 1)
        keys[rows] = mix(outer, own[rows])
    return keys


def _text_digest(text: str) -> int:
    """64 bits of a text: the same in every process."""
    digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


@object_code
def _count(events: Ints, token: Ints, slots: Ints, counts: Ints, occurrence: Ints) -> None:
    """Count tokens in a table with open addressing; ``occurrence`` is how often each was met before."""
    mask = len(slots) - 1
    for position in range(len(events)):
        event = events[position]
        tokens = token[event]
        place = (tokens ^ (tokens >> 15) ^ (tokens >> 31)) & mask
        while slots[place] >= 0 and slots[place] != tokens:
            place = (place + 1) & mask
        slots[place] = tokens
        occurrence[event] = counts[place]
        counts[place] += 1


@object_code
def _depths(events: Ints, parent: Ints, depth: Ints) -> None:
    """How many events are around each; parents come before their children."""
    for position in range(len(events)):
        event = events[position]
        depth[event] = depth[parent[event]] + 1 if parent[event] >= 0 else 0
