"""Score every estimator with whole sources left out, and write the page: `make accuracy`.

``python research/score_accuracy.py [--quick] [--check] [WORDS...]``: WORDS choose cases by parts of their names.
Without them, and without --check, `docs/accuracy.md`, the committed figures and the support matrix are written; what is
worse than the figures before is told. With --check nothing is written, and the status is 1 where something is worse.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small matrices; before NumPy is loaded

from accuracy.manifest import CASES, Case
from accuracy.page import page
from accuracy.predicting import Predicted, answers_of, predicted
from accuracy.record import RECORD, recorded, worsened, written
from accuracy.scoring import Scored, scored
from accuracy.support import RESULTS, SUPPORT, is_of_support, measured, support_page, written_results
from nodewise.estimation.answer.answers import Answers

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "accuracy.md"


def scores_of(answers: Answers, cases: Sequence[Case], folder: Path, of_support: list[Predicted]) -> Iterator[Scored]:
    """Hold back, predict and score, case by case; tables that are not there are left out.

    Predictions that the support matrix rests on join ``of_support``.
    """
    for case in cases:
        if not all((folder / f"{table}.csv").is_file() for table in (*case.tables, *case.calibration)):
            continue
        started = time.perf_counter()
        found = predicted(answers, case, folder)
        yield from scored(case, found)
        if is_of_support(case):
            of_support.append(found)
        print(f"{time.perf_counter() - started:6.1f} s  {case.name}", file=sys.stderr, flush=True)


def main() -> int:
    """Score, compare, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="cases whose names hold any of them; default: all")
    parser.add_argument("--quick", action="store_true", help="the cases that every run of the tests tries")
    parser.add_argument("--check", action="store_true", help="compare with the committed figures, write nothing")
    arguments = parser.parse_args()
    data = os.environ.get("NODEWISE_DATA")
    if not data:
        print("NODEWISE_DATA does not say where the shared data is", file=sys.stderr)
        return 2
    words = arguments.words
    chosen = [
        case
        for case in CASES
        if not (case.slow and arguments.quick) and (not words or any(word in case.name for word in words))
    ]
    answers, of_support = answers_of(), list[Predicted]()
    found = list(scores_of(answers, chosen, Path(data) / "measurements", of_support))
    document = recorded(found)
    accepted = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    worse = list(worsened(accepted, document))
    for line in worse:
        print(f"worse: {line}")
    if arguments.check:
        return int(bool(worse))
    if words or arguments.quick:
        print(page(found))
        return 0
    RECORD.write_text(written(document), encoding="utf-8")
    PAGE.write_text(page(found), encoding="utf-8")
    RESULTS.write_text(written_results(measured(of_support)), encoding="utf-8")
    SUPPORT.write_text(support_page(answers, json.loads(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
