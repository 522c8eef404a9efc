"""Loading a generation in a process of its own, as new workers would: no process imports anything twice."""

from __future__ import annotations

import sys
import traceback
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from nodewise.domain.errors import NodewiseError
from nodewise.hosting.registry import PluginConflictError, Registry
from nodewise.runtime.generations.folder import PluginsFolder, PluginsFolderError
from nodewise.runtime.generations.loading import loaded, make_importable
from nodewise.runtime.processes import settle, started
from nodewise.runtime.settings import Settings, SettingsError

__all__ = ["failures_apart", "newly_left_out"]

LOADED_S: Final = 120.0
"""Patience with a process that loads plugins: it takes two seconds, and what hangs would hang every new worker."""


def failures_apart(settings: Settings, folder: PluginsFolder, number: int, serving: Registry) -> tuple[str, ...]:
    """Why new processes could not serve a generation; empty = one has loaded it. Blocks for seconds.

    Parameters
    ----------
    serving : Registry
        What it leaves out already is no failure.
    """
    known = [(problem.name, problem.distribution) for problem in serving.problems]
    child = started(_load, settings, folder.path, number, known, name="nodewise-trial")
    try:
        if not child.pipe.poll(LOADED_S):
            return (f"it did not load within {LOADED_S:g} s in a process of its own",)
        failures: tuple[str, ...] = child.pipe.recv()
    except (EOFError, OSError):
        child.process.join(LOADED_S)
        return (f"a process of its own ended with status {child.process.exitcode} while it loaded",)
    else:
        return failures
    finally:
        child.kill()


def newly_left_out(registry: Registry, known: list[tuple[str, str]]) -> list[str]:
    """Plugins that a registry leaves out, but those that are known by name and distribution."""
    return [
        f"{problem.distribution}: {problem.name} is left out: {problem.message}"
        for problem in registry.problems
        if (problem.name, problem.distribution) not in known
    ]


def _load(pipe: Connection, settings: Settings, path: Path, number: int, known: list[tuple[str, str]]) -> None:
    """In a process of its own."""
    settle()
    # The process that asks finds its own generation's folders first; new workers do not.
    ours = path.resolve()
    sys.path[:] = [each for each in sys.path if not Path(each).resolve().is_relative_to(ours)]
    folder = PluginsFolder(path)
    try:
        generation = folder.generation(number)
        make_importable(settings, folder, generation)
        plugged = loaded(settings, folder, generation)
        failures = newly_left_out(plugged.registry, known)
        plugged.registry.close()
    except Exception as error:  # noqa: BLE001  # whatever it is, new workers would meet it
        failures = [_told(error)]
    pipe.send(tuple(failures))


def _told(error: Exception) -> str:
    """Our own errors speak for themselves; of others, what they are and where they arose is told as well."""
    if isinstance(error, NodewiseError | SettingsError | PluginsFolderError | PluginConflictError):
        return str(error)
    (*_, last) = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__}: {error} (at {last.filename}:{last.lineno})"
