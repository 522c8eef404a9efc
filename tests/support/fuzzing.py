"""Spoilt and wild requests to every method of a whole application, and what must hold of whatever it answers."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import grpc
from direct_door import DirectDoor, Outcome
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from random_messages import mutated, mutated_bytes, random_message
from serving import registry_with
from tiny_traces import TinyReader, reader
from valid_requests import filling, valid_requests

from nodewise.domain.errors import CATALOGUE, Kind, Reason
from nodewise.ports.limits import Limits
from nodewise.runtime.settings import Settings
from nodewise_protos.v1 import problem_pb2

DEADLINE_S: Final = 2.0
WATCHED_S: Final = 0.002
"""Of WatchProfiles, which ends with its caller only."""
FAULTS: Final = frozenset({grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN})
FAULT_REASONS: Final = frozenset(str(reason) for reason, entry in CATALOGUE.items() if entry.kind is Kind.INTERNAL)
"""All plugins here are shipped ones: what they fail with is our fault too."""
_FLOATS: Final = (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT)
WAYS: Final = ("spoilt", "wild", "bytes")

# Small enough that a request which is taken is answered in milliseconds; what is refused is refused as it always is.
LIMITS: Final = Limits(
    rows_per_call=2_000,
    jobs_per_call=64,
    backtest_rows=500,
    simulated_steps_per_call=20_000,
    simulated_jobs_per_call=500,
    simulation_rows_per_call=5_000,
    simulation_repetitions_per_call=4,
    max_nodes=512,
    max_workers=2_048,
)


class Fuzzed:
    """A whole application of shipped plugins behind a direct door, filled with what requests name.

    Parameters
    ----------
    folder : Path
        For traces.
    """

    def __init__(self, folder: Path) -> None:
        settings = Settings(
            store="memory:",
            traces=str(folder),
            scoring=False,
            learn_interval_s=0,
            reflection=False,
            queue_wait_s=DEADLINE_S,  # who is refused for want of a turn is not read
            limits=LIMITS,
        )
        self._door = DirectDoor(settings, registry_with(readers=(reader(TinyReader()),)))
        self._valid = valid_requests()
        self._replies = _replies_of(self._valid)
        self.asked: Counter[tuple[str, str]] = Counter()
        """How many calls ended how, by method and code."""
        for path, messages in filling():
            outcome = self._door.ask(path, [message.SerializeToString() for message in messages], DEADLINE_S)
            assert outcome.code is grpc.StatusCode.OK, outcome

    @property
    def paths(self) -> list[str]:
        """Of all methods."""
        return sorted(self._valid)

    def valid(self, path: str) -> list[bytes]:
        """A request that is right."""
        return [message.SerializeToString() for message in self._valid[path]]

    def drawn(self, path: str, way: str, chance: random.Random) -> list[bytes]:
        """What a caller sends by chance; ``way`` is one of WAYS."""
        valid = self._valid[path]
        if way == "spoilt":
            at = chance.randrange(len(valid))
            return [(mutated(it, chance) if n == at else it).SerializeToString() for n, it in enumerate(valid)]
        if way == "wild":
            count = chance.randrange(1, 4) if len(valid) > 1 else 1
            return [random_message(type(valid[0]), chance).SerializeToString() for _ in range(count)]
        return [mutated_bytes(it.SerializeToString(), chance) for it in valid]

    def ask(self, path: str, messages: Sequence[bytes]) -> Outcome:
        """Ask, and look at what is answered.

        Raises
        ------
        AssertionError
            If it is what no caller may meet.
        """
        (outcome,) = self.ask_together([(path, messages)])
        return outcome

    def ask_together(self, calls: Sequence[tuple[str, Sequence[bytes]]], at_once: int = 1) -> list[Outcome]:
        """Ask so many at once, and look at what is answered.

        Raises
        ------
        As :meth:`ask`.
        """
        outcomes = self._door.ask_together(
            [(path, sent, WATCHED_S if path.endswith("WatchProfiles") else DEADLINE_S) for path, sent in calls], at_once
        )
        for (path, _), outcome in zip(calls, outcomes, strict=True):
            self._look_at(path, outcome)
        return outcomes

    def _look_at(self, path: str, outcome: Outcome) -> None:
        self.asked[path, outcome.code.name] += 1
        assert outcome.code not in FAULTS, (path, outcome.reason, outcome.status.message)
        if outcome.code is grpc.StatusCode.INVALID_ARGUMENT:
            assert _told(outcome), (path, outcome)
        elif outcome.code not in (grpc.StatusCode.OK, grpc.StatusCode.DEADLINE_EXCEEDED):
            assert outcome.reason, (path, outcome)
        for reply in outcome.replies:
            unsound = next(_unsound(self._replies[path].FromString(reply), ""), None)
            assert unsound is None, (path, unsound)

    def __enter__(self) -> Fuzzed:
        return self

    def __exit__(self, *_: object) -> None:
        self._door.__exit__()


def _replies_of(valid: Any) -> dict[str, type[Message]]:
    found = {}
    for path, messages in valid.items():
        service, _, method = path.removeprefix("/").rpartition("/")
        pool = messages[0].DESCRIPTOR.file.pool
        found[path] = GetMessageClass(pool.FindServiceByName(service).methods_by_name[method].output_type)
    return found


def _told(outcome: Outcome) -> bool:
    """Whether a caller learns what to change: fields, the cap that was exceeded, or that these bytes are no message."""
    fields = outcome.fields
    if fields:
        return all(fields)
    return outcome.reason == Reason.MALFORMED_MESSAGE or bool(outcome.metadata.get("limit"))


def _unsound(message: Message, path: str) -> Any:
    """What must not be in a reply: a number that is none, a problem that is a fault of ours."""
    if isinstance(message, problem_pb2.Problem) and message.reason in FAULT_REASONS:
        yield path, message.reason, message.message
    for field, value in message.ListFields():
        below = f"{path}.{field.name}"
        if field.type in _FLOATS:
            if not all(map(math.isfinite, value if field.is_repeated else (value,))):
                yield below, "not finite"
        elif field.message_type is not None and not field.message_type.GetOptions().map_entry:
            for part in value if field.is_repeated else (value,):
                yield from _unsound(part, below)
