"""A client's executable: started once, a line in for each call, a line out."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from nodewise_conformance.languages import Column
from nodewise_conformance.servers import PATIENCE_S

__all__ = ["BrokenExecutableError", "Executable"]

LINE_BYTES: Final = 1 << 28
"""A reply of 10,240 rows as JSON is some MB."""


class BrokenExecutableError(Exception):
    """An executable that ended, said nothing, or said what is no answer."""


class Executable:
    """One process of a column. Calls are one after the other."""

    def __init__(self, column: Column, log: Path) -> None:
        self.column: Final = column
        self._log: Final = log
        self._process: asyncio.subprocess.Process | None = None
        self._asked = 0
        self._busy: Final = asyncio.Lock()

    async def ask(self, line: Mapping[str, Any], *, patience_s: float = PATIENCE_S) -> Mapping[str, Any]:
        """Send a line and return its answer.

        Raises
        ------
        BrokenExecutableError
            The process is ended then; the next call starts another one.
        """
        async with self._busy:
            process = self._process or await self._start()
            self._asked += 1
            request = {"id": str(self._asked), **line}
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                process.stdin.write(json.dumps(request).encode() + b"\n")
                await process.stdin.drain()
                async with asyncio.timeout(patience_s):
                    reply_line = await process.stdout.readline()
                answer = json.loads(reply_line)
            except (ConnectionError, TimeoutError, ValueError) as error:
                await self.stop()
                raise BrokenExecutableError(f"no answer: {type(error).__name__} {error}{self._said()}") from None
            if not isinstance(answer, dict) or answer.get("id") != request["id"]:
                await self.stop()
                raise BrokenExecutableError(f"answered {str(answer)[:200]!r} to the id {request['id']!r}")
            return answer

    async def stop(self) -> int | None:
        """End its input, and the process if it does not end by itself; returns how it ended."""
        process, self._process = self._process, None
        if process is None:
            return None
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(10.0):
                return await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            return await process.wait()

    async def _start(self) -> asyncio.subprocess.Process:
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self.column.command, cwd=self.column.folder, stdin=asyncio.subprocess.PIPE, limit=LINE_BYTES,
                stdout=asyncio.subprocess.PIPE, stderr=log, env={**os.environ, "COVERAGE_PROCESS_CONFIG": ""},
            )  # fmt: skip
        return self._process

    def _said(self) -> str:
        """The end of its standard error."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-5:]
        return "".join(f"\n    {line}" for line in lines)
