"""Trace files as they are sent: without paths and names, compressed."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, Final, cast

from nodewise_client._redaction import READ_BYTES, redacted

# Larger ones wait on the disk, not in the memory of a training process.
_IN_MEMORY_BYTES: Final = 8 << 20
_GZIP_MAGIC: Final = b"\x1f\x8b"


def prepared_trace(path: Path | str, *, redact: bool = True, names: Iterable[str] | None = None) -> BinaryIO:
    """Read a trace file (JSON, plain or gzip) and return it ready for `IngestWriter.trace`: a file to be closed.

    Args:
        path: the trace.
        redact: take paths, host names and user names out.
        names: words to take out besides; None = the names of this machine and of the user.
    """
    # It is returned open; its buffer is the file's own.
    target = cast("BinaryIO", tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES))  # noqa: SIM115
    try:
        with Path(path).open("rb") as file:
            is_compressed = file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
            file.seek(0)
            source = cast("BinaryIO", gzip.GzipFile(fileobj=file)) if is_compressed else cast("BinaryIO", file)
            pieces = redacted(source, names=names) if redact else iter(lambda: source.read(READ_BYTES), b"")
            # No name and no time in the header: the same trace is the same bytes.
            with gzip.GzipFile("", "wb", compresslevel=6, fileobj=target, mtime=0) as sink:
                for piece in pieces:
                    sink.write(piece)
        target.seek(0)
    except BaseException:
        target.close()
        raise
    return target
