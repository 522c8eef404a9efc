"""Answers lines until the input ends."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

from nodewise_client import Code, NodewiseError
from nodewise_client_conformance.calls import CallOutcome, make_call
from nodewise_client_conformance.clients import Clients


async def answer(clients: Clients, line: dict[str, Any]) -> dict[str, Any]:
    """What became of the call of one line."""
    outcome = CallOutcome()
    document: dict[str, Any] = {"id": line.get("id"), "code": Code.OK}
    start_s = time.monotonic()
    work = asyncio.create_task(make_call(clients, line, outcome))
    cancel_after_seconds = line.get("cancel_after_seconds")
    try:
        if cancel_after_seconds is not None:
            asyncio.get_running_loop().call_later(cancel_after_seconds, work.cancel)
        await work
    except asyncio.CancelledError:
        document["code"] = Code.CANCELLED
    except NodewiseError as error:
        document |= {
            "code": error.code,
            "reason": error.reason,
            "message": error.message,
            "metadata": dict(error.metadata),
            "violations": [{"field": each.field, "description": each.description} for each in error.violations],
            "retry_delay_seconds": error.retry_delay_s,
        }
    document["elapsed_seconds"] = time.monotonic() - start_s
    return document | {
        name: value for name, value in (("replies", outcome.replies), ("rows", outcome.rows)) if value is not None
    }


async def main() -> None:
    """Read lines and answer them in their order."""
    async with Clients() as clients:
        while line := await asyncio.to_thread(sys.stdin.readline):
            document = await answer(clients, json.loads(line))
            sys.stdout.write(json.dumps(document) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
