"""`nodewise estimators`: how well each estimator has predicted what was observed later."""

from __future__ import annotations

from typing import Any

from nodewise_cli.commands.options import AsJson, Server, TimeoutS, Wait
from nodewise_cli.console import print_json
from nodewise_cli.service import connected
from nodewise_cli.views.numbers import shown
from nodewise_cli.views.table import figures, print_table, words
from nodewise_client import Estimator, Plugin

__all__ = ["estimators"]


def estimators(server: Server = None, as_json: AsJson = False, timeout_s: TimeoutS = Wait) -> None:
    """Show each estimator's running score: errors of its predictions against the observations that arrived later.

    `mean_abs_ln` and `bias` are the means of |ln r| and ln r, r = predicted / measured steps per second; `coverage90`
    is the share of measurements within their 90 % interval. `unanswered` observations are in none of these.
    """
    with connected(server, timeout_s) as client:
        found = client.list_estimators()
    # What is asked by default comes first.
    listed = sorted(found.estimators, key=lambda each: (each.plugin or Plugin()).name != "auto")
    entries = [_entry(each) for each in listed]
    if as_json:
        print_json({"estimators": entries})
        return
    numbers = ["scored", "unanswered", "mean_abs_ln", "bias", "coverage90"]
    print_table(
        [words("estimator"), words("version"), *(figures(name) for name in numbers), words("updated")],
        [
            [entry["name"], entry["version"] or "-", *_cells(entry, numbers), entry["updated"] or "-"]
            for entry in entries
        ],
    )


def _cells(entry: dict[str, Any], names: list[str]) -> list[str]:
    return [f"{entry[name]:,}" if isinstance(entry[name], int) else shown(entry[name], 3) for name in names]


def _entry(found: Estimator) -> dict[str, Any]:
    plugin, score = found.plugin or Plugin(), found.score
    entry: dict[str, Any] = {"name": plugin.name, "version": plugin.version or None, "scored": 0}
    if score is None:
        return entry | dict.fromkeys(("unanswered", "mean_abs_ln", "bias", "coverage90", "updated"))
    return entry | {
        "scored": score.observations_count,
        "unanswered": score.unanswered_count,
        "mean_abs_ln": score.mean_absolute_log_error,
        "bias": score.mean_log_error,
        "coverage90": score.coverage,
        "updated": score.update_time.isoformat(timespec="seconds") if score.update_time else None,
    }
