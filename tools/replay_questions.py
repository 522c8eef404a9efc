"""Ask a server 2,000 questions of every kind and compare its replies with those of another version, field by field.

    tools/replay_questions.py --record FILE                     ask, and write what is answered
    tools/replay_questions.py --compare FILE [--tolerance T]    ask what FILE holds again; exit 1 if replies differ

The server is started for it, with an empty store: `nodewise` of this environment, or of another checkout by
`--nodewise CHECKOUT/.venv/bin/nodewise`; `--server HOST:PORT` asks one that runs (its store must be empty). FILE holds
the bytes of questions and replies, so that fields may be renamed between the two versions; times, durations of the
server's own work and ids of requests are left out.
"""

from __future__ import annotations

import argparse
import base64
import json
import math
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

import grpc
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2

from sample_questions import Question, Sampler, message_class

COUNT: Final = 2_000
DEADLINE_S: Final = 60.0
STEADY: Final = {
    "NODEWISE_SCORING": "false",
    "NODEWISE_LEARN_INTERVAL_S": "0",
    "NODEWISE_QUEUE_WAIT_S": str(DEADLINE_S),
    "NODEWISE_HOSTS__START_PATIENCE_S": "60",
    "NODEWISE_ADMIN": "false",
}
"""Nothing in the server moves with time: it learns nothing, and refuses nobody for want of a turn."""
VARYING: Final = frozenset(
    {
        *("decision_seconds", "longest_decision_seconds", "wall_seconds", "search_seconds", "load_seconds"),
        *(
            "fit_seconds",
            "predict_seconds",
            "build_seconds",
            "replay_seconds",
            "peak_memory_bytes",
            "uid",
            "etag",
            "generation",
            "next_page_token",
        ),
    }
)
"""Fields that two runs of one version differ in, besides every Timestamp."""
VARYING_MEASURES: Final = frozenset({20, 21, 22})
"""Of SimulationFigure: how long decisions and the simulation took."""
BUSY: Final = frozenset({"DEADLINE_EXCEEDED", "UNAVAILABLE", "RESOURCE_EXHAUSTED", "CANCELLED"})
"""Codes that say how busy a machine is: what ends so in either run is counted, not compared."""


SHOWN: Final = 3
"""Questions of a kind that a difference is shown of."""

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a caller gets: a code, for a refusal its message and details, and the replies without what varies."""

    code: str
    problem: Document
    replies: Sequence[Message]

    def document(self) -> Document:
        """For the file."""
        replies = [_text(each.SerializeToString(deterministic=True)) for each in self.replies]
        return {"code": self.code, "problem": self.problem, "replies": replies}

    def fields(self) -> dict[str, Any]:
        """Values by their paths."""
        values = {"code": self.code} | dict(_leaves(self.problem, "problem"))
        for number, reply in enumerate(self.replies):
            values |= dict(_leaves(_dict(reply), f"reply[{number}]" if number else "reply"))
        return values


def ask(channel: grpc.Channel, path: str, requests: Sequence[bytes]) -> Outcome:
    """Ask one question; every method is called as if both sides were streams, which is the same on the wire."""
    kind, replies = message_class(path, reply=True), []
    multi: Any = channel.stream_stream(path)
    try:
        for reply in multi(iter(requests), timeout=DEADLINE_S):
            message = _kept(kind.FromString(reply))
            if message is not None:
                replies.append(message)
    except grpc.RpcError as raised:
        error: Any = raised
        trailers = dict(error.trailing_metadata() or ())
        status = status_pb2.Status.FromString(trailers.get("grpc-status-details-bin", b""))
        details = [
            _dict(message)
            for detail in status.details
            for message in (error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest())
            if detail.Unpack(message)
        ]
        return Outcome(error.code().name, {"message": error.details(), "details": details}, replies)
    return Outcome("OK", {}, replies)


def record(channel: grpc.Channel, questions: Iterator[Question]) -> list[Document]:
    """Questions with what is answered, for the file."""
    found = []
    for number, question in enumerate(questions):
        requests = [each.SerializeToString(deterministic=True) for each in question.requests]
        outcome = ask(channel, question.path, requests)
        asked = {"kind": question.kind, "path": question.path, "requests": [_text(each) for each in requests]}
        found.append(asked | outcome.document())
        _tell(number)
    return found


def compare(channel: grpc.Channel, recorded: Sequence[Document], tolerance: float) -> list[str]:
    """Ask what was recorded; lines that say which kinds of questions are answered otherwise, and where first."""
    asked, busy, other, first = Counter[str](), Counter[str](), Counter[str](), dict[str, list[str]]()
    for number, each in enumerate(recorded):
        kind, path = each["kind"], each["path"]
        form = message_class(path, reply=True)
        before = Outcome(each["code"], each["problem"], [form.FromString(_bytes(reply)) for reply in each["replies"]])
        after = ask(channel, path, [_bytes(request) for request in each["requests"]])
        asked[kind] += 1
        difference = differing(before.fields(), after.fields(), tolerance)
        if {before.code, after.code} & BUSY:
            busy[kind] += 1
        elif difference:
            other[kind] += 1
            first.setdefault(kind, []).append(f"question {number} ({path.rpartition('/')[2]}): {difference}")
        _tell(number)
    lines = []
    for kind, count in asked.items():
        lines.append(f"{kind}: {count} asked, {other[kind]} differ" + (f", {busy[kind]} too slow" * (busy[kind] > 0)))
        lines += [f"    {line}" for line in first.get(kind, [])[:SHOWN]]
    return [*lines, f"{len(recorded)} questions, {other.total()} differ, {busy.total()} too slow to compare"]


def differing(before: Document, after: Document, tolerance: float) -> str:
    """The first field that two outcomes differ in, and how many there are; empty = none."""
    paths = [*before, *(path for path in after if path not in before)]
    found = [path for path in paths if not _same(before.get(path), after.get(path), tolerance)]
    if not found:
        return ""
    path = found[0]
    return f"{path}: {before.get(path)!r} became {after.get(path)!r}; {len(found)} of {len(paths)} fields differ"


def _same(before: Any, after: Any, tolerance: float) -> bool:
    if isinstance(before, float) and isinstance(after, float):
        return math.isclose(before, after, rel_tol=tolerance, abs_tol=0.0)
    return type(before) is type(after) and bool(before == after)


def _kept(message: Message) -> Message | None:
    """A reply without what varies; None = it only tells of progress."""
    if any(field.name == "progress" for field, _ in message.ListFields()):
        return None
    for field, value in message.ListFields():
        kind = field.message_type
        if field.name in VARYING or (kind is not None and kind.full_name == "google.protobuf.Timestamp"):
            message.ClearField(field.name)
        elif kind is not None and not kind.GetOptions().map_entry:
            if field.name == "figures" and kind.name == "SimulationFigure":
                for at in reversed([at for at, each in enumerate(value) if each.measure in VARYING_MEASURES]):
                    del value[at]
            for each in value if field.is_repeated else [value]:
                _kept(each)
    return message


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _leaves(each, f"{path}.{name}")
    elif isinstance(value, list):
        yield f"{path}.length", len(value)
        for number, each in enumerate(value):
            yield from _leaves(each, f"{path}[{number}]")
    else:
        yield path, value


def _dict(message: Message) -> Document:
    return MessageToDict(message, preserving_proto_field_name=True)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)


def _tell(number: int) -> None:
    if number % 100 == 99:
        print(f"{number + 1} asked", file=sys.stderr)


@contextmanager
def serving(command: str) -> Iterator[str]:
    """A server of its own with an empty store, by its target."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--listen", "127.0.0.1:0", "--store", "memory:", "--traces", folder, "--safe-mode"]
        log = Path(folder) / "log"
        with log.open("wb") as errors:
            process = subprocess.Popen(
                [command, "serve", *options],
                env=os.environ | STEADY,
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
            assert process.stdout is not None
            line = process.stdout.readline()
            try:
                if not line.startswith("listening on "):
                    raise SystemExit(f"{command} does not serve: {log.read_text(encoding='utf-8')[-2_000:]}")
                yield line.removeprefix("listening on ").strip()
            finally:
                process.terminate()
                process.wait()
                process.stdout.close()


@contextmanager
def connected(server: str | None, command: str) -> Iterator[grpc.Channel]:
    """To a server that runs, or to one of its own."""
    if server is None:
        with serving(command) as target, connected(target, command) as channel:
            yield channel
        return
    with grpc.insecure_channel(server, options=[("grpc.max_receive_message_length", -1)]) as channel:
        yield channel


def main() -> int:
    """Record or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    way = parser.add_mutually_exclusive_group(required=True)
    way.add_argument("--record", type=Path, metavar="FILE", help="ask, and write questions and replies")
    way.add_argument("--compare", type=Path, metavar="FILE", help="ask what FILE holds, and compare")
    parser.add_argument(
        "--tolerance", type=float, default=0.0, help="largest relative difference of numbers; default 0"
    )
    parser.add_argument("--count", type=int, default=COUNT, help=f"questions to record; default {COUNT}")
    parser.add_argument("--seed", type=int, default=0, help="of the questions; default 0")
    parser.add_argument("--server", metavar="HOST:PORT", help="a server that runs, with an empty store")
    parser.add_argument("--nodewise", default=str(Path(sys.executable).parent / "nodewise"), help="what starts one")
    asked = parser.parse_args()
    with connected(asked.server, asked.nodewise) as channel:
        if asked.record is not None:
            sampler = Sampler(asked.seed)
            found = record(channel, chain(sampler.setup(), sampler.questions(asked.count)))
            asked.record.write_text("\n".join(("[", ",\n".join(map(json.dumps, found)), "]")), encoding="utf-8")
            print(f"{len(found)} recorded: {dict(Counter(each['code'] for each in found))}")
            return 0
        lines = compare(channel, json.loads(asked.compare.read_text(encoding="utf-8")), asked.tolerance)
    print("\n".join(lines))
    return 0 if " 0 differ" in lines[-1] else 1


if __name__ == "__main__":
    sys.exit(main())
