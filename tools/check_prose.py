"""Find words that our documents do not use, sentences that are too long, and too many words in all.

`python tools/check_prose.py` lists what to change and ends with 1. Code, commands, quotations and generated pages are
not read. With `--count` it prints the words of each page, code included, and their sum.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GENERATED = {
    *("docs/accuracy.md", "docs/conformance.md", "docs/errors.md"),
    *("docs/reference/messages.md", "docs/reference/support.md"),
}
WORDS = {
    r"who(m|ever)?": "name the caller, estimator, worker or server",
    r"whatever": "name it",
    r"told|tells?": "says, reports, names",
    r"utili[sz]e[sd]?|utili[sz]ing": "use",
    r"simply|obviously|of course|very|quite": "leave it out",
    r"in order to": "to",
    r"(?:it|this) (?:is|was|should be) (?:noted|said|known|recommended|assumed) that": "name the subject first",
    r"mended|ails?|unwell": "fixed; the fault",
    r"kin|likes of": "related",
}
REFUSED = {re.compile(rf"\b(?:{words})\b", re.IGNORECASE): cure for words, cure in WORDS.items()}
MOST_WORDS = 50
"""Of a sentence."""
MOST_WORDS_OF_ALL_PAGES = 50_000
GENERATED_BLOCK = r"<!-- .*?: begin -->.*?: end -->"


def pages() -> Iterator[Path]:
    """Pages that are written by hand, in order."""
    files = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "clients").glob("*/README.md")]
    for page in sorted(files):
        if page.relative_to(ROOT).as_posix() not in GENERATED:
            yield page


def prose(text: str) -> str:
    """A page without code, quotations and what is generated, line by line the same."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match.group())

    for pattern in (
        r"```.*?```",
        GENERATED_BLOCK,
        r"^ {4}[^\n]*$",
        r"`[^`\n]*`",
        r"\]\([^)]*\)",
        r'"[^"\n]*"',
    ):
        text = re.sub(pattern, blank, text, flags=re.DOTALL | re.MULTILINE)
    return text


def refused_words(page: Path) -> list[str]:
    """What to write instead, by line: `PAGE:LINE: WORD: CURE`."""
    name = page.relative_to(ROOT).as_posix()
    return [
        f"{name}:{number}: {found.group()}: {cure}"
        for number, line in enumerate(prose(page.read_text(encoding="utf-8")).splitlines(), 1)
        for pattern, cure in REFUSED.items()
        for found in pattern.finditer(line)
    ]


def long_sentences(page: Path) -> list[str]:
    """Sentences of paragraphs with more than `MOST_WORDS` words."""
    text = prose(page.read_text(encoding="utf-8"))
    kept = "\n".join("" if line.startswith(("|", "#")) else line for line in text.splitlines())
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", kept)
    sentences = [each for block in blocks for each in re.split(r"(?<=[.:;?!])\s+", " ".join(block.split()))]
    return [
        f"{page.relative_to(ROOT).as_posix()}: {len(sentence.split())} words: {sentence[:60]}..."
        for sentence in sentences
        if len(sentence.split()) > MOST_WORDS
    ]


def word_count(page: Path) -> int:
    """Words of a page, those of its code included, without blocks that are generated."""
    return len(re.sub(GENERATED_BLOCK, "", page.read_text(encoding="utf-8"), flags=re.DOTALL).split())


def word_counts() -> dict[str, int]:
    """Words by page, most first."""
    counts = {page.relative_to(ROOT).as_posix(): word_count(page) for page in pages()}
    return dict(sorted(counts.items(), key=lambda pair: -pair[1]))


def too_many_words() -> list[str]:
    """Whether all pages together have more than `MOST_WORDS_OF_ALL_PAGES` words."""
    total = sum(word_counts().values())
    if total <= MOST_WORDS_OF_ALL_PAGES:
        return []
    return [f"all pages: {total:,} words, at most {MOST_WORDS_OF_ALL_PAGES:,} are allowed: --count lists them by page"]


def print_counts() -> None:
    """Words by page, most first, and the sum."""
    counts = word_counts()
    for name, count in counts.items():
        print(f"{count:7,} {name}")
    print(f"{sum(counts.values()):7,} in all")


def main() -> int:
    """Print all findings; 1 if there is any."""
    if sys.argv[1:] == ["--count"]:
        print_counts()
        return 0
    findings = [finding for page in pages() for check in (refused_words, long_sentences) for finding in check(page)]
    findings += too_many_words()
    for finding in findings:
        print(finding)
    return bool(findings)


if __name__ == "__main__":
    sys.exit(main())
