"""Help of commands: sections, and values by what they are instead of by types of Python."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from typer.core import TyperCommand, TyperGroup

__all__ = ["HelpfulCommand", "HelpfulGroup"]

_VALUES: Final = {"str": "NAME", "int": "COUNT", "float": "NUMBER", "path": "FILE"}
"""What a value is called whose option names none, by typer's word for its type."""
_TYPE: Final = re.compile(r" <(?:list\[)?(\w+)( range)?\]?>$")
_CHOICES: Final = re.compile(r" <([^<>]*)>$")
_RANGE: Final = re.compile(r"(?:(?P<least>-?[\d.]+)<=)?\bx(?:>=(?P<from>-?[\d.]+))?(?:<=(?P<most>-?[\d.]+))?")
_PLACES: Final = {"Arguments": 0, "Options": 1, "Server and output": 3}
_BETWEEN: Final = 2
_ENOUGH: Final = 10_000
"""Characters of a summary: all of them."""


class HelpfulCommand(TyperCommand):
    """A command whose help has its options in sections."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options."""
        _write_sections(_parameters(self, ctx), formatter)


class HelpfulGroup(TyperGroup):
    """Commands whose help has options and commands in sections, with whole summaries."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write options, then commands."""
        _write_sections(_parameters(self, ctx), formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the name and the summary of each command."""
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        _write_sections(
            (
                (getattr(command, "rich_help_panel", None) or "Commands", (name, command.get_short_help_str(_ENOUGH)))
                for name, command in commands
                if command is not None and not command.hidden
            ),
            formatter,
        )


def _parameters(command: Any, ctx: Any) -> Iterator[tuple[str, tuple[str, str]]]:
    """Arguments and options: of each its section, then its name and its text."""
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is None:
            continue
        is_argument = parameter.param_type_name == "argument"
        section = "Arguments" if is_argument else getattr(parameter, "rich_help_panel", None) or "Options"
        yield section, (_in_words(record[0], is_argument), _RANGE.sub(_range_in_words, record[1]))


def _in_words(name: str, is_argument: bool) -> str:
    """A parameter's name with what its value is; arguments are named by it already."""
    replaced = _TYPE.sub(lambda match: "" if is_argument else f" {_VALUES.get(match[1], 'VALUE')}", name)
    return _CHOICES.sub(r" \1", replaced)


def _range_in_words(match: re.Match[str]) -> str:
    least, most = (f"{float(text):,.12g}" if text else "" for text in (match["least"] or match["from"], match["most"]))
    if least and most:
        return f"{least} to {most}"
    return f"at least {least}" if least else f"at most {most}" if most else match[0]


def _write_sections(entries: Iterable[tuple[str, tuple[str, str]]], formatter: Any) -> None:
    """Write entries by their sections: arguments, options, sections of their own, and those that most commands have."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for section, record in entries:
        sections.setdefault(section, []).append(record)
    for section, records in sorted(sections.items(), key=lambda entry: _PLACES.get(entry[0], _BETWEEN)):
        with formatter.section(section):
            formatter.write_dl(records)
