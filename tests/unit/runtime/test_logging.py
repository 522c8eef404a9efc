"""Logs are lines of JSON, and hold up nobody."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
from typing import Any

import grpc
import pytest
import structlog

from nodewise.runtime.logging import configure_logging, log_unhandled


def test_a_log_that_nobody_reads_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    before = structlog.get_config()
    with os.fdopen(reading, encoding="utf-8") as reader, os.fdopen(writing, "w", encoding="utf-8") as writer:
        monkeypatch.setattr(sys, "stderr", writer)
        configure_logging("info")
        log = structlog.get_logger()
        for number in range(2000):  # several times what a pipe holds
            log.info("line", number=number, filling="x" * 100)
        first = [json.loads(reader.readline()) for _ in range(200)]
        log.info("after")
        rest: list[dict[str, Any]] = []
        while not rest or rest[-1]["event"] != "after":
            rest.append(json.loads(reader.readline()))
        structlog.configure(**before)
    assert [line["number"] for line in first] == list(range(200))
    (lost,) = (line["lines"] for line in rest if line["event"] == "log_lines_lost")
    assert len(first) + len(rest) - 2 + lost == 2000


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
