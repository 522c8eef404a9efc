"""The executable of a caller without any client: every line becomes a call of curl, over REST or over Connect.

python -m nodewise_conformance.curl            # paths of the google.api.http annotations
python -m nodewise_conformance.curl --connect  # POST /package.Service/Method
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, urlencode

from google.api import annotations_pb2
from google.protobuf import json_format

from nodewise_conformance.contract import Method, json_of, message_of, methods
from nodewise_conformance.http_statuses import read_error
from nodewise_conformance.rows import rows_of
from nodewise_conformance.statuses import Details

_TIMED_OUT: Final = 28
"""Exit status of curl when --max-time is over."""
_CODE_MARK: Final = "\n%{http_code}"
_VERBS: Final = ("get", "post", "delete", "put", "patch")


@dataclass
class _Told:
    """The results of a call."""

    replies: list[Any] = field(default_factory=list)
    failed: Mapping[str, Any] | None = None


class _Caller:
    """Makes the calls of one line."""

    def __init__(self, line: Mapping[str, Any], *, connect: bool) -> None:
        self._line: Final = line
        self._options: Final[Mapping[str, Any]] = line.get("options", {})
        self._connect: Final = connect
        self._method: Final = methods()[line["method"]]

    def answer(self) -> dict[str, Any]:
        """The line out, without its id and time."""
        outcome = _Told()
        request = dict(self._line["requests"][0])
        while True:
            self._call(request, outcome)
            token = (
                outcome.replies[-1].get("nextPageToken") if outcome.replies and self._line["face"] == "pages" else None
            )
            if outcome.failed is not None or not token:
                break
            request["pageToken"] = token
        document: dict[str, Any] = {"code": "OK"} if outcome.failed is None else dict(outcome.failed)
        face = self._line["face"]
        if face == "pages":
            document["replies"] = [item for reply in outcome.replies for item in _items(reply, self._method)]
        elif face == "rows":
            messages = [message_of(self._method.reply, each) for each in outcome.replies]
            document["rows"] = [row for message in messages for row in rows_of(message)]
        else:
            document["replies"] = outcome.replies[-1:] if face == "progress" else outcome.replies
        return document

    def _call(self, request: Mapping[str, Any], outcome: _Told) -> None:
        command, body = self._command(request)
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(body)
            process.stdin.close()
            cancelling = threading.Timer(self._line.get("cancel_after_seconds", 1e6), process.kill)
            cancelling.start()
            if self._method.server_streaming:
                self._read_stream(process, outcome)
            else:
                self._read_one(process.stdout.read(), outcome)
            process.wait()
            cancelling.cancel()
        if process.returncode < 0 and "cancel_after_seconds" in self._line:
            outcome.failed = {"code": "CANCELLED"}
        elif process.returncode == _TIMED_OUT:
            outcome.failed = {"code": "DEADLINE_EXCEEDED"}
        elif process.returncode > 0:
            outcome.failed = {"code": "UNAVAILABLE", "message": f"curl ended with {process.returncode}"}

    def _command(self, request: Mapping[str, Any]) -> tuple[list[str], bytes]:
        """The words of curl, and the body that it reads."""
        words = ["curl", "--silent", "--show-error", "--no-buffer", "--noproxy", "*", "--data-binary", "@-"]
        if (timeout_seconds := self._options.get("timeout_seconds")) is not None:
            words += [
                "--max-time",
                str(timeout_seconds),
                "--header",
                f"Connect-Timeout-Ms: {int(timeout_seconds * 1e3)}",
            ]
        if "token" in self._options:
            words += ["--header", f"Authorization: Bearer {self._options['token']}"]
        if not self._method.server_streaming:
            words += ["--write-out", _CODE_MARK]
        base = f"http://{self._line['target']}"
        if self._connect:
            body = json.dumps(request).encode()
            data = b"\0" + len(body).to_bytes(4, "big") + body if self._method.server_streaming else body
            kind = "application/connect+json" if self._method.server_streaming else "application/json"
            return [*words, "--header", f"Content-Type: {kind}", f"{base}{self._method.path}"], data
        verb, path, rest = _route(self._method, request)
        if verb in {"get", "delete"}:
            query = urlencode([(key, value) for key, each in rest.items() for value in _texts(each)])
            words = words[: words.index("--data-binary")] + words[words.index("--data-binary") + 2 :]
            return [*words, "--request", verb.upper(), f"{base}{path}{'?' if query else ''}{query}"], b""
        words += ["--request", verb.upper(), "--header", "Content-Type: application/json"]
        return [*words, f"{base}{path}"], json.dumps(rest).encode()

    def _read_one(self, output: bytes, outcome: _Told) -> None:
        body, _, code = output.rpartition(b"\n")
        if not code.isdigit() or code == b"000":
            return  # curl says by its exit status what happened
        document = json.loads(body or b"{}")
        if int(code) < 400:
            outcome.replies.append(document)
        else:
            outcome.failed = _failure(document, int(code))

    def _read_stream(self, process: subprocess.Popen[bytes], outcome: _Told) -> None:
        assert process.stdout is not None
        for message in _frames(process.stdout) if self._connect else map(json.loads, process.stdout):
            error = message.get("error")
            if error is not None:
                outcome.failed = _failure(message if "status" in error else error, 0)
            elif "result" in message or not self._connect:
                # A line of REST is {"result": reply}; a reply of Connect may have a field of that name.
                outcome.replies.append(message if self._connect else message["result"])
            elif "metadata" not in message:
                outcome.replies.append(message)
            if len(outcome.replies) == self._line.get("cancel_after_replies"):
                process.kill()
                process.wait()
                return


def _frames(stream: Any) -> Iterator[Any]:
    """Messages of a Connect stream; the last tells how it ended."""
    while len(head := stream.read(5)) == 5:
        yield json.loads(stream.read(int.from_bytes(head[1:], "big")) or b"{}")


def _failure(body: Any, code: int) -> dict[str, Any]:
    status = read_error(body)
    if status is None:
        return {"code": "UNKNOWN", "message": f"HTTP {code}: {str(body)[:200]}"}
    details = Details(status)
    return {
        "code": details.code, "reason": details.reason, "message": details.message, "metadata": details.metadata,
        "violations": details.violations, "retry_delay_seconds": details.retry_delay_seconds,
    }  # fmt: skip


def _route(method: Method, request: Mapping[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """Verb, path with its variables put in, and what is left of the request."""
    service, _, name = method.name.rpartition("/")
    descriptor = method.request.file.pool.FindServiceByName(service).methods_by_name[name]
    rule = descriptor.GetOptions().Extensions[annotations_pb2.http]
    verb = next(each for each in _VERBS if getattr(rule, each))
    path, rest = getattr(rule, verb), dict(request)
    while "{" in path:
        before, _, inside = path.partition("{")
        variable, _, after = inside.partition("}")
        key = method.request.fields_by_name[variable.partition("=")[0]].json_name
        path = f"{before}{quote(str(rest.pop(key, '')), safe='/')}{after}"
    return verb, path, rest


def _texts(value: Any) -> Sequence[str]:
    if isinstance(value, list):
        return [text for each in value for text in _texts(each)]
    return [json.dumps(value) if isinstance(value, bool) else str(value)]


def _items(reply: Any, method: Method) -> list[Any]:
    message = json_format.ParseDict(reply, message_of(method.reply, {}))
    items = next(each for each in method.reply.fields if each.is_repeated and each.message_type is not None)
    return [json_of(each) for each in getattr(message, items.name)]


def main() -> None:
    """Answer lines until the input ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connect", action="store_true")
    options = parser.parse_args()
    for text in sys.stdin:
        line = json.loads(text)
        start_s = time.monotonic()
        document = _Caller(line, connect=options.connect).answer()
        print(json.dumps({"id": line["id"], **document, "elapsed_seconds": time.monotonic() - start_s}), flush=True)


if __name__ == "__main__":
    main()
