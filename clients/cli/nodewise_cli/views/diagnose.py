"""Diagnoses as JSON and for people: the verdict first, then ranked lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from nodewise_cli.console import print_line, say, width_of_output
from nodewise_cli.step_parts import GROUPS, kind_of
from nodewise_cli.views.numbers import gibibytes, milliseconds
from nodewise_cli.views.plain import fields_of
from nodewise_cli.views.replay import recorded_of, say_truncated, warn
from nodewise_cli.views.table import figures, names, print_columns, print_table, words
from nodewise_client import Bottleneck, DiagnosisAnswer, RankShares, Straggler, Strategy

__all__ = ["document", "show"]

SHOWN: Final = 10
"""Entries of each list that a reader is shown; all of them are in the JSON."""
BARS: Final = 16
"""Ranks whose step is shown as a bar."""
COMBINED: Final = 3
"""Combinations of strategies that a reader is shown: they are much alike."""


def document(result: DiagnosisAnswer) -> dict[str, Any]:
    """The JSON of a diagnosis. What is not known is null."""
    left_out = ("steps", "edges", "warnings", "basis", "timeline", "recorded")
    return fields_of(result, *left_out) | {
        "strategies": [_strategy(found) for found in result.strategies],
        **recorded_of(result),
    }


def _strategy(found: Strategy) -> dict[str, Any]:
    changes = [fields_of(change) | {"kind": change.kind or "unspecified"} for change in found.changes]
    return fields_of(found) | {"changes": changes}


def show(result: DiagnosisAnswer) -> None:
    """Print the verdict and the lists."""
    say_truncated(result)
    say(result.verdict or f"Bound by {result.bound_by}.")
    say(
        f"A step takes {milliseconds(result.step_seconds)} ms and differs by "
        f"{milliseconds(result.persistence_seconds)} ms from the mean of the others; "
        f"{milliseconds(result.exposed_communication_seconds)} ms of it are exchanges and waiting that nothing hides."
    )
    if not result.complete:
        say("Time was over: this is what was found so far.")
    say()
    if result.bottlenecks:
        _bottlenecks(result.bottlenecks)
    _strategies(result)
    if result.stragglers:
        _stragglers(result.stragglers)
    if result.rank_shares:
        _bars(result.rank_shares)
        _ranks(result.rank_shares)
        _parts(result.rank_shares)
    warn(result)


def _bottlenecks(found: Sequence[Bottleneck]) -> None:
    listed = found[:SHOWN]
    print_columns(
        (words("costs", 5), [each.kind.replace("_", " ") for each in listed]),
        (names("what", 0), [each.what for each in listed]),
        (figures("rank"), ["all" if each.rank is None else str(each.rank) for each in listed]),
        (figures("ms a step"), [milliseconds(each.seconds) for each in listed]),
        (figures("gain ms"), [milliseconds(each.gain_if_removed_seconds) for each in listed]),
        (words("matters"), ["yes" if each.matters else "no" for each in listed]),
        title=f"Bottlenecks ({_count(len(found))})",
    )


def _strategies(result: DiagnosisAnswer) -> None:
    """Single strategies first, as people begin with one; then the best of those that are combined."""
    single = [found for found in result.strategies if len(found.parts) < 2]
    combined = [found for found in result.strategies if len(found.parts) >= 2]
    numbers = list(map(figures, ("step ms", "from", "to", "speed-up")))
    if single:
        print_table(
            [names("strategy"), *numbers, words("effort")],
            [[found.name, *_tell_predictions(found), found.effort or "-"] for found in single[:SHOWN]],
            title=f"Strategies ({_count(len(single))})",
        )
    if combined:
        print_table(
            [names("together", most_lines=8), *numbers],
            [[found.name, *_tell_predictions(found)] for found in combined[:COMBINED]],
            title=f"Strategies together (the best {min(COMBINED, len(combined))} of {len(combined)})",
        )


def _tell_predictions(found: Strategy) -> list[str]:
    times = (found.predicted_step_seconds, found.lower_step_seconds, found.upper_step_seconds)
    return [*(milliseconds(each) for each in times), f"{found.speedup_ratio:.3f}"]


def _stragglers(found: Sequence[Straggler]) -> None:
    listed = found[:SHOWN]
    print_columns(
        (names("exchange"), [each.collective for each in listed]),
        (names("waits for"), [_who(each.ranks) for each in listed]),
        (figures("margin ms"), [milliseconds(each.margin_seconds) for each in listed]),
        (figures("wait ms"), [milliseconds(each.imposed_wait_seconds) for each in listed]),
        (figures("transfer ms"), [milliseconds(each.transfer_seconds) for each in listed]),
        title=f"Stragglers ({_count(len(found))})",
    )


def _bars(shares: Sequence[RankShares]) -> None:
    """The step of each rank as a bar of its groups of parts, on one scale."""
    listed = shares[:BARS]
    room = min(width_of_output(), 100) - 18
    longest = max((each.step_seconds for each in listed), default=0.0)
    if not longest or room < 20 or not any(each.parts for each in listed):
        return
    say(
        f"Steps ({min(BARS, len(shares))} of {len(shares)} ranks), a full line is {milliseconds(longest)} ms", bold=True
    )
    met: set[str] = set()
    for each in listed:
        sums: dict[str, float] = {}
        for part in each.parts:
            group = kind_of(part.kind).group
            sums[group] = sums.get(group, 0.0) + part.seconds
        bar, reached = "", 0.0
        for group, filled in GROUPS.items():
            # Ends are rounded, not lengths: those would not add up.
            reached += sums.get(group, 0.0)
            more = round(room * reached / longest) - len(bar)
            bar += filled * more
            met |= {group} if more > 0 else set()
        print_line(f"{each.rank:>6}  |{bar:<{room}}|{milliseconds(each.step_seconds):>8}")
    say("        " + "  ".join(f"{filled} {group}" for group, filled in GROUPS.items() if group in met))
    say()


def _ranks(shares: Sequence[RankShares]) -> None:
    held = [each.memory_high_water_bytes for each in shares]
    print_columns(
        (figures("rank"), [str(each.rank) for each in shares]),
        (figures("step ms"), [milliseconds(each.step_seconds) for each in shares]),
        (figures("compute"), [milliseconds(each.compute_seconds) for each in shares]),
        (figures("communication"), [milliseconds(each.communication_seconds) for each in shares]),
        (figures("exposed"), [milliseconds(each.exposed_communication_seconds) for each in shares]),
        (figures("waiting"), [milliseconds(each.waiting_seconds) for each in shares]),
        (figures("idle"), [milliseconds(each.idle_seconds) for each in shares]),
        (figures("host-bound"), [milliseconds(each.host_bound_seconds) for each in shares]),
        (figures("loading"), [milliseconds(each.data_loading_seconds) for each in shares]),
        *([(figures("GiB"), [gibibytes(each) for each in held])] if any(each is not None for each in held) else []),
        title="Ranks, ms of a mean step",
    )


def _parts(shares: Sequence[RankShares]) -> None:
    """The longest parts of a step, mean over ranks, and on which rank each is longest."""
    by_part: dict[tuple[str, str], dict[int, float]] = {}
    for each in shares:
        for part in each.parts:
            by_rank = by_part.setdefault((part.kind, part.what), {})
            by_rank[each.rank] = by_rank.get(each.rank, 0.0) + part.seconds
    mean = {part: sum(by_rank.values()) / len(shares) for part, by_rank in by_part.items()}
    listed = sorted(mean, key=lambda part: -mean[part])[:SHOWN]
    if not listed:
        return
    most = {part: max(by_part[part], key=by_part[part].__getitem__) for part in listed}
    print_columns(
        (figures("ms"), [milliseconds(mean[part]) for part in listed]),
        (figures("most"), [milliseconds(by_part[part][most[part]]) for part in listed]),
        (figures("on rank"), [str(most[part]) for part in listed]),
        (words("part"), [kind.replace("_", " ") for kind, _ in listed]),
        (names("what", 0), [what for _, what in listed]),
        title=f"Parts of a mean step, which add up to it ({_count(len(mean))})",
    )


def _who(ranks: tuple[int, ...]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return f"a tie of ranks {', '.join(map(str, ranks))}"


def _count(count: int) -> str:
    return f"{SHOWN} of {count}" if count > SHOWN else str(count)
