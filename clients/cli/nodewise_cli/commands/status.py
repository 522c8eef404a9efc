"""`nodewise status` and `nodewise top`: the state of a server on one screen."""

from __future__ import annotations

import sys
import time
from collections import deque
from dataclasses import replace
from typing import Annotated, Any, Final

import typer
from rich.console import Group
from rich.live import Live
from rich.table import Table
from typer import Argument, Option

from nodewise_cli.commands.estimators import document
from nodewise_cli.commands.health import SOON, HealthCall
from nodewise_cli.console import print_json, say, visible
from nodewise_cli.failures import ExitStatus
from nodewise_cli.scraping import Page, Samples
from nodewise_cli.views.numbers import format_count, format_number, gibibytes, milliseconds, percent
from nodewise_cli.views.table import Column, figures, print_table, words
from nodewise_client import (
    Client,
    HealthStatus,
    ListGenerationsRequest,
    NotFoundError,
    PermissionDeniedError,
    UnavailableError,
)

__all__ = ["status", "top"]

Target = Annotated[str | None, Argument(metavar="[HOST:PORT]", help="Server to call; overrides --server.")]
Http = Annotated[
    str | None, Option("--http", metavar="HOST:PORT", help="HTTP address of the server: adds its checks and metrics.")
]
Rows = tuple[list[Column], list[list[str]]]

REFRESH_S: Final = 2.0
WINDOW: Final = 6
"""Samples that a rate goes over: 10 s, for the server counts all but calls anew every 5 s."""
SERVER_FAULTS: Final = frozenset({"INTERNAL", "UNAVAILABLE", "UNKNOWN", "DATA_LOSS"})
PLUGIN_STATES: Final = ("breakers_open", "hosts", "hosts_alive")
DURATION: Final = "nodewise_rpc_duration_seconds"


def status(target: Target = None, http: Http = None, call: HealthCall = SOON) -> None:
    """Show whether a server is ready, with checks, workers, generation, store and estimators; exit 0 if ready, else 1.

    Workers are shown with --http only. Without it, the generation needs an administrator and the setting `admin`.
    """
    call = replace(call, server=target or call.server)
    with call.connect() as client:
        report: dict[str, Any] = {"server": call.server, "ready": False, "checks": _checks(client)}
        report |= _generation(client)
        try:
            report["estimators"] = document(client.list_estimators())["estimators"]
        except UnavailableError:  # scores are in the store, whose state is among the checks
            report["estimators"] = []
    if http is not None:
        page = Page(http, call)
        report["checks"] = page.checks()
        report |= _figures(page.samples())
    report["ready"] = all(each == "ok" for each in report["checks"].values())
    if call.as_json:
        print_json(report)
    else:
        _show(report)
    if not report["ready"]:
        raise typer.Exit(ExitStatus.FAILURE)


def _checks(client: Client) -> dict[str, str]:
    """Checks by gRPC's health service."""
    states = {}
    for name, entry in (("serving", ""), ("store", "store")):
        try:
            state = client.health(entry)
        except NotFoundError:
            continue
        states[name] = "ok" if state is HealthStatus.SERVING else str(state)
    return states


def _generation(client: Client) -> dict[str, Any]:
    try:
        tracks = client.list_generations(ListGenerationsRequest()).tracks
    except PermissionDeniedError:
        return {}
    return {} if tracks is None else {"generation": tracks.stable_generation}


def _figures(samples: Samples) -> dict[str, Any]:
    return {
        "workers": int(samples.total("nodewise_workers")),
        "generation": int(samples.total("nodewise_generation", track="stable")),
        "canary": int(samples.total("nodewise_generation", track="canary")) or None,
        "profiles": int(samples.total("nodewise_store_profiles")),
        "store_bytes": int(samples.total("nodewise_store_bytes")),
        "waiting_writes": int(samples.total("nodewise_store_waiting_writes")),
        "open_breakers": int(samples.total("nodewise_plugin_breakers_open")),
    }


def _show(report: dict[str, Any]) -> None:
    say(f"{report['server']} is {'ready' if report['ready'] else 'not ready'}", bold=True)
    for name, state in report["checks"].items():
        say(f"  {name}: {state}")
    parts = [
        f"{name.replace('_', ' ')} {value:,}"
        for name, value in report.items()
        if isinstance(value, int) and name != "ready"
    ]
    if parts:
        say(", ".join(parts))
    say()
    rows = [
        [each["name"], format_count(each["scored"]), format_number(each["mean_abs_ln"], 3), percent(each["coverage90"])]
        for each in report["estimators"]
    ]
    print_table([words("estimator"), figures("scored"), figures("mean |ln r|"), figures("90 % covers")], rows)


def top(
    http: Annotated[str, Argument(metavar="[HOST:PORT]", help="HTTP address of the server.")] = "127.0.0.1:50552",
    once: Annotated[bool, Option("--once", help="Print one screen, from two samples 2 s apart, and exit.")] = False,
    call: HealthCall = SOON,
) -> None:
    """Show calls, queues, plugins and workers of a server, with rates over 10 s, until Ctrl-C.

    The command reads the server's metrics, so the server needs the setting `http`.
    """
    page = Page(http, call)
    samples = deque([(time.monotonic(), page.samples())], maxlen=WINDOW)
    if once or call.as_json or not sys.stdout.isatty():
        _sample(page, samples)
        tables = _rates(samples)
        if call.as_json:
            print_json(
                {
                    name: [dict(zip((each.heading for each in columns), row, strict=True)) for row in rows]
                    for name, (columns, rows) in tables.items()
                }
            )
            return
        for name, (columns, rows) in tables.items():
            print_table(columns, rows, name)
        return
    with Live(screen=True, auto_refresh=False) as live:
        while True:
            _sample(page, samples)
            live.update(Group(*map(_table_of, _rates(samples).items())), refresh=True)


def _sample(page: Page, samples: deque[tuple[float, Samples]]) -> None:
    time.sleep(REFRESH_S)
    samples.append((time.monotonic(), page.samples()))


def _table_of(entry: tuple[str, Rows]) -> Table:
    name, (columns, rows) = entry
    table = Table(title=name, title_justify="left", box=None)
    for column in columns:
        table.add_column(column.heading, justify="right" if column.numeric else "left")
    for row in rows:
        table.add_row(*map(visible, row))
    return table


def _rates(samples: deque[tuple[float, Samples]]) -> dict[str, Rows]:
    """Tables by title, from the oldest sample to the newest."""
    (before_s, before), (now_s, now) = samples[0], samples[-1]

    def rate(name: str, **labels: str) -> float:
        """The rate of a counter, which a restart of the server resets."""
        return max(0.0, now.total(name, **labels) - before.total(name, **labels)) / (now_s - before_s)

    def call(method: str) -> list[str]:
        calls, seconds = (rate(f"{DURATION}_{each}", method=method) for each in ("count", "sum"))
        failures = sum(rate(f"{DURATION}_count", method=method, code=code) for code in SERVER_FAULTS)
        mean_s = seconds / calls if calls else None
        return [method.rpartition("/")[2], format_number(calls, 3), format_number(failures, 3), milliseconds(mean_s)]

    def queue(name: str) -> list[str]:
        waiting, running, permits = (
            now.total(f"nodewise_queue_{each}", queue=name) for each in ("waiting_calls", "permits_in_use", "permits")
        )
        refusals = rate("nodewise_queue_refused_calls_total", queue=name)
        return [name, format_count(waiting), format_count(running), format_count(permits), format_number(refusals, 3)]

    def plugin(name: str) -> list[str]:
        calls = rate("nodewise_plugin_calls_total", distribution=name)
        failures = rate("nodewise_plugin_calls_total", distribution=name, outcome="failed")
        states = (now.total(f"nodewise_plugin_{each}", distribution=name) for each in PLUGIN_STATES)
        return [name, format_number(calls, 3), format_number(failures, 3), *map(format_count, states)]

    def worker(pid: str) -> list[str]:
        cores = rate("nodewise_worker_cpu_seconds", pid=pid)
        return [pid, format_number(cores, 3), gibibytes(now.total("nodewise_worker_resident_memory_bytes", pid=pid))]

    writes = rate("nodewise_store_writes_total")
    store = [
        "up" if now.total("nodewise_store_up") else "down",
        format_number(writes, 3),
        milliseconds(rate("nodewise_store_write_seconds_total") / writes if writes else None),
        format_number(rate("nodewise_ingested_rows_total"), 3),
        format_count(now.total("nodewise_store_waiting_writes")),
    ]
    caches = ["all workers", *(gibibytes(now.total(f"nodewise_cache_{each}")) for each in ("bytes", "capacity_bytes"))]
    calls = [call(each) for each in now.labels(f"{DURATION}_count", "method")]
    queues = [queue(each) for each in now.labels("nodewise_queue_permits", "queue")]
    plugins = [plugin(each) for each in now.labels("nodewise_plugin_calls_total", "distribution")]
    processes = [worker(each) for each in now.labels("nodewise_worker_resident_memory_bytes", "pid")]
    return {
        "calls": ([words("method"), *map(figures, ("calls/s", "failed/s", "mean ms"))], calls),
        "queues": ([words("queue"), *map(figures, ("waiting", "running", "permits", "refused/s"))], queues),
        "store": ([words("store"), *map(figures, ("writes/s", "mean ms", "rows/s", "waiting"))], [store]),
        "plugins": (
            [words("plugin"), *map(figures, ("calls/s", "failed/s", "open breakers", "hosts", "alive"))],
            plugins,
        ),
        "caches": ([words("caches"), *map(figures, ("GiB", "of GiB"))], [caches]),
        "workers": ([words("worker"), *map(figures, ("cores", "GiB"))], processes),
    }
