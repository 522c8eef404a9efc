"""Every fault in every method of every kind: what its own callers learn, and what it costs the others."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from capacity import a_fifth
from logged_server import LoggedServer
from offenders import NOT_FOUND, ask, prepare
from patience import PATIENCE_S
from planted_distributions import WELL, Fault, matrix, planted
from serving import Stubs
from steady_callers import USUAL, Asked, SteadyCallers, Window, predicting

from nodewise.domain.errors import Reason

CALLERS: Final[Mapping[str, Asked]] = {**USUAL, "well": predicting(WELL.name)}
BUDGET_S: Final = 2.0
LONG_BUDGET_S: Final = 4.0
LIMITS: Final = {
    "NODEWISE_HOSTS__CALL_BUDGET_S": str(BUDGET_S),
    "NODEWISE_HOSTS__LONG_CALL_BUDGET_S": str(LONG_BUDGET_S),
    "NODEWISE_HOSTS__MEMORY_BYTES": str(1 << 30),
    "NODEWISE_COMPUTE_PROCESSES": "1",
}
REPEATED: Final = 4
"""Calls of each offender, about different jobs: more than its breaker takes to open."""
SLOWER: Final = 2.0
"""How many times their p99 callers of others may wait while breakers are open."""


def run(arguments: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    """One result for each fault, one for each server's others, and a summary."""
    faults = [
        fault
        for fault in matrix()
        if (not arguments.kinds or fault.kind in arguments.kinds)
        and (not arguments.methods or fault.method in arguments.methods)
        and (not arguments.faults or fault.fault in arguments.faults)
    ]
    usual, pace = _undisturbed(arguments, folder / "undisturbed")
    yield {"undisturbed": _latencies(usual), "calls_per_s_each": pace, "failures": usual.failures[:5]}
    right = failures = 0
    worst = 0.0
    for start in range(0, len(faults), arguments.per_server):
        together = faults[start : start + arguments.per_server]
        for result in _server(together, folder / str(start), pace, arguments.window_s):
            if "fault" in result:
                right += result["kept"]
            else:
                failures += result["failures_count"]
                ratios = {who: result["p99_ms"][who] / usual.percentile_ms(who, 0.99) for who in CALLERS}
                worst = max(worst, *ratios.values())
                result["p99_ratios"] = {who: round(ratio, 2) for who, ratio in ratios.items()}
            yield result
    yield {
        "faults": len(faults),
        "typed_as_they_must_be": right,
        "failures_of_others": failures,
        "worst_p99_ratio_of_others": round(worst, 2),
        "kept": right == len(faults) and not failures and worst <= SLOWER,
    }


def _undisturbed(arguments: argparse.Namespace, folder: Path) -> tuple[Window, float]:
    """What callers see of a server without offenders, and how often each asks."""
    environment = planted(folder / "site", [WELL]) | LIMITS
    with LoggedServer(folder, "--store", f"sqlite:{folder}/store.db", environment=environment) as server:
        pace = arguments.calls_per_s or a_fifth(server.target, CALLERS)
        with SteadyCallers(server.target, CALLERS, calls_per_s=pace) as callers:
            time.sleep(arguments.window_s)
            callers.begin_window()
            time.sleep(2.0 * arguments.window_s)
            return callers.begin_window(), pace


def _server(faults: list[Fault], folder: Path, pace: float, window_s: float) -> Iterator[dict[str, Any]]:
    environment = planted(folder / "site", [WELL, *faults]) | LIMITS
    began = time.monotonic()
    with LoggedServer(folder, "--store", f"sqlite:{folder}/store.db", environment=environment) as server:
        started_s = time.monotonic() - began
        with SteadyCallers(server.target, CALLERS, calls_per_s=pace) as others, Stubs(server.target) as stubs:
            prepare(stubs, PATIENCE_S)
            for fault in faults:
                yield _asked(stubs, fault)
            others.begin_window()
            time.sleep(window_s)
            opened = others.begin_window()
        _, not_json = server.logged()
        running = server.running
    yield {
        "beside": [fault.name for fault in faults],
        "started_s": round(started_s, 2),
        "p99_ms": {who: opened.percentile_ms(who, 0.99) for who in CALLERS},
        "others_answered": others.answered(),
        "failures_count": len(others.failures),
        "failures": others.failures[:5],
        "log_lines_not_json": len(not_json),
        "kept": running and not others.failures and not not_json,
    }


def _asked(stubs: Stubs, fault: Fault) -> dict[str, Any]:
    """Ask an offender several times, as callers of its own would."""
    said, longest_s = [], 0.0
    for number in range(REPEATED):
        began = time.monotonic()
        failure = ask(stubs, fault, PATIENCE_S, number)
        longest_s = max(longest_s, time.monotonic() - began)
        said.append("OK" if failure is None else f"{failure.code.name} {failure.reason}")
    return {
        "fault": fault.name,
        "said": said,
        "longest_s": round(longest_s, 2),
        "kept": all(_right(fault, it) for it in said),
    }


def _right(fault: Fault, said: str) -> bool:
    if fault.method == "recognises":
        return said != "OK"  # other readers are asked too; that none recognises it is an answer as well
    if fault.answers:
        return said == "OK"
    reason = said.partition(" ")[2]
    if fault.loads and said == f"UNAVAILABLE {Reason.COMPUTE_LOST}":
        return True  # its breaker is open, or its process is being replaced: kinds without a reason of their own
    return reason.startswith(f"{fault.kind.upper()}_" if fault.loads else NOT_FOUND[fault.kind])


def _latencies(window: Window) -> dict[str, dict[str, float]]:
    return {
        who: {"p50_ms": round(window.percentile_ms(who, 0.5), 2), "p99_ms": round(window.percentile_ms(who, 0.99), 2)}
        for who in CALLERS
    }
