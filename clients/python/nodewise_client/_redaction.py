"""Takes paths, host names and user names out of traces, as a stream.

It works on the text and not on parsed JSON, because profilers write files that no JSON parser accepts, and because a
trace need not fit into memory. What it puts in contains no quotes and no escapes, so JSON stays JSON.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import re
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

REDACTED: Final = b"redacted"
READ_BYTES: Final = 1 << 20

# Begins a word although a letter stands before it: JSON writes a line break as \n.
_ESCAPED: Final = rb"(?<=\\[bfnrt])|(?<=\\u[0-9a-fA-F]{4})"
# One folder's name: anything up to the next separator, blanks and escaped characters included.
_FOLDER: Final = rb'(?:[^/\\":;,\r\n]|\\u[0-9a-fA-F]{4})+'
_BASE: Final = rb'(?:[^/\\":;,()\s]|\\u[0-9a-fA-F]{4})*'
# /a/b/c.py, ../b/c.py, ~/c.py. A colon in the first folder's name makes it a device (/job:worker/device:GPU:0).
_POSIX_PATH: Final = re.compile(
    rb"(?:(?<![\w)\]>./*~\\-])|" + _ESCAPED + rb")(?:\\\\)*(?:~[\w.-]*|\.{1,2})?\\?/(?=[^\s/])"
    rb"(?P<folders>(?:" + _FOLDER + rb"\\?/)*" + rb")(?P<base>" + _BASE + rb")"
)
# C:\a\b.py and \\server\share\b.py, with backslashes as JSON writes them, or C:/a/b.py.
_WINDOWS_PATH: Final = re.compile(
    rb"(?:(?<!\w)|" + _ESCAPED + rb")(?:[A-Za-z]:(?:\\\\|\\?/)|\\\\\\\\)"
    rb"(?P<folders>(?:" + _FOLDER + rb"(?:\\\\|\\?/))*)(?P<base>" + _BASE + rb")"
)
_ADDRESS: Final = re.compile(rb'(?<=://)[^\s"\\]+')
_MAIL: Final = re.compile(rb"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_NAMED: Final = re.compile(
    rb'("(?:host|user|login)[ _-]?(?:name)?"\s*:\s*")(?:[^"\\\r\n]|\\.)*', re.IGNORECASE | re.DOTALL
)
_SEPARATOR: Final = re.compile(rb"\\\\|\\?/")
# The name after one of these is a person's, whatever it looks like.
_HOMES: Final = frozenset({b"home", b"homes", b"users", b"user", b"people", b"staff", b"students"})
# Names that say nothing of anybody, or that traces use themselves.
_COMMON: Final = frozenset({
    "root", "user", "users", "localhost", "admin", "docker", "container", "runner", "ubuntu", "cpu", "gpu", "cuda",
    "rocm", "hip", "xla", "tpu", "kernel", "memcpy", "memset", "python", "python3", "torch", "pytorch", "tensorflow",
    "jax", "nccl", "gloo", "mpi", "aten", "c10d", "autograd", "optimizer", "trace", "profiler", "thread", "process",
    "stream", "device", "default", "step", "rank", "name", "train", "worker", "model", "true", "false", "null",
})  # fmt: skip


def own_names() -> frozenset[str]:
    """Return the names of this machine and of whoever runs this process."""
    names = {socket.gethostname(), Path("~").expanduser().name}
    names |= {os.environ.get(variable, "") for variable in ("HOSTNAME", "USER", "LOGNAME", "USERNAME")}
    with contextlib.suppress(KeyError, OSError, ImportError):  # a container's user may have no name
        names.add(getpass.getuser())
    names |= {name.partition(".")[0] for name in names}
    return frozenset(name for name in names if len(name) > 1 and name.lower() not in _COMMON)


def redacted(source: BinaryIO, *, names: Iterable[str] | None = None) -> Iterator[bytes]:
    """Yield a trace without paths, host names and user names.

    Of a path the file's own name stays, so that a stack frame still says which function it was. Names of operations,
    kernels, devices, process groups, and all numbers stay as they are.

    Args:
        source: the trace as text (JSON), not compressed.
        names: words to take out besides; None = those of this machine and of the user.
    """
    words = _words(own_names() if names is None else names)
    held = b""
    while piece := source.read(READ_BYTES):
        held += piece
        # Cut where nothing that is looked for can lie across: no string of JSON holds a line break.
        cut = held.rfind(b"\n") + 1 or held.rfind(b"},") + 2
        if cut > 1:
            yield _clean(held[:cut], words)
            held = held[cut:]
    if held:
        yield _clean(held, words)


def _words(names: Iterable[str]) -> re.Pattern[bytes] | None:
    spellings = {spelling for name in names if name for spelling in (name.encode(), json.dumps(name)[1:-1].encode())}
    if not spellings:
        return None
    any_of = b"|".join(re.escape(spelling) for spelling in sorted(spellings, key=len, reverse=True))
    # A key of the format stays a key, whatever the user is called.
    return re.compile(
        rb"(?:(?<![A-Za-z0-9_])|" + _ESCAPED + rb")(?:" + any_of + rb')(?![A-Za-z0-9_])(?!"\s*:)', re.IGNORECASE
    )


def _clean(text: bytes, words: re.Pattern[bytes] | None) -> bytes:
    text = _NAMED.sub(rb"\1" + REDACTED, text)
    if b"://" in text:
        text = _ADDRESS.sub(REDACTED, text)
    if b"@" in text:
        text = _MAIL.sub(REDACTED, text)
    text = _WINDOWS_PATH.sub(_base, text)
    text = _POSIX_PATH.sub(_base, text)
    return text if words is None else words.sub(REDACTED, text)


def _base(match: re.Match[bytes]) -> bytes:
    """What stays of a path: the file's name where it cannot be a person's."""
    base = match["base"]
    folders = [part.lower() for part in _SEPARATOR.split(match[0][: len(match[0]) - len(base)]) if part]
    if not match["folders"] and match[0].startswith(b"/"):
        return match[0]
    return REDACTED if not base.count(b".") or (folders and folders[-1] in _HOMES) else base
