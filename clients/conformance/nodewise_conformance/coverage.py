"""What scenarios must cover: every RPC with a request and a reply, every reason of the catalogue of errors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from nodewise_conformance.contract import methods
from nodewise_conformance.languages import ROOT
from nodewise_conformance.scenarios import Scenario

__all__ = ["catalogue", "gaps"]

_PAGE: Final = ROOT / "docs" / "errors.md"
_ENTRY: Final = re.compile(r"^\| `([A-Z_]+)` \| `([A-Z_]+)` \|", re.MULTILINE)


def catalogue() -> dict[str, str]:
    """Code names by the reasons of the catalogue, as its generated page states them."""
    return dict(_ENTRY.findall(_PAGE.read_text(encoding="utf-8")))


def gaps(scenarios: Iterable[Scenario]) -> list[str]:
    """What no scenario asks for, or asks for wrongly; empty = all is covered."""
    answered: set[str] = set()
    reasons: set[str] = set()
    problems: list[str] = []
    codes = catalogue()
    for scenario in scenarios:
        code = scenario.expect.get("code", "OK")
        if code == "OK":
            answered.add(scenario.method)
            answered |= {"nodewise.v1.ProfileService/IngestProfile"} if scenario.call["face"] == "ingest" else set()
        reason = scenario.expect.get("reason")
        if reason and codes.get(reason) not in {None, code}:
            problems.append(f"{scenario.name}: {reason} comes with {codes[reason]}, not with {code}")
        reasons |= {reason} if reason else set()
        reasons |= set(_reasons(scenario.expect.get("rows"))) | set(_reasons(scenario.expect.get("replies")))
    problems += [f"no scenario has an answer of {name}" for name in methods() if name not in answered]
    problems += [f"no scenario tells the reason {reason}" for reason in codes if reason not in reasons]
    return problems


def _reasons(document: Any) -> Iterator[str]:
    """Reasons within expected rows and replies: of rows that are refused, of jobs that fail, of warnings."""
    if isinstance(document, dict):
        for key, value in document.items():
            if key == "reason" and isinstance(value, str):
                yield value
            yield from _reasons(value)
    elif isinstance(document, list):
        for each in document:
            yield from _reasons(each)
