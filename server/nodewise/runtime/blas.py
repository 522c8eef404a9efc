"""Threads of the linear algebra libraries: one in every process of Nodewise, which distributes work itself."""

from __future__ import annotations

import os
from typing import Final

__all__ = ["one_thread_each"]

_VARIABLES: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def one_thread_each() -> None:
    """Set one thread for this process, if it has not loaded NumPy yet, and for its child processes.

    The libraries read the variables once, when they are loaded, and start their threads then. Nodewise's matrices are
    small: threads that wait for each other make a fit several times slower, most of all on a busy machine. Variables
    that are set already do not change. Only Nodewise's own entry points call this; programs that import the client or
    modules of the server keep their own setting.
    """
    for name in _VARIABLES:
        os.environ.setdefault(name, "1")
