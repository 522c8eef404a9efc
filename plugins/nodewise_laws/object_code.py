"""Machine code that is stored as object files and loaded without numba, whose import takes longer than most answers.

A function marked with `object_code` is a kernel like those of `kernel`. numba compiles it once per machine; what it
made is kept beside the source, else in the user's cache directory, and loaded from there by llvmlite alone, which numba
brings along. A call takes some microseconds more than through numba: it is for kernels that are called seldom, with
large arrays.

Code is kept per version of the function, types of arguments and processor. What cannot be kept this way (an argument or
a result of another type, code that needs a library, another system than Linux) goes through numba as ever.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

import numpy as np

from nodewise_laws.kernels import Kernel

__all__ = ["ObjectKernel", "object_code"]

P = ParamSpec("P")
R = TypeVar("R")

_DONE: Final = (0, -2)
"""What numba's functions return where nothing is raised: with a result, and with None."""
_INLINE: Final = re.compile(
    r"llvm\.(?:[su](?:max|min)|abs|fabs|rint|mem(?:set|cpy|move)|vector\.reduce|ct[lt]z|assume|lifetime|experimental|"
    r"[su]add|[su]sub|[su]mul|fsh[lr]|masked|is\.constant|expect)\b"
)
"""Intrinsics that become instructions, or calls of the C library that every process has."""
_NUMBERS: Final = ("int", "float")
_DIGEST_BYTES: Final = 32
_CANNOT: Final = b"-"
"""Content of a file where code cannot be stored, so that no process compiles it again in vain."""
_LOADING: Final = threading.Lock()


def object_code(function: Callable[P, R]) -> ObjectKernel[P, R]:
    """Mark a function whose machine code is stored as an object file.

    Parameters
    ----------
    function : callable
        As of `kernel`, of whole numbers, floats, arrays in C order and tuples of these; its result None, a whole
        number or a tuple of them.

    Returns
    -------
    ObjectKernel
        Called like the function; callable from other kernels.
    """
    return ObjectKernel(function)


class ObjectKernel(Kernel[P, R]):
    """A function and, from its first call on, its machine code, without numba where that is possible."""

    def _load(self, arguments: tuple[Any, ...]) -> Callable[P, R]:
        if sys.platform != "linux" or os.environ.get("NUMBA_DISABLE_JIT", "0") not in {"", "0"}:
            return super()._load(arguments)
        types = tuple(map(_type_of, arguments))
        if None in types:
            return super()._load(arguments)
        with self._lock:
            if self._call is None:
                content = self._read_kept(types) or self._make(types, arguments)
                self._call = None if content == _CANNOT else _function(content, types)
        return self._call or super()._load(arguments)

    def _read_kept(self, types: tuple[Any, ...]) -> bytes:
        """What an earlier process wrote; empty = there is nothing that can be read."""
        for path in self._paths(types):
            with suppress(OSError):
                digest, content = (whole := path.read_bytes())[:_DIGEST_BYTES], whole[_DIGEST_BYTES:]
                if hashlib.sha256(content).digest() == digest:
                    return content
        return b""

    def _make(self, types: tuple[Any, ...], arguments: tuple[Any, ...]) -> bytes:
        """By numba, and kept: its symbol, how many numbers come back, and the code. _CANNOT = none that can be kept."""
        import numba  # noqa: PLC0415 - slow, and needed once per machine

        if numba.config.DISABLE_JIT:
            return _CANNOT
        dispatcher = self._dispatcher(keep=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)
        signature = tuple(numba.typeof(argument) for argument in arguments)
        dispatcher.compile(signature)
        overload = dispatcher.overloads[signature]
        symbol, results = overload.fndesc.llvm_func_name, _results(str(overload.signature.return_type))
        functions = list(_parse(overload.library.get_llvm_str()).functions)
        needs = [each.name for each in functions if each.is_declaration and not _INLINE.match(each.name)]
        defined = next((each for each in functions if each.name == symbol), None)
        if (
            results is None
            or needs
            or defined is None
            or _parameters(defined) != ["ptr", "ptr", *_argument_types(types)]
        ):
            content = _CANNOT
        else:
            head = json.dumps({"symbol": symbol, "results": results}).encode()
            content = head + b"\n" + overload.library.serialize_using_object_code()[2][0]
        for path in self._paths(types):
            with suppress(OSError):
                _write(path, hashlib.sha256(content).digest() + content)
                break
        return content

    def _paths(self, types: tuple[Any, ...]) -> Iterator[Path]:
        """Where the code may be, the first choice first."""
        source = Path(self.__wrapped__.__code__.co_filename)
        digest = hashlib.sha256(repr((types, _processor())).encode()).hexdigest()[:12]
        name = f"{source.stem}.{self.__wrapped__.__qualname__}_{self.version}-{digest}.o"
        if cache_dir := os.environ.get("NUMBA_CACHE_DIR"):
            yield Path(cache_dir, name)
            return
        yield source.parent / "__pycache__" / name
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "nodewise", name)


def _type_of(argument: Any) -> Any:
    """What the machine code depends on; None = it is not kept for such arguments."""
    if isinstance(argument, np.ndarray):
        if not argument.flags.c_contiguous or not argument.flags.aligned or not argument.dtype.isnative:
            return None
        return argument.dtype.str, argument.ndim, argument.flags.writeable
    if isinstance(argument, int | np.integer) and not isinstance(argument, bool):
        return "int"
    if isinstance(argument, float):
        return "float"
    if type(argument) is tuple:
        types = tuple(map(_type_of, argument))
        return None if None in types else types
    return None


def _fit(arguments: Any, types: Any) -> bool:
    """Whether code for some types takes what is given: an array that is not written may be writeable."""
    if arguments == types:
        return True
    if not isinstance(arguments, tuple) or not isinstance(types, tuple) or len(arguments) != len(types):
        return False
    if arguments and isinstance(arguments[0], str) and arguments[0] not in _NUMBERS:
        return arguments[:2] == types[:2] and arguments[2] and not types[2]
    return all(map(_fit, arguments, types))


def _results(of_type: str) -> int | None:
    """How many whole numbers come back, 0 = None; no number = something else comes back."""
    if of_type == "none":
        return 0
    if of_type == "int64":
        return 1
    parts = re.fullmatch(r"UniTuple\(int64 x (\d+)\)", of_type)
    return int(parts[1]) if parts and int(parts[1]) > 1 else None


def _argument_types(types: tuple[Any, ...]) -> Iterator[str]:
    """LLVM's types of what arguments are passed as: of an array its owner, its parent, size, place, shape, strides."""
    for of_type in types:
        if of_type in _NUMBERS:
            yield "i64" if of_type == "int" else "double"
        elif isinstance(of_type[0], str) and of_type[0] not in _NUMBERS:
            yield from ("ptr", "ptr", "i64", "i64", "ptr", *("i64",) * (2 * of_type[1]))
        else:
            yield from _argument_types(of_type)


def _parameters(function: Any) -> list[str]:
    return [str(parameter.type) for parameter in function.arguments]


def _values(arguments: tuple[Any, ...], values: list[Any]) -> None:
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            values += (None, None, argument.size, argument.itemsize, argument.ctypes.data)
            values += argument.shape
            values += argument.strides
        elif isinstance(argument, tuple):
            _values(argument, values)
        else:
            values.append(argument if isinstance(argument, float) else int(argument))


def _function(content: bytes, types: tuple[Any, ...]) -> Callable[..., Any]:
    """Load object code as a function of such arguments."""
    head, _, code = content.partition(b"\n")
    header = json.loads(head)
    symbol, results = header["symbol"], header["results"]
    kinds = {"ptr": ctypes.c_void_p, "i64": ctypes.c_int64, "double": ctypes.c_double}
    signature = [kinds[each] for each in ("ptr", "ptr", *_argument_types(types))]
    call = ctypes.CFUNCTYPE(ctypes.c_int32, *signature)(_address(code, symbol))  # without the interpreter's lock
    space = ctypes.c_int64 * max(results, 1)

    def run(*arguments: Any) -> Any:
        if not _fit(tuple(map(_type_of, arguments)), types):
            raise TypeError(f"arguments must be of the types of the first call, {types}")
        result, raised = space(), ctypes.c_void_p()
        values: list[Any] = [ctypes.addressof(result), ctypes.addressof(raised)]
        _values(arguments, values)
        status = call(*values)
        if status not in _DONE:
            raise ArithmeticError(f"the machine code of {symbol} ends with status {status}")
        return None if results == 0 else result[0] if results == 1 else tuple(result)

    return run


@cache
def _engine() -> Any:
    import llvmlite.binding as llvm  # noqa: PLC0415 - processes without kernels need none

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    return llvm.create_mcjit_compiler(_parse(""), machine)


def _parse(text: str) -> Any:
    import llvmlite.binding as llvm  # noqa: PLC0415 - as above

    return llvm.parse_assembly(text)


def _address(code: bytes, symbol: str) -> int:
    """Address of a function of object code in this process. Raises KeyError if it is not there."""
    import llvmlite.binding as llvm  # noqa: PLC0415 - as above

    with _LOADING:
        engine = _engine()
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        address = int(engine.get_function_address(symbol))
    if not address:
        raise KeyError(symbol)
    return address


@cache
def _processor() -> tuple[str, str, str]:
    """What machine code is made for."""
    import llvmlite  # noqa: PLC0415 - as above
    import llvmlite.binding as llvm  # noqa: PLC0415 - as above

    return llvmlite.__version__, llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def _write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(content)
    Path(file.name).replace(path)
