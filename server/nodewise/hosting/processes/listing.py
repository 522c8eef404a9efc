"""What a host says that its plugins register, made into records whose objects are handles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Final

import structlog

from nodewise.hosting.processes.faults import HostBusyError, HostFaultError
from nodewise.hosting.processes.peer import Peer
from nodewise.hosting.processes.remote import Remote, has_all
from nodewise.hosting.processes.words import KNOWN
from nodewise.hosting.records import HOOKS, Hook, PluginProblem, wrong_with
from nodewise.hosting.soundness import MOST_TEXT, as_text

__all__ = ["listed"]

_log = structlog.get_logger(__name__)

_BY_KIND: Final = {hook.kind: hook for hook in HOOKS.values()}
_PLUGIN: Final = Hook("plugin", object, "", object)


def listed(host: Peer) -> Iterator[tuple[Hook, tuple[Any, ...], PluginProblem | None]]:
    """The valid records of a host's plugins, with at most one problem beside each; starts the host."""

    def left_out(kind: str, name: str, reason: str, message: str) -> PluginProblem:
        return PluginProblem(name=name, distribution=host.distribution, kind=kind, reason=reason, message=message)

    try:
        records, problems = host.listing()
        for name, kind, reason, message in problems:
            hook = _BY_KIND.get(kind, _PLUGIN)
            words = (as_text(word, MOST_TEXT) for word in (name, reason, message))
            yield hook, (), left_out(hook.kind, *words)
        for kind, plain, names in records:
            hook = _BY_KIND[kind]
            yield hook, *_record(host, hook, plain, names, left_out)
    except (HostFaultError, HostBusyError) as error:
        raised = getattr(error, "raised", "")
        _log.warning("plugin_broken", distribution=host.distribution, how=error.what, raised=raised)
        for name in host.plugin_names:
            problem = error.what or f"loading raised {raised}"
            yield _PLUGIN, (), left_out("plugin", name, "PLUGIN_BROKEN", as_text(problem, MOST_TEXT))
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        _log.warning("plugin_broken", distribution=host.distribution, exc_info=error)
        for name in host.plugin_names:
            yield _PLUGIN, (), left_out("plugin", name, "PLUGIN_BROKEN", "its listing cannot be read")


def _record(
    host: Peer, hook: Hook, plain: dict[str, Any], names: list[str], left_out: Any
) -> tuple[tuple[Any, ...], PluginProblem | None]:
    """One record, looked at again here: the host may say anything."""
    known = {field.name for field in fields(hook.record)} - {hook.attribute}
    remote = Remote(host, f"{hook.kind}/{plain['name']}", 0, KNOWN.intersection(names))
    values = {name: value for name, value in plain.items() if name in known}
    record = hook.record(**values, **{hook.attribute: remote})
    wrong = wrong_with(record, hook, answers=False)
    if wrong is None and not has_all(remote, hook.protocol):
        wrong = "PLUGIN_INVALID", f"{hook.attribute} does not have the methods of {hook.protocol.__name__}"
    if wrong is not None:
        return (), left_out(hook.kind, as_text(plain["name"], MOST_TEXT), *wrong)
    return (record,), None
