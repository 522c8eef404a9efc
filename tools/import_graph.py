"""Which tests a change touches: those that import what changed, directly or through others, nearest first.

A graph of files, read from their syntax trees. A file leads to the modules that it imports, at its top or within a
function, and to the `__init__.py` of their packages. A test leads, besides, to what it names in a string: a file of the
repository (by its path, or a script by its name), all that is below docs or examples, a command or a plugin (by its
name in pyproject.toml).
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

__all__ = ["LIBRARIES", "SCRIPTS", "ImportGraph", "expected_s", "fitting", "is_test", "ranked"]

LIBRARIES: Final = ("server", "plugins", "clients/cli", "clients/python", "integrations/python", "protos/python")
"""Folders whose modules any file may import."""
SCRIPTS: Final = ("tools", "research", "bench", "tests/support", "tests/testbed")
"""Folders whose modules import each other by their names alone."""
SEEN_BY_TESTS: Final = ("tests/support", "tools", "research")
CONTENTS: Final = ("docs", "examples")
"""Folders that tests look through."""

UNKNOWN_S: Final = {"unit": 2.0, "property": 4.0, "contract": 4.0, "conformance": 8.0, "integration": 8.0}
"""What a file of tests is taken to need that has not been timed here, by its folder."""
UNKNOWN_ELSEWHERE_S: Final = 20.0


def is_test(path: str) -> bool:
    """Whether pytest collects a file."""
    return path.startswith("tests/") and PurePosixPath(path).name.startswith("test_") and path.endswith(".py")


@dataclass(frozen=True)
class ImportGraph:
    """Files and what they lead to.

    Attributes
    ----------
    leads_to : mapping of str to set of str
        By path from the root of the repository.
    """

    leads_to: Mapping[str, frozenset[str]]

    @classmethod
    def of(
        cls, root: Path, files: Iterable[str], *, names: Mapping[str, str] | None = None, folders: Iterable[str] = ()
    ) -> ImportGraph:
        """Read a tree.

        Parameters
        ----------
        files : iterable of str
            Paths from ``root``. Those that are gone lead nowhere, but what still imports them leads to them.
        names : mapping of str to str
            Modules behind names that a string in a test may hold.
        folders : iterable of str
            Further folders whose modules any file may import.
        """
        paths = sorted(set(files))
        reading = _Reading(paths, (*LIBRARIES, *sorted(folders)), names or {})
        leads_to = {}
        for path in paths:
            there = root / path
            if path.endswith(".py") and there.is_file():
                tree = ast.parse(there.read_text(encoding="utf-8"), path)
                leads_to[path] = frozenset(reading.found(path, tree)) - {path}
        return cls(leads_to)

    def distances(self, changed: Iterable[str]) -> dict[str, int]:
        """Imports between each file and the nearest one that changed; 0 for the changed ones, none for the others."""
        leads_from: dict[str, list[str]] = defaultdict(list)
        for path, targets in self.leads_to.items():
            for target in targets:
                leads_from[target].append(path)
        found = dict.fromkeys(changed, 0)
        edge = sorted(found)
        while edge:
            following = sorted({path for target in edge for path in leads_from[target]} - found.keys())
            for path in following:
                found[path] = 1 + min(found[target] for target in self.leads_to[path] if target in found)
            edge = following
        return found


def expected_s(path: str, seconds: Mapping[str, float]) -> float:
    """What a file of tests takes, as far as is known."""
    return seconds.get(path, UNKNOWN_S.get(path.split("/")[1], UNKNOWN_ELSEWHERE_S))


def ranked(distances: Mapping[str, int], seconds: Mapping[str, float]) -> list[str]:
    """Files of tests that a change touches: the nearest first, and of equally near ones the quickest."""
    tests = [path for path in distances if is_test(path)]
    return sorted(tests, key=lambda path: (distances[path], expected_s(path, seconds), path))


def fitting(tests: Sequence[str], seconds: Mapping[str, float], budget_s: float) -> list[str]:
    """Those that fit into a time, each in its turn: one that is too long leaves its place to the next."""
    chosen, left_s = [], budget_s
    for path in tests:
        needed_s = expected_s(path, seconds)
        if needed_s <= left_s:
            chosen.append(path)
            left_s -= needed_s
    return chosen


class _Reading:
    """Resolves names to files."""

    def __init__(self, paths: Sequence[str], libraries: Sequence[str], names: Mapping[str, str]) -> None:
        self._paths = frozenset(paths)
        self._libraries = libraries
        self._names = names
        self._modules: dict[str, dict[str, str]] = defaultdict(dict)
        for path in paths:
            folder = self._folder(path)
            if folder is not None and path.endswith(".py"):
                self._modules[folder][_module(path, folder)] = path
        scripts = [path for path in paths if path.startswith(("tools/", "research/"))]
        counts = Counter(PurePosixPath(path).name for path in paths)
        self._scripts = {PurePosixPath(path).name: path for path in scripts if counts[PurePosixPath(path).name] == 1}

    def found(self, path: str, tree: ast.Module) -> Iterator[str]:
        """Files that a file leads to."""
        folder = self._folder(path)
        tests = path.startswith("tests/")
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                for name in _imported(node, path, folder):
                    yield from self._files_of(name, path, folder)
            elif tests and isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from self._named(node.value, path)
        if tests:
            around = (f"{parent}/conftest.py" for parent in PurePosixPath(path).parents)
            yield from (conftest for conftest in around if conftest in self._paths)

    def _folder(self, path: str) -> str | None:
        folders = [each for each in (*self._libraries, *SCRIPTS) if path.startswith(f"{each}/")]
        return max(folders, key=len, default=None)

    def _files_of(self, name: str, path: str, folder: str | None) -> Iterator[str]:
        """A module's file, or that of the nearest package around the name, and the files of all packages around it."""
        own = () if folder is None else (folder,)
        seen = SEEN_BY_TESTS if path.startswith("tests/") else ()
        parts = name.split(".")
        for each in (*own, *self._libraries, *seen):
            modules = self._modules[each]
            if parts[0] in modules or any(module.startswith(f"{parts[0]}.") for module in modules):
                yield from (
                    modules[module]
                    for module in (".".join(parts[:count]) for count in range(1, len(parts) + 1))
                    if module in modules
                )
                return

    def _named(self, text: str, path: str) -> Iterator[str]:
        if text in self._paths:
            yield text
        elif text in CONTENTS:
            yield from (each for each in self._paths if each.startswith(f"{text}/"))
        elif text in self._scripts:
            yield self._scripts[text]
        elif text in self._names:
            yield from self._files_of(self._names[text], path, None)


def _module(path: str, folder: str) -> str:
    parts = PurePosixPath(path).relative_to(folder).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(node: ast.Import | ast.ImportFrom, path: str, folder: str | None) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    base = node.module or ""
    if node.level:
        around = PurePosixPath(path).relative_to(folder or ".").parts[: -node.level]
        base = ".".join((*around, *([base] if base else [])))
    return [f"{base}.{alias.name}" for alias in node.names]
