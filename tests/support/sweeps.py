"""A small sweep of policies, run by the command line in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from nodewise_cli.app import app

__all__ = ["SPEC", "WALL", "ran", "still", "written"]

WALL = {"wall_s", "decision_s", "longest_decision_s"}
SPEC: dict[str, Any] = {
    "jobs": {
        "generate": {
            "jobs": 12,
            "arrivals": {"law": "poisson", "mean_gap_s": 30},
            "sizes": {"law": "exponential", "mean": 200},
            "requested": [1, 2],
        }
    },
    "curves": {"c": {"samples_per_s": {"t4": {"1": 10, "2": 19, "4": 35, "8": 55}}}},
    "cluster": {"t4": "2x4"},
    "policy": ["equal-share", "efficiency-srpt-fill"],
    "restart_cost_s": 5,
    "early_stops": {"probability": 0.3},
    "loads": [0.5, 1.1],
    "seeds": 2,
}


def ran(spec: Path, *arguments: str | Path) -> Any:
    """`nodewise sweep` in this process, with one process for its simulations unless told otherwise."""
    engine = [] if "--processes" in arguments else ["--processes", "1"]
    result = CliRunner().invoke(app, ["sweep", str(spec), *engine, *(str(argument) for argument in arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def written(folder: Path, **changes: Any) -> Path:
    """The file of the sweep, changed."""
    path = folder / "sweep.json"
    path.write_text(json.dumps({**SPEC, **changes}))
    return path


def still(document: dict[str, Any]) -> Any:
    """All but times of the wall."""
    rows = [{key: value for key, value in row.items() if key not in WALL} for row in document["simulations"]]
    return rows, document["table"], document["failed"]
