"""Function calls that a Predict crosses in the server: ``python bench/call_path.py``.

The event loop's thread of an embedded server is profiled while one call is answered. Counted are calls of functions
of the server and of plugins, list comprehensions left out; gRPC's and the standard library's are not.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import grpc
import rpc

import nodewise
import nodewise_queueing
from nodewise.runtime.embedded_server import EmbeddedServer

CODE = tuple(str(Path(package.__file__).parent.parent) for package in (nodewise, nodewise_queueing) if package.__file__)


class Calls:
    """Functions that the loop's thread calls while it is profiled, by file and name."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.counted: Counter[str] = Counter()

    def _count(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(CODE) and not code.co_name.startswith("<"):
            self.counted[f"{Path(code.co_filename).stem}.{code.co_qualname}"] += 1

    def of(self, call: Callable[[], Any]) -> Counter[str]:
        """Of one call."""

        async def profile(function: Any) -> None:
            sys.setprofile(function)

        asyncio.run_coroutine_threadsafe(profile(self._count), self._loop).result()
        self.counted = Counter()
        call()
        counted = self.counted
        asyncio.run_coroutine_threadsafe(profile(None), self._loop).result()
        return counted


def main() -> None:
    """One line of JSON for each kind of question; with ``--list`` also each function."""
    with EmbeddedServer() as server, grpc.insecure_channel(server.target) as channel:
        rpc.store_profiles(server.target)
        predict = channel.unary_unary(rpc.PREDICT)
        for question in rpc.requests() + rpc.unasked(50):  # fitted, and every table of the interpreter warm
            predict(question)
        calls = Calls(server._loop)  # noqa: SLF001  # the thread that is profiled
        kinds = {
            "cached": rpc.requests()[0],
            "other_objective": rpc.reconsidered(2)[1],
            "never_asked": rpc.unasked(60)[-1],
        }
        predict(kinds["cached"])
        for kind, question in kinds.items():
            counted = calls.of(lambda question=question: predict(question))  # type: ignore[misc]
            print(json.dumps({"question": kind, "calls": sum(counted.values()), "functions": len(counted)}))
            if "--list" in sys.argv[1:]:
                print("\n".join(f"  {count:4} {name}" for name, count in counted.items()))


if __name__ == "__main__":
    main()
