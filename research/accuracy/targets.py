"""What shall be reached, and what is: the first part of the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from accuracy.manifest import CASES, PHASES, RULES
from accuracy.predicting import MOST_NODES
from accuracy.record import paired
from accuracy.scoring import Score, Scored
from nodewise.estimation.question import AUTO

__all__ = ["Line", "lines"]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the summary; ``reached`` None = nothing to tell."""

    what: str
    target: str
    found: str
    reached: bool | None


MLPERF: Final = "mlperf_scaling_dev | organisation | "
TRAIN, ONE = "its train rows", "1 row a job"
FACTS: Final = " | all but the facts | 0 rows a job"
UNSAID: Final = f"{FACTS}, not said: framework, recompute"
KINDS: Final = (" | data-parallel kinds", " | language models")
ALL: Final = " | all"

LIMITS: Final[tuple[tuple[str, str, str, float], ...]] = (
    ("MLPerf, data-parallel kinds: median", MLPERF + TRAIN + KINDS[0], "median_ape", 0.06),
    ("MLPerf, data-parallel kinds: macro", MLPERF + TRAIN + KINDS[0], "macro_abs_ln", 0.12),
    ("MLPerf, language models: median", MLPERF + TRAIN + KINDS[1], "median_ape", 0.05),
    ("MLPerf, language models: macro", MLPERF + TRAIN + KINDS[1], "macro_abs_ln", 0.06),
    ("MLPerf, data-parallel kinds, one row: macro", MLPERF + ONE + KINDS[0], "macro_abs_ln", 0.40),
    ("MLPerf, language models, one row: macro", MLPERF + ONE + KINDS[1], "macro_abs_ln", 0.14),
    ("InternEvo: mape", f"internevo_dev | the campaign | {TRAIN}{ALL}", "mape", 0.05),
    ("InternEvo: refused", f"internevo_dev | the campaign | {TRAIN}{ALL}", "refused_count", 0),
    ("BigScience A100, facts alone: step mape", f"bigscience{FACTS}{ALL}", "step_mape", 0.10),
    ("llm-foundry, facts alone: step mape", f"foundry{FACTS}{ALL}", "step_mape", 0.15),
    ("GPT-3 H100, facts alone: step mape", f"mlperf{FACTS}{ALL}", "step_mape", 0.12),
    ("BigScience A100, one row a model: step mape", f"bigscience | other campaigns | {ONE}{ALL}", "step_mape", 0.06),
    ("llm-foundry, one row a model: step mape", f"foundry | other campaigns | 1 row a model{ALL}", "step_mape", 0.09),
    ("GPT-3 H100, one row a model: step mape", f"mlperf | other campaigns | {ONE}{ALL}", "step_mape", 0.06),
    *(
        (f"BigScience memory, {words}: {metric}", f"{table} | {held} | 0 rows a job{ALL}", metric, limit)
        for words, table, held in (
            ("jobs left out", "bigscience_memory_dev", "job, others known"),
            ("V100 for A100", "bigscience_memory_dev", "the campaign, V100 known"),
            ("A100 for V100", "bigscience_v100_memory_dev", "the campaign, A100 known"),
        )
        for metric, limit in (("memory_mape", 0.05), ("false_fits", 0.0), ("false_refusals", 0.01))
    ),
    ("asynchronous jobs by throughputs alone, two CNNs: mape", f"cmdare_async_ps | model | {TRAIN}{ALL}", "mape", 0.05),
    (
        "asynchronous jobs by throughputs alone, testbed: mape",
        f"testbed_ps | job | rows of 1 and 4 workers, not said: {', '.join(PHASES)} | asynchronous",
        "mape",
        0.05,
    ),
)
"""What, where, which score, and the most that it shall be."""

COVERED: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("MLPerf, train rows", tuple(MLPERF + TRAIN + kind for kind in KINDS)),
    ("MLPerf, one row", tuple(MLPERF + ONE + kind for kind in KINDS)),
    ("InternEvo", (f"internevo_dev | the campaign | {TRAIN}{ALL}",)),
    *((f"{table}, facts alone", (f"{table}{FACTS}{ALL}",)) for table in ("bigscience", "foundry", "mlperf")),
    ("bigscience, one row a model", (f"bigscience | other campaigns | {ONE}{ALL}",)),
    ("foundry, one row a model", (f"foundry | other campaigns | 1 row a model{ALL}",)),
    ("mlperf, one row a model", (f"mlperf | other campaigns | {ONE}{ALL}",)),
)
MANY_ROWS: Final = 50
"""From so many on coverage shall be 85 to 95 %; on fewer at least 80 %."""
WIDEST: Final = 2.0
"""Widths of a rule's own conformal interval that an interval may have."""

BEGAN: Final = {
    "sia_8_points_2_to_16_nodes": 0.136,
    "sia_t4_10_points_4_to_16_nodes": 0.127,
    "sia_t4_2_to_16_nodes": 0.095,
    "sia_t4_4_to_16_nodes": 0.128,
    "sia_v100_2_to_5_nodes": 0.133,
    "elasticflow_a100_8_to_64": 0.075,
    "cmdare_async_ps": 0.068,
    "testbed_ps": 0.046,
    "tf_ec2_sync_ps": 0.023,
    "vtrain_a100_single_node": 0.050,
    "vtrain_a100_multi_node": 0.088,
}
"""Mape of `auto` on the tables of version 0.1 in the first run of this page, held back in the same way."""
LOST: Final = 0.005


def lines(found: Sequence[Scored]) -> Iterator[Line]:
    """All lines of the summary."""
    by_name = {each.name: each.scores[AUTO] for each in found if AUTO in each.scores}
    for what, name, metric, limit in LIMITS:
        value = by_name[name].metrics.get(metric) if name in by_name else None
        counts = metric.endswith("_count")
        told = "-" if value is None else f"{value}" if counts else _share(metric, value)
        yield Line(
            what, f"{limit}" if counts else _share(metric, limit), told, None if value is None else value <= limit
        )
    yield from _unsaid(by_name)
    for what, names in COVERED:
        yield from _covered(what, [each for each in found if each.name in names])
    yield from _kept(found)
    yield from _against_rules(found)


def _share(metric: str, value: float) -> str:
    return f"{value:.3f}" if metric.endswith("_ln") else f"{100.0 * value:.1f} %"


def _unsaid(by_name: Mapping[str, Score]) -> Iterator[Line]:
    for table in ("bigscience", "foundry", "mlperf"):
        said, unsaid = (by_name.get(f"{table}{form}{ALL}") for form in (FACTS, UNSAID))
        if said and unsaid:
            first, second = (each.metrics.get("step_mape") for each in (said, unsaid))
            if first is not None and second is not None:
                lost = second - first
                yield Line(
                    f"{table}, nothing said of the stack", "+5 points", f"{100 * lost:+.1f} points", lost <= 0.05
                )


def _covered(what: str, parts: Sequence[Scored]) -> Iterator[Line]:
    scores = [each.scores[AUTO] for each in parts if each.scores[AUTO].metrics.get("coverage90") is not None]
    rows = np.array([float(score.metrics["rows_count"] or 0) for score in scores])
    if not rows.sum():
        return
    coverage = float(np.average([float(score.metrics["coverage90"] or 0) for score in scores], weights=rows))
    many = rows.sum() >= MANY_ROWS
    fine = 0.85 <= coverage <= 0.95 if many else coverage >= 0.80
    yield Line(f"{what}: coverage", "85 to 95 %" if many else "at least 80 %", f"{coverage:.0%}", fine)
    for part in parts:
        rule = part.scores[part.best_rule].rule_width if part.best_rule else None
        width = part.scores[AUTO].metrics.get("width90")
        if rule and width is not None:
            name = what if len(parts) == 1 else f"{what}, {part.part}"
            yield Line(
                f"{name}: width over that of {part.best_rule}",
                f"{WIDEST}",
                f"{width / rule:.2f}",
                width <= WIDEST * rule,
            )


def _kept(found: Iterable[Scored]) -> Iterator[Line]:
    for part in _first_of_each(found):
        began = BEGAN.get(part.case.tables[0])
        value = part.scores[AUTO].metrics.get("mape")
        if began is not None and value is not None:
            yield Line(
                f"{part.case.tables[0]}: mape",
                f"{100 * (began + LOST):.1f} %",
                f"{100 * value:.1f} %",
                value <= began + LOST,
            )


def _first_of_each(found: Iterable[Scored]) -> list[Scored]:
    """Each table held back in the first way that the manifest has for it."""
    first = {case.tables: case.name for case in reversed(CASES)}
    return [part for part in found if part.case.name == first.get(part.case.tables)]


def _against_rules(found: Sequence[Scored]) -> Iterator[Line]:
    first = _first_of_each(found)
    for rule in (*RULES, MOST_NODES):
        pairs = [(part.scores[AUTO].regrets, part.scores[rule].regrets) for part in first if rule in part.scores]
        both = [(auto[job], other[job]) for auto, other in pairs for job in auto.keys() & other.keys()]
        if both:
            own, others = np.array(both).mean(axis=0)
            what = f"pooled regret, {len(both)} jobs that {rule} decides too"
            yield Line(what, f"below {100 * others:.2f} %", f"{100 * own:.2f} %", bool(own < others))
    for part in found:
        if part.best_rule is None:
            continue
        mean, low, high = paired(part.scores[AUTO].units, part.scores[part.best_rule].units)
        if low > 0.0:
            told = f"{mean:+.3f} ({low:+.3f} to {high:+.3f})"
            what = f"{part.name}: macro against {part.best_rule}"
            yield Line(what, "not above noise", told, reached=False)
