"""Traces in a bucket of S3, or of what speaks like it."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, BinaryIO, Final
from urllib.parse import urlsplit

import boto3
from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

from nodewise.domain.errors import invalid_field
from nodewise.profiles.trace_blobs import BlobsAwayError, SupportsRead

__all__ = ["S3Blobs"]

_URL: Final = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/([A-Za-z0-9._/-]*))?")
_DEFAULT_REGION: Final = "us-east-1"
"""What storage that is not Amazon's takes, where nothing is said."""
_REMOVED_TOGETHER: Final = 1000
_ABSENT: Final = frozenset({"404", "NoSuchKey", "NotFound"})
_QUIET_S: Final = 5.0
"""After a call in a hurry failed, further ones fail at once."""
_PART: Final = TransferConfig(multipart_threshold=16 << 20, multipart_chunksize=16 << 20, max_concurrency=4)

# Checksums of newer kinds only where the storage asks for them: not all that speak like S3 know them.
_COMMON: Final[dict[str, Any]] = {
    "request_checksum_calculation": "when_required",
    "response_checksum_validation": "when_required",
    "tcp_keepalive": True,
    "max_pool_connections": 16,
}
_PATIENT: Final = Config(connect_timeout=5, read_timeout=30, retries={"mode": "standard"})
_HURRIED: Final = Config(connect_timeout=2, read_timeout=5, retries={"mode": "standard", "total_max_attempts": 1})


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except ClientError as error:  # what the storage answered; its text repeats requests, its code does not
        about, status = error.response.get("Error", {}), error.response.get("ResponseMetadata", {})
        raise BlobsAwayError(f"{about.get('Code')} (HTTP {status.get('HTTPStatusCode')})") from None
    except (BotoCoreError, HTTPClientError, Boto3Error) as error:
        raise BlobsAwayError(f"{type(error).__name__}: {error}") from None


class S3Blobs:
    """Implements TraceBlobs by boto3, which reads credentials, region and endpoint where AWS's own programs do.

    Parameters
    ----------
    url : str
        ``s3://BUCKET/PREFIX``. The bucket exists already.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for another URL.
    """

    def __init__(self, url: str) -> None:
        found = _URL.fullmatch(url)
        if found is None:
            raise invalid_field("traces", "must be s3://BUCKET/PREFIX; credentials and the endpoint come from AWS_...")
        self._bucket = found[1]
        prefix = (found[2] or "").strip("/")
        self._prefix = f"{prefix}/" if prefix else ""
        self._lock = threading.Lock()
        self._clients: dict[bool, Any] = {}
        self._quiet_until_s = float("-inf")

    def put(self, name: str, source: SupportsRead, size_bytes: int) -> None:
        """As the protocol says: in parts where it is large."""
        with _translated():
            if size_bytes <= _PART.multipart_threshold:
                self._client().put_object(Bucket=self._bucket, Key=self._prefix + name, Body=source.read())
                return
            self._client().upload_fileobj(source, self._bucket, self._prefix + name, Config=_PART)
        if (kept := self.size_bytes(name)) != size_bytes:
            raise BlobsAwayError(f"it kept {kept} of {size_bytes} bytes")

    def fetch(self, name: str, into: BinaryIO) -> bool:
        """As the protocol says: in parts where it is large."""
        if self.size_bytes(name) is None:
            return False
        with _translated():
            self._client().download_fileobj(self._bucket, self._prefix + name, into, Config=_PART)
        return True

    def size_bytes(self, name: str, *, soon: bool = False) -> int | None:
        """As the protocol says."""
        with self._hurried(soon), _translated():
            try:
                head = self._client(soon=soon).head_object(Bucket=self._bucket, Key=self._prefix + name)
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") in _ABSENT:
                    return None
                raise
            return int(head["ContentLength"])

    def listed(self, prefix: str) -> Iterator[tuple[str, float]]:
        """As the protocol says."""
        with _translated():
            pages = self._client().get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=self._bucket, Prefix=self._prefix + prefix):
                for found in page.get("Contents", ()):
                    yield found["Key"][len(self._prefix) :], found["LastModified"].timestamp()

    def abandon(self, before_s: float) -> None:
        """As the protocol says."""
        with _translated():
            pages = self._client().get_paginator("list_multipart_uploads")
            for page in pages.paginate(Bucket=self._bucket, Prefix=self._prefix):
                for begun in page.get("Uploads", ()):
                    if begun["Initiated"].timestamp() < before_s:
                        named = {"Key": begun["Key"], "UploadId": begun["UploadId"]}
                        self._client().abort_multipart_upload(Bucket=self._bucket, **named)

    def remove(self, names: Iterable[str], *, soon: bool = False) -> None:
        """As the protocol says: a thousand at a time."""
        left = iter(names)
        while together := [{"Key": self._prefix + name} for name in islice(left, _REMOVED_TOGETHER)]:
            with self._hurried(soon), _translated():
                asked = {"Objects": together, "Quiet": True}
                answer = self._client(soon=soon).delete_objects(Bucket=self._bucket, Delete=asked)
                if refused := answer.get("Errors"):
                    raise BlobsAwayError(f"{refused[0].get('Code')} for {len(refused)} of {len(together)} objects")

    @contextmanager
    def _hurried(self, soon: bool) -> Iterator[None]:  # noqa: FBT001  # passed on
        if soon and time.monotonic() < self._quiet_until_s:
            raise BlobsAwayError("it did not answer a moment ago")
        try:
            yield
        except BlobsAwayError:
            if soon:
                self._quiet_until_s = time.monotonic() + _QUIET_S
            raise

    def _client(self, *, soon: bool = False) -> Any:
        with self._lock:
            if not self._clients:
                with _translated():
                    self._clients = _connected()
            return self._clients[soon]


def _connected() -> dict[bool, Any]:
    """Clients that are patient, and that are in a hurry."""
    session = boto3.Session()
    common = Config(**_COMMON)
    region = session.region_name or _DEFAULT_REGION
    patient = session.client("s3", region_name=region, config=common.merge(_PATIENT))
    if "amazonaws.com" not in (urlsplit(patient.meta.endpoint_url).hostname or ""):
        # Others rarely have a host for each bucket.
        common = common.merge(Config(s3={"addressing_style": "path"}))
        patient = session.client("s3", region_name=region, config=common.merge(_PATIENT))
    return {False: patient, True: session.client("s3", region_name=region, config=common.merge(_HURRIED))}
