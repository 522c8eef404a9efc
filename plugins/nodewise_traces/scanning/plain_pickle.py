"""Pickles of builtin containers, texts and numbers; all others are refused before they are load_pickle."""

from __future__ import annotations

import io
import pickle
import pickletools
from typing import Any, Final

__all__ = ["PickleError", "is_pickle", "load_pickle"]

_ALLOWED: Final = frozenset(
    {
        *("PROTO", "FRAME", "STOP", "MARK", "POP", "POP_MARK", "DUP"),
        *("NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"),
        *("INT", "LONG", "FLOAT", "UNICODE", "STRING", "BINSTRING", "SHORT_BINSTRING"),
        *("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "SHORT_BINBYTES", "BINBYTES"),
        *("EMPTY_LIST", "APPEND", "APPENDS", "LIST", "EMPTY_DICT", "SETITEM", "SETITEMS", "DICT"),
        *("EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"),
        *("MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "GET", "BINGET", "LONG_BINGET"),
    }
)
"""Opcodes that build builtin values: none of them looks a name up or calls anything."""


class PickleError(ValueError):
    """The bytes are no pickle, or one that holds more than plain values."""


def is_pickle(head: bytes) -> bool:
    """Whether a file that starts so may be a pickle of a dictionary, of protocol 2 or newer."""
    return head[:1] == b"\x80" and len(head) > 2 and 2 <= head[1] <= pickle.HIGHEST_PROTOCOL and b"}" in head[2:16]


class _Plain(pickle.Unpickler):
    """Finds no names, whatever the bytes ask for."""

    def find_class(self, module: str, name: str, /) -> Any:
        raise pickle.UnpicklingError(f"it names {module}.{name}")


def load_pickle(content: bytes) -> Any:
    """The value of a pickle.

    Raises
    ------
    PickleError
        Saying where it stops being one, or what it holds besides plain values.
    """
    try:
        for operation, argument, at in pickletools.genops(content):
            _check(operation.name, argument, at, len(content))
        return _Plain(io.BytesIO(content)).load()
    except PickleError:
        raise
    except Exception as error:  # noqa: BLE001 - damaged pickles fail in many ways, all of them here
        raise PickleError(f"the pickle is damaged or truncated ({type(error).__name__}): write it again") from None


def _check(operation: str, argument: Any, at: int | None, size: int) -> None:
    if operation not in _ALLOWED:
        argument_text = f" {argument[:80]!r}" if isinstance(argument, str) else ""
        raise PickleError(
            f"at byte {at} the pickle needs {operation}{argument_text}: only lists, dictionaries, texts and numbers "
            "are accepted, as other pickles can run programs"
        )
    # A place of the memo costs memory up to it: no pickle has more places than bytes.
    if operation in {"PUT", "LONG_BINPUT"} and not 0 <= int(argument) < size:
        raise PickleError(f"at byte {at} the pickle refers to an impossible memo entry, {argument}")
