"""An S3 server of the tests' own, VersityGW over a directory, where its program is installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest
from patience import PATIENCE_S

from nodewise_conformance.programs import why_not

__all__ = ["S3Server", "running_s3"]

_PROGRAM: Final = "versitygw"
_KEY: Final = "nodewise-tests"
_SECRET: Final = "not-a-secret-of-anyone"  # of a server that lives for a test


class S3Server:
    """A server that is running on loopback, with files of its own."""

    def __init__(self, program: str, folder: Path) -> None:
        self._program = program
        self._folder = folder
        self._buckets = folder / "buckets"
        self._buckets.mkdir()
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> Mapping[str, str]:
        """By which AWS's own programs find it."""
        return {
            "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": _KEY,
            "AWS_SECRET_ACCESS_KEY": _SECRET,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_MAX_ATTEMPTS": "1",
        }

    def start(self) -> None:
        """Start it and wait until it answers."""
        own = {"ROOT_ACCESS_KEY": _KEY, "ROOT_SECRET_KEY": _SECRET}
        command = [
            self._program,
            "--quiet",
            "--port",
            f"127.0.0.1:{self.port}",
            "posix",
            "--sidecar",
            str(self._beside),
        ]
        with (self._folder / "log").open("ab") as log:
            command.append(str(self._buckets))
            self._process = subprocess.Popen(command, env=os.environ | own, stdout=log, stderr=log)
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            gone = self._process.poll() is not None
            if gone or time.monotonic() > deadline_s:
                raise AssertionError((self._folder / "log").read_text())
            time.sleep(0.02)

    @property
    def _beside(self) -> Path:
        """Where it keeps what file systems without extended attributes do not."""
        beside = self._folder / "attributes"
        beside.mkdir(exist_ok=True)
        return beside

    def stop(self) -> None:
        """End it as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def bucket(self) -> str:
        """The URL of a new and empty bucket, with a prefix."""
        import boto3

        name = f"tests-{uuid.uuid4().hex[:12]}"
        session = boto3.Session(_KEY, _SECRET, region_name="us-east-1")
        session.client("s3", endpoint_url=self.environment["AWS_ENDPOINT_URL_S3"]).create_bucket(Bucket=name)
        return f"s3://{name}/traces"

    def files(self, url: str) -> list[Path]:
        """The objects below a URL as the server keeps them."""
        return sorted(path for path in (self._buckets / url.removeprefix("s3://")).rglob("*") if path.is_file())


def _installed() -> str | None:
    """On the path, or where `go install` puts programs."""
    places = os.pathsep.join((os.environ.get("GOBIN", ""), str(Path.home() / "go" / "bin")))
    return shutil.which(_PROGRAM) or shutil.which(_PROGRAM, path=places)


@contextmanager
def running_s3(folder: Path) -> Iterator[S3Server]:
    """A server for as long as this is open; the test is skipped where there is none."""
    program = _installed()
    if program is None:
        pytest.skip("VersityGW is not installed")
    if why := why_not(program):
        pytest.skip(f"VersityGW: {why}")
    pytest.importorskip("boto3")
    server = S3Server(program, folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()
