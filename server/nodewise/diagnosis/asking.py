"""The guarded call of a diagnoser: which one, and whatever it does, an answer that can be true or a clear error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import structlog

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.estimation.check import is_sound_error
from nodewise.estimation.registry import Loaded
from nodewise.plugin import DiagnoserRecord

__all__ = ["asked", "diagnoser_of"]

_log = structlog.get_logger(__name__)

Answer = TypeVar("Answer")


def diagnoser_of(diagnosers: Mapping[str, Loaded[DiagnoserRecord]], name: str) -> Loaded[DiagnoserRecord]:
    """The diagnoser of a name; without one the only diagnoser, else the only shipped one.

    Raises
    ------
    NodewiseError
        DIAGNOSER_NOT_FOUND, with the names that are loaded.
    """
    available = ", ".join(diagnosers) or "none"
    found = diagnosers.get(name)
    if found is None and not name:
        for kept in (list(diagnosers.values()), [each for each in diagnosers.values() if each.mode == "inline"]):
            if len(kept) == 1:
                return kept[0]
    if found is None:
        what = f"no diagnoser is named {name!r}" if name else "no diagnoser is named, and there is no only one"
        raise NodewiseError(
            Reason.DIAGNOSER_NOT_FOUND,
            f"{what}; loaded are: {available}",
            {"diagnoser": name, "available": available},
        )
    return found


def asked(
    loaded: Loaded[DiagnoserRecord],
    method: str,
    call: Callable[[], Answer],
    wrong_with: Callable[[Any], str | None],
) -> Answer:
    """What a diagnoser answers, if it can be true.

    Parameters
    ----------
    wrong_with : callable
        Says what is wrong with an answer; None = nothing.

    Raises
    ------
    NodewiseError
        What it refuses with; DIAGNOSER_FAILED when it raises something else (its text stays in the log);
        DIAGNOSER_INVALID_RESULT.
    """
    record = loaded.record
    try:
        answer = call()
    except NodewiseError as error:
        raise error if is_sound_error(error) else _failure(loaded, method, error) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  # a plugin's SystemExit must not end the server
        raise _failure(loaded, method, error) from None
    try:
        wrong = wrong_with(answer)
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        wrong = f"its values cannot be read ({type(error).__name__})"
    if wrong is not None:
        raise NodewiseError(
            Reason.DIAGNOSER_INVALID_RESULT,
            f"diagnoser {record.name!r} answered {method} with something that cannot be true: {wrong}",
            {"diagnoser": record.name, "method": method, "problem": wrong},
        )
    return answer


def _failure(loaded: Loaded[DiagnoserRecord], method: str, error: BaseException) -> NodewiseError:
    """An error that names the plugin and keeps the exception's text in the log."""
    record = loaded.record
    _log.error("diagnoser_failed", diagnoser=record.name, version=record.version, method=method, exc_info=error)
    return NodewiseError(
        Reason.DIAGNOSER_FAILED,
        f"diagnoser {record.name!r} {record.version} of {loaded.distribution} failed in {method}",
        {"diagnoser": record.name, "version": record.version, "distribution": loaded.distribution, "method": method},
    )
