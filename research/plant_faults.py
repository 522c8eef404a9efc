"""Plant faults of every kind into recorded and simulated jobs, and print what a diagnosis says of each.

    python research/plant_faults.py [--every N] [--misses]

A table by kind: faults, cause found, another cause named, nothing said. Only faults count that make the step 3 % longer
and by three times what steps differ by.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

campaign: Any = import_module("planted_campaign")


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="only every N-th fault")
    parser.add_argument("--misses", action="store_true", help="print what was said where the cause was not found")
    arguments = parser.parse_args()
    outcomes = [campaign.judged(fault) for fault in islice(campaign.faults(), 0, None, arguments.every)]
    counted = [one for one in outcomes if one.counts]
    table = Counter((one.fault.kind, one.result) for one in counted)
    print(f"{'kind':20}{'faults':>8}{'found':>8}{'wrong':>8}{'nothing':>8}")
    for kind in (*dict.fromkeys(one.fault.kind for one in outcomes), "all"):
        row = [sum(n for (k, r), n in table.items() if kind in {k, "all"} and r == result)
               for result in ("found", "wrong", "nothing")]  # fmt: skip
        print(f"{kind:20}{sum(row):8}{row[0]:8}{row[1]:8}{row[2]:8}")
    print(f"{len(outcomes) - len(counted)} do not count")
    for one in counted if arguments.misses else ():
        if one.result != "found":
            fault = one.fault
            print(f"{fault.kind} {fault.size:.0%} {fault.job}: {one.result}, moved {one.moved:.1%}: {one.told[:200]}")


if __name__ == "__main__":
    main()
