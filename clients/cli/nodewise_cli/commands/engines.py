"""Options of engines: processes of this machine, or tasks of a Ray cluster."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from nodewise_cli.failures import InputError
from nodewise_cli.outputs import checked_output

__all__ = ["checked_engine"]

ENGINES: Final = ("local", "ray")
MOST_PROCESSES: Final = 1024


def checked_engine(engine: str, processes: int | None, ray_address: str | None, resume: Path | None) -> dict[str, Any]:
    """The arguments of an engine, of its options.

    Raises
    ------
    InputError
        Naming the option.
    """
    checked_output(resume, "--resume")
    # Ray itself queues what exceeds its cluster's processors.
    count = processes if processes is not None else MOST_PROCESSES if ray_address else os.cpu_count() or 1
    if not 1 <= count <= MOST_PROCESSES:
        raise InputError(f"--processes: must be 1 to {MOST_PROCESSES}, found {count}")
    if engine not in ENGINES:
        raise InputError(f"--engine: must be one of {', '.join(ENGINES)}, found {engine!r}")
    if ray_address is not None and engine != "ray":
        raise InputError("--ray-address: needs --engine ray")
    return {"engine": engine, "processes": count, "ray_address": ray_address, "results": resume}
