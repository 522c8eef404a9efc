"""Swaps under load: a hosted distribution changes its version a thousand times, and nobody notices.

Beside it stands another hosted distribution, whose hosts must live through all of it.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, Final

from logged_server import LoggedServer
from patience import PATIENCE_S
from plugin_installs import installed
from process_figures import descriptors, resident_bytes, threads
from serving import Stubs, workers_of
from swaps import NAME, Load, version_of
from tiny_wheels import wheel

from nodewise.runtime.generations.folder import PluginsFolder
from nodewise_protos.v1beta1 import admin_service_pb2 as admin

LEAK_MB: Final = 1.0
"""Of a worker in a hundred swaps, once its caches are filled."""
WARM_SWAPS: Final = 100
"""Before memory is looked at: caches and allocators fill."""
TOLD_EVERY: Final = 50
PAUSE_S: Final = 0.05
BYSTANDER: Final = "bystander-plugin"


def run(arguments: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    """What clients saw, what a swap took, and what it left behind."""
    store = folder / "store.db"
    numbers = _generations(PluginsFolder(Path(f"{store}.plugins")), folder / "wheels")
    environment = {"NODEWISE_ADMIN": "true", "NODEWISE_SWAP_TRIAL_S": str(arguments.trial_s)}
    options = ("--store", f"sqlite:{store}", "--workers", str(arguments.workers), "--grace-s", "5")
    pause_s = 1.0 / arguments.calls_per_s if arguments.calls_per_s else PAUSE_S
    took_s: list[float] = []
    memory: list[tuple[int, list[int]]] = []
    with LoggedServer(folder, *options, environment=environment) as server, Stubs(server.target) as stubs:
        workers = workers_of(server.pid)
        with Load(server.target, pause_s=pause_s) as load:
            ends_s = time.monotonic() + 60.0 * arguments.at_most_minutes
            for number in range(1, arguments.swaps + 1):
                if time.monotonic() > ends_s:
                    break
                began = time.monotonic()
                _swap(stubs, numbers, number)
                took_s.append(time.monotonic() - began)
                if number % TOLD_EVERY == 0:
                    memory.append((number, [resident_bytes(pid) for pid in workers]))
                    yield {
                        "swaps": number,
                        "median_s": round(median(took_s), 2),
                        "answers": sum(load.seen.answers.values()),
                        "failures": load.seen.failures[:5],
                        "mixed": load.seen.mixed[:5],
                        "resident_mb": [round(each / 1e6, 1) for each in memory[-1][1]],
                        "descriptors": [descriptors(pid) for pid in workers],
                        "threads": [threads(pid) for pid in workers],
                        "load": [round(each, 1) for each in os.getloadavg()],
                    }
        same_workers = workers_of(server.pid) == workers
    started = Counter(line["distribution"] for line in server.logged()[0] if line.get("event") == "host_started")
    seen, leaks = load.seen, _leaks_mb(memory)
    whole = not seen.failures and not seen.mixed and set(seen.answers) == {"stub", "batch", "stream", "sync", "async"}
    yield {
        "swaps": len(took_s),
        "trial_s": arguments.trial_s,
        "took_s": {"median": round(median(took_s), 2), "largest": round(max(took_s), 2)},
        "answers": seen.answers,
        "versions": sorted(seen.versions),
        "failures_count": len(seen.failures),
        "failures": seen.failures[:5],
        "mixed": seen.mixed[:5],
        "same_workers": same_workers,
        "hosts_started": dict(started),
        "leak_mb_per_100_swaps": leaks,
        "kept": whole
        and len(took_s) == arguments.swaps
        and same_workers
        and started[f"{BYSTANDER} 1.0"] == len(workers)
        and max(leaks, default=0.0) <= LEAK_MB,
    }


def _generations(folder: PluginsFolder, wheels: Path) -> list[int]:
    """Two generations that differ in one distribution's version: the first to swap to, and the one served first."""
    made = [wheel(wheels, version_of(each), name=NAME, seconds=float(each)) for each in (1, 2)]
    beside = wheel(wheels, "1.0", distribution=BYSTANDER, name="bystander", seconds=9.0)
    first = installed(folder, str(beside), str(made[0]))
    return [installed(folder, str(made[1])), first]  # a server starts with what waits


def _swap(stubs: Stubs, numbers: list[int], number: int) -> None:
    """To the other one: every tenth time over a canary, every other tenth by a rollback, else by a reload."""
    wanted = numbers[number % 2]
    if number % 10 == 0:
        request = admin.SetCanaryRequest(generation=wanted, share=0.5)
        tried = stubs.admin.SetCanary(request, timeout=PATIENCE_S)
        assert tried.outcome == admin.RELOAD_OUTCOME_TAKEN, tried
        stubs.admin.Promote(admin.PromoteRequest(), timeout=PATIENCE_S)
    elif number % 10 == 5:
        back = stubs.admin.Rollback(admin.RollbackRequest(), timeout=PATIENCE_S)
        assert (back.outcome, back.generation) == (admin.RELOAD_OUTCOME_TAKEN, wanted), back
    else:
        found = stubs.admin.Reload(admin.ReloadRequest(generation=wanted), timeout=PATIENCE_S)
        assert found.outcome == admin.RELOAD_OUTCOME_TAKEN, found


def _leaks_mb(memory: list[tuple[int, list[int]]]) -> list[float]:
    """Growth of each worker in a hundred swaps: the slope of a line through what it held, by least squares."""
    kept = [(number, found) for number, found in memory if number >= WARM_SWAPS]
    if len(kept) < 2:
        return []
    middle = sum(number for number, _ in kept) / len(kept)
    spread = sum((number - middle) ** 2 for number, _ in kept)
    slopes = [sum((number - middle) * found[each] for number, found in kept) for each in range(len(kept[0][1]))]
    return [round(slope / spread * 100 / 1e6, 3) for slope in slopes]
