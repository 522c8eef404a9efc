"""Two sessions, retries, cuts and commits in any order: what is stored is what a careful clerk wrote down."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from profile_batches import batch, phase_timings, rows_of, speeds, without_identity

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.profile import Profile
from nodewise.domain.workload import Network, Workload
from nodewise.profiles.batches import Batch, TraceChunk
from nodewise.profiles.digest import content_digest
from nodewise.profiles.opening import open_store
from nodewise.profiles.store import Evidence, ProfileStore, SessionStatus

SESSIONS = st.sampled_from(["a", "b"])
PROFILE = "job"


@dataclass
class Sent:
    """What a session's client means to send, and what the clerk knows to be stored."""

    script: list[Batch] = field(default_factory=list)
    durable: int = 0
    committed: int = 0


def script_of(name: str, shape: list[tuple[int, bool, bool]]) -> list[Batch]:
    """Batches of so many rows, with a fact or a trace or neither, with or without a commit."""
    found = []
    for number, (rows, extra, commit) in enumerate(shape, start=1):
        base = 1000.0 * number + (0.5 if name == "a" else 0.25)
        content = {}
        if extra and number % 3 == 0:
            content["workload"] = Workload(parameter_bytes=8)
        elif extra and number % 3 == 1:
            content["network"] = Network(link_bytes_per_s=1e9)
            content["phase_timings"] = phase_timings(float(number))
        elif extra:
            piece = f"{name}{number}".encode()
            content["trace_chunks"] = (
                TraceChunk(trace_id=str(number), data=piece, last=True, format="f", world_size=1),
            )
        found.append(batch(number, *[base + row for row in range(rows)], commit=commit, **content))
    return found


SHAPES = st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans()), min_size=3, max_size=8)


class Ingest(RuleBasedStateMachine):
    """The store against the clerk, who notes units in the order of their commits and retractions as they come."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.stores = [self.opened(), self.opened()]
        self.known: Profile | None = None
        self.restart()

    def opened(self) -> ProfileStore:
        return open_store(str(Path(self.directory.name, "store.db")))

    def restart(self) -> None:
        """The clerk's books are empty."""
        self.units: list[list[Batch]] = []
        self.retracted: set[int] = set()
        self.revision = 0
        for sent in getattr(self, "sent", {}).values():
            sent.durable = sent.committed = 0

    @initialize(a=SHAPES, b=SHAPES)
    def write_scripts(self, a: list[tuple[int, bool, bool]], b: list[tuple[int, bool, bool]]) -> None:
        self.sent = {"a": Sent(script_of("a", a)), "b": Sent(script_of("b", b))}

    # --- the clerk

    def rows(self) -> int:
        return sum(len(sent.observations) for unit in self.units for sent in unit)

    def status(self, name: str) -> SessionStatus:
        sent = self.sent[name]
        return SessionStatus(
            durable_sequence_number=sent.durable,
            committed_sequence_number=sent.committed,
            revision=self.revision,
            observations_count=self.rows() - len(self.retracted),
        )

    def note(self, name: str, upto: int) -> None:
        sent = self.sent[name]
        for new in sent.script[sent.durable : upto]:
            sent.durable = new.sequence_number
            if new.commit:
                unit = sent.script[sent.committed : sent.durable]
                sent.committed = sent.durable
                if any(part.has_content for part in unit):
                    self.units.append(unit)
                    self.revision += 1

    # --- what clients do

    @rule(name=SESSIONS, where=st.integers(0, 1), back=st.integers(0, 3), count=st.integers(1, 4))
    def send(self, name: str, where: int, back: int, count: int) -> None:
        """Through either process, with the last ones sent again: a retry, a resumed stream."""
        sent = self.sent[name]
        first = max(0, sent.durable - back)
        part = sent.script[first : sent.durable + count]
        self.note(name, first + len(part))
        assert self.stores[where].append(PROFILE, name, part) == self.status(name)

    @rule(name=SESSIONS, where=st.integers(0, 1))
    def resume(self, name: str, where: int) -> None:
        assert self.stores[where].open_session(PROFILE, name) == self.status(name)

    @rule(name=SESSIONS, where=st.integers(0, 1), skip=st.integers(1, 3))
    def send_too_far(self, name: str, where: int, skip: int) -> None:
        """Nothing of it is stored, also not what comes before the gap."""
        sent = self.sent[name]
        part = [*sent.script[sent.durable : sent.durable + 1]]
        expected = sent.durable + len(part) + 1
        self.refuse(where, name, [*part, batch(expected + skip, 1.0)], Reason.BATCH_OUT_OF_ORDER)

    @rule(name=SESSIONS, where=st.integers(0, 1), back=st.integers(0, 7))
    def send_something_else(self, name: str, where: int, back: int) -> None:
        sent = self.sent[name]
        if sent.durable > back:
            part = [*sent.script[sent.durable : sent.durable + 1], batch(sent.durable - back, -1.0)]
            self.refuse(where, name, part, Reason.BATCH_CONFLICT)

    @rule(name=SESSIONS, where=st.integers(0, 1))
    def contradict(self, name: str, where: int) -> None:
        sent = self.sent[name]
        facts = [Network(link_bytes_per_s=number) for number in (1.0, 2.0)]
        part = [batch(sent.durable + 1 + place, network=fact) for place, fact in enumerate(facts)]
        self.refuse(where, name, part, Reason.CONTRADICTORY_FACTS)

    def refuse(self, where: int, name: str, part: list[Batch], reason: Reason) -> None:
        try:
            self.stores[where].append(PROFILE, name, part)
        except NodewiseError as error:
            assert error.reason == reason  # noqa: PT017 - a state machine has no pytest.raises to lose its steps in
        else:
            raise AssertionError("was stored")
        assert self.stores[where].open_session(PROFILE, name) == self.status(name)

    @rule(where=st.integers(0, 1), data=st.data())
    def retract(self, where: int, data: st.DataObject) -> None:
        left = sorted(set(range(1, self.rows() + 1)) - self.retracted)
        if left:
            numbers = data.draw(st.lists(st.sampled_from(left), min_size=1, max_size=3, unique=True))
            self.retracted |= set(numbers)
            self.revision += 1
            for store in (self.stores[where], self.stores[1 - where]):
                assert store.retract(PROFILE, f"r{self.revision}", Evidence.of(numbers)).revision == self.revision

    @rule(where=st.integers(0, 1))
    def cut(self, where: int) -> None:
        """A process goes and another takes its place."""
        self.stores[where].close()
        self.stores[where] = self.opened()

    @rule(where=st.integers(0, 1))
    def delete_and_bring_back(self, where: int) -> None:
        """Nothing of it is seen afterwards."""
        if self.revision:
            self.stores[where].delete(PROFILE)
            assert self.stores[1 - where].undelete(PROFILE).revision == self.revision

    @rule(where=st.integers(0, 1), sure=st.integers(0, 5))
    def delete(self, where: int, sure: int) -> None:
        if self.revision and not sure:
            self.stores[where].delete(PROFILE)
            self.restart()

    # --- what must be true

    @invariant()
    def what_is_stored_is_what_was_noted(self) -> None:
        if not self.revision:
            return
        one, other = self.stores
        profile = one.load(PROFILE)
        self.known = other.load(PROFILE, self.known)
        assert profile.revision == self.known.revision == self.revision
        assert profile.digest == self.known.digest == content_digest(profile) == one.list()[0].digest
        noted = [value for unit in self.units for sent in unit for value in sent.observations.steps_per_s.tolist()]
        assert speeds(profile) == {
            number: value for number, value in enumerate(noted, start=1) if number not in self.retracted
        }

    def teardown(self) -> None:
        """The same units, sent one after the other by one careful client, give the same profile."""
        if self.revision:
            profile = self.stores[0].load(PROFILE)
            with tempfile.TemporaryDirectory() as directory:
                careful = open_store(str(Path(directory, "careful.db")))
                for position, unit in enumerate(self.units):
                    for number, sent in enumerate(unit, start=1):
                        again = batch(
                            number,
                            workload=sent.workload,
                            network=sent.network,
                            phase_timings=sent.phase_timings,
                            observations=sent.observations,
                            trace_chunks=sent.trace_chunks,
                            commit=sent.commit,
                        )
                        careful.append(PROFILE, f"unit {position}", [again])
                if self.retracted:
                    careful.retract(PROFILE, "all", Evidence.of(self.retracted))
                wanted = careful.load(PROFILE)
                careful.close()
            assert wanted.digest == profile.digest
            assert rows_of(wanted.observations) == rows_of(profile.observations)
            assert rows_of(wanted.phase_timings) == rows_of(profile.phase_timings)
            assert without_identity(wanted).traces == profile.traces
            assert (wanted.workload, wanted.network) == (profile.workload, profile.network)
        for store in self.stores:
            store.close()
        self.directory.cleanup()


TestIngest = Ingest.TestCase
TestIngest.settings = settings(max_examples=40, stateful_step_count=25, deadline=None, derandomize=True)
