"""Threads of the linear algebra libraries: one in every process of ours, for parallelism is ours to place."""

from __future__ import annotations

import os
from typing import Final

__all__ = ["one_thread_each"]

_VARIABLES: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def one_thread_each() -> None:
    """For this process, if it has not loaded NumPy yet, and for those that it starts.

    The libraries read the variables once, as they are loaded, and start their threads then. Our matrices are small:
    threads that wait for each other make a fit several times slower, and most so on a busy machine. What somebody has
    set stands. For our own entry points: who imports the client or the server's modules keeps their own setting.
    """
    for name in _VARIABLES:
        os.environ.setdefault(name, "1")
