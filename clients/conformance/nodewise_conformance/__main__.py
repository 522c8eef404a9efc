"""`python -m nodewise_conformance`: run the scenarios, print the table, end with 1 where anything is red."""

from __future__ import annotations

import argparse
import asyncio
import fnmatch
from collections.abc import Mapping, Sequence
from pathlib import Path

from nodewise_conformance.coverage import gaps
from nodewise_conformance.languages import NOT_BUILT, Column, TableError, read_languages
from nodewise_conformance.planting import planted_runs, unnoticed
from nodewise_conformance.report import page, sums, table
from nodewise_conformance.restarts import restart_under_load
from nodewise_conformance.running import Results, Run, run_each
from nodewise_conformance.scenarios import Scenario, ScenarioError, read_scenarios
from nodewise_conformance.stage import Stage
from nodewise_conformance.statuses import PLANTS
from nodewise_conformance.swaps import swap_under_load


def main() -> int:
    """Run what the command line asks for."""
    options = _options()
    try:
        scenarios = read_scenarios()
        columns, left_out = _columns(options.only)
    except (ScenarioError, TableError) as error:
        raise SystemExit(str(error)) from None
    for name, why in left_out.items():
        _say(f"{name} is left out: {why}")
    wrong = gaps(scenarios)
    wrong += [f"{name}: {why}" for name, why in left_out.items() if options.built and why.endswith(NOT_BUILT)]
    if options.restarts:
        wrong += asyncio.run(_restarted(columns, options.restarts))
    elif options.swaps:
        loads = asyncio.run(swap_under_load(columns, options.swaps, _say))
        wrong += [f"{load.column.name}: {error}" for load in loads for error in load.errors]
    else:
        wrong += asyncio.run(_run(columns, scenarios, left_out, options))
    for each in wrong:
        _say(each)
    return 1 if wrong else 0


async def _run(
    columns: Sequence[Column], scenarios: Sequence[Scenario], left_out: Mapping[str, str], options: argparse.Namespace
) -> list[str]:
    """Run scenarios and tell their results; returns what is wrong."""
    patterns = options.scenario or ["*"]
    selection = [each for each in scenarios if any(fnmatch.fnmatch(each.name, pattern) for pattern in patterns)]
    runs: list[Run] = [(scenario, options.plant) for scenario in selection]
    runs += planted_runs(scenarios) if options.planted else []
    async with Stage() as stage:
        results_by_plant = await run_each(columns, runs, stage, lanes=options.lanes, told=_say)
    results = results_by_plant.get(options.plant) or Results([column.name for column in columns])
    wrong = [f"{len(results.red)} of {len(results.complaints)} failed"] if results.red else []
    wrong += unnoticed(results_by_plant) if options.planted else []
    print(sums(results) if options.brief else table(results, selection))
    for (scenario, column), seconds in sorted(results.seconds.items(), key=lambda each: -each[1])[: options.slowest]:
        print(f"{seconds:6.2f} s  {column}: {scenario}")
    if options.page is not None:
        options.page.write_text(page(results, selection, left_out), encoding="utf-8")
    return wrong


async def _restarted(columns: Sequence[Column], restarts: int) -> list[str]:
    """Restart a server under load; returns what callers saw of it."""
    loads = await restart_under_load(columns, restarts, _say)
    for load in loads:
        _say(f"{load.column.name}: {load.reads} reads, {len(load.written)} batches in {load.sessions} sessions")
    return [f"{load.column.name}: {error}" for load in loads for error in load.errors]


def _say(text: str) -> None:
    print(f"make conformance: {text}", flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m nodewise_conformance", description=__doc__)
    parser.add_argument("--only", action="append", metavar="LANGUAGE", help="folder of clients/; repeatable")
    parser.add_argument("--scenario", action="append", metavar="PATTERN", help="names, with * and ?; repeatable")
    parser.add_argument("--lanes", type=int, default=3, help="executables of each column beside each other")
    parser.add_argument("--slowest", type=int, default=0, metavar="N", help="print the slowest scenarios")
    parser.add_argument("--plant", choices=PLANTS, help="add a regression that every client must notice")
    parser.add_argument("--brief", action="store_true", help="print failures and counts instead of the table")
    parser.add_argument("--built", action="store_true", help="fail if an executable is not built")
    parser.add_argument("--planted", action="store_true", help="also check that clients notice every such regression")
    parser.add_argument("--restarts", type=int, default=0, metavar="N", help="instead: restart a server under load")
    parser.add_argument("--swaps", type=int, default=0, metavar="N", help="instead: swap an estimator under load (Go)")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the results to this file")
    return parser.parse_args()


def _columns(only: list[str] | None) -> tuple[list[Column], dict[str, str]]:
    """Those that can run here, and why others cannot."""
    columns: list[Column] = []
    left_out: dict[str, str] = {}
    for language in read_languages():
        if only and language.name not in only:
            continue
        for column in language.columns:
            if column.absent is None:
                columns.append(column)
            else:
                left_out[column.name] = column.absent
    return columns, left_out


if __name__ == "__main__":
    raise SystemExit(main())
