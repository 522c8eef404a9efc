"""The page: what was to be reached, and then every table, estimator and rule beside each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from accuracy.manifest import MODERN, RULES
from accuracy.predicting import MOST_NODES
from accuracy.record import paired
from accuracy.scoring import Score, Scored
from accuracy.targets import lines
from nodewise.estimation.question import AUTO

__all__ = ["page"]

HEAD: Final = """# Accuracy where nothing of the source was seen

Written by `make accuracy` (`research/score_accuracy.py`, with `NODEWISE_DATA`) from [a
manifest](../research/accuracy/manifest.py) that says for each table how the source of a row is told. What estimators
learn, they learn from other sources: of the organisation, device, model or campaign that is asked about they see the
rows of the asked job that are shown, and nothing else; where other campaigns are left out, what is shown of any job
of the table. The same for tables of your own: `nodewise backtest TABLE.csv --estimator all --leave-out job:2
--evidence 1`.

**mape**, **median**: mean and median of |predicted / measured - 1| of throughput; **step**: mean of the same of step
time; **macro**: mean over jobs of a job's mean |ln(predicted / measured)|; **covers**, **width**: share of rows
within their 90 % interval, and mean ln(upper / lower) of it; **conformal**: the width of an interval that is made of
nothing but the estimator's own errors on other sources, jobs or rows, and what it covers; **regret**, **hit**:
throughput lost by choosing as predicted, and how often the best was chosen; **against rule**: macro less that of the
best rule of one line on the rows that both answer, and a bootstrap's 90 % interval of the difference over jobs (over
jobs and scales where there are few jobs). † the prior that the estimator ships was learned from this very table:
nothing could be left out. Memory: **mape** of the bytes of a device, **false fits** and **false refusals** of runs
that ran out of memory and of runs that ran.
"""

Cell = Callable[[Scored, Score], str]

COLUMNS: Final[Mapping[str, tuple[str, Cell]]] = {
    "rows": ("rows_count", lambda _, score: _count(score.metrics.get("rows_count"))),
    "refused": ("", lambda _, score: _count(score.metrics.get("refused_count"))),
    "mape": ("rows_count", lambda _, score: _percent(score.metrics.get("mape"))),
    "median": ("rows_count", lambda _, score: _percent(score.metrics.get("median_ape"))),
    "step": ("rows_count", lambda _, score: _percent(score.metrics.get("step_mape"))),
    "macro": ("rows_count", lambda _, score: _number(score.metrics.get("macro_abs_ln"))),
    "covers": ("rows_count", lambda _, score: _percent(score.metrics.get("coverage90"), 0)),
    "width": ("rows_count", lambda _, score: _number(score.metrics.get("width90"), 2)),
    "conformal": ("rows_count", lambda _, score: _conformal(score)),
    "regret": ("groups_count", lambda _, score: _percent(score.metrics.get("regret"))),
    "hit": ("groups_count", lambda _, score: _percent(score.metrics.get("hit"), 0)),
    "memory mape": ("memory_mape", lambda _, score: _percent(score.metrics.get("memory_mape"))),
    "false fits": ("memory_mape", lambda _, score: _percent(score.metrics.get("false_fits"))),
    "false refusals": ("memory_mape", lambda _, score: _percent(score.metrics.get("false_refusals"))),
    "against rule": ("rule", lambda part, score: _against(score, part)),
}
"""Headings, the score that must be there for a column to stand, and what a cell says."""


def page(found: Sequence[Scored]) -> str:
    """Markdown."""
    return "\n".join([HEAD, *_summary(found), *_overview(found), *_details(found)]) + "\n"


def _summary(found: Sequence[Scored]) -> Iterator[str]:
    yield "## What shall be reached, and what is"
    yield "Of `auto`. Where it is worse than the best rule of one line beyond noise, there is a line as well.\n"
    yield "| what | target | found | |"
    yield "|---|---|---|---|"
    for line in lines(found):
        mark = "" if line.reached is None else "reached" if line.reached else "**missed**"
        yield f"| {line.what.replace('|', '/')} | {line.target} | {line.found} | {mark} |"
    yield ""


def _overview(found: Sequence[Scored]) -> Iterator[str]:
    told = {name for part in found for name, score in part.scores.items() if score.metrics.get("rows_count")}
    names = sorted(told, key=_order)
    yield "## Everything beside each other"
    yield "Macro |ln|, and in brackets the rows refused; the least of each line in bold.\n"
    yield f"| table | left out | shown | part | {' | '.join(names)} |"
    yield "|---|---|---|---|" + "---:|" * len(names)
    for part in found:
        scores = [part.scores.get(name) for name in names]
        values = [None if score is None else score.metrics.get("macro_abs_ln") for score in scores]
        if any(value is not None for value in values):
            least = min(round(value, 3) for value in values if value is not None)
            cells = [_brief(*pair, least) for pair in zip(scores, values, strict=True)]
            case = part.case
            table = ", ".join(name.removeprefix(MODERN) for name in case.tables)
            yield f"| {table} | {case.held} | {_evidence(part)} | {part.part} | {' | '.join(cells)} |"
    yield ""


def _evidence(part: Scored) -> str:
    """What is shown of a job; of train rows also how many there are."""
    if part.case.rows is not None or part.case.workers:
        return part.case.evidence
    least, most = part.shown
    return f"{part.case.evidence} ({least if least == most else f'{least} to {most}'})"


def _brief(score: Score | None, macro: float | None, least: float) -> str:
    if score is None or macro is None:
        return ""
    text = f"**{macro:.3f}**" if round(macro, 3) <= least else f"{macro:.3f}"
    refused = score.metrics.get("refused_count")
    return f"{text} ({refused})" if refused else text


def _details(found: Sequence[Scored]) -> Iterator[str]:
    for tables, parts in groupby(found, key=lambda part: part.case.tables):
        yield f"## {', '.join(table.removeprefix(MODERN) for table in tables)}"
        for part in parts:
            apart = "" if part.part == "all" else f" {part.part.capitalize()}."
            yield f"**Left out: {part.case.held}; shown: {_evidence(part)}.**{apart}\n"
            yield from _table(part)
            yield ""


def _table(part: Scored) -> Iterator[str]:
    told = {name: score for name, score in part.scores.items() if _says(name, score)}
    if told.keys() <= {MOST_NODES}:
        yield "Every estimator refuses every row."
        return
    there = {name for score in told.values() for name, value in score.metrics.items() if _stands(name, value)}
    wanted = {"", *there, *({"rule"} if part.best_rule else ())}
    columns = {heading: cell for heading, (needs, cell) in COLUMNS.items() if needs in wanted}
    yield f"| estimator | {' | '.join(columns)} |"
    yield "|---|" + "---:|" * len(columns)
    for name in sorted(told, key=_order):
        marked = f"{name}{'†' if _taught(part, name) else ''}"
        yield f"| {marked} | {' | '.join(cell(part, told[name]) for cell in columns.values())} |"


def _stands(name: str, value: float | None) -> bool:
    return bool(value) if name.endswith("_count") else value is not None


def _says(name: str, score: Score) -> bool:
    if name == MOST_NODES:
        return bool(score.metrics["groups_count"])
    return bool(score.metrics.get("rows_count")) or score.metrics.get("memory_mape") is not None


def _order(name: str) -> tuple[int, str]:
    return (0 if name == AUTO else 3 if name == MOST_NODES else 2 if name in RULES else 1, name)


def _conformal(score: Score) -> str:
    """Width, and what it covers."""
    if score.rule_width is None:
        return ""
    return f"{score.rule_width:.2f} ({_percent(score.rule_coverage, 0)})"


def _against(score: Score, part: Scored) -> str:
    rule = part.scores[part.best_rule or ""]
    if score is rule or not score.units.keys() & rule.units.keys():
        return "best rule" if score is rule else ""
    mean, low, high = paired(score.units, rule.units)
    return f"{mean:+.3f} ({low:+.3f} to {high:+.3f})"


def _taught(part: Scored, name: str) -> bool:
    """Whether what answers rest on names the table among what it was learned from."""
    for prior in part.prior.split("; "):
        told = prior.split(", learned from ", 1)
        if len(told) == 2 and any(f"{table.rsplit('/', 1)[-1]}.csv" in told[1] for table in part.case.tables):
            owner = told[0].split(", ")[0].rsplit("-", 1)[0]
            if name in (owner, AUTO):
                return True
    return False


def _count(value: float | None) -> str:
    return "" if value is None else str(value)


def _percent(value: float | None, digits: int = 1) -> str:
    return "" if value is None else f"{100.0 * value:.{digits}f} %"


def _number(value: float | None, digits: int = 3) -> str:
    return "" if value is None else f"{value:.{digits}f}"
