"""What HTA needs for one file: run by `traces.py` with the interpreter of an environment that holds HTA."""

from __future__ import annotations

import json
import logging
import resource
import sys
import time

REPEATS = 3


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    from hta.common.trace_file import read_trace  # noqa: PLC0415 - what may be missing
    from hta.common.trace_parser import parse_trace_file  # noqa: PLC0415

    del read_trace
    before = peak_bytes()
    seconds = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        parse_trace_file(sys.argv[1])
        seconds.append(time.perf_counter() - started)
    print(json.dumps({"seconds": min(seconds), "peak_bytes": peak_bytes(), "import_bytes": before}))


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    main()
