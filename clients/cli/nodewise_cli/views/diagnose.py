"""Diagnoses as JSON and for people: the verdict first, then ranked lists."""

from __future__ import annotations

from typing import Any, Final

from nodewise_cli.console import say
from nodewise_cli.views.numbers import milliseconds, shown
from nodewise_cli.views.plain import fields_of, plain
from nodewise_cli.views.replay import collectives_of, edges_of, read_traces, warn
from nodewise_cli.views.table import figures, print_table, words
from nodewise_client import DiagnosisAnswer, DiagnosisBasis, Strategy

__all__ = ["document", "show"]

SHOWN: Final = 10
"""Entries of each list that a reader is shown; all of them are in the JSON."""
COMBINED: Final = 3
"""Combinations of strategies that a reader is shown: they are much alike."""


def document(result: DiagnosisAnswer) -> dict[str, Any]:
    """The JSON of a diagnosis. What is not known is null."""
    basis = result.basis or DiagnosisBasis()
    return {
        "verdict": result.verdict,
        "bound_by": result.bound_by,
        "step_s": result.step_seconds,
        "persistence_s": result.persistence_seconds,
        "exposed_communication_s": result.exposed_communication_seconds,
        "bottlenecks": plain(result.bottlenecks),
        "strategies": [_strategy(found) for found in result.strategies],
        "stragglers": plain(result.stragglers),
        "rank_shares": plain(result.rank_shares),
        "collectives": collectives_of(result.collectives),
        "edges": edges_of(result.edges),
        "events": basis.events_count,
        "ranks": list(basis.ranks),
        "world_size": basis.world_size,
        "load_s": basis.load_seconds,
        "peak_rss_bytes": int(basis.peak_memory_bytes),
        "complete": result.complete,
        "traces": read_traces(basis),
        "warnings": [found.message for found in result.warnings],
        "diagnoser": basis.diagnoser,
        "diagnoser_version": basis.diagnoser_version,
    }


def _strategy(found: Strategy) -> dict[str, Any]:
    changes = [fields_of(change) | {"kind": change.kind or "unspecified"} for change in found.changes]
    return fields_of(found) | {"changes": changes}


def show(result: DiagnosisAnswer) -> None:
    """Print the verdict and the lists."""
    say(result.verdict or f"Bound by {result.bound_by}.")
    say(
        f"A step takes {milliseconds(result.step_seconds)} ms and differs by "
        f"{milliseconds(result.persistence_seconds)} ms from the mean of the others; "
        f"{milliseconds(result.exposed_communication_seconds)} ms of it are exchanges and waiting that nothing hides."
    )
    if not result.complete:
        say("Time was over: this is what was found so far.")
    say()
    _bottlenecks(result)
    _strategies(result)
    _stragglers(result)
    _ranks(result)
    warn(result.basis or DiagnosisBasis(), result.warnings)


def _bottlenecks(result: DiagnosisAnswer) -> None:
    if not result.bottlenecks:
        return
    print_table(
        [words("costs"), words("what"), figures("rank"), figures("ms a step"), figures("gain ms"), words("matters")],
        [
            [
                found.kind.replace("_", " "),
                found.what,
                "all" if found.rank is None else str(found.rank),
                milliseconds(found.seconds),
                milliseconds(found.gain_if_removed_seconds),
                "yes" if found.matters else "no",
            ]
            for found in result.bottlenecks[:SHOWN]
        ],
        title=f"Bottlenecks ({_counted(len(result.bottlenecks))})",
    )


def _strategies(result: DiagnosisAnswer) -> None:
    """Single strategies first, as people begin with one; then the best of those that are combined."""
    single = [found for found in result.strategies if len(found.parts) < 2]
    combined = [found for found in result.strategies if len(found.parts) >= 2]
    numbers = [figures("step ms"), figures("from"), figures("to"), figures("speed-up")]
    if single:
        print_table(
            [words("strategy"), *numbers, words("effort")],
            [[found.name, *_predicted(found), found.effort or "-"] for found in single[:SHOWN]],
            title=f"Strategies ({_counted(len(single))})",
        )
    if combined:
        print_table(
            [words("together"), *numbers],
            [[found.name, *_predicted(found)] for found in combined[:COMBINED]],
            title=f"Strategies together (the best {min(COMBINED, len(combined))} of {len(combined)})",
        )


def _predicted(found: Strategy) -> list[str]:
    times = (found.predicted_step_seconds, found.lower_step_seconds, found.upper_step_seconds)
    return [*(milliseconds(each) for each in times), f"{found.speedup_ratio:.3f}"]


def _stragglers(result: DiagnosisAnswer) -> None:
    if not result.stragglers:
        return
    print_table(
        [
            words("exchange"),
            words("waits for"),
            figures("margin ms"),
            figures("wait ms"),
            figures("transfer ms"),
        ],
        [
            [
                found.collective,
                _who(found.ranks),
                milliseconds(found.margin_seconds),
                milliseconds(found.imposed_wait_seconds),
                milliseconds(found.transfer_seconds),
            ]
            for found in result.stragglers[:SHOWN]
        ],
        title=f"Stragglers ({_counted(len(result.stragglers))})",
    )


def _ranks(result: DiagnosisAnswer) -> None:
    if not result.rank_shares:
        return
    held = any(found.memory_high_water_bytes is not None for found in result.rank_shares)
    columns = [
        figures("rank"),
        figures("step ms"),
        figures("compute"),
        figures("communication"),
        figures("exposed"),
        figures("waiting"),
        figures("idle"),
        figures("host-bound"),
        figures("loading"),
    ]
    rows = []
    for found in result.rank_shares:
        times = (
            found.step_seconds,
            found.compute_seconds,
            found.communication_seconds,
            found.exposed_communication_seconds,
            found.waiting_seconds,
            found.idle_seconds,
            found.host_bound_seconds,
            found.data_loading_seconds,
        )
        row = [str(found.rank), *map(milliseconds, times)]
        if held:
            memory = found.memory_high_water_bytes
            row.append(shown(None if memory is None else memory / 2**30, 3))
        rows.append(row)
    print_table(columns + ([figures("GiB")] if held else []), rows, title="Ranks, ms of a mean step")


def _who(ranks: tuple[int, ...]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return f"a tie of ranks {', '.join(map(str, ranks))}"


def _counted(count: int) -> str:
    return f"{SHOWN} of {count}" if count > SHOWN else str(count)
