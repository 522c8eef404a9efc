"""The digest of a profile's content, the key of caches and answers."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Final

import numpy as np

from nodewise.domain.columns import Ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.profile import Observations, PhaseTimings, Profile
from nodewise.domain.workload import Network, Transformer, Workload

__all__ = ["CONFIGURATION_COLUMNS", "DIGEST_VERSION", "PHASE_COLUMNS", "content_digest"]

DIGEST_VERSION: Final = 2
"""Incremented whenever the same content gets another digest; stored digests of other versions are not used."""

CONFIGURATION_COLUMNS: Final = tuple(
    f.name
    for f in fields(Configurations)
    if f.name not in {"devices", "device_index", "precisions", "precision_index", "placement", "worker_groups"}
)
"""Columns with one number per row, without dictionaries, placements and groups."""
PHASE_COLUMNS: Final = tuple(f.name for f in fields(PhaseTimings) if f.name != "configurations")
_LATER: Final = "measured_memory_bytes"
"""A column that counts only where it states something, so that older digests stay valid."""
_OBSERVATIONS: Final = tuple(f.name for f in fields(Observations) if f.name not in {"configurations", _LATER})
_DIMENSIONS_OF_0_1: Final = (
    *("layers", "hidden_size", "attention_heads", "sequence_length", "vocabulary_size", "key_value_heads"),
    *("feed_forward_size", "experts", "experts_per_token", "head_size", "gated_feed_forward", "untied_embeddings"),
    *("expert_feed_forward_size", "shared_expert_feed_forward_size", "expert_layers"),
)
"""Dimensions that always count; later ones count only where they are stated, so that older digests stay valid."""
_FACTS: Final = {kind: tuple(f.name for f in fields(kind)) for kind in (Workload, Network)}


def content_digest(profile: Profile) -> str:
    """SHA-256, hexadecimal, of everything that an estimator can see in a stored or inline profile.

    Covered are the facts that are known, every column and dictionary of the phase timings, of the observations with
    their numbers and of runs that are known by their memory alone, and the references to traces; not the name, uid,
    revision and times. Observations that were retracted are gone from the profile, and with them from the digest: after
    a retraction of the newest ones it is what it was before them. Entries of dictionaries that no row uses, and their
    order, make no difference.
    """
    facts = (DIGEST_VERSION, _known_facts(profile.workload), _known_facts(profile.network), profile.traces)
    parts: list[Any] = [repr(facts).encode()]
    _add(parts, profile.phase_timings, PHASE_COLUMNS)
    _add(parts, profile.observations, _OBSERVATIONS)
    if profile.observations.measured_memory_bytes.any():
        parts += (b"|memory|", profile.observations.measured_memory_bytes)
    if len(profile.memory_runs):
        parts.append(b"|memory runs|")
        _add(parts, profile.memory_runs, (*_OBSERVATIONS, _LATER))
    if profile.shared_runs:
        parts.append(repr([run.content_sha256 for run in profile.shared_runs]).encode())
    try:
        content = b"".join(parts)
    except TypeError:  # strided columns have no contiguous buffer
        content = b"".join([part if isinstance(part, bytes) else part.tobytes() for part in parts])
    return hashlib.sha256(content).hexdigest()


class _PlainText(str):
    """A string whose ``repr`` is the string itself."""

    __slots__ = ()
    __repr__ = str.__str__


def _known_facts(facts: Workload | Network) -> list[tuple[str, Any]]:
    values = ((name, getattr(facts, name)) for name in _FACTS[type(facts)])
    return [
        (name, _dimensions(value) if name == "transformer" else value) for name, value in values if value is not None
    ]


def _dimensions(transformer: Transformer) -> _PlainText:
    """As the dimensions' own text, without later ones that are not stated."""
    dimensions = ((f.name, getattr(transformer, f.name), f.default) for f in fields(transformer))
    texts = (f"{name}={value!r}" for name, value, usual in dimensions if name in _DIMENSIONS_OF_0_1 or value != usual)
    return _PlainText(f"Transformer({', '.join(texts)})")


def _add(parts: list[Any], runs: PhaseTimings | Observations, names: Sequence[str]) -> None:
    """Columns have the stated number of rows and 8 bytes per entry, so that the encoding is unambiguous."""
    rows = len(runs)
    if not rows:
        parts.append(b"|0|")
        return
    configurations = runs.configurations
    devices, device_index = _in_order_of_use(configurations.devices, configurations.device_index)
    precisions, precision_index = _in_order_of_use(configurations.precisions, configurations.precision_index)
    placement, groups = configurations.placement, configurations.worker_groups
    placed_count = 0 if placement is None else len(placement.workers)
    group_count = 0 if groups is None else len(groups.workers)
    parts.append(f"|{rows}|{devices}|{precisions}|{placed_count}|{group_count}|".encode())
    parts += (device_index, precision_index)
    parts += [getattr(configurations, name) for name in CONFIGURATION_COLUMNS]
    parts += [getattr(runs, name) for name in names]
    if placement is not None and placed_count:
        parts += (placement.offsets, placement.workers)
    if groups is not None and group_count:
        in_groups, index = _in_order_of_use(configurations.devices, groups.device_index)
        parts += (repr(in_groups).encode(), groups.offsets, groups.workers, index, groups.compute_factor)


def _in_order_of_use(names: tuple[str, ...], index: Ints) -> tuple[tuple[str, ...], Ints]:
    """The dictionary without unused entries, in order of first use."""
    if len(names) == 1:
        return names, index
    order: dict[str, int] = {}
    codes = [order.setdefault(names[code], len(order)) for code in index.tolist()]
    return tuple(order), np.array(codes, dtype=np.int64)
