"""Write the contract's messages as plain Python values, and its facts about columns, from the compiled descriptors.

`tools/generate_stubs.py` runs this; the result is committed as `nodewise_values` beside the stubs.
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

PACKAGE = "nodewise_values"
OPTIONS_FILE = "nodewise/v1/facts.proto"
OPTIONS = "nodewise.v1.facts"
WIDTH = 120
TIMESTAMP = ".google.protobuf.Timestamp"
# Fields of these numbers in the descriptors of a file, a message and an enum: they make the paths of comments.
MESSAGES, ENUMS, FIELDS, VALUES = 4, 5, 2, 2

Comments = dict[tuple[int, ...], str]

_SCALARS = {
    "TYPE_DOUBLE": ("float", "0.0"),
    "TYPE_FLOAT": ("float", "0.0"),
    "TYPE_BOOL": ("bool", "False"),
    "TYPE_STRING": ("str", '""'),
    "TYPE_BYTES": ("bytes", 'b""'),
}
_WHOLE = ("int", "0")


def generated_values(descriptor_set: bytes) -> dict[str, str]:
    """Return the generated modules by their names, from a set of files that holds all imports and all comments."""
    files = descriptor_pb2.FileDescriptorSet.FromString(descriptor_set)
    _know_options(files)
    # Read a second time, now that the options are known.
    files = descriptor_pb2.FileDescriptorSet.FromString(descriptor_set)
    # Plugins and hosts speak nodewise.plugin; callers never meet its messages.
    ours = [file for file in files.file if file.package.startswith("nodewise.v") and file.name != OPTIONS_FILE]
    homes = {f".{file.package}.{name}": file for file in ours for name in _names(file)}
    lazy = _lazy(ours)
    written = {_path(file): _module(file, homes, lazy) for file in ours if _names(file)}
    for package in sorted({file.package for file in ours}):
        version = package.removeprefix("nodewise.")
        text = f'"""Values of {package}, one module a file of the contract."""\n'
        written[f"{PACKAGE}/{version}/__init__.py"] = text
    written[f"{PACKAGE}/__init__.py"] = _index(homes)
    written[f"{PACKAGE}/facts.py"] = _facts(ours)
    return written


def _know_options(files: descriptor_pb2.FileDescriptorSet) -> None:
    """Make the facts readable in the options of fields."""
    pool = descriptor_pool.Default()
    for file in files.file:
        if file.name == OPTIONS_FILE:
            pool.Add(file)


def _names(file: FileDescriptorProto) -> list[str]:
    """Names of the file's enums and messages."""
    return [enum.name for enum in file.enum_type] + [message.name for message in file.message_type]


def _path(file: FileDescriptorProto) -> str:
    return f"{PACKAGE}/{file.name.removeprefix('nodewise/').removesuffix('.proto')}.py"


def _module_name(file: FileDescriptorProto) -> str:
    return _path(file).removesuffix(".py").replace("/", ".")


def _comments(file: FileDescriptorProto) -> Comments:
    """Leading comments by the paths of what they describe; () = the file's."""
    found = {tuple(at.path): " ".join(at.leading_comments.split()) for at in file.source_code_info.location}
    syntax = next((at for at in file.source_code_info.location if tuple(at.path) == (12,)), None)
    if syntax is not None:
        found[()] = " ".join(" ".join((*syntax.leading_detached_comments, syntax.leading_comments)).split())
    return found


# --- modules


def _lazy(files: Sequence[FileDescriptorProto]) -> frozenset[str]:
    """Names of messages that answers hold once and that are tables: their values are made where they are read.

    Not of others: whoever keeps such a value keeps the whole answer that it is read from.
    """
    messages = {f".{file.package}.{message.name}": message for file in files for message in file.message_type}
    reached: set[str] = set()
    waiting = [name for name in messages if name.endswith("Response")]
    while waiting:
        name = waiting.pop()
        if name not in reached and name in messages:
            reached.add(name)
            waiting += [field.type_name for field in messages[name].field if not _is_repeated(field)]
    return frozenset(name for name in reached if _is_table(messages[name]))


def _is_table(message: DescriptorProto) -> bool:
    """Whether most of it is columns of numbers."""
    return 2 * sum(map(_is_column, message.field)) > len(message.field)


def _is_repeated(field: FieldDescriptorProto) -> bool:
    return field.label == FieldDescriptorProto.LABEL_REPEATED


def _is_column(field: FieldDescriptorProto) -> bool:
    """Whether it holds many numbers."""
    texts = (FieldDescriptorProto.TYPE_STRING, FieldDescriptorProto.TYPE_BYTES, FieldDescriptorProto.TYPE_MESSAGE)
    return _is_repeated(field) and field.type not in texts


def _module(file: FileDescriptorProto, homes: dict[str, FileDescriptorProto], lazy: frozenset[str]) -> str:
    comments = _comments(file)
    enums = [_enum(enum, comments, (ENUMS, number)) for number, enum in enumerate(file.enum_type)]
    bases = ["LazyValue" if f".{file.package}.{message.name}" in lazy else "Value" for message in file.message_type]
    messages = [
        _message(message, base, comments, (MESSAGES, number))
        for number, (message, base) in enumerate(zip(file.message_type, bases, strict=True))
    ]
    body = "\n\n\n".join((*enums, *messages))
    names = sorted(_names(file))
    head = [_docstring(f"{comments.get((), file.name)}", ""), "", "from __future__ import annotations", ""]
    standard = []
    mapped = any(_is_map(field, message) for message in file.message_type for field in message.field)
    if mapped:
        standard.append("from collections.abc import Mapping")
    if file.message_type:
        standard.append(f"from dataclasses import dataclass{', field' if mapped else ''}")
    if any(field.type_name == TIMESTAMP for message in file.message_type for field in message.field):
        standard.append("from datetime import datetime")
    own = _imports(file, homes)
    base = sorted({*bases, *(["Word"] if file.enum_type else [])})
    own.append(f"from {PACKAGE}.value import {', '.join(base)}")
    head += [*standard, *([""] if standard else []), *sorted(own), "", "__all__ = ["]
    head += [f'    "{name}",' for name in names]
    head += ["]", "", "", ""]
    return "\n".join(head) + body + "\n"


def _imports(file: FileDescriptorProto, homes: dict[str, FileDescriptorProto]) -> list[str]:
    wanted: dict[str, set[str]] = {}
    for message in file.message_type:
        for field in message.field:
            home = homes.get(field.type_name)
            if home is not None and home is not file:
                wanted.setdefault(_module_name(home), set()).add(field.type_name.rpartition(".")[2])
    found = []
    for module, names in wanted.items():
        line = f"from {module} import {', '.join(sorted(names, key=str.lower))}"
        if len(line) > WIDTH:
            line = (
                f"from {module} import (\n" + "".join(f"    {name},\n" for name in sorted(names, key=str.lower)) + ")"
            )
        found.append(line)
    return found


def _enum(enum: EnumDescriptorProto, comments: Comments, path: tuple[int, ...]) -> str:
    prefix = _screaming(enum.name) + "_"
    lines = [f"class {enum.name}(Word):", _docstring(comments.get(path, ""), "    "), ""]
    for number, value in enumerate(enum.value):
        if value.number == 0:
            continue  # unspecified: None in fields
        word = value.name.removeprefix(prefix)
        lines.append(f'    {word} = "{word.lower()}"')
        lines.append(_docstring(comments.get((*path, VALUES, number), ""), "    "))
    return "\n".join(lines)


def _message(message: DescriptorProto, base: str, comments: Comments, path: tuple[int, ...]) -> str:
    lines = ["@dataclass(frozen=True, slots=True, kw_only=True, repr=False)", f"class {message.name}({base}):"]
    lines.append(_docstring(comments.get(path, ""), "    "))
    if message.field:
        lines.append("")
    for number, field in enumerate(message.field):
        kind, default = _annotation(field, message)
        lines.append(f"    {field.name}: {kind} = {default}")
        lines.append(_docstring(comments.get((*path, FIELDS, number), ""), "    "))
    return "\n".join(lines)


def _annotation(field: FieldDescriptorProto, message: DescriptorProto) -> tuple[str, str]:
    """The field's type and default."""
    entry = _is_map(field, message)
    if entry is not None:
        key, value = (_single(each)[0] for each in entry.field)
        return f"Mapping[{key}, {value}]", "field(default_factory=dict)"
    kind, default = _single(field)
    if _is_repeated(field):
        optional = " | None" if field.type == FieldDescriptorProto.TYPE_ENUM else ""
        return f"tuple[{kind}{optional}, ...]", "()"
    if default is None or field.HasField("oneof_index"):
        return f"{kind} | None", "None"
    return kind, default


def _single(field: FieldDescriptorProto) -> tuple[str, str | None]:
    """Type of one value, and the default of a field without presence; None = it has presence or is an enum."""
    if field.type_name == TIMESTAMP:
        return "datetime", None
    if field.type_name:
        if not field.type_name.startswith(".nodewise."):
            raise SystemExit(f"{field.name}: messages of others have no values, and {field.type_name} is one")
        return field.type_name.rpartition(".")[2], None
    return _SCALARS.get(FieldDescriptorProto.Type.Name(field.type), _WHOLE)


def _is_map(field: FieldDescriptorProto, message: DescriptorProto) -> DescriptorProto | None:
    """The entry's message of a map's field."""
    nested = {each.name: each for each in message.nested_type if each.options.map_entry}
    return nested.get(field.type_name.rpartition(".")[2]) if field.type_name else None


def _screaming(name: str) -> str:
    return "".join("_" + letter if letter.isupper() and place else letter for place, letter in enumerate(name)).upper()


# --- index and facts


def _index(homes: dict[str, FileDescriptorProto]) -> str:
    names = {name.rpartition(".")[2]: _module_name(file) for name, file in homes.items()}
    if len(names) < len(homes):
        raise SystemExit("two messages of the contract share a name: nodewise_values could not hold both")
    by_module: dict[str, list[str]] = {}
    for name, module in sorted(names.items()):
        by_module.setdefault(module, []).append(name)
    lines = [
        '"""The contract as plain, frozen Python values; `nodewise_values.wire` maps them to messages and to JSON."""',
        "",
        "from importlib import import_module",
        "from typing import TYPE_CHECKING, Any, Final",
        "",
        "if TYPE_CHECKING:",
    ]
    for module, members in sorted(by_module.items()):
        lines += [
            f"    from {module} import (",
            *(f"        {name}," for name in sorted(members, key=str.lower)),
            "    )",
        ]
    lines += ["", "__all__ = ["]
    lines += [f'    "{name}",' for name in sorted(names)]
    lines += ["]", "", "_HOMES: Final = {"]
    lines += [f'    "{name}": "{module}",' for name, module in sorted(names.items())]
    lines += [
        "}",
        "",
        "",
        "def __getattr__(name: str) -> Any:",
        '    """Import a value\'s module when it is first asked for: a command needs few of them."""',
        "    home = _HOMES.get(name)",
        "    if home is None:",
        '        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")',
        "    value = globals()[name] = getattr(import_module(home), name)",
        "    return value",
        "",
    ]
    return "\n".join(lines)


def _stated(files: Sequence[FileDescriptorProto]) -> dict[str, tuple[FieldDescriptorProto, Any]]:
    """Fields with facts and the facts, by message and field, with those that are another field's as well filled in."""
    extension: Any = descriptor_pool.Default().FindExtensionByName(OPTIONS)
    message_factory.GetMessageClass(extension.message_type)
    found: dict[str, tuple[FieldDescriptorProto, Any]] = {
        f"{message.name}.{field.name}": (field, field.options.Extensions[extension])
        for file in files
        for message in file.message_type
        for field in message.field
        if field.options.HasExtension(extension)
    }
    for name, (_, facts) in found.items():
        if facts.same_as:
            if facts.same_as not in found:
                raise SystemExit(f"{name}: facts are those of {facts.same_as}, which states none")
            own = type(facts).FromString(facts.SerializeToString())
            facts.CopyFrom(found[facts.same_as][1])
            facts.MergeFrom(own)
    return found


def _arguments(field: FieldDescriptorProto, facts: Any, enums: Mapping[str, Sequence[int]]) -> str:
    """Arguments of a field's fact, as source."""
    kind = "enum" if field.type == FieldDescriptorProto.TYPE_ENUM else _single(field)[0]
    arguments = {
        "field": field.name,
        "row": facts.row_name or field.name,
        "csv": facts.csv_name or None,
        "kind": kind,
        "unit": facts.unit,
    }
    if facts.whole:
        arguments["whole"] = True
    whole = facts.whole or kind in ("int", "bool")
    for name in ("default_value", "minimum", "maximum"):
        if facts.HasField(name):
            arguments[name.removesuffix("_value")] = (int if whole else float)(getattr(facts, name))
    if kind in ("bool", "enum"):
        numbers = enums.get(field.type_name, range(2))
        arguments |= {"default": 0, "minimum": 0, "maximum": max(numbers)}
    for name in ("exclusive_minimum", "required"):
        if getattr(facts, name):
            arguments[name] = True
    if facts.HasField("maximum_length"):
        arguments["maximum_length"] = facts.maximum_length
    return "".join(f"        {name}={_literal(value)},\n" for name, value in arguments.items())


def _literal(value: object) -> str:
    # Without the plus of exponents, as the formatter writes them.
    return f'"{value}"' if isinstance(value, str) else repr(value).replace("e+", "e")


def _facts(files: Sequence[FileDescriptorProto]) -> str:
    lines = [
        '"""Facts about columns and other fields, as the contract states them on the fields themselves."""',
        "",
        "from __future__ import annotations",
        "",
        "from collections.abc import Mapping",
        "from types import MappingProxyType",
        "from typing import Final",
        "",
        f"from {PACKAGE}.fact import Fact, by_field",
        "",
    ]
    tables = list(_tables(files))
    names = sorted(["BY_MESSAGE", *(name for name, _, _ in tables)])
    lines += ["__all__ = [", *(f'    "{name}",' for name in names), '    "Fact",', "]", ""]
    for _, _, table in tables:
        lines += [table, ""]
    lines += ["BY_MESSAGE: Final[Mapping[str, Mapping[str, Fact]]] = MappingProxyType(", "    {"]
    lines += [f'        "{message}": {name},' for name, message, _ in tables]
    lines += ["    }", ")", '"""All of them by the full names of their messages."""', ""]
    return "\n".join(lines[:-1]) + "\n"


def _tables(files: Sequence[FileDescriptorProto]) -> Iterator[tuple[str, str, str]]:
    """Name, message and source of each table."""
    enums = {
        f".{file.package}.{enum.name}": [value.number for value in enum.value]
        for file in files
        for enum in file.enum_type
    }
    stated = _stated(files)
    for file in files:
        comments = _comments(file)
        for place, message in enumerate(file.message_type):
            entries = []
            for number, field in enumerate(message.field):
                if f"{message.name}.{field.name}" in stated:
                    arguments = _arguments(*stated[f"{message.name}.{field.name}"], enums)
                    meaning = _meaning(comments.get((MESSAGES, place, FIELDS, number), ""))
                    entries.append(f"    Fact(\n{arguments}{meaning}    ),\n")
            if not entries:
                continue
            name = _screaming(message.name)
            table = f"{name}: Final[Mapping[str, Fact]] = by_field(\n{''.join(entries)})\n"
            yield name, f"{file.package}.{message.name}", table + f'"""Of {message.name}, by field."""'


def _meaning(text: str) -> str:
    """The argument `meaning`, in pieces that fit the width."""
    whole = _quoted(text)
    if len(whole) + len("        meaning=,") <= WIDTH:
        return f"        meaning={whole},\n"
    if len(whole) + 12 <= WIDTH:
        pieces = [text]
    else:
        lines = textwrap.wrap(text, WIDTH - 12 - len('"" '), break_on_hyphens=False)
        pieces = [f"{line} " for line in lines[:-1]] + lines[-1:]
    return "        meaning=(\n" + "".join(f"            {_quoted(piece)}\n" for piece in pieces) + "        ),\n"


def _quoted(text: str) -> str:
    """A literal as the formatter writes it: in single quotes where those need fewer escapes."""
    text = text.replace("\\", "\\\\")
    quote = "'" if text.count('"') > text.count("'") else '"'
    return quote + text.replace(quote, "\\" + quote) + quote


def _docstring(text: str, indent: str) -> str:
    """A comment as a docstring: its first sentence as summary where that fits one line."""
    text = text.replace("\\", "\\\\")
    if len(indent) + len(text) + 6 <= WIDTH:
        pad = " " if text.endswith('"') else ""
        return f'{indent}"""{text}{pad}"""'
    summary, rest = _summary(text, WIDTH - len(indent) - 3)
    lines = textwrap.wrap(rest, WIDTH - len(indent), break_on_hyphens=False)
    return "\n".join((f'{indent}"""{summary}', "", *(f"{indent}{line}" for line in lines), f'{indent}"""'))


def _summary(text: str, width: int) -> tuple[str, str]:
    """The first sentence, or, where it is too long for one line, its part up to a mark, and what follows."""
    best = 0
    for mark in (". ", ": ", "; ", ", "):
        place = text.find(mark)
        while place != -1 and place + 1 <= width:
            if mark == ". " and text[place - 3 : place] in ("e.g", "i.e"):
                place = text.find(mark, place + 1)
                continue
            best = place + 1
            break
        if best:
            break
    if not best:
        best = text.rfind(" ", 0, width)
    head = text[:best].rstrip(" ,;:")
    return (head if head.endswith(".") else f"{head}."), text[best:].strip() if head.endswith(".") else text
