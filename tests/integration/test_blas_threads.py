"""The command line and all that it starts leave linear algebra one thread each: small matrices end later with two."""

from __future__ import annotations

import os
import subprocess
import sys

VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
# The entry point as it is installed, then the work that would start the library's threads, before any other has begun.
STARTED = """
import os, sys
sys.argv = ["nodewise", "--version"]
from nodewise_cli.main import main
try:
    main()
except SystemExit:
    pass
import numpy as np
matrix = np.ones((400, 400))
np.linalg.solve(matrix @ matrix + np.eye(400), matrix)
print("threads", len(os.listdir("/proc/self/task")), *(os.environ[name] for name in sys.stdin.read().split()))
"""


def test_a_process_of_ours_solves_with_one_thread_and_so_do_those_that_it_starts() -> None:
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    ran = subprocess.run(
        [sys.executable, "-c", STARTED],
        input=" ".join(VARIABLES),
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.splitlines()[-1] == "threads 1 1 1 1"
