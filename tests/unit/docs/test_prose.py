"""Documents use the words that we chose, in sentences that are short enough. `make lint` also asks proselint."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROSE: dict[str, Any] = runpy.run_path(str(ROOT / "tools" / "check_prose.py"))


@pytest.mark.parametrize("page", [*PROSE["pages"]()], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_has_no_refused_word_and_no_long_sentence(page: Path) -> None:
    assert not [*PROSE["refused_words"](page), *PROSE["long_sentences"](page)]


def test_a_refused_word_and_a_long_sentence_are_found(tmp_path: Path) -> None:
    page = ROOT / "docs" / "planted.md"
    text = "```sh\nnodewise told\n```\n    told\n\nWhoever asks is `told`.\n\n" + "word " * 51 + ".\n"
    planted = PlantedPage(page, text)
    assert [finding.split(": ", 1)[1] for finding in PROSE["refused_words"](planted)] == [
        "Whoever: name the caller, estimator, worker or server"
    ]
    assert len(PROSE["long_sentences"](planted)) == 1


class PlantedPage:
    """A page that is on no disk."""

    def __init__(self, path: Path, text: str) -> None:
        self._path, self._text = path, text

    def relative_to(self, root: Path) -> Path:
        return self._path.relative_to(root)

    def read_text(self, encoding: str) -> str:
        return self._text


def test_pages_that_are_generated_exist() -> None:
    assert all((ROOT / name).is_file() for name in PROSE["GENERATED"])


def test_all_pages_together_are_short_enough() -> None:
    assert PROSE["too_many_words"]() == []


def test_generated_blocks_do_not_count() -> None:
    page = PlantedPage(
        ROOT / "docs" / "planted.md", "one two\n<!-- x: begin -->\nthree\n<!-- x: end -->\n```\nfour\n```\n"
    )
    assert PROSE["word_count"](page) == 5
