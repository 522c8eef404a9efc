"""Ten million requests by chance: spoilt, wild, and bytes that are none, to whole applications without sockets.

Not guided by coverage, which costs more than most requests do; ``make fuzz`` is. Each round begins with a new
application and a seed of its own: ``--seed SEED --messages 50000`` asks a round's requests again.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

ROUND: Final = 50_000
"""Requests of an application; what they store is forgotten then."""
AT_ONCE: Final = 32
"""Requests under way: the loop's own work, a third of a small request, is shared by them."""
TOLD_EVERY: Final = 500_000
DRAWN: Final = 1_000
"""Requests that are drawn and looked at together."""
DEAR: Final = ("/Backtest", "/Diagnose", "/Plan", "/SuggestMeasurements")
"""Methods whose right requests take 10 to 50 ms of a processor; the others take less than 3."""
CHEAP_AS_OFTEN: Final = 100


@dataclass
class Round:
    """What came of the requests of one application."""

    seed: int
    asked: Counter[tuple[str, str]] = field(default_factory=Counter)
    found: list[dict[str, Any]] = field(default_factory=list)


def run(arguments: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    """A line whenever something was found, and one for every TOLD_EVERY requests, with how calls ended."""
    del folder  # each round has one of its own
    rounds = -(-arguments.messages // ROUND)
    asked: Counter[tuple[str, str]] = Counter()
    faults, told = 0, 0
    with ProcessPoolExecutor(arguments.processes, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        running = [pool.submit(_round, arguments.seed + number) for number in range(rounds)]
        for ended in as_completed(running):
            done = ended.result()
            asked += done.asked
            faults += len(done.found)
            yield from done.found
            if asked.total() - told >= TOLD_EVERY:
                told = asked.total()
                yield _sum(asked, faults)
    yield _sum(asked, faults)


def _sum(asked: Counter[tuple[str, str]], faults: int) -> dict[str, Any]:
    codes: Counter[str] = Counter()
    for (_, code), number in asked.items():
        codes[code] += number
    return {"requests": asked.total(), "found": faults, "codes": dict(codes), "kept": faults == 0}


def _round(seed: int) -> Round:
    from fuzzing import Fuzzed  # the processes of rounds alone need an application

    from nodewise.runtime.logging import configure_logging

    configure_logging("critical")
    chance, done = random.Random(seed), Round(seed)
    with tempfile.TemporaryDirectory() as folder, Fuzzed(Path(folder)) as fuzzed:
        chosen = _chosen(fuzzed.paths)
        for _ in range(ROUND // DRAWN):
            calls = [(path, fuzzed.drawn(path, way, chance)) for path, way in chance.choices(chosen, k=DRAWN)]
            try:
                fuzzed.ask_together(calls, AT_ONCE)
            except Exception as error:  # noqa: BLE001  # whatever it is, it is what is looked for
                done.found.append({"seed": seed, "error": f"{type(error).__name__}: {error}"[:2000], "kept": False})
        done.asked = fuzzed.asked
    return done


def _chosen(paths: list[str]) -> list[tuple[str, str]]:
    """Methods and ways, those that compute for long less often."""
    from fuzzing import WAYS

    return [
        (path, way)
        for path in paths
        for way in WAYS
        for _ in range(1 if path.endswith(DEAR) and way == "spoilt" else CHEAP_AS_OFTEN)
    ]
