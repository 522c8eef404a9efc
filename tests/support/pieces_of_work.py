"""Work for executors: functions that another process finds by their names."""

from __future__ import annotations

import os
import time
from pathlib import Path

from nodewise.domain.errors import NodewiseError, Reason


def squared(shared: int, unit: int) -> tuple[int, int]:
    """The unit's square times what is shared, and the process that found it."""
    return shared * unit * unit, os.getpid()


def troubled(shared: str, unit: str) -> str:
    """Does what the unit says."""
    if unit == "raises":
        raise ZeroDivisionError("no such number")
    if unit == "refuses":
        raise NodewiseError(Reason.INVALID_FIELD, "policy: must be known")
    if unit == "dies":
        os._exit(7)
    return shared + unit


def lasting(shared: str, unit: int) -> int:
    """Leave a mark with the process's number, and stay."""
    (Path(shared) / f"{unit}.pid").write_text(str(os.getpid()))
    time.sleep(60)
    return unit


def held(shared: tuple[str, int], unit: int) -> bytes:
    """Leave a mark with the node and the process, and wait for a number of marks; a negative unit waits for more.

    Returns the node's id.
    """
    import ray  # of the process that works

    folder, count = Path(shared[0]), shared[1]
    node = ray.get_runtime_context().get_node_id()
    (folder / f"{unit}.{node}.{os.getpid()}.mark").touch()
    while len(list(folder.glob("*.mark"))) < count or (unit < 0 and not (folder / "go").exists()):
        time.sleep(0.05)
    return bytes.fromhex(node)
