"""Check that new workers could load a generation, in a new process, because a process imports a module only once."""

from __future__ import annotations

import pickle
import sys
import traceback
from pathlib import Path
from typing import Final

from nodewise.domain.errors import NodewiseError
from nodewise.hosting.registry import PluginConflictError, Registry
from nodewise.processes.channel import Channel
from nodewise.processes.process import status_text
from nodewise.processes.spawning import spawn_connected
from nodewise.runtime.generations.folder import PluginsFolder, PluginsFolderError
from nodewise.runtime.generations.loading import load_generation, make_importable
from nodewise.runtime.settings import Settings, SettingsError

__all__ = ["load", "load_failures", "newly_left_out"]

LOADED_S: Final = 120.0
"""Patience with a process that loads plugins: it takes two seconds, and what hangs would hang every new worker."""


def load_failures(settings: Settings, folder: PluginsFolder, number: int, serving: Registry) -> tuple[str, ...]:
    """Return the reasons why new processes could not serve a generation; empty = one has loaded it. Blocks for seconds.

    Parameters
    ----------
    serving : Registry
        Plugins that it leaves out already are not failures.
    """
    problems_before = [(problem.name, problem.distribution) for problem in serving.problems]
    process, connection = spawn_connected("nodewise.runtime.generations.load_check:load", name="nodewise-trial")
    channel = Channel(connection.detach(), LOADED_S)
    try:
        channel.send(pickle.dumps((settings, folder.path, number, problems_before)))
        failures: tuple[str, ...] = pickle.loads(channel.receive())  # noqa: S301  # from a process of ours
    except TimeoutError:
        return (f"it did not load within {LOADED_S:g} s in a process of its own",)
    except (EOFError, OSError):
        how = status_text(process.wait(LOADED_S) or 0)
        return (f"a process of its own ended while it loaded: {how}",)
    else:
        return failures
    finally:
        channel.close()
        process.kill()
        process.wait()


def newly_left_out(registry: Registry, before: list[tuple[str, str]]) -> list[str]:
    """Return the plugins that a registry leaves out, except the known ones."""
    return [
        f"{problem.distribution}: {problem.name} is left out: {problem.message}"
        for problem in registry.problems
        if (problem.name, problem.distribution) not in before
    ]


def load(descriptor: int) -> None:
    """In a new process: load the generation that a channel names, and send the failures."""
    channel = Channel(descriptor)
    channel.send(pickle.dumps(_failures(*pickle.loads(channel.receive()))))  # noqa: S301  # from a process of ours


def _failures(settings: Settings, path: Path, number: int, problems: list[tuple[str, str]]) -> tuple[str, ...]:
    # The process that asks finds its own generation's folders first; new workers do not.
    ours = path.resolve()
    sys.path[:] = [each for each in sys.path if not Path(each).resolve().is_relative_to(ours)]
    folder = PluginsFolder(path)
    try:
        generation = folder.generation(number)
        make_importable(settings, folder, generation)
        loaded_plugins = load_generation(settings, folder, generation)
        failures = newly_left_out(loaded_plugins.registry, problems)
        loaded_plugins.registry.close()
    except Exception as error:  # noqa: BLE001  # whatever it is, new workers would meet it
        failures = [_describe(error)]
    return tuple(failures)


def _describe(error: Exception) -> str:
    """Return the text of a Nodewise error; for other exceptions also the type and the place."""
    if isinstance(error, NodewiseError | SettingsError | PluginsFolderError | PluginConflictError):
        return str(error)
    (*_, last) = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__}: {error} (at {last.filename}:{last.lineno})"
