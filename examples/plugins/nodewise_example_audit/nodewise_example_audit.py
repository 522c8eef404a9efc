"""A store of one's own: SQLite's, with a journal beside it of every change of a profile, one JSON object a line."""

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path

from nodewise.domain.errors import NodewiseError, invalid_field
from nodewise.profiles.opening import StoreOptions
from nodewise.profiles.sqlite_store import SqliteProfileStore
from nodewise.profiles.store import Outcome, ProfileStore, WriteRequest


class AuditedStore(SqliteProfileStore):
    """Tells the journal what was stored, after it was: a line may be missing where the process died, none is wrong."""

    def __init__(self, path: Path, options: StoreOptions) -> None:
        super().__init__(path, options)
        self._journal = path.with_name(f"{path.name}.journal")

    def apply(self, requests: Sequence[WriteRequest]) -> Sequence[Outcome]:
        outcomes = super().apply(requests)
        lines = [
            json.dumps({"at_s": time.time(), "did": type(request).__name__, "profile_id": request.profile_id})
            for request, outcome in zip(requests, outcomes, strict=True)
            if not isinstance(outcome, NodewiseError)
        ]
        # One write of whole lines to a file opened to append: processes that share it do not mix them.
        descriptor = os.open(self._journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, "".join(f"{line}\n" for line in lines).encode())
        finally:
            os.close(descriptor)
        return outcomes


def open_audit(url: str, options: StoreOptions) -> ProfileStore:
    """The store of ``audit:PATH``."""
    path = url.partition(":")[2]
    if not path:
        raise invalid_field("store", "must be audit:PATH")
    return AuditedStore(Path(path), options)
