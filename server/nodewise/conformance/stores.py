"""Checks of profile stores: acknowledged batches are stored, once, in order, and units as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from nodewise.conformance.cases import Case
from nodewise.conformance.findings import NonConformanceError, require
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError
from nodewise.domain.profile import Observations
from nodewise.domain.workload import Workload
from nodewise.profiles.batches import Batch, TraceChunk
from nodewise.profiles.naming import Naming
from nodewise.profiles.store import AppendRequest, Evidence, ProfileStore

__all__ = ["Opening", "store_cases"]

Opening = Callable[[], ProfileStore]
"""Opens the same store again at each call, an empty one at first."""


def store_cases(opening: Callable[[], Opening], name: str = "store") -> list[Case]:
    """The cases of a store.

    Parameters
    ----------
    opening : callable
        Makes another, empty place for each case, and returns a function that opens the store there, repeatedly, as
        several processes would.
    """

    def run(check: Callable[[Opening], None]) -> Callable[[], None]:
        return lambda: check(opening())

    return [Case("store", name, check, run(function)) for check, function in STORE_CHECKS.items()]


def _batch(number: int, *rates: float, commit: bool = True, **more: object) -> Batch:
    rows = len(rates)
    numbers = np.arange(1, rows + 1)
    configurations = Configurations.of(rows, nodes=numbers, workers=numbers)
    observations = Observations.of(configurations, np.array(rates, dtype=np.float64))
    return Batch(sequence_number=number, observations=observations, commit=commit, **more)  # type: ignore[arg-type]


def _rates(store: ProfileStore, revision: int | None = None) -> list[float]:
    rates: list[float] = store.load("job", None, revision).observations.steps_per_s.tolist()
    return rates


def _check_refusal(reason: str, call: Callable[[], object]) -> None:
    try:
        call()
    except NodewiseError as error:
        require(error.reason == reason, f"the store raises {error.reason}; it must raise {reason}")
    else:
        raise NonConformanceError(f"the store accepts a call that it must refuse with {reason}")


def _units(opening: Opening) -> None:
    store = opening()
    stage = store.append("job", "s", [_batch(1, 1.0, commit=False)])
    require(stage.durable_sequence_number == 1, "durable_sequence_number does not count a stored batch")
    _check_refusal("PROFILE_NOT_FOUND", lambda: store.load("job"))
    commit = store.append("job", "s", [_batch(2, 2.0)])
    require(
        (commit.revision, commit.committed_sequence_number) == (1, 2),
        "the commit does not count its unit",
    )
    require(_rates(store) == [1.0, 2.0], "the rows of a unit differ from the rows that were sent, or in their order")
    store.close()


def _once(opening: Opening) -> None:
    store = opening()
    for _ in range(2):
        store.append("job", "s", [_batch(1, 1.0)])
    require(_rates(store) == [1.0], "a batch that was sent twice is stored twice")
    _check_refusal("BATCH_CONFLICT", lambda: store.append("job", "s", [_batch(1, 9.0)]))
    _check_refusal("BATCH_OUT_OF_ORDER", lambda: store.append("job", "s", [_batch(3, 3.0)]))
    require(_rates(store) == [1.0], "a refused batch changed the profile")
    store.close()


def _check_durability(opening: Opening) -> None:
    store = opening()
    facts = Workload(model_name="a model", parameter_bytes=4_000)
    store.append("job", "s", [_batch(1, 1.0, workload=facts, naming=Naming(display_name="A", labels={"team": "one"}))])
    before = store.load("job")
    store.close()
    again = opening()
    profile = again.load("job")
    require(
        profile.digest == before.digest and profile.uid == before.uid,
        "a profile differs after reopening",
    )
    require(
        profile.workload == facts and profile.labels == {"team": "one"},
        "facts or labels are lost by reopening",
    )
    require(
        [each.profile_id for each in again.list(labels=[("team", "one")])] == ["job"],
        "list() ignores labels",
    )
    again.close()


def _check_sharing(opening: Opening) -> None:
    one, other = opening(), opening()
    for number in range(1, 9):
        for store in (one, other):
            store.append("job", "s", [_batch(number, float(number))])
    require(
        _rates(one) == [float(number) for number in range(1, 9)],
        "a batch from two processes is stored twice",
    )
    before = one.generation()
    other.append("job", "t", [_batch(1, 9.0)])
    require(one.load("job").revision == 9, "one process does not load what another stored")
    require(other.generation() != before, "the generation does not change with a profile")
    one.close()
    other.close()


def _together(opening: Opening) -> None:
    store = opening()
    good, bad = AppendRequest("job", "s", [_batch(1, 1.0)]), AppendRequest("job", "t", [_batch(2, 1.0)])
    outcomes = store.apply([good, bad, AppendRequest("job", "u", [_batch(1, 3.0)])])
    require(isinstance(outcomes[1], NodewiseError), "apply() does not return the error of a refused request")
    require(_rates(store) == [1.0, 3.0], "an error of one request affects the other requests")
    store.close()


def _history(opening: Opening) -> None:
    store = opening()
    store.append("job", "s", [_batch(1, 1.0, 2.0)])
    store.append("job", "s", [_batch(2, 3.0)])
    for _ in range(2):
        summary = store.retract("job", "r", Evidence.of([2]), "throttled")
        require(summary.revision == 3, "the same retraction, sent twice, counts twice")
    require(_rates(store) == [1.0, 3.0], "retracted observations still count")
    require(_rates(store, 2) == [1.0, 2.0, 3.0], "an earlier revision changed")
    _check_refusal("REVISION_NOT_FOUND", lambda: store.load("job", None, 4))
    _check_refusal("EVIDENCE_NOT_FOUND", lambda: store.retract("job", "q", Evidence.of([2])))
    store.close()


def _deletion(opening: Opening) -> None:
    store = opening()
    store.append("job", "s", [_batch(1, 1.0)])
    etag = store.load("job").etag
    _check_refusal("ETAG_MISMATCH", lambda: store.delete("job", "another"))
    store.delete("job", etag)
    _check_refusal("PROFILE_NOT_FOUND", lambda: store.load("job"))
    require(
        not store.list() and len(store.list(deleted=True)) == 1,
        "list() or list(deleted=True) is wrong",
    )
    store.undelete("job")
    require(_rates(store) == [1.0], "an undeleted profile differs from the deleted one")
    store.close()


def _traces(opening: Opening) -> None:
    store = opening()
    pieces = (b"one ", b"two")
    chunks = [
        TraceChunk(trace_id="t", data=data, offset_bytes=offset, last=bool(offset), format="f", world_size=1)
        for offset, data in zip((0, len(pieces[0])), pieces, strict=True)
    ]
    store.append("job", "s", [_batch(1, 1.0, commit=False, trace_chunks=(chunks[0],))])
    store.append("job", "s", [_batch(2, 2.0, trace_chunks=(chunks[1],))])
    with store.traces.open(store.load("job").traces[0].content_sha256) as file:
        require(file.read() == b"".join(pieces), "a trace differs from the bytes that were sent")
    store.close()


def _scores(opening: Opening) -> None:
    store = opening()
    for number in (1, 2):
        store.append("job", "s", [_batch(number, float(number))])
    commit = store.scores.claim(60.0)
    require(commit is not None and commit.revision == 2, "a commit to an existing profile is not offered for scoring")
    assert commit is not None
    require(store.scores.claim(60.0) is None, "a commit can be claimed twice")
    require(store.scores.settle(commit, {}), "a claimed commit cannot be settled")
    require(not store.scores.settle(commit, {}), "a commit can be settled twice")
    store.close()


def _check_closing(opening: Opening) -> None:
    store = opening()
    store.check()
    store.close()
    for call in (store.generation, store.list, lambda: store.append("job", "s", [_batch(1, 1.0)])):
        _check_refusal("STORE_UNAVAILABLE", call)


STORE_CHECKS: Final[Mapping[str, Callable[[Opening], None]]] = MappingProxyType(
    {
        "units count as a whole": _units,
        "every batch is stored once": _once,
        "what was stored is kept": _check_durability,
        "processes share it": _check_sharing,
        "requests fail on their own": _together,
        "every revision can be had": _history,
        "deletion can be undone": _deletion,
        "traces come together": _traces,
        "every commit is scored once": _scores,
        "a closed store is refused": _check_closing,
    }
)
