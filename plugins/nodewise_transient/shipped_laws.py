"""Published lifetimes that groups may name: CM-DARE's K80 and P100 in regions of Google Cloud, up to its cap of a day.

S. Li, R. J. Walls and T. Guo, "Characterizing and Modeling Distributed Training with Transient Cloud GPU Servers",
ICDCS 2020 (cake-lab/CM-DARE, Apache-2.0). The day of measuring is not published; that of the preprint bounds it.
"""

from __future__ import annotations

import json
from datetime import date
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from nodewise_transient.fitting import LifetimeSample, sample_of_bins
from nodewise_transient.provenance import Provenance

__all__ = ["shipped_names", "shipped_of"]


@cache
def _read_published() -> dict[str, Any]:
    tables: dict[str, Any] = json.loads(resources.files(__package__).joinpath("lifetimes.json").read_text("utf-8"))
    return tables


def shipped_names() -> tuple[str, ...]:
    """Names of the lifetimes that are shipped."""
    return tuple(cell["name"] for cell in _read_published()["cells"])


@cache
def shipped_of(name: str) -> LifetimeSample | None:
    """Shipped lifetimes by their name; absent = there are none of it."""
    published = _read_published()
    cell = next((each for each in published["cells"] if each["name"] == name), None)
    if cell is None:
        return None
    counts = np.array(cell["revoked_by_hour"], dtype=np.float64)
    return sample_of_bins(
        3600.0 * np.arange(1, len(counts) + 1),
        counts / cell["machines"],
        machines=cell["machines"],
        cap_s=3600.0 * published["cap_hours"],
        provenance=Provenance(
            data_set=f"{cell['name']}, {published['title']}",
            device=cell["device"],
            place=cell["region"],
            measured=date.fromisoformat(published["measured_at_latest"]),
        ),
    )
