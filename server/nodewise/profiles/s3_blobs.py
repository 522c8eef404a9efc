"""Traces in a bucket of S3, or of compatible storage."""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any, BinaryIO, Final, Protocol
from urllib.parse import urlsplit

import boto3
import structlog
from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

from nodewise.domain.errors import NodewiseError, Reason, invalid_field

__all__ = ["S3Blobs", "unavailable"]

_log = structlog.get_logger(__name__)

_URL: Final = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/([A-Za-z0-9._/-]*))?")
_DEFAULT_REGION: Final = "us-east-1"
"""The region where none is configured, which other storage than Amazon's accepts."""
_REMOVED_TOGETHER: Final = 1000
_ABSENT: Final = frozenset({"404", "NoSuchKey", "NotFound"})
_ASKED_S: Final = 30.0
_ASKED_AWAY_S: Final = 5.0
"""Seconds between two checks whether the storage answers."""
_AWAY: Final = "the storage of traces cannot be read or written now; retry later"
_QUIET_S: Final = 5.0
"""Seconds after the failure of a call with ``soon`` in which further ones fail at once."""
_PART: Final = TransferConfig(multipart_threshold=16 << 20, multipart_chunksize=16 << 20, max_concurrency=4)

# Newer checksums only where the storage requires them, as not all compatible storage supports them.
_COMMON: Final[dict[str, Any]] = {
    "request_checksum_calculation": "when_required",
    "response_checksum_validation": "when_required",
    "tcp_keepalive": True,
    "max_pool_connections": 16,
}
_PATIENT: Final = Config(connect_timeout=5, read_timeout=30, retries={"mode": "standard"})
_HURRIED: Final = Config(connect_timeout=2, read_timeout=5, retries={"mode": "standard", "total_max_attempts": 1})


def unavailable(why: str) -> NodewiseError:
    """The error for a caller that needs the storage."""
    return NodewiseError(Reason.STORE_UNAVAILABLE, why)


class SupportsRead(Protocol):
    """A file that is read from its current position."""

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes; -1 = all that remain."""


class S3Blobs:
    """Objects in a bucket, by boto3, which finds credentials, region and endpoint where AWS's own programs do.

    Names have letters, digits, ``-`` and ``/``. An object appears as a whole or not at all. Safe from many threads and
    processes; may block. Every method raises NodewiseError STORE_UNAVAILABLE where the storage fails:
    the log says why.

    Parameters
    ----------
    url : str
        ``s3://BUCKET/PREFIX``. The bucket exists already.

    Attributes
    ----------
    problem : str
        Why the last operation of the storage failed; empty = it succeeded.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for another URL.
    """

    def __init__(self, url: str) -> None:
        match = _URL.fullmatch(url)
        if match is None:
            raise invalid_field("traces", "must be s3://BUCKET/PREFIX; credentials and the endpoint come from AWS_...")
        self._bucket = match[1]
        prefix = (match[2] or "").strip("/")
        self._prefix = f"{prefix}/" if prefix else ""
        self._lock = threading.Lock()
        self._clients: dict[bool, Any] = {}
        self._quiet_until_s = -math.inf
        self._asked_s = time.monotonic()
        self.problem = ""

    def check(self) -> str:
        """The current problem: the storage is probed at intervals where no call used it, and often while it fails."""
        with suppress(NodewiseError):
            if time.monotonic() > self._asked_s + (_ASKED_AWAY_S if self.problem else _ASKED_S):
                self.size_bytes("blobs/none", soon=True)
        return self.problem

    def put(self, name: str, source: SupportsRead, size_bytes: int) -> None:
        """Store the rest of a source, in parts where it is large; durable when this returns."""
        with self._use_client() as client:
            if size_bytes <= _PART.multipart_threshold:
                client.put_object(Bucket=self._bucket, Key=self._prefix + name, Body=source.read())
                return
            client.upload_fileobj(source, self._bucket, self._prefix + name, Config=_PART)
        if (stored_bytes := self.size_bytes(name)) != size_bytes:
            _log.error("trace_damaged", trace=name, found=stored_bytes, size_bytes=size_bytes)
            raise unavailable("the storage of traces stored a trace incompletely; retry later")

    def fetch(self, name: str, into: BinaryIO) -> bool:
        """Write an object to a file, in parts where it is large; False = there is none."""
        if self.size_bytes(name) is None:
            return False
        with self._use_client() as client:
            client.download_fileobj(self._bucket, self._prefix + name, into, Config=_PART)
        return True

    def size_bytes(self, name: str, *, soon: bool = False) -> int | None:
        """Size of an object in bytes; None = there is none.

        ``soon``: the caller delays others, so this fails within seconds, and at once after a recent failure.
        """
        with self._use_client(soon=soon) as client:
            try:
                head = client.head_object(Bucket=self._bucket, Key=self._prefix + name)
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") in _ABSENT:
                    return None
                raise
            return int(head["ContentLength"])

    def list_objects(self, prefix: str) -> Iterator[tuple[str, float]]:
        """Names of objects, and their times of writing, in seconds since 1970."""
        with self._use_client() as client:
            pages = client.get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=self._bucket, Prefix=self._prefix + prefix):
                for entry in page.get("Contents", ()):
                    yield entry["Key"][len(self._prefix) :], entry["LastModified"].timestamp()

    def abandon(self, before_s: float) -> None:
        """Abort unfinished uploads that began before a time."""
        with self._use_client() as client:
            pages = client.get_paginator("list_multipart_uploads")
            for page in pages.paginate(Bucket=self._bucket, Prefix=self._prefix):
                for upload in page.get("Uploads", ()):
                    if upload["Initiated"].timestamp() < before_s:
                        parameters = {"Key": upload["Key"], "UploadId": upload["UploadId"]}
                        client.abort_multipart_upload(Bucket=self._bucket, **parameters)

    def remove(self, names: Iterable[str], *, soon: bool = False) -> None:
        """Delete existing objects, a thousand at a time; ``soon`` as above."""
        left = iter(names)
        while together := [{"Key": self._prefix + name} for name in islice(left, _REMOVED_TOGETHER)]:
            with self._use_client(soon=soon) as client:
                answer = client.delete_objects(Bucket=self._bucket, Delete={"Objects": together, "Quiet": True})
                if errors := answer.get("Errors"):
                    raise ClientError({"Error": errors[0]}, "DeleteObjects")

    @contextmanager
    def _use_client(self, *, soon: bool = False) -> Iterator[Any]:
        """A client. Its errors are logged only, since their texts repeat requests."""
        if soon and time.monotonic() < self._quiet_until_s:
            raise unavailable(_AWAY)
        problem = ""
        try:
            yield self._client(soon=soon)
        except ClientError as error:
            about, status = error.response.get("Error", {}), error.response.get("ResponseMetadata", {})
            problem = f"{about.get('Code')} (HTTP {status.get('HTTPStatusCode')})"
        except (BotoCoreError, HTTPClientError, Boto3Error) as error:
            problem = f"{type(error).__name__}: {error}"
        with self._lock:
            self._asked_s = time.monotonic()
            if problem and not self.problem:
                _log.error("trace_storage_unavailable", text=problem)
            elif self.problem and not problem:
                _log.info("trace_storage_available")
            self.problem = problem
        if problem:
            if soon:
                self._quiet_until_s = time.monotonic() + _QUIET_S
            raise unavailable(_AWAY)

    def _client(self, *, soon: bool) -> Any:
        with self._lock:
            self._clients = self._clients or _new_clients()
            return self._clients[soon]


def _new_clients() -> dict[bool, Any]:
    """Clients with long and with short timeouts."""
    session = boto3.Session()
    common = Config(**_COMMON)
    region = session.region_name or _DEFAULT_REGION
    patient = session.client("s3", region_name=region, config=common.merge(_PATIENT))
    if "amazonaws.com" not in (urlsplit(patient.meta.endpoint_url).hostname or ""):
        # Compatible storage rarely has a host name per bucket.
        common = common.merge(Config(s3={"addressing_style": "path"}))
        patient = session.client("s3", region_name=region, config=common.merge(_PATIENT))
    return {False: patient, True: session.client("s3", region_name=region, config=common.merge(_HURRIED))}
