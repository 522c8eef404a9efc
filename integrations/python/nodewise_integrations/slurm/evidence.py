"""The configuration that a job ran on, as evidence for its profile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nodewise_client import Configurations, Profile, configuration_rows, configurations
from nodewise_integrations.advice import Adviser, NoAdvice, NoAnswer
from nodewise_integrations.slurm.note import Note

__all__ = ["configuration_that_ran"]

_OF_ITS_SCALE: Final = frozenset({"nodes", "workers", "placements", "groups", "offers", "data_parallel_degrees"})
"""Columns that depend on the number of nodes."""
_BATCHES: Final = frozenset({"batch_per_worker_samples", "global_batch_samples"})


def configuration_that_ran(adviser: Adviser, note: Note, environment: Mapping[str, str]) -> Configurations | NoAnswer:
    """Return nodes and devices from Slurm; the rest from the owner's options, else from the newest observation."""
    profile = adviser.ask(lambda client: client.get_profile(note.profile))
    if isinstance(profile, NoAnswer):
        if profile.reason is not NoAdvice.REJECTED or "PROFILE_NOT_FOUND" not in profile.message:
            return profile
        profile = Profile()
    newest = _newest(profile)
    nodes = _number(environment, "SLURM_JOB_NUM_NODES") or 1
    per_node = note.workers_per_node or _number(environment, "SLURM_GPUS_ON_NODE") or _per_node(newest)
    kept = {name: value for name, value in newest.items() if name not in _OF_ITS_SCALE}
    if _BATCHES & note.columns.keys():
        kept = {name: value for name, value in kept.items() if name not in _BATCHES}
    elif kept.get("batch_per_worker_samples"):
        # The batch per worker is known; the global batch follows from the present number of workers.
        kept.pop("global_batch_samples", None)
    return configurations(**{
        "sync_modes": "allreduce",
        **kept,
        **note.columns,
        "nodes": nodes,
        "workers": nodes * per_node,
    })  # fmt: skip


def _newest(profile: Profile) -> dict[str, Any]:
    observed = None if profile.content is None else profile.content.observations
    if observed is None or observed.configurations is None:
        return {}
    rows = configuration_rows(observed.configurations)
    return rows[-1] if rows else {}


def _per_node(newest: Mapping[str, Any]) -> int:
    nodes, workers = newest.get("nodes") or 1, newest.get("workers") or 1
    return max(1, workers // nodes)


def _number(environment: Mapping[str, str], name: str) -> int:
    text = environment.get(name, "")
    return int(text) if text.isdecimal() else 0
