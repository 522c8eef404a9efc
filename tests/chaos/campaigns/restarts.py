"""Rolling restarts under load: a hundred SIGHUPs, and nobody who uses the shipped policy notices."""

from __future__ import annotations

import argparse
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from logged_server import LoggedServer
from patience import PATIENCE_S
from serving import workers_of
from steady_callers import SteadyCallers

P99_MS: Final = 250.0
"""Of calls while processes change."""
TOLD_EVERY: Final = 10


def run(arguments: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    """What callers saw: with the shipped policy and wait-for-ready, with the policy alone, and without either."""
    options = ("--store", f"sqlite:{folder}/store.db", "--workers", str(arguments.workers))
    pace = arguments.calls_per_s or 5.0
    took_s = []
    with (
        LoggedServer(folder, *options) as server,
        SteadyCallers(server.target, calls_per_s=pace, retrying=True) as shipped,
        SteadyCallers(server.target, calls_per_s=pace, retrying=True, waiting=False) as hasty,
        SteadyCallers(server.target, calls_per_s=pace) as bare,
    ):
        for number in range(1, arguments.restarts + 1):
            before = set(workers_of(server.pid))
            began = time.monotonic()
            server.send(signal.SIGHUP)
            while before & set(workers_of(server.pid)):
                assert time.monotonic() - began < PATIENCE_S, "a restart did not end"
                assert server.running, "the server ended"
                time.sleep(0.05)
            took_s.append(time.monotonic() - began)
            if number % TOLD_EVERY == 0:
                yield {
                    "restarts": number,
                    "failures": len(shipped.failures),
                    "failures_without_wait_for_ready": len(hasty.failures),
                    "failures_without_retries": len(bare.failures),
                }
    slowest = {who: round(shipped.window.percentile_ms(who, 0.99), 1) for who in shipped.window.seconds}
    yield {
        "restarts": len(took_s),
        "took_s": round(sorted(took_s)[len(took_s) // 2], 2),
        "slowest_restart_s": round(max(took_s), 2),
        "with_the_shipped_policy": {"answered": shipped.answered(), "failures": len(shipped.failures)},
        "without_wait_for_ready": {"answered": hasty.answered(), "failures": len(hasty.failures)},
        "without_retries": {"answered": bare.answered(), "failures": len(bare.failures), "first": bare.failures[:5]},
        "failures": (shipped.failures + hasty.failures)[:5],
        "p99_ms": slowest,
        "kept": not shipped.failures and not hasty.failures and max(slowest.values()) < P99_MS,
    }
