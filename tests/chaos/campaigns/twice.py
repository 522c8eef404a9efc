"""Ten thousand batches, each sent to two replicas at the same moment: stored once."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from postgres_clusters import running_cluster
from sent_twice import expected, send_twice, stored_rates
from serving import Stubs
from warm_servers import warm_servers


def run(arguments: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    """How many were stored how often."""
    folder.chmod(0o711)
    try:
        with (
            running_cluster(lambda: folder) as cluster,
            warm_servers() as ones,
            warm_servers() as others,
            ones.start(store=cluster.url, traces=f"{folder}/traces") as one,
            others.start(store=cluster.url, traces=f"{folder}/traces") as other,
            Stubs(one.target) as here,
            Stubs(other.target) as there,
        ):
            began = time.monotonic()
            send_twice(here, there, arguments.batches)
            seconds = time.monotonic() - began
            revision, rates = stored_rates(here)
            yield {
                "batches": arguments.batches,
                "seconds": round(seconds, 1),
                "stored": len(rates),
                "distinct": len(set(rates)),
                "revision": revision,
                "kept": (revision, rates) == expected(arguments.batches),
            }
    except pytest.skip.Exception as skipped:
        yield {"skipped": str(skipped)}
