"""Boundaries between devices, nodes or link domains that a step's exchange crosses and no run of the job crossed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.predictions import Notice
from nodewise.domain.profile import Profile
from nodewise.estimation.fit.models import evidence_of
from nodewise.plugin import Catalogue

__all__ = ["Boundary", "boundary_of"]


@dataclass(frozen=True, slots=True)
class Boundary:
    """A boundary that no run has crossed: the row that crosses it with the fewest nodes, and the unknown cost."""

    row: int
    reason: str

    @property
    def notice(self) -> Notice:
        """Return the notice that qualifies the expected regret."""
        return Notice("BOUNDARY_UNMEASURED", f"{self.reason}; the expected regret trusts the model there")


def boundary_of(
    profile: Profile, configurations: Configurations, is_answered: Ints, catalogue: Catalogue
) -> Boundary | None:
    """Return the first boundary that answered rows cross and no run does; None = there is none, or there are no runs.

    A parameter server occupies a node of its own, so one worker beside it crosses the first two boundaries.

    Parameters
    ----------
    configurations, is_answered : Configurations, int
        Resolved rows, and the indices of those that may be measured.
    """
    ran = evidence_of(profile)
    if ran is None or not ran.nodes.all():
        return None
    rows = configurations.take(is_answered)
    both = zip(_crossings(rows, catalogue), _crossings(ran, catalogue), strict=True)
    for (where, between, crossings), (_, _, crossed_before) in both:
        if crossings.any() and not crossed_before.any():
            places = np.flatnonzero(crossings)
            first = np.lexsort((rows.workers[places], rows.nodes_held()[places]))[0]
            reason = f"every run was {where}: what the exchange between {between} costs is not known"
            return Boundary(int(is_answered[places[first]]), reason)
    return None


def _crossings(rows: Configurations, catalogue: Catalogue) -> list[tuple[str, str, NDArray[np.bool_]]]:
    """Return each boundary: the place of runs that do not cross it, its two sides, a mask of rows that cross it."""
    per_node = np.ceil(rows.workers / np.maximum(rows.nodes, 1))
    domains = np.array(
        [catalogue.link_domain_devices(*each) for each in zip(rows.device_names(), per_node.tolist(), strict=True)]
    )
    return [
        ("inside one node", "nodes", rows.nodes_held() > 1),
        ("on one device", "devices", rows.devices_held() > 1),
        ("inside one domain of fast links", "such domains", (domains > per_node) & (rows.workers > domains)),
    ]
