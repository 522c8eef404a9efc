"""The long forms of chaos, by hand: ``make chaos CHAOS="matrix --kinds policy --seed 3"``.

Prints one JSON object a line and keeps them in ``build/chaos``; the exit status is 1 if what is promised was not kept.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(Path(__file__).parent)]

# Programs are started while threads call: handlers of forks would wait for these.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

import flood  # noqa: E402  # the path is set above
import ingest  # noqa: E402
import kills  # noqa: E402
import matrix  # noqa: E402
import restarts  # noqa: E402
import soak  # noqa: E402
import swapping  # noqa: E402
import twice  # noqa: E402

CAMPAIGNS: Final[dict[str, Callable[[argparse.Namespace, Path], Iterator[dict[str, Any]]]]] = {
    "matrix": matrix.run,
    "kills": kills.run,
    "ingest": ingest.run,
    "twice": twice.run,
    "restarts": restarts.run,
    "swaps": swapping.run,
    "soak": soak.run,
    "flood": flood.run,
}
LONGEST: Final = frozenset({"soak", "flood"})
"""Only where they are named."""


def main() -> int:
    """Run the campaigns that are named; all but the longest, unless some are."""
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument(
        "campaigns", nargs="*", help=f"of {', '.join(CAMPAIGNS)}; none = all but {' and '.join(sorted(LONGEST))}"
    )
    parser.add_argument("--seed", type=int, default=2026, help="of what happens when and to whom")
    parser.add_argument("--workers", type=int, default=2, help="of the servers that are killed, restarted or soaked")
    parser.add_argument(
        "--calls-per-s", type=float, default=0.0, help="of each caller; 0 = a fifth of what is measured"
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--batches", type=int, default=10_000, help="that are sent to two replicas at once")
    parser.add_argument("--restarts", type=int, default=100)
    parser.add_argument("--swaps", type=int, default=1000)
    parser.add_argument(
        "--at-most-minutes",
        type=float,
        default=float("inf"),
        help="of the swaps, or of the kills of an ingest; fewer are a miss",
    )
    parser.add_argument("--trial-s", type=float, default=2.0, help="of each swap at most; 0 = nothing is tried")
    parser.add_argument("--kinds", nargs="*", default=[], help="of the matrix, or of stores; none = all")
    parser.add_argument("--faults", nargs="*", default=[], help="of the matrix; none = all")
    parser.add_argument("--methods", nargs="*", default=[], help="of the matrix, such as import hook api; none = all")
    parser.add_argument("--per-server", type=int, default=12, help="faults of the matrix that stand beside each other")
    parser.add_argument("--window-s", type=float, default=10.0, help="of a measurement of latencies")
    parser.add_argument("--minutes", type=float, default=60.0, help="of the soak, after warming up")
    parser.add_argument("--warm-up-minutes", type=float, default=5.0, help="of the soak")
    parser.add_argument("--jobs", type=int, default=10_000, help="distinct jobs of the soak")
    parser.add_argument("--messages", type=int, default=10_000_000, help="requests of the flood")
    parser.add_argument("--processes", type=int, default=2, help="applications that are flooded side by side")
    arguments = parser.parse_args()
    unknown = set(arguments.campaigns) - set(CAMPAIGNS)
    if unknown:
        parser.error(f"no campaign {', '.join(sorted(unknown))}; there are {', '.join(CAMPAIGNS)}")
    kept = ROOT / "build" / "chaos"
    kept.mkdir(parents=True, exist_ok=True)
    broken = 0
    for name in arguments.campaigns or [name for name in CAMPAIGNS if name not in LONGEST]:
        with (
            tempfile.TemporaryDirectory(prefix=f"nodewise-{name}-") as folder,
            (kept / f"{name}-{int(time.time())}.jsonl").open("w", encoding="utf-8") as results,
        ):
            for result in CAMPAIGNS[name](arguments, Path(folder)):
                line = json.dumps({"campaign": name, **result})
                print(line, flush=True)
                print(line, file=results, flush=True)
                broken += not result.get("kept", True)
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
