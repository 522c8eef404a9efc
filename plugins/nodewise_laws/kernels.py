"""Loops compiled to machine code by numba, at their first call and not before.

A function marked with `kernel` is written in the subset of Python that numba knows: numbers, arrays, records, named
tuples of these, and other functions marked so. It allocates nothing: it fills in arrays that it is given. So nobody has
to count references to arrays, which, where functions call each other, takes numba several times as long as their work.
It runs as plain Python where ``NUMBA_DISABLE_JIT=1`` says so, with the same result: no ``fastmath``, the statements are
executed as they stand.

numba is imported at the first call: the import alone takes about 0.2 s, which commands that need no kernel do not pay.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Generic, ParamSpec, TypeVar

__all__ = ["Kernel", "kernel"]

P = ParamSpec("P")
R = TypeVar("R")

_DIGEST_DIGITS: Final = 12
"""Hexadecimal digits that tell versions of one function apart: 48 bits, ample for the versions that one disk sees."""


def kernel(function: Callable[P, R]) -> Kernel[P, R]:
    """Mark a function as one that numba compiles at its first call.

    Parameters
    ----------
    function : callable
        Of positional arguments whose types are the same in every call: numbers, NumPy arrays, generators, tuples.

    Returns
    -------
    Kernel
        Called like the function; callable from other kernels.
    """
    return Kernel(function)


class Kernel(Generic[P, R]):
    """A function and, from its first call on, its machine code.

    The machine code is kept on disk where a directory can be written (beside the source, else the user's cache
    directory) and read by later processes. A kept entry that cannot be read is thrown away and made anew; where nothing
    can be written, every process compiles for itself. Neither changes an answer.
    """

    def __init__(self, function: Callable[P, R]) -> None:
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        self._call: Callable[P, R] | None = None
        self._called: Any = None
        self._lock = threading.Lock()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the kernel; the first call of a process loads or compiles it for the types of its arguments.

        Raises
        ------
        TypeError
            The arguments' types are not those of the first call.
        """
        call = self._call
        if call is None:
            call = self._load(args)
        return call(*args, **kwargs)

    @property
    def version(self) -> str:
        """Digest of all code that the machine code depends on: statements, constants and called kernels."""
        state = hashlib.sha256()
        for function in _functions(self, []):
            code = function.__code__
            state.update(repr((code.co_code, code.co_consts, code.co_names, code.co_varnames)).encode())
            constants = {name: function.__globals__.get(name) for name in code.co_names}
            plain = {n: v for n, v in constants.items() if isinstance(v, int | float | str | tuple)}
            state.update(repr(sorted(plain.items(), key=lambda item: item[0])).encode())
        return state.hexdigest()[:_DIGEST_DIGITS]

    @property
    def _numba_type_(self) -> Any:
        """What numba takes this object for when another kernel calls it: a function, compiled into its caller."""
        if self._called is None:
            # Kept here, for numba remembers it weakly.
            self._called = self._dispatcher(keep=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)
        return self._called._numba_type_

    def _load(self, arguments: tuple[Any, ...]) -> Callable[P, R]:
        import numba  # noqa: PLC0415 - slow, and most processes need none

        with self._lock:
            if self._call is None:
                if numba.config.DISABLE_JIT:
                    self._call = self.__wrapped__
                else:
                    self._call = self._compile(tuple(numba.typeof(argument) for argument in arguments))
            return self._call

    def _compile(self, signature: tuple[Any, ...]) -> Callable[P, R]:
        """Machine code for arguments of the signature's types: from disk, else compiled and kept, else compiled."""
        dispatcher = None
        for _ in range(2):
            try:
                dispatcher = self._dispatcher(keep=True)
            except RuntimeError:  # no directory can be written
                break
            try:
                dispatcher.compile(signature)
            except Exception:  # noqa: BLE001 - whatever a damaged file may raise; the last attempt reads none
                self._forget(dispatcher)
                dispatcher = None
            else:
                break
        if dispatcher is None:
            dispatcher = self._dispatcher(keep=False)
            dispatcher.compile(signature)
        # Another signature would be compiled silently, for seconds: it is a mistake of the caller.
        dispatcher.disable_compile()
        call: Callable[P, R] = dispatcher
        return call

    def _dispatcher(self, *, keep: bool, **options: bool) -> Any:
        """Return numba's handle of the function, its version in its name, after which numba names its files."""
        import numba  # noqa: PLC0415 - as above

        source = self.__wrapped__
        assert isinstance(source, types.FunctionType)
        versioned = types.FunctionType(source.__code__, source.__globals__, source.__name__, source.__defaults__)
        versioned.__qualname__ = f"{source.__qualname__}_{self.version}"
        versioned.__module__ = source.__module__
        return numba.njit(cache=keep, nogil=True, **options, **_without_reference_counts())(versioned)

    def _forget(self, dispatcher: Any) -> None:
        """Throw away what is kept of this version."""
        with contextlib.suppress(OSError):
            for path in Path(dispatcher.stats.cache_path).glob(f"*{dispatcher.__qualname__}-*.nb[ic]"):
                path.unlink()


def _without_reference_counts() -> dict[str, bool]:
    """Option of numba that leaves reference counts out. It is not documented: where it is gone, they are counted."""
    from numba.core import options  # noqa: PLC0415 - as above

    return {"_nrt": False} if hasattr(getattr(options, "DefaultOptions", None), "_nrt") else {}


def _functions(kernel: Kernel[Any, Any], visited_kernels: list[Kernel[Any, Any]]) -> Iterator[types.FunctionType]:
    """Yield the functions of a kernel and of all kernels that it calls, each once."""
    visited_kernels.append(kernel)
    function = kernel.__wrapped__
    assert isinstance(function, types.FunctionType)
    yield function
    for name in function.__code__.co_names:
        called = function.__globals__.get(name)
        if isinstance(called, Kernel) and called not in visited_kernels:
            yield from _functions(called, visited_kernels)
