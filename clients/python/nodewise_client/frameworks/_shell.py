"""Arguments that a shell script passes to a program. Nothing of the script is run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["Arguments", "read_script"]

_ASSIGNMENT: Final = re.compile(r"(?:(?:export|local|readonly|declare)\s+)*([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)
_ARITHMETIC: Final = re.compile(r"\$\(\(([^()]*)\)\)")
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)(?:\[[@*]\])?(?:(:?-|:?=)([^}]*))?\}|(\w+))")
_PRODUCT: Final = re.compile(r"\s*\d+(?:\s*[*/]\s*\d+)*\s*")
_COMPARISON: Final = re.compile(r"\s*(\S+?)\s*(==|!=|<=|>=|<|>)\s*(\S+)\s*")
_HEREDOC: Final = re.compile(r"(?<!<)<<-?\s*['\"]?(\w+)")
_SLURM: Final = re.compile(
    r"^#SBATCH\s+(?:--(nodes|gpus-per-node|gres)[= ]|-(N)\s*)(?:gpu:(?:\w+:)?)?(\d+)", re.MULTILINE
)
_SLURM_VARIABLES: Final = {"nodes": "SLURM_NNODES", "N": "SLURM_NNODES"}
_COMPARED: Final = {"-eq": "==", "-ne": "!=", "-gt": ">", "-ge": ">=", "-lt": "<", "-le": "<=", "=": "=="}
_LONGEST: Final = 1 << 16
"""Characters of a variable. A longer one grows with each of its uses."""
_SILENT: Final = ("then", "else", "elif", "do", "{", "fi", "echo", "printf", "for", "while", "until", "done", "esac")


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a script passes, by names without leading dashes and with dashes for underscores."""

    values: dict[str, Any] = field(default_factory=dict)
    """True for an argument without a value. A variable that the script does not set stays as it is written."""
    undecided: set[str] = field(default_factory=set)
    """Names under conditions that the script alone does not decide."""


def read_script(text: str) -> Arguments:
    """The arguments that a script assigns to variables, and those of its commands, which prevail."""
    script = _Script(text)
    values = _by_name([*script.assigned, *script.commands])
    return Arguments(values, set(_by_name(script.undecided)) - values.keys())


def _by_name(words: list[str]) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    name = ""
    for word in words:
        if word.startswith("--"):
            name, _, value = word[2:].partition("=")
            name = name.replace("_", "-")
            arguments[name] = value or True
        elif name and arguments[name] is True:
            arguments[name] = word
    return arguments


class _Script:
    """The words of a script after its assignments, conditions and the directives of Slurm."""

    def __init__(self, text: str) -> None:
        self.commands: list[str] = []
        self.assigned: list[str] = []
        self.undecided: list[str] = []
        self._variables: dict[str, str] = {}
        self._branches: list[bool | None] = []
        """Of each open condition, whether its present branch is taken; None = not decided."""
        self._rest: list[bool | None] = []
        """Of each open condition, whether no branch up to the present one is taken."""
        for name, short, value in _SLURM.findall(text):
            self._variables[_SLURM_VARIABLES.get(name or short, "SLURM_GPUS_PER_NODE")] = value
        for statement in _statements(text):
            self._read(statement)

    def _read(self, statement: str) -> None:
        first, rest = "then", statement
        while first in ("then", "else", "do", "{") and rest:
            statement = rest
            first, *others = statement.split(maxsplit=1)
            rest = others[0] if others else ""
            if first in ("else", "elif") and self._branches:
                holds = self._holds(rest) if first == "elif" else True
                self._branches[-1] = _all([self._rest[-1], holds])
                self._rest[-1] = _all([self._rest[-1], _not(holds)])
        if first == "if":
            self._branches.append(self._holds(rest))
            self._rest.append(_not(self._branches[-1]))
        elif first == "fi" and self._branches:
            self._branches.pop()
            self._rest.pop()
        elif first not in _SILENT and False not in self._branches:
            self._take(statement, decided=None not in self._branches)

    def _take(self, statement: str, *, decided: bool) -> None:
        match = _ASSIGNMENT.fullmatch(statement)
        if match is None:
            words = [part for word in _words(statement) for part in self._substitute(word).split()]
            (self.commands if decided else self.undecided).extend(words)
            return
        name, added, text = match.groups()
        words = _words(text.strip()[1:-1] if text.strip().startswith("(") else text)
        value = " ".join(self._substitute(word) for word in words)
        before = self._variables.get(name, "")
        if added:
            value = f"{before} {value}"
        if decided:
            is_output = ("`" in value or "$(" in value) and "--" not in value
            if is_output or len(value) > _LONGEST:
                self._variables.pop(name, None)
            else:
                self._variables[name] = value
            self.assigned += value.split() if "--" in value else []
            if len(words) > 1 and not text.lstrip().startswith(("(", '"', "'")):  # a command after an assignment
                self.commands += value.split()
            return
        self.undecided += value.split() if "--" in value else []
        if not before or before not in value:
            self._variables.pop(name, None)

    def _substitute(self, text: str) -> str:
        """The text with the variables that are set before it, and products of numbers computed."""

        def value(match: re.Match[str]) -> str:
            return self._variables.get(match[1] or match[4], match[3] if match[3] is not None else match[0])

        def product(match: re.Match[str]) -> str:
            expression = re.sub(r"\b[A-Za-z_]\w*", lambda word: self._variables.get(word[0], word[0]), match[1])
            if not _PRODUCT.fullmatch(expression):
                return match[0]
            result = 1
            for sign, number in re.findall(r"([*/]?)\s*(\d+)", expression):
                result = result // max(int(number), 1) if sign == "/" else result * int(number)
            return str(result)

        return _ARITHMETIC.sub(product, _VARIABLE.sub(value, text))

    def _holds(self, condition: str) -> bool | None:
        """Whether a condition holds; None = the script does not decide it."""
        if "||" in condition:
            return _not(_all([_not(self._holds(part)) for part in condition.split("||")]))
        if "&&" in condition:
            return _all([self._holds(part) for part in condition.split("&&")])
        condition = condition.strip()
        negations = re.match(r"(?:!\s+)*", condition)
        if negations is not None and negations[0]:
            holds = self._holds(condition[negations.end() :])
            return _not(holds) if negations[0].count("!") % 2 else holds
        match = re.fullmatch(r"\(\((.*)\)\)|\[\[\s(.*)\s\]\]|\[\s(.*)\s\]|test\s(.*)", condition, re.DOTALL)
        if match is None:
            return None
        if match[1] is not None:
            compared = _COMPARISON.fullmatch(match[1])
            sides = [self._variables.get(side, side) for side in compared.group(1, 3)] if compared else []
            return _compare(self._substitute(sides[0]), compared[2], self._substitute(sides[1])) if compared else None
        return self._tests(_words(match[2] or match[3] or match[4]))

    def _tests(self, words: list[str]) -> bool | None:
        if words[:1] == ["!"]:
            return _not(self._tests(words[1:])) if words[1:2] != ["!"] else None
        if len(words) == 2 and words[0] in ("-z", "-n"):
            text = self._substitute(words[1])
            if re.search(r"\$\{?\d|\$\(|`", text):
                return None
            return (not text or text.startswith("$")) == (words[0] == "-z")  # what the environment may set is empty
        if len(words) == 3:
            return _compare(self._substitute(words[0]), _COMPARED.get(words[1], words[1]), self._substitute(words[2]))
        return None


def _not(holds: bool | None) -> bool | None:  # noqa: FBT001 - a condition with three values
    return None if holds is None else not holds


def _all(conditions: list[bool | None]) -> bool | None:
    return False if False in conditions else None if None in conditions else True


def _compare(left: str, sign: str, right: str) -> bool | None:
    if "$" in left + right or "`" in left + right:
        return None
    if sign in ("==", "!="):
        return (left == right) == (sign == "==")
    try:
        a, b = int(left), int(right)
    except ValueError:
        return None
    return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}.get(sign)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError:  # a quotation mark that nothing closes
        return text.replace('"', " ").replace("'", " ").split()


def _statements(text: str) -> Iterator[str]:
    """Statements without comments and without the bodies of `case`. What is quoted or in brackets is one statement."""
    in_case = 0
    for piece in _split(_without_heredocs(text)):
        statement = piece.replace("\\\n", " ").strip()
        in_case += statement.startswith("case ")
        if statement and not in_case:
            yield statement
        in_case -= bool(in_case and statement == "esac")


def _without_heredocs(text: str) -> str:
    lines, end = [], ""
    for line in text.splitlines():
        if end:
            end = "" if line.strip() == end else end
            continue
        match = None if line.lstrip().startswith("#") else _HEREDOC.search(line)
        end = match[1] if match else ""
        lines.append(line)
    return "\n".join(lines)


def _split(text: str) -> Iterator[str]:
    quote, depth, start, position = "", 0, 0, 0
    pieces: list[str] = []
    while position < len(text):
        sign = text[position]
        if quote:
            position += sign == "\\" and quote == '"'
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign == "\\":
            position += 1
        elif sign == "#" and (position == 0 or text[position - 1] in " \t\n;("):
            pieces.append(text[start:position])
            while position < len(text) and text[position] != "\n":
                position += 1
            start = position
            continue
        elif sign in "()":
            depth = max(depth + (1 if sign == "(" else -1), 0)
        elif sign in "\n;" and not depth:
            yield "".join((*pieces, text[start:position]))
            pieces, start = [], position + 1
        position += 1
    yield "".join((*pieces, text[start:]))
