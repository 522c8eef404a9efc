"""Write docs/reference/support.md: `python research/write_support.py [--measure [WORDS...]]`.

Without --measure the page is written from the saved results. With it, the cases of the manifest that it rests on are
run on the tables of `NODEWISE_DATA` (only those whose names hold any of WORDS, whose results join the saved ones).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small matrices; before NumPy is loaded

from accuracy.manifest import CASES
from accuracy.predicting import answers_of, predicted
from accuracy.support import RESULTS, SUPPORT, is_of_support, measured, support_page, written_results


def main() -> int:
    """Run what is asked for, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", action="store_true", help="run the cases and save their results first")
    parser.add_argument("words", nargs="*", help="with --measure: cases whose names hold any of them; default: all")
    arguments = parser.parse_args()
    answers = answers_of()
    if arguments.measure:
        data = os.environ.get("NODEWISE_DATA")
        if not data:
            print("NODEWISE_DATA does not say where the shared data is", file=sys.stderr)
            return 2
        words = arguments.words
        chosen = [
            case for case in CASES if is_of_support(case) and (not words or any(word in case.name for word in words))
        ]
        found = measured(predicted(answers, case, Path(data) / "measurements") for case in chosen)
        kept = json.loads(RESULTS.read_text(encoding="utf-8")) if words and RESULTS.exists() else {}
        results = {tuple(key.split(" | ")): each for key, each in kept.items()} | found
        RESULTS.write_text(written_results(dict(sorted(results.items()))), encoding="utf-8")
    SUPPORT.write_text(support_page(answers, json.loads(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
