"""Options that several commands take, in groups that are declared once, and how an answer is printed.

A command's parameter whose type is a group, a dataclass, stands for the options that its fields are.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, TypeAlias, TypeVar, get_type_hints

from typer import Option, Typer

from nodewise_cli.console import print_json, wide_tables
from nodewise_cli.failures import InputError
from nodewise_cli.help_texts import HelpfulCommand, HelpfulGroup
from nodewise_cli.recording import record_output
from nodewise_cli.reports import Draw, Report, command_line
from nodewise_cli.service import Access, connect

if TYPE_CHECKING:
    from nodewise_client import Client

__all__ = [
    "AN_HOUR",
    "ONE_MINUTE",
    "STORE",
    "TEN_MINUTES",
    "AsJson",
    "Call",
    "Commands",
    "ReportFile",
    "ReportPath",
    "StoreCall",
    "TimeoutS",
]

AnswerT = TypeVar("AnswerT")

AsJson: TypeAlias = Annotated[bool, Option("--json", help="Print one JSON object and nothing else.")]
TimeoutS: TypeAlias = Annotated[float, Option("--timeout-s", metavar="SECONDS", help="Time limit for the answer.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The server to call, the time limit, and the form of the output."""

    SECTION: ClassVar = "Server and output"
    server: Annotated[
        str | None,
        Option(
            "--server",
            metavar="HOST:PORT",
            envvar="NODEWISE_SERVER",
            help="Server to call. Default: a server in this process, with an empty store.",
        ),
    ] = None
    as_json: AsJson = False
    verbose: Annotated[
        bool, Option("--verbose", help="Print every note; and if no estimator can answer, the reason of each.")
    ] = False
    wide: Annotated[
        bool, Option("--wide", help="Print each row of a table in one line, however narrow the window is.")
    ] = False
    timeout_s: TimeoutS = 60.0
    token: Annotated[
        str | None,
        Option(
            "--token",
            metavar="TOKEN|@FILE",
            envvar="NODEWISE_TOKEN",
            show_envvar=True,
            help="Bearer token, or the file that holds it. Prefer a file: other users can read a command line.",
        ),
    ] = field(default=None, repr=False)
    tls_ca: Annotated[
        str | None,
        Option(
            "--tls-ca",
            metavar="FILE.pem",
            envvar="NODEWISE_TLS_CA",
            help="Use TLS, with these root certificates, or those of the `system`.",
        ),
    ] = None
    tls_cert: Annotated[
        str | None,
        Option("--tls-cert", metavar="FILE.pem", envvar="NODEWISE_TLS_CERT", help="Client certificate."),
    ] = None
    tls_key: Annotated[
        str | None,
        Option("--tls-key", metavar="FILE.pem", envvar="NODEWISE_TLS_KEY", help="Key of the client certificate."),
    ] = None

    @property
    def access(self) -> Access:
        """The caller's credentials."""
        return Access(token=self.token, tls_ca=self.tls_ca, tls_cert=self.tls_cert, tls_key=self.tls_key)

    def connect(self) -> AbstractContextManager[Client]:
        """A client of the server that the options name."""
        return connect(self.server, self.timeout_s, self.access)

    def tell(
        self,
        document: Callable[[AnswerT], Any],
        show: Callable[[AnswerT], None],
        answer: AnswerT,
        report: ReportFile | None = None,
    ) -> None:
        """Print the answer, and write its report if one is wanted.

        Raises
        ------
        CommandError
            If the report cannot be written.
        """
        if self.as_json:
            print_json(document(answer))
        with wide_tables() if self.wide else nullcontext():
            if report is None:
                if not self.as_json:
                    show(answer)
                return
            with record_output(silent=self.as_json) as recording:
                show(answer)
        Report(report.headline, recording, report.draw, command_line()).write(report.path)


@dataclass(frozen=True, slots=True)
class ReportFile:
    """The file of a report, its first sentence, and what draws its picture (None = it has none)."""

    path: Path
    headline: str
    draw: Draw | None = None


ReportPath: TypeAlias = Annotated[
    Path | None,
    Option(
        "--report",
        metavar="OUT.html|md",
        help="Write the answer as a page: its sentence, picture and tables, what it rests on, and how to ask again.",
    ),
]


ONE_MINUTE: Final = Call()
TEN_MINUTES: Final = Call(timeout_s=600.0)
AN_HOUR: Final = Call(timeout_s=3600.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreCall(Call):
    """A call about stored profiles."""

    SECTION: ClassVar = Call.SECTION
    server: Annotated[
        str | None,
        Option("--server", metavar="HOST:PORT", envvar="NODEWISE_SERVER", help="Server that stores the profiles."),
    ] = None

    def connect(self) -> AbstractContextManager[Client]:
        """A client of the server, which must be named: an embedded server stores no profiles. Raises InputError."""
        if self.server is None:
            raise InputError("--server: must name the server that stores the profiles, such as 127.0.0.1:50551")
        return connect(self.server, self.timeout_s, self.access)


STORE: Final = StoreCall()


class Commands(Typer):
    """Commands that may take groups."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"cls": HelpfulGroup} | settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Callable[..., None]], Any]:
        """Add a function as a command."""
        add = super().command(name, **{"cls": HelpfulCommand} | settings)
        return lambda function: add(_ungroup(function))

    def callback(self, **settings: Any) -> Callable[[Callable[..., None]], Any]:
        """Add a function that runs before a command, or without one."""
        add = super().callback(**settings)
        return lambda function: add(_ungroup(function))


def _ungroup(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the fields of its groups as parameters of its own, as typer reads them.

    A group is a dataclass whose fields are annotated as a command's parameters are, each with a default; where the
    command's parameter has a default, that one's fields are the defaults.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type[Any]] = {}
    parameters: list[inspect.Parameter] = []

    def add(name: str, default: Any, annotation: Any) -> None:
        default_of_parameter = inspect.Parameter.empty if default is MISSING else default
        parameters.append(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default_of_parameter, annotation=annotation)
        )

    for name, parameter in inspect.signature(command).parameters.items():
        kind = hints[name]
        if not is_dataclass(kind):
            add(name, parameter.default, kind)
            continue
        assert isinstance(kind, type)
        groups[name] = kind
        own = get_type_hints(kind, include_extras=True)
        for each in fields(kind):
            own[each.name].__metadata__[0].rich_help_panel = _section(kind, each.name)
            add(each.name, getattr(parameter.default, each.name, each.default), own[each.name])

    @functools.wraps(command)
    def flat(**values: Any) -> None:
        for name, kind in groups.items():
            values[name] = kind(**{each.name: values.pop(each.name) for each in fields(kind)})
        command(**values)

    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    flat.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return flat


def _section(kind: type[Any], name: str) -> str | None:
    """The section of a group's option in help: of the class that declares the option."""
    owner = next(base for base in kind.__mro__ if name in vars(base).get("__annotations__", {}))
    section: str | None = vars(owner).get("SECTION")
    return section
