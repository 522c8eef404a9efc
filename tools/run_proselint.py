"""Run proselint over the prose of our documents: `python tools/run_proselint.py` lists its findings and ends with 1.

proselint's own command reads Markdown as if code and tables were prose; here it gets pages without code.
"""

import sys
from pathlib import Path

from proselint.checks import __register__
from proselint.config import DEFAULT
from proselint.registry import CheckRegistry
from proselint.tools import LintFile

from check_prose import ROOT, pages, prose

# Checks that identifiers and tables of numbers set off.
LEFT_OUT = (
    "dates_times",
    "lexical_illusions",
    "misc.capitalization",
    "misc.preferred_forms",
    "typography",
    "uncomparables",
)


def findings_of(page: Path) -> list[str]:
    """What proselint reports of a page, by line."""
    # Quotations are not checked, and an apostrophe would begin one.
    text = prose(page.read_text(encoding="utf-8")).translate({ord("'"): " ", ord('"'): " "})
    results = LintFile(page, text).lint(DEFAULT)
    return [
        f"{page.relative_to(ROOT).as_posix()}:{result.pos[0]}: {result.check_result.message}"
        for result in results
        if not result.check_result.check_path.startswith(LEFT_OUT)
    ]


def main() -> int:
    """Print the findings of all pages; 1 if there is any."""
    CheckRegistry().register_many(__register__)
    findings = [finding for page in pages() for finding in findings_of(page)]
    for finding in findings:
        print(finding)
    return bool(findings)


if __name__ == "__main__":
    sys.exit(main())
