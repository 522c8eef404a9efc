"""Scenarios: what is done to a client and what it must do, read from `scenarios/*.json`."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal

from nodewise_conformance.contract import methods
from nodewise_conformance.languages import ROOT

__all__ = ["FOLDER", "Fault", "Scenario", "ScenarioError", "Step", "filled_in", "read_scenarios"]

FOLDER: Final = Path(__file__).resolve().parents[1] / "scenarios"
SERVERS: Final = ("plain", "own", "tokens", "quota", "tls", "mtls", "nobody")
FACES: Final = ("call", "stream", "rows", "pages", "progress", "watch", "ingest")


_LONG: Final = {"<megabyte>": 1 << 17, "<many>": 600_000}
"""Stand for lists of so many numbers, of 8 bytes each on the wire."""
_FILE: Final = "<file "
"""Stands for the bytes of a file of the repository, in base64."""


class ScenarioError(Exception):
    """A scenario that is not as the page says; the text names the file, the scenario and the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What the server between does to one attempt; PROTOCOL.md says what each key means."""

    forward: bool = False
    status: Mapping[str, Any] | None = None
    reply: Sequence[Any] | None = None
    variant: int = 0
    cut_after_replies: int | None = None
    drop_reply: bool = False
    delay_seconds: float = 0.0
    delay_between_replies_seconds: float = 0.0
    hang: bool = False
    restart_server: Literal["", "kill", "rolling"] = ""
    add_unknown: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A call of the runner's own on the real server: before the client's (`setup`) or after it (`after`)."""

    method: str
    request: Any
    expect: Any = None
    save: Mapping[str, str] | None = None
    repeat: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One scenario; PROTOCOL.md says what each key means."""

    name: str
    about: str
    call: Mapping[str, Any]
    faces: tuple[str, ...] = ("grpc",)
    server: str = "plain"
    direct: bool = False
    setup: tuple[Step, ...] = ()
    faults: tuple[Fault, ...] = (Fault(forward=True),)
    lose_acknowledgements_of: tuple[int, ...] = ()
    restart_at_batches: tuple[int, ...] = ()
    repeat: int = 1
    expect: Mapping[str, Any]
    after: tuple[Step, ...] = ()
    file: str = ""

    @property
    def method(self) -> str:
        """The RPC that is called; of the face `ingest` the one that a writer would use."""
        return str(self.call.get("method", "nodewise.v1.ProfileService/IngestProfile"))

    def fault_of(self, attempt: int) -> Fault:
        """What becomes of an attempt, counted from 0; the last fault repeats."""
        return self.faults[min(attempt, len(self.faults) - 1)]


EXPECTED: Final = frozenset(
    {
        "code", "reason", "violations", "metadata", "retry_delay_seconds", "message_contains", "attempts",
        "attempts_between", "replies", "rows", "replies_count", "elapsed_below_seconds", "elapsed_above_seconds",
        "sent_metadata", "deadline_seconds_between", "ended_by_caller", "reply_bytes_above", "attempts_apart_seconds",
    }
)  # fmt: skip


def read_scenarios(folder: Path = FOLDER) -> tuple[Scenario, ...]:
    """All scenarios, in the order of their files.

    Raises
    ------
    ScenarioError
        For an unknown key, method or face, and for a name that is used twice.
    """
    scenarios: dict[str, Scenario] = {}
    for path in sorted(folder.glob("*.json")):
        for entry in json.loads(path.read_text(encoding="utf-8")):
            scenario = _scenario(path.stem, entry)
            if scenario.name in scenarios:
                raise ScenarioError(f"{path.name}: the name {scenario.name!r} is used twice")
            scenarios[scenario.name] = scenario
    return tuple(scenarios.values())


def filled_in(template: Any, places: Mapping[str, str]) -> Any:
    """What a scenario says, with the names between `<` and `>` that were saved or belong to the run."""
    if isinstance(template, str):
        if template.startswith(_FILE):
            return base64.b64encode((ROOT / template.removeprefix(_FILE).removesuffix(">")).read_bytes()).decode()
        if template in _LONG:
            return [1.0 + row / _LONG[template] for row in range(_LONG[template])]
        for name, value in places.items():
            template = template.replace(f"<{name}>", value)
        return template
    if isinstance(template, Mapping):
        return {filled_in(key, places): filled_in(value, places) for key, value in template.items()}
    if isinstance(template, list | tuple):
        return [filled_in(each, places) for each in template]
    return template


def _scenario(file: str, entry: Mapping[str, Any]) -> Scenario:
    where = f"{file}.json: {entry.get('name', 'a scenario without a name')}"
    _known(where, entry, Scenario)
    parts = {
        **entry,
        "faces": tuple(entry.get("faces", ("grpc",))),
        "setup": tuple(_step(f"{where}: setup", each) for each in entry.get("setup", ())),
        "after": tuple(_step(f"{where}: after", each) for each in entry.get("after", ())),
        "faults": tuple(_fault(f"{where}: faults", each) for each in entry.get("faults", ({"forward": True},))),
        "lose_acknowledgements_of": tuple(entry.get("lose_acknowledgements_of", ())),
        "restart_at_batches": tuple(entry.get("restart_at_batches", ())),
        "file": file,
    }
    scenario = Scenario(**parts)
    strange = sorted(set(scenario.expect) - EXPECTED)
    if strange:
        raise ScenarioError(f"{where}: unknown expectation {strange[0]!r}; known: {', '.join(sorted(EXPECTED))}")
    if scenario.call.get("face") not in FACES:
        raise ScenarioError(f"{where}: face {scenario.call.get('face')!r}; expected one of {', '.join(FACES)}")
    if scenario.method not in methods():
        raise ScenarioError(f"{where}: the contract has no method {scenario.method!r}")
    if scenario.server not in SERVERS:
        raise ScenarioError(f"{where}: server {scenario.server!r}; expected one of {', '.join(SERVERS)}")
    return scenario


def _step(where: str, entry: Mapping[str, Any]) -> Step:
    _known(where, entry, Step)
    if entry["method"] not in methods():
        raise ScenarioError(f"{where}: the contract has no method {entry['method']!r}")
    return Step(**entry)


def _fault(where: str, entry: Mapping[str, Any]) -> Fault:
    _known(where, entry, Fault)
    return Fault(**entry)


def _known(where: str, entry: Mapping[str, Any], kind: Any) -> None:
    names = {each.name: each for each in fields(kind)}
    strange = sorted(set(entry) - set(names))
    if strange:
        raise ScenarioError(f"{where}: unknown key {strange[0]!r}; keys are {', '.join(names)}")
    absent = [name for name, each in names.items() if each.default is MISSING and name not in entry]
    if absent:
        raise ScenarioError(f"{where}: {absent[0]} is missing")
