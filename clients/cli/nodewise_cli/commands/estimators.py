"""`nodewise estimators`: the accuracy of each estimator on later observations."""

from __future__ import annotations

from typing import Any, Final

from nodewise_cli.commands.options import ONE_MINUTE, Call
from nodewise_cli.views.numbers import format_count, format_number, percent
from nodewise_cli.views.table import figures, print_columns, words
from nodewise_client import Estimator, ListEstimatorsResponse, Plugin

__all__ = ["document", "estimators"]

_NUMBERS: Final = ("scored", "unanswered", "mean_abs_ln", "bias", "coverage90")


def estimators(call: Call = ONE_MINUTE) -> None:
    """Show the score of each estimator: errors of its predictions against observations that arrived later.

    `mean_abs_ln` and `bias` are the means of |ln r| and ln r, r = predicted / measured steps per second; `coverage90`
    is the share of measurements within their 90 % interval. These exclude `unanswered` observations.
    """
    with call.connect() as client:
        response = client.list_estimators()
    call.tell(document, _show, response)


def document(response: ListEstimatorsResponse) -> dict[str, Any]:
    """The JSON; the default estimator comes first."""
    return {"estimators": sorted(map(_entry, response.estimators), key=lambda entry: entry["name"] != "auto")}


def _show(response: ListEstimatorsResponse) -> None:
    entries = document(response)["estimators"]
    print_columns(
        (words("estimator"), [each["name"] for each in entries]),
        (words("version"), [each["version"] or "-" for each in entries]),
        (figures("scored"), [format_count(each["scored"]) for each in entries]),
        (figures("unanswered"), [format_count(each["unanswered"]) for each in entries]),
        (figures("mean |ln r|"), [format_number(each["mean_abs_ln"], 3) for each in entries]),
        (figures("bias"), [format_number(each["bias"], 3) for each in entries]),
        (figures("90 % covers"), [percent(each["coverage90"]) for each in entries]),
        (words("updated"), [each["updated"] or "-" for each in entries]),
    )


def _entry(estimator: Estimator) -> dict[str, Any]:
    plugin, score = estimator.plugin or Plugin(), estimator.score
    entry: dict[str, Any] = {"name": plugin.name, "version": plugin.version or None, "scored": 0}
    if score is None:
        return entry | dict.fromkeys((*_NUMBERS[1:], "updated"))
    return entry | {
        "scored": score.observations_count,
        "unanswered": score.unanswered_count,
        "mean_abs_ln": score.mean_absolute_log_error,
        "bias": score.mean_log_error,
        "coverage90": score.coverage,
        "updated": score.update_time.isoformat(timespec="seconds") if score.update_time else None,
    }
