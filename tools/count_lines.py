"""Lines of code by room: `count_lines.py [REVISION [REVISION]]` prints a Markdown table.

Counted are lines of Python that hold code: no blank lines, no comments, no docstrings (nor strings that describe an
attribute), no generated files. One revision is compared with the working tree, two with each other.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
DEPTH: Final = {"server": 3, "plugins": 2, "clients": 3, "protos": 3}
"""What is installed, and how many folders name a room of it. Its sum is the size of the house."""
BESIDE: Final = ("tests", "bench", "tools", "research", "examples")
GENERATED: Final = re.compile(r"_pb2(_grpc)?\.pyi?$|/nodewise_values/(v\w+/\w+|facts|__init__)\.py$")
"""Stubs and values of messages, as tools/generate_stubs.py writes them."""
MARK: Final = re.compile(r"\A(?:#[^\n]*\n)*#[^\n]*\bgenerated\b", re.IGNORECASE)
"""A file that says in its first comment that it is generated."""

_NO_CODE: Final = frozenset(
    {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENCODING,
        tokenize.ENDMARKER,
    }
)


def code_lines(source: str) -> int:
    """Lines that hold code."""
    held: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            held.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            held.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(held)


def generated(path: str, source: str) -> bool:
    """Whether a file is made by a tool of ours."""
    return GENERATED.search(path) is not None or MARK.match(source) is not None


def room_of(path: str) -> str | None:
    """The package that a file belongs to, for the server its floor; None = not counted."""
    top, *folders = path.split("/")[:-1] or [""]
    if top in BESIDE:
        return top
    depth = DEPTH.get(top)
    return None if depth is None or not folders else "/".join([top, *folders][:depth])


def sources(revision: str | None) -> dict[str, str]:
    """Texts of all Python files by path, in a revision or (None) in the working tree."""
    if revision is None:
        listed = _git("ls-files", "-z", "--cached", "--others", "--exclude-standard").decode().split("\0")
        return {
            path: (ROOT / path).read_text(encoding="utf-8")
            for path in listed
            if path.endswith(".py") and (ROOT / path).is_file()
        }
    listed = _git("ls-tree", "-r", "-z", "--name-only", revision).decode().split("\0")
    paths = [path for path in listed if path.endswith(".py")]
    asked = "".join(f"{revision}:{path}\n" for path in paths)
    said = io.BytesIO(_git("cat-file", "--batch", given=asked.encode()))
    found = {}
    for path in paths:
        size = int(said.readline().split()[2])
        found[path] = said.read(size).decode()
        said.readline()
    return found


def _git(*arguments: str, given: bytes | None = None) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, input=given).stdout


def counted(revision: str | None, under: str = "") -> Counter[str]:
    """Lines of code by room, of files whose path begins so."""
    found: Counter[str] = Counter()
    for path, source in sources(revision).items():
        room = room_of(path)
        if room is not None and path.startswith(under) and not generated(path, source):
            found[room] += code_lines(source)
    return found


def table(columns: dict[str, Counter[str]]) -> str:
    """A table of rooms; with two columns, of their difference, too."""
    differ = len(columns) > 1
    rooms = sorted({room for counts in columns.values() for room in counts}, key=lambda room: (room in BESIDE, room))
    heads = ["room", *columns, *(["difference"] if differ else [])]
    rows = [(room, [counts[room] for counts in columns.values()]) for room in rooms]
    total = [sum(counts[room] for room in rooms if room not in BESIDE) for counts in columns.values()]
    at = len([room for room in rooms if room not in BESIDE])
    rows.insert(at, (f"**{', '.join(DEPTH)}**", total))
    lines = [f"| {' | '.join(heads)} |", f"|---|{'---:|' * (len(heads) - 1)}"]
    for room, numbers in rows:
        cells = [f"{number:,}" for number in numbers] + ([f"{numbers[-1] - numbers[0]:+,}"] if differ else [])
        lines.append(f"| {room} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("revisions", nargs="*", metavar="REVISION", help="at most two; default: the working tree alone")
    asked = parser.parse_args()
    if len(asked.revisions) > 2:
        parser.error("at most two revisions can be compared")
    names: list[str | None] = [*asked.revisions, *([None] if len(asked.revisions) < 2 else [])]
    try:
        print(table({name or "working tree": counted(name) for name in names}))
    except subprocess.CalledProcessError as error:
        print(error.stderr.decode().strip(), file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
