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

SHOWN_ROWS: Final = 10
"""Entries of each list that a reader is shown; all of them are in the JSON."""
BARS: Final = 16
"""Ranks whose step is shown as a bar."""
SHOWN_COMBINATIONS: Final = 3
"""Combinations of strategies that a reader is shown: they are much alike."""


def document(result: DiagnosisAnswer) -> dict[str, Any]:
    """The JSON of a diagnosis. What is not known is null."""
    left_out = ("steps", "edges", "warnings", "basis", "timeline", "recorded")
    return fields_of(result, *left_out) | {
        "strategies": [_strategy(strategy) for strategy in result.strategies],
        **recorded_of(result),
    }


def _strategy(strategy: Strategy) -> dict[str, Any]:
    changes = [fields_of(change) | {"kind": change.kind or "unspecified"} for change in strategy.changes]
    return fields_of(strategy) | {"changes": changes}


def show(result: DiagnosisAnswer) -> None:
    """Print the verdict and the lists."""
    say_truncated(result)
    say(result.verdict or f"Bound by {result.bound_by}.")
    say(
        f"A step takes {milliseconds(result.step_seconds)} ms and differs by "
        f"{milliseconds(result.persistence_seconds)} ms from the mean of the others; "
        f"{milliseconds(result.exposed_communication_seconds)} ms of it are exchanges and waiting outside of "
        "computation."
    )
    if not result.complete:
        say("The time limit ended the search: this is the result so far.")
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


def _bottlenecks(bottlenecks: Sequence[Bottleneck]) -> None:
    shown_bottlenecks = bottlenecks[:SHOWN_ROWS]
    print_columns(
        (words("costs", 5), [each.kind.replace("_", " ") for each in shown_bottlenecks]),
        (names("what", 0), [each.what for each in shown_bottlenecks]),
        (figures("rank"), ["all" if each.rank is None else str(each.rank) for each in shown_bottlenecks]),
        (figures("ms a step"), [milliseconds(each.seconds) for each in shown_bottlenecks]),
        (figures("gain ms"), [milliseconds(each.gain_if_removed_seconds) for each in shown_bottlenecks]),
        (words("significant"), ["yes" if each.matters else "no" for each in shown_bottlenecks]),
        title=f"Bottlenecks ({_count(len(bottlenecks))})",
    )


def _strategies(result: DiagnosisAnswer) -> None:
    """Single strategies first, as people begin with one; then the best of those that are combined."""
    single = [strategy for strategy in result.strategies if len(strategy.parts) < 2]
    combinations = [strategy for strategy in result.strategies if len(strategy.parts) >= 2]
    numbers = list(map(figures, ("step ms", "from", "to", "speed-up")))
    if single:
        print_table(
            [names("strategy"), *numbers, words("effort")],
            [[strategy.name, *_tell_predictions(strategy), strategy.effort or "-"] for strategy in single[:SHOWN_ROWS]],
            title=f"Strategies ({_count(len(single))})",
        )
    if combinations:
        print_table(
            [names("strategies", most_lines=8), *numbers],
            [[strategy.name, *_tell_predictions(strategy)] for strategy in combinations[:SHOWN_COMBINATIONS]],
            title=f"Combined strategies (the best {min(SHOWN_COMBINATIONS, len(combinations))} of {len(combinations)})",
        )


def _tell_predictions(strategy: Strategy) -> list[str]:
    times = (strategy.predicted_step_seconds, strategy.lower_step_seconds, strategy.upper_step_seconds)
    return [*(milliseconds(each) for each in times), f"{strategy.speedup_ratio:.3f}"]


def _stragglers(stragglers: Sequence[Straggler]) -> None:
    shown_stragglers = stragglers[:SHOWN_ROWS]
    print_columns(
        (names("exchange"), [each.collective for each in shown_stragglers]),
        (names("waits for"), [_who(each.ranks) for each in shown_stragglers]),
        (figures("margin ms"), [milliseconds(each.margin_seconds) for each in shown_stragglers]),
        (figures("wait ms"), [milliseconds(each.imposed_wait_seconds) for each in shown_stragglers]),
        (figures("transfer ms"), [milliseconds(each.transfer_seconds) for each in shown_stragglers]),
        title=f"Stragglers ({_count(len(stragglers))})",
    )


def _bars(shares: Sequence[RankShares]) -> None:
    """The step of each rank as a bar of its groups of parts, on one scale."""
    shown_ranks = shares[:BARS]
    bar_columns = min(width_of_output(), 100) - 18
    longest = max((each.step_seconds for each in shown_ranks), default=0.0)
    if not longest or bar_columns < 20 or not any(each.parts for each in shown_ranks):
        return
    say(f"Steps ({min(BARS, len(shares))} of {len(shares)} ranks); a full bar is {milliseconds(longest)} ms", bold=True)
    groups: set[str] = set()
    for each in shown_ranks:
        sums: dict[str, float] = {}
        for part in each.parts:
            group = kind_of(part.kind).group
            sums[group] = sums.get(group, 0.0) + part.seconds
        bar, end_s = "", 0.0
        for group, character in GROUPS.items():
            # Ends are rounded, not lengths: those would not add up.
            end_s += sums.get(group, 0.0)
            more = round(bar_columns * end_s / longest) - len(bar)
            bar += character * more
            groups |= {group} if more > 0 else set()
        print_line(f"{each.rank:>6}  |{bar:<{bar_columns}}|{milliseconds(each.step_seconds):>8}")
    say("        " + "  ".join(f"{character} {group}" for group, character in GROUPS.items() if group in groups))
    say()


def _ranks(shares: Sequence[RankShares]) -> None:
    memory_bytes = [each.memory_high_water_bytes for each in shares]
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
        *(
            [(figures("GiB"), [gibibytes(each) for each in memory_bytes])]
            if any(each is not None for each in memory_bytes)
            else []
        ),
        title="Ranks (ms of a mean step)",
    )


def _parts(shares: Sequence[RankShares]) -> None:
    """The longest parts of a step, mean over ranks, and on which rank each is longest."""
    by_part: dict[tuple[str, str], dict[int, float]] = {}
    for each in shares:
        for part in each.parts:
            by_rank = by_part.setdefault((part.kind, part.what), {})
            by_rank[each.rank] = by_rank.get(each.rank, 0.0) + part.seconds
    mean = {part: sum(by_rank.values()) / len(shares) for part, by_rank in by_part.items()}
    longest = sorted(mean, key=lambda part: -mean[part])[:SHOWN_ROWS]
    if not longest:
        return
    most = {part: max(by_part[part], key=by_part[part].__getitem__) for part in longest}
    print_columns(
        (figures("ms"), [milliseconds(mean[part]) for part in longest]),
        (figures("largest"), [milliseconds(by_part[part][most[part]]) for part in longest]),
        (figures("on rank"), [str(most[part]) for part in longest]),
        (words("part"), [kind.replace("_", " ") for kind, _ in longest]),
        (names("what", 0), [what for _, what in longest]),
        title=f"Parts of a mean step ({_count(len(mean))})",
    )


def _who(ranks: tuple[int, ...]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return f"tied ranks {', '.join(map(str, ranks))}"


def _count(count: int) -> str:
    return f"{SHOWN_ROWS} of {count}" if count > SHOWN_ROWS else str(count)
