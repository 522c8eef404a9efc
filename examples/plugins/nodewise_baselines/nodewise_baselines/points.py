"""Points: what was measured of a job, one per distinct configuration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nodewise.plugin import Floats, Ints, Profile, as_floats, as_ints

from .rows import Kind, Rows, Truths, kinds_of, plain, rows_of

__all__ = ["Points", "points_by_kind", "points_of"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Points:
    """Measured step times, one per distinct (workers, nodes, batch, servers) and sorted by these.

    Attributes
    ----------
    rows : Rows
        What ran.
    step_s : float
        Mean step time over all runs of a configuration, placements included; asynchronous training: one worker's cycle.
    sync_s : float
        Mean synchronisation per step that compute does not hide; NaN where a run of the point does not tell.
    """

    rows: Rows
    step_s: Floats
    sync_s: Floats

    def __len__(self) -> int:
        return len(self.step_s)

    def where(self, chosen: Truths) -> Points:
        """The points of a mask."""
        at = as_ints(np.flatnonzero(chosen))
        return Points(rows=self.rows.take(at), step_s=self.step_s[at], sync_s=self.sync_s[at])


def points_of(rows: Rows, step_s: Floats, sync_s: Floats) -> Points:
    """Average runs of equal configurations; the result does not depend on the order of the runs."""
    # Steps are sorted last, so that sums are taken in one order whatever order the runs came in.
    order = np.lexsort((sync_s, step_s, rows.servers, rows.batch_samples, rows.nodes, rows.workers))
    keys = rows.take(as_ints(order)).keys()
    first = as_ints([at for at, key in enumerate(keys) if not at or key != keys[at - 1]])
    return Points(
        rows=rows.take(as_ints(order[first])),
        step_s=_means(step_s[order], first),
        sync_s=_means(sync_s[order], first),
    )


def points_by_kind(profile: Profile) -> dict[Kind, Points]:
    """The points of a profile's observations, kind by kind; runs that the models have no variables for are left out."""
    observations = profile.observations
    observed = observations.take(as_ints(np.flatnonzero(plain(observations.configurations))))
    configurations = observed.configurations
    rows = rows_of(configurations)
    step_s = configurations.cycles_per_step() / observed.steps_per_s
    sync_s = np.where(observed.exposed_sync_s >= 0, observed.exposed_sync_s, np.nan)
    places: dict[Kind, list[int]] = {}
    for row, kind in enumerate(kinds_of(configurations, profile.network)):
        places.setdefault(kind, []).append(row)
    return {
        kind: points_of(rows.take(at), step_s[at], sync_s[at])
        for kind, at in ((kind, as_ints(found)) for kind, found in places.items())
    }


def _means(values: Floats, first: Ints) -> Floats:
    counts = np.diff(np.append(first, len(values)))
    return as_floats(np.add.reduceat(values, first) / counts)
