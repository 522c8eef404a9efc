"""Shares of a device as JSON and for people."""

from __future__ import annotations

from typing import Any, Final

from nodewise_cli.console import say
from nodewise_cli.views.notes import show_notes
from nodewise_cli.views.numbers import gibibytes
from nodewise_cli.views.plain import fields_of
from nodewise_cli.views.table import figures, print_columns, words
from nodewise_client import PredictSharingResponse, SetShares, SharingBasis, SharingVerdict

__all__ = ["document", "show"]

_VERDICTS: Final = {
    SharingVerdict.CONCURRENT: "share",
    SharingVerdict.SERIALISED: "no certain gain",
    SharingVerdict.EXCLUSIVE: "run alone",
    SharingVerdict.DOES_NOT_FIT: "does not fit",
}
"""What to do with a set, for people."""


def show(result: PredictSharingResponse, *, verbose: bool) -> None:
    """What each job keeps, for people."""
    sets = result.sets
    print_columns(
        (words("jobs"), [" + ".join(each.job_names) or "-" for each in sets]),
        (words("verdict"), [_verdict(each) for each in sets]),
        (figures("total"), [_total(each) for each in sets]),
        (words("shares of solo speed"), [_shares(each) for each in sets]),
        (figures("GiB", 6), [gibibytes(each.memory_bytes) for each in sets]),
        (words("basis", 5), [_basis(each) for each in sets]),
        (words("why", 8), [each.why if each.problem is None else each.problem.message for each in sets]),
    )
    warnings = [*dict.fromkeys(warning for each in sets for warning in each.warnings)]
    show_notes((("", f"{warning}.") for warning in warnings), verbose=verbose)
    memory = (
        "" if result.device_memory_bytes is None else f"; the device has {gibibytes(result.device_memory_bytes)} GiB"
    )
    say(
        f"By {result.sharing_model} {result.sharing_model_version}; a total of 1 is the throughput of one job alone; "
        f"ranges are {100 * result.coverage:g} % intervals{memory}."
    )


def document(result: PredictSharingResponse) -> dict[str, Any]:
    """The JSON of shares."""
    return fields_of(result, "sets") | {"sets": [_set_document(each) for each in result.sets]}


def _set_document(shares_of_set: SetShares) -> dict[str, Any]:
    names = "job_names", "low_shares", "middle_shares", "high_shares", "low_total", "middle_total", "high_total"
    if shares_of_set.problem is not None:
        return {"jobs": list(shares_of_set.job_names), "verdict": None, "problem": fields_of(shares_of_set.problem)}
    return fields_of(shares_of_set, *names, "verdict", "basis", "problem") | {
        "jobs": list(shares_of_set.job_names),
        "shares": [
            {"low": low, "middle": middle, "high": high}
            for low, middle, high in zip(
                shares_of_set.low_shares, shares_of_set.middle_shares, shares_of_set.high_shares, strict=True
            )
        ],
        "total": {
            "low": shares_of_set.low_total,
            "middle": shares_of_set.middle_total,
            "high": shares_of_set.high_total,
        },
        "verdict": _word(shares_of_set.verdict),
        "basis": _word(shares_of_set.basis),
        "problem": None,
    }


def _word(value: SharingVerdict | SharingBasis | None) -> str | None:
    return value.upper() if value else None


def _verdict(shares: SetShares) -> str:
    return _VERDICTS.get(shares.verdict, str(shares.verdict)) if shares.verdict else "-"


def _basis(shares: SetShares) -> str:
    return "-" if not shares.basis else str(shares.basis)


def _total(shares: SetShares) -> str:
    return "-" if shares.problem is not None else _range(shares.low_total, shares.middle_total, shares.high_total)


def _shares(set_shares: SetShares) -> str:
    shares = zip(set_shares.low_shares, set_shares.middle_shares, set_shares.high_shares, strict=True)
    return ", ".join(_range(*each) for each in shares) or "-"


def _range(low: float, middle: float, high: float) -> str:
    return f"{middle:.2f}" if low == high else f"{middle:.2f} ({low:.2f}-{high:.2f})"
