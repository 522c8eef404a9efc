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
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

REDACTED: Final = b"redacted"
READ_BYTES: Final = 256 << 10

# Every pattern begins with a literal, and what stands before that is looked at afterwards: `re` then skips quickly to
# the few places that matter, and does not keep a training script waiting for the interpreter's lock.
# One folder's name: anything up to the next separator, blanks and escaped characters included.
_FOLDER: Final = rb'(?:[^/\\":;,\r\n]|\\u[0-9a-fA-F]{4})+'
_BASE: Final = rb'(?P<base>(?:[^/\\":;,()\s]|\\u[0-9a-fA-F]{4})*)'
# /a/b/c.py. A colon in the first folder's name makes it a device: /job:worker/device:GPU:0.
_SLASH: Final = re.compile(rb"/(?=[^\s/])")
_POSIX_PATH: Final = re.compile(rb"/(?=[^\s/])(?P<folders>(?:" + _FOLDER + rb"(?:\\?/)+)*)" + _BASE)
# C:\a\b.py with backslashes as JSON writes them, or C:/a/b.py; from the colon on.
_DRIVE_PATH: Final = re.compile(rb":(?:\\\\|\\?/(?!/))(?P<folders>(?:" + _FOLDER + rb"(?:\\\\|\\?/)+)*)" + _BASE)
# \\server\share\b.py.
_SHARE_PATH: Final = re.compile(rb"\\\\\\\\(?P<folders>(?:" + _FOLDER + rb"(?:\\\\|\\?/)+)+)" + _BASE)
_ADDRESS: Final = re.compile(rb'://[^\s"\\]+')
_MAIL_HOST: Final = re.compile(rb"@[\w-]+(?:\.[\w-]+)+")
_NAME_PATTERNS: Final = tuple(
    (word, re.compile(rb'("' + word + rb'[ _-]?(?:[Nn]ame|NAME)?"\s*:\s*")(?:[^"\\\r\n]|\\.)*'))
    for word in (b"host", b"Host", b"HOST", b"user", b"User", b"USER", b"login", b"Login", b"LOGIN")
)
# What may stand before a path and belongs to it: ~, ~name, .., an escape of the slash.
_PATH_LEAD: Final = re.compile(rb"(?:~[\w.-]*|\.{1,2})?\\*\Z")
_DRIVE_LEAD: Final = re.compile(rb"(?<![A-Za-z0-9_])[A-Za-z]\Z")
_MAIL_LEAD: Final = re.compile(rb"[\w.+-]+\Z")
# A letter ends no word here: JSON writes a line break as \n, a character as \u0020.
_ESCAPE: Final = re.compile(rb"(?:\\[bfnrt]|\\u[0-9a-fA-F]{4})\Z")
_WITHIN: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_)]>./*-")
_LETTERS: Final = _WITHIN - frozenset(b")]>./*-")
_LOOK_BACK: Final = 80
_SEPARATOR: Final = re.compile(rb"\\\\|\\?/")
# From where to where, and what instead; None = it stays.
Decision: TypeAlias = tuple[int, int, bytes] | None
# The name after one of these is a person's, whatever it looks like.
_HOMES: Final = frozenset({b"home", b"homes", b"users", b"user", b"people", b"staff", b"students"})
# Names that identify no user, or that traces use themselves.
_COMMON: Final = frozenset({
    "root", "user", "users", "localhost", "admin", "docker", "container", "runner", "ubuntu", "cpu", "gpu", "cuda",
    "rocm", "hip", "xla", "tpu", "kernel", "memcpy", "memset", "python", "python3", "torch", "pytorch", "tensorflow",
    "jax", "nccl", "gloo", "mpi", "aten", "c10d", "autograd", "optimizer", "trace", "profiler", "thread", "process",
    "stream", "device", "default", "step", "rank", "name", "train", "worker", "model", "true", "false", "null",
})  # fmt: skip


def own_names() -> frozenset[str]:
    """Return the names of this machine and of the user who runs this process."""
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
    buffer = b""
    while piece := source.read(READ_BYTES):
        buffer += piece
        # Cut where nothing that is looked for can lie across: no string of JSON holds a line break.
        cut = buffer.rfind(b"\n") + 1 or buffer.rfind(b"},") + 2
        if cut > 1:
            yield _clean(buffer[:cut], words)
            buffer = buffer[cut:]
    if buffer:
        yield _clean(buffer, words)


def _words(names: Iterable[str]) -> tuple[tuple[bytes, re.Pattern[bytes]], ...]:
    """Each spelling of each name, and how it is found as a word; longer ones first."""
    spellings = {
        spelling.encode()
        for name in names
        if name
        for case in (name, name.lower(), name.upper(), name.title())
        for spelling in (case, json.dumps(case)[1:-1])
    }
    # A key of the format stays a key, whatever the user is called.
    return tuple(
        (spelling, re.compile(re.escape(spelling) + rb'(?![A-Za-z0-9_])(?!"\s*:)'))
        for spelling in sorted(spellings, key=lambda spelling: (-len(spelling), spelling))
    )


def _clean(text: bytes, words: tuple[tuple[bytes, re.Pattern[bytes]], ...]) -> bytes:
    for word, pattern in _NAME_PATTERNS:
        if b'"' + word in text:
            text = pattern.sub(rb"\1" + REDACTED, text)
    if b"://" in text:
        text = _ADDRESS.sub(b"://" + REDACTED, text)
    if b"@" in text:
        text = _replace_matches(text, _MAIL_HOST, _mail)
    if rb":\\" in text or b":/" in text or rb":\/" in text:
        text = _replace_matches(text, _DRIVE_PATH, _drive)
    if rb"\\\\" in text:
        text = _replace_matches(text, _SHARE_PATH, _share)
    text = _replace_matches(text, _SLASH, _path)
    for spelling, word_pattern in words:
        if spelling in text:
            text = _replace_matches(text, word_pattern, _word)
    return text


def _replace_matches(text: bytes, pattern: re.Pattern[bytes], decide: Callable[[re.Match[bytes]], Decision]) -> bytes:
    """Replace what a pattern finds, from where to where and by what `decide` says; None = it stays."""
    pieces: list[bytes] = []
    copied_to = at = 0
    while match := pattern.search(text, at):
        decision = decide(match)
        if decision is None:
            at = match.start() + 1
            continue
        begin, end, instead = decision
        pieces += (text[copied_to : max(copied_to, begin)], instead)
        copied_to = at = end
    return b"".join((*pieces, text[copied_to:])) if pieces else text


def _before(match: re.Match[bytes], end: int) -> bytes:
    return match.string[max(0, end - _LOOK_BACK) : end]


def _starts_word(match: re.Match[bytes], begin: int, within: frozenset[int]) -> bool:
    """Whether what stands before does not reach into a match."""
    before = _before(match, begin)
    return not before or before[-1] not in within or _ESCAPE.search(before) is not None


def _word(match: re.Match[bytes]) -> Decision:
    return (match.start(), match.end(), REDACTED) if _starts_word(match, match.start(), _LETTERS) else None


def _mail(match: re.Match[bytes]) -> Decision:
    lead = _MAIL_LEAD.search(_before(match, match.start()))
    return None if lead is None else (match.start() - len(lead[0]), match.end(), REDACTED)


def _share(match: re.Match[bytes]) -> Decision:
    return match.start(), match.end(), _base(match)


def _drive(match: re.Match[bytes]) -> Decision:
    before = _before(match, match.start())
    lead = _DRIVE_LEAD.search(before) or _ESCAPE.search(before[:-1])
    return (match.start() - 1, match.end(), _base(match)) if lead else None


def _path(match: re.Match[bytes]) -> Decision:
    lead = _PATH_LEAD.search(_before(match, match.start()))
    begin = match.start() - (0 if lead is None else len(lead[0]))
    # Looked at before the path is read to its end, or a long row of slashes would be read once for each of them.
    if not _starts_word(match, begin, _WITHIN):
        return None
    path = _POSIX_PATH.match(match.string, match.start())
    if path is None or (not path["folders"] and begin == match.start()):
        return None  # /name: a device or a scope
    return begin, path.end(), _base(path)


def _base(match: re.Match[bytes]) -> bytes:
    """What stays of a path: the file's name, where it cannot be a person's."""
    base = match["base"]
    folders = [part.lower() for part in _SEPARATOR.split(match["folders"]) if part]
    return base if b"." in base and not (folders and folders[-1] in _HOMES) else REDACTED
