"""What the event loop reports is JSON as well."""

from __future__ import annotations

import asyncio
import gc
import json

import grpc
import pytest

from nodewise.runtime.logging import configure_logging, log_unhandled


@pytest.mark.parametrize(
    ("error", "events"), [(ValueError("lost"), ["unhandled"]), (grpc.aio.UsageError("the caller has gone"), [])]
)
def test_what_nobody_awaited_is_one_line_or_none(
    error: Exception, events: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging("info")

    async def life() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(log_unhandled)
        loop.create_future().set_exception(error)
        gc.collect()
        await asyncio.sleep(0)

    asyncio.run(life())
    assert [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()] == events
