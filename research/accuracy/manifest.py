"""What is scored: tables, how the source of a row is told, what is shown of a job, and which rows are scored apart.

Sources and groups are told from a job's name by a regular expression: the joined groups of its first match, the whole
name where it has none. The empty expression makes a table one source, so that nothing of it is learned from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["CASES", "FACTS", "MODERN", "PHASES", "RULES", "Case", "Part", "named"]

WHOLE: Final = ""
JOB: Final = r"(.*)"
FIRST: Final = r"^([^/]*)"
SECOND: Final = r"^[^/]*/([^/]*)"
THIRD: Final = r"^[^/]*/[^/]*/([^/]*)"

RULES: Final = ("last-known", "batch-line", "power-law", "constant-utilisation")
"""Estimators of one line. What is better than the best of them on a table is worth its complexity."""

MODERN: Final = "partitioning_modern/"
STACK: Final = ("framework", "recompute")
"""Columns that say with what software a transformer was trained; its partition and precision are the asker's choice."""
PHASES: Final = ("compute_s", "download_s", "upload_s", "update_s", "compute_cv")


@dataclass(frozen=True, slots=True)
class Part:
    """Rows that are scored apart: those of jobs whose name a regular expression matches."""

    name: str
    jobs: str = ""


ALL_ROWS: Final = (Part("all"),)
LANGUAGE: Final = r"gpt|llama|mixtral|moe"
MLPERF: Final = (Part("data-parallel kinds", rf"^(?!{LANGUAGE})"), Part("language models", rf"^({LANGUAGE})"))

MODES: Final = (Part("asynchronous", "^a"), Part("synchronous", "^s"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One way of holding a table back.

    Attributes
    ----------
    tables : tuple of str
        Below ``measurements``; several are scored as one.
    held : str
        What is left out, in words.
    source : str or None
        How a job's source is told from its name; None = what is shown of any job of the table is learned from.
    rows : int or None
        Rows that are shown of each group; None = the train rows.
    workers : tuple of int
        Instead, all rows of so many workers are shown.
    group : str
        How the group of which so many rows are shown is told from a job's name: a job, or the model that it trains.
    others_known : bool
        All measured rows of other sources are shown, not as many as of the asked job.
    calibration : tuple of str
        Tables whose measured rows are shown.
    dropped : tuple of str
        Columns that are not said.
    parts : tuple of Part
        Scored apart.
    slow : bool
        Left to `make accuracy`: tests have no time for it.
    """

    tables: tuple[str, ...]
    held: str
    source: str | None = WHOLE
    rows: int | None = None
    workers: tuple[int, ...] = ()
    group: str = JOB
    others_known: bool = False
    calibration: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ALL_ROWS
    slow: bool = False

    @property
    def evidence(self) -> str:
        """What is shown of a job, in words."""
        of = "job" if self.group == JOB else "model"
        if self.workers:
            shown = f"rows of {' and '.join(map(str, self.workers))} workers"
        elif self.rows is None:
            shown = "its train rows"
        else:
            shown = f"{self.rows} row{'s' * (self.rows != 1)} a {of}"
        return shown + ("" if not self.dropped else f", not said: {', '.join(self.dropped)}")

    @property
    def name(self) -> str:
        """What tells it from all others."""
        return " | ".join(("+".join(table.removeprefix(MODERN) for table in self.tables), self.held, self.evidence))


def named(rule: str, job: str) -> str:
    """The source, or the group, of a job."""
    found = re.search(rule, job)
    return "" if not rule else job if found is None else "/".join(part for part in found.groups() if part)


def _scaling(
    table: str,
    held: Mapping[str, str],
    rows: tuple[int | None, ...],
    *,
    parts: tuple[Part, ...] = ALL_ROWS,
) -> list[Case]:
    """What is left out; for the first also other numbers of rows than the train rows."""
    found = []
    for place, (words, source) in enumerate(held.items()):
        found += [
            Case(tables=(table,), held=words, source=source, rows=shown, parts=parts, slow=place > 0)
            for shown in ((None, *rows) if place == 0 else (None,))
        ]
    return found


FACTS: Final = "all but the facts"
OWN: Final = "other campaigns"
FOUNDRY_MODEL: Final = r"^(mpt-\w+)-s\d+-(\w+)-"
SHAPE: Final = r"^(h\d+-l\d+)-"
TRANSFORMERS: Final = {
    "bigscience": JOB,
    "bigscience_v100": JOB,
    "foundry": FOUNDRY_MODEL,
    "mlperf": JOB,
    "bridge_dense": JOB,
}
"""Tables of partitioned transformers, and how their models are told."""


def _transformers() -> list[Case]:
    found = []
    for name, group in TRANSFORMERS.items():
        table, others = f"{MODERN}{name}", tuple(f"{MODERN}{other}" for other in TRANSFORMERS if other != name)
        found += [
            Case(tables=(table,), held=FACTS, rows=0),
            Case(tables=(table,), held=FACTS, rows=0, dropped=STACK),
            Case(tables=(table,), held="the campaign, others known", rows=0, calibration=others, slow=True),
        ]
        if name != "bridge_dense":
            found += [
                Case(tables=(table,), held=OWN, source=None, rows=rows, group=group, slow=rows == 2) for rows in (1, 2)
            ]
    return found


ABROAD: Final = {
    "dgxc_dev": ("link_bytes_per_s", "precision", "micro_batch", "framework"),
    "bridge_dev": ("precision", "micro_batch", "framework"),
    "torchtitan_dev": ("precision", "micro_batch", "recompute", "framework"),
    "fms_dev": ("precision", "micro_batch", "recompute", "framework"),
    "maxtext_dev": ("precision", "micro_batch", "framework"),
    "dlperf_gpt_dev": ("link_bytes_per_s", "precision", "micro_batch", "recompute", "framework"),
}
"""Transformers of other people's clusters, and facts that are left out in turn."""


def _abroad() -> Iterator[Case]:
    for name, facts in ABROAD.items():
        table = f"abroad/{name}"
        yield Case(tables=(table,), held=FACTS, rows=0)
        yield Case(tables=(table,), held=FACTS, rows=1, slow=True)
        for fact in facts:
            yield Case(tables=(table,), held=FACTS, rows=0, dropped=(fact,), slow=True)
    yield Case(tables=("abroad/dlperf_scaling_dev",), held="the campaign")
    yield Case(tables=("abroad/dlperf_scaling_dev",), held="the campaign", rows=1)


MEMORY: Final = (f"{MODERN}bigscience_memory_dev", f"{MODERN}bigscience_v100_memory_dev")

CASES: Final = (
    *_scaling(
        "mlperf_scaling_dev",
        {"organisation": SECOND, "device": THIRD, "model": FIRST},
        (1, 0),
        parts=MLPERF,
    ),
    *_scaling("internevo_dev", {"the campaign": WHOLE}, (1, 0)),
    *_scaling("elasticflow_a100_8_to_64", {"model": FIRST}, (2, 1)),
    *_scaling("sia_8_points_2_to_16_nodes", {"cluster": SECOND, "model": FIRST}, (2, 1)),
    Case(tables=("sia_t4_10_points_4_to_16_nodes",), held="model", source=FIRST),
    Case(tables=("sia_t4_2_to_16_nodes",), held="model", source=FIRST),
    Case(tables=("sia_t4_4_to_16_nodes",), held="model", source=FIRST),
    Case(tables=("sia_v100_2_to_5_nodes",), held="model", source=FIRST),
    Case(tables=("cmdare_async_ps",), held="device", source=SECOND),
    Case(tables=("cmdare_async_ps",), held="model", source=FIRST),
    Case(tables=("cmdare_async_ps",), held="model", source=FIRST, rows=1),
    Case(tables=("testbed_ps",), held="job", source=JOB),
    Case(tables=("testbed_ps",), held="job", source=JOB, workers=(1, 4), dropped=PHASES, parts=MODES),
    Case(tables=("tf_ec2_sync_ps",), held="the campaign"),
    Case(tables=("tf_ec2_sync_ps",), held="the campaign", rows=1),
    Case(tables=("vtrain_a100_single_node",), held=FACTS, rows=0),
    Case(tables=("vtrain_a100_single_node",), held=OWN, source=None, rows=1, group=SHAPE),
    Case(tables=("vtrain_a100_multi_node",), held=FACTS, rows=0),
    Case(tables=("vtrain_a100_multi_node",), held=OWN, source=None, rows=1),
    *_transformers(),
    *_abroad(),
    Case(tables=MEMORY[:1], held=FACTS, rows=0),
    Case(tables=MEMORY[:1], held="job, others known", source=JOB, rows=0, others_known=True),
    Case(tables=MEMORY[:1], held="the campaign, V100 known", rows=0, calibration=MEMORY[1:]),
    Case(tables=MEMORY[1:], held=FACTS, rows=0),
    Case(tables=MEMORY[1:], held="the campaign, A100 known", rows=0, calibration=MEMORY[:1]),
)
