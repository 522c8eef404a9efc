"""Options that several commands take, the way they are written, and how an answer is printed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias, TypeVar

from typer import Option

from nodewise_cli.console import print_json
from nodewise_cli.failures import InputError
from nodewise_cli.service import connected
from nodewise_client import Client

__all__ = ["AN_HOUR", "ONE_MINUTE", "STORE", "TEN_MINUTES", "AsJson", "Call", "Server", "StoreCall", "TimeoutS"]

AnswerT = TypeVar("AnswerT")

Server: TypeAlias = Annotated[
    str | None,
    Option(
        "--server",
        metavar="HOST:PORT",
        envvar="NODEWISE_SERVER",
        help="Ask this server. Default: one embedded in this process, with an empty store.",
    ),
]
AsJson: TypeAlias = Annotated[bool, Option("--json", help="Print one JSON object and nothing else.")]
TimeoutS: TypeAlias = Annotated[float, Option("--timeout-s", metavar="SECONDS", help="Longest wait for an answer.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Who is asked, how long for, and how the answer is printed."""

    server: Server = None
    as_json: AsJson = False
    timeout_s: TimeoutS = 60.0

    def connected(self) -> AbstractContextManager[Client]:
        """A client of who is asked."""
        return connected(self.server, self.timeout_s)

    def tell(self, document: Callable[[AnswerT], Any], show: Callable[[AnswerT], None], answer: AnswerT) -> None:
        """Print the answer."""
        if self.as_json:
            print_json(document(answer))
        else:
            show(answer)


ONE_MINUTE: Final = Call()
TEN_MINUTES: Final = Call(timeout_s=600.0)
AN_HOUR: Final = Call(timeout_s=3600.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreCall(Call):
    """A call about stored profiles."""

    server: Annotated[
        str | None,
        Option("--server", metavar="HOST:PORT", envvar="NODEWISE_SERVER", help="The server that stores profiles."),
    ] = None

    def connected(self) -> AbstractContextManager[Client]:
        """A client of the server, which must be named: an embedded one stores none. Raises InputError."""
        if self.server is None:
            raise InputError("--server: must name the server that stores the profiles, such as 127.0.0.1:50551")
        return connected(self.server, self.timeout_s)


STORE: Final = StoreCall()
