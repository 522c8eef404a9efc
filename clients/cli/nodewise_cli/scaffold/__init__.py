"""A plugin to start from: a project of one module that passes the conformance suite as it is written."""

from __future__ import annotations

import re
import shutil
from importlib import resources
from keyword import iskeyword
from pathlib import Path
from string import Template
from typing import Final

from nodewise_cli.failures import CommandError, InputError

__all__ = ["KINDS", "write_project"]

KINDS: Final = ("estimator", "policy", "reader", "diagnoser")

_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,62}")
_RESERVED: Final = frozenset({"auto", "all", "nodewise"})
_FILES: Final = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "{module}.py": "{kind}.py",
    "test_{module}.py": "test_{kind}.py",
}
"""What is written, and the template of each."""


def write_project(name: str, kind: str, inside: Path) -> tuple[Path, ...]:
    """Write the project of a plugin into a new folder of its name; the files that were written.

    Raises
    ------
    InputError
        The name is none that a plugin can have, the kind is unknown, or the folder is there already.
    CommandError
        It cannot be written.
    """
    module = name.replace("-", "_")
    if not _NAME.fullmatch(name) or name in _RESERVED or iskeyword(module):
        raise InputError(
            f"NAME: must be at most 63 lower case letters, digits and dashes, and no reserved word, found {name!r}"
        )
    if kind not in KINDS:
        raise InputError(f"--kind: must be one of {', '.join(KINDS)}, found {kind!r}")
    folder = inside / name
    type_name = module.title().replace("_", "")
    words = {
        "name": name,
        "module": module,
        "kind": kind,
        "type": type_name.removesuffix(kind.title()) or type_name,
        "article": "An" if kind[0] in "aeiou" else "A",
    }
    texts = {folder / pattern.format(**words): _text(template, words) for pattern, template in _FILES.items()}
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise InputError(f"NAME: {folder} exists already; nothing was written") from None
    except OSError as error:
        raise CommandError(f"{folder} cannot be created: {error.strerror}") from None
    try:
        for path, text in texts.items():
            path.write_text(text, "utf-8")
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise CommandError(f"{folder} cannot be written: {error.strerror}; it was removed") from None
    return tuple(texts)


def _text(template: str, words: dict[str, str]) -> str:
    source = resources.files(__name__).joinpath("templates", f"{template.format(**words)}.txt")
    return Template(source.read_text("utf-8")).substitute(words)
