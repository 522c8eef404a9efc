"""Shares of a device as JSON and for people."""

from __future__ import annotations

from typing import Any, Final

from nodewise_cli.console import say
from nodewise_cli.views.numbers import gibibytes
from nodewise_cli.views.plain import fields_of
from nodewise_cli.views.table import figures, print_columns, words
from nodewise_client import PredictSharingResponse, SetShares, SharingBasis, SharingVerdict

__all__ = ["document", "show"]

MOST_WARNINGS: Final = 12
_VERDICTS: Final = {
    SharingVerdict.CONCURRENT: "share",
    SharingVerdict.SERIALISED: "no gain known",
    SharingVerdict.EXCLUSIVE: "apart",
    SharingVerdict.DOES_NOT_FIT: "does not fit",
}
"""What to do with a set, for people."""


def show(result: PredictSharingResponse) -> None:
    """What each job keeps, for people."""
    sets = result.sets
    print_columns(
        (words("jobs"), [" + ".join(each.job_names) or "-" for each in sets]),
        (words("verdict"), [_verdict(each) for each in sets]),
        (figures("total"), [_total(each) for each in sets]),
        (words("shares of solo speed"), [_shares(each) for each in sets]),
        (figures("GiB", 6), [gibibytes(each.memory_bytes) for each in sets]),
        (words("rests on", 5), [_basis(each) for each in sets]),
        (words("why", 8), [each.why if each.problem is None else each.problem.message for each in sets]),
    )
    warnings = [*dict.fromkeys(warning for each in sets for warning in each.warnings)]
    for warning in warnings[:MOST_WARNINGS]:
        say(f"Warning: {warning}.")
    if len(warnings) > MOST_WARNINGS:
        say(f"{len(warnings) - MOST_WARNINGS} more warnings: --json has them all.")
    room = "" if result.device_memory_bytes is None else f"; the device has {gibibytes(result.device_memory_bytes)} GiB"
    say(
        f"By {result.sharing_model} {result.sharing_model_version}; a total of 1 is what one job alone does; "
        f"ranges hold {100 * result.coverage:g} %{room}."
    )


def document(result: PredictSharingResponse) -> dict[str, Any]:
    """The JSON of shares."""
    return fields_of(result, "sets") | {"sets": [_set_document(each) for each in result.sets]}


def _set_document(found: SetShares) -> dict[str, Any]:
    names = "job_names", "low_shares", "middle_shares", "high_shares", "low_total", "middle_total", "high_total"
    if found.problem is not None:
        return {"jobs": list(found.job_names), "verdict": None, "problem": fields_of(found.problem)}
    return fields_of(found, *names, "verdict", "basis", "problem") | {
        "jobs": list(found.job_names),
        "shares": [
            {"low": low, "middle": middle, "high": high}
            for low, middle, high in zip(found.low_shares, found.middle_shares, found.high_shares, strict=True)
        ],
        "total": {"low": found.low_total, "middle": found.middle_total, "high": found.high_total},
        "verdict": _word(found.verdict),
        "basis": _word(found.basis),
        "problem": None,
    }


def _word(known: SharingVerdict | SharingBasis | None) -> str | None:
    return known.upper() if known else None


def _verdict(found: SetShares) -> str:
    return _VERDICTS.get(found.verdict, str(found.verdict)) if found.verdict else "-"


def _basis(found: SetShares) -> str:
    return "-" if not found.basis else str(found.basis)


def _total(found: SetShares) -> str:
    return "-" if found.problem is not None else _range(found.low_total, found.middle_total, found.high_total)


def _shares(found: SetShares) -> str:
    shares = zip(found.low_shares, found.middle_shares, found.high_shares, strict=True)
    return ", ".join(_range(*each) for each in shares) or "-"


def _range(low: float, middle: float, high: float) -> str:
    return f"{middle:.2f}" if low == high else f"{middle:.2f} ({low:.2f}-{high:.2f})"
