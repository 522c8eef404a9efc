"""Logs are lines of JSON, and hold up nobody."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import grpc
import numpy as np
import pytest
import structlog

from nodewise.runtime.logging import configure_logging, log_unhandled


@pytest.fixture(autouse=True)
def settings_of_others(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put back how logs and warnings are written."""
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    before = structlog.get_config() if structlog.is_configured() else None
    yield
    structlog.reset_defaults()
    if before is not None:
        structlog.configure(**before)


def test_a_log_that_nobody_reads_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
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
    assert [line["number"] for line in first] == list(range(200))
    (lost,) = (line["lines"] for line in rest if line["event"] == "log_lines_lost")
    assert len(first) + len(rest) - 2 + lost == 2000


def test_a_terminal_gets_text(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.openpty()
    with os.fdopen(writing, "w", encoding="utf-8") as writer:
        monkeypatch.setattr(sys, "stderr", writer)
        configure_logging("info")
        structlog.get_logger().info("host_started", pid=7)
        structlog.get_logger().error("call_failed", exc_info=ValueError("no such device"))
        text = b""
        while b"no such device" not in text:
            text += os.read(reading, 4096)
    os.close(reading)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text.decode())
    first, *_ = plain.splitlines()
    assert re.search(r"\[info *\] host_started +pid=7$", first.strip())
    assert "ValueError: no such device" in plain


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


def test_what_libraries_warn_of_is_a_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        configure_logging("info")
        np.zeros(1) / np.zeros(1)
    (line,) = capsys.readouterr().err.splitlines()
    event = json.loads(line)
    assert (event["event"], event["level"], event["category"]) == ("warned", "warning", "RuntimeWarning")
    assert "invalid value" in event["message"]
    assert event["place"].startswith(__file__)


FORKING = """
import asyncio, os
from nodewise_cli.main import _quieten_grpc
_quieten_grpc()
import grpc

async def fork_beside_a_call():
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        try:
            await channel.unary_unary("/a/b")(b"")
        except grpc.RpcError:
            pass
        if not os.fork():
            os._exit(0)
        os.wait()
    await server.stop(0)

asyncio.run(fork_beside_a_call())
"""


def test_grpc_says_nothing_of_its_own_of_forks() -> None:
    environment = {**os.environ, "GRPC_VERBOSITY": "info"}
    done = subprocess.run([sys.executable, "-c", FORKING], env=environment, capture_output=True, text=True, check=True)
    assert "fork" not in done.stderr
