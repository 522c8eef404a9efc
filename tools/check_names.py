"""Check names: `check_names.py [FILE ...]` prints `path:line: name: what to do`, and fails if a name is not clear.

A function is named by a verb, a value or class by a noun. A bare participle ("found", "told") is neither, and a
metaphor ("nest", "breath") needs an explanation.

It looks at modules and definitions of installed packages, but not at generated files.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
ROOMS: Final = ("server", "plugins", "clients/cli", "clients/python")
PUBLIC: Final = frozenset(
    """
    advanced completed concatenated budget.ended configurations.grouped configurations.replaced errors.refused
    errors.unsupported predictions.answered predictions.assembled predictions.joined predictions.refused
    _long_answers.Planned _answers.recommended _redaction.redacted _row_kinds.answered torch_facts.counted
    seam.cancelled
    """.split()  # noqa: SIM905  # a list of words
)
"""Names that plugins or programs of others use, and one of gRPC: of any module, or of the module that is named."""
GENERATED: Final = re.compile(r"_pb2(_grpc)?\.py$|(^|/)(\.venv|node_modules)/")
REGULAR: Final = re.compile(r"[a-z]+ed")
IRREGULAR: Final = frozenset(
    re.findall(
        r"\w+",
        """
    found told kept known held made given taken begun written shown gone said met lost sent built bought brought
    done drawn driven eaten fallen felt flown forgotten frozen grown heard hidden laid led lent lit meant paid risen
    seen sold shaken slept slid spent stood stuck sworn swept taught torn thought thrown understood woken worn won
    asked owed spelt spoken chosen broken fed bent
        """,
    )
)
WORDS: Final = frozenset("bed deepspeed embed exceed feed indeed need proceed seed shed speed succeed".split())  # noqa: SIM905  # as above
"""Verbs and nouns that only look like participles; "read", "set", "split" and their like are not in the list above."""
METAPHORS: Final = frozenset("breath door house life nest nursery room story zygote".split())  # noqa: SIM905  # as above


def _advice(name: str, module: str = "") -> str:
    """What to do about a name; empty = it is clear."""
    word = name.strip("_").lower()
    if name in PUBLIC or f"{module}.{name}" in PUBLIC or word in WORDS:
        return ""
    if word in IRREGULAR or REGULAR.fullmatch(word):
        return "is a bare participle; name a function by a verb, a value or class by a noun"
    return "is a metaphor; use the field's term" if word.removesuffix("s") in METAPHORS else ""


def problems_of(path: str, text: str) -> Iterator[str]:
    """What is wrong with the names of a module, a line each."""
    module = Path(path).stem
    names = [(1, module)]
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    names += [(node.lineno, node.name) for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]
    return (f"{path}:{line}: {name}: {advice}" for line, name in names if (advice := _advice(name, module)))


def main(arguments: list[str]) -> int:
    """Check files, by default all of installed packages; returns the exit status."""
    paths = [Path(each).resolve() for each in arguments] or [
        each for room in ROOMS for each in (ROOT / room).rglob("*.py")
    ]
    names = sorted(path.relative_to(ROOT).as_posix() for path in paths)
    checked = [name for name in names if not GENERATED.search(name)]
    problems = [line for name in checked for line in problems_of(name, (ROOT / name).read_text(encoding="utf-8"))]
    sys.stdout.writelines(f"{line}\n" for line in problems)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
