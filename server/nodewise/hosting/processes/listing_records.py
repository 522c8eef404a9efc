"""Records of a host's plugins, from its listing; their objects are handles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Final

import structlog

from nodewise.hosting.processes.faults import HostBusyError, HostFaultError
from nodewise.hosting.processes.members import KNOWN
from nodewise.hosting.processes.peer import Peer
from nodewise.hosting.processes.remote import Remote, has_all
from nodewise.hosting.records import HOOKS, PluginProblem, RecordOrProblem, wrong_with
from nodewise.hosting.soundness import MOST_TEXT, as_text

__all__ = ["listing_records"]

_log = structlog.get_logger(__name__)

_BY_KIND: Final = {hook.kind: hook for hook in HOOKS.values()}


def listing_records(host: Peer) -> Iterator[RecordOrProblem]:
    """The valid records of a host's plugins, and the problems of the others; starts the host.

    All are validated again here, as the host is not trusted.
    """

    def left_out(name: Any, kind: str, reason: Any, message: Any) -> PluginProblem:
        name, reason, message = (as_text(each, MOST_TEXT) for each in (name, reason, message))
        return PluginProblem(name, host.distribution, kind if kind in _BY_KIND else "plugin", reason, message)

    try:
        records, problems = host.listing()
        for problem in problems:
            yield left_out(*problem)
        for kind, plain, names in records:
            hook = _BY_KIND[kind]
            field_names = {field.name for field in fields(hook.record)} - {hook.attribute}
            remote = Remote(host, f"{kind}/{plain['name']}", 0, KNOWN.intersection(names))
            values = {name: value for name, value in plain.items() if name in field_names}
            record = hook.record(**values, **{hook.attribute: remote})
            wrong = wrong_with(record, hook, answers=False)
            if wrong is None and not has_all(remote, hook.protocol):
                wrong = "PLUGIN_INVALID", f"{hook.attribute} does not have the methods of {hook.protocol.__name__}"
            yield (hook, record) if wrong is None else left_out(plain["name"], kind, *wrong)
    except (HostFaultError, HostBusyError) as error:
        exception_name = getattr(error, "exception_name", "")
        _log.warning("plugin_broken", distribution=host.distribution, how=error.what, raised=exception_name)
        for name in host.plugin_names:
            yield left_out(name, "plugin", "PLUGIN_BROKEN", error.what or f"loading raised {exception_name}")
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        _log.warning("plugin_broken", distribution=host.distribution, exc_info=error)
        for name in host.plugin_names:
            yield left_out(name, "plugin", "PLUGIN_BROKEN", "its list of records cannot be read")
