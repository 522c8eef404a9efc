"""JSON files of messages of the contract: a profile, a request for a schedule or a plan.

Two things stand for what they name, with paths relative to the file: a profile ``{"table": FILE, "job": NAME}`` is the
job of a measurements table, and a workload may name the files of a model (``model_files.with_model``).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

from nodewise_cli.failures import InputError, text_of
from nodewise_cli.inputs.foreign_files import refuse_foreign, refuse_model
from nodewise_cli.inputs.model_files import with_model, workload_of_model
from nodewise_cli.inputs.table_content import profile_content
from nodewise_cli.inputs.tables import Table, read_table
from nodewise_client import ProfileContent, ProfileSource
from nodewise_values.value import Value
from nodewise_values.wire import InvalidValueError, from_json, to_json

__all__ = ["DocumentReader", "holds_json", "read_document", "read_profile", "read_value"]

ValueT = TypeVar("ValueT", bound=Value)
HEAD_BYTES: Final = 4096
_TOO_DEEP: Final = "is not a request: it is nested too deeply"


def read_profile(path: Path, sequence_length: int | None = None) -> ProfileContent:
    """A profile: protobuf's JSON of `nodewise.v1.ProfileContent`, or the `config.json` of a Hugging Face model.

    ``sequence_length`` is of a `config.json` alone: tokens per sample.

    Raises
    ------
    InputError
        Naming the file, the place and what would be right.
    """
    document = read_document(path)
    if "model_type" in document:  # no field of ours
        return ProfileContent(workload=workload_of_model(path, document, sequence_length))
    if sequence_length is not None:
        raise InputError(f"--sequence-length: needs the config.json of a model, but {path} is a profile")
    return DocumentReader(path).value(document, ProfileContent)


def read_value(path: Path, kind: type[ValueT]) -> ValueT:
    """A message of the contract from a file that holds protobuf's JSON of it.

    Raises
    ------
    InputError
        Naming the file, the place and what would be right.
    """
    document = read_document(path)
    if "model_type" in document:
        refuse_model(path)
    return DocumentReader(path).value(document, kind)


class DocumentReader:
    """Reads messages out of one document; tables that it names are read once."""

    def __init__(self, path: Path) -> None:
        self._path: Final = path
        self._tables: Final[dict[Path, Table]] = {}

    def value(self, document: dict[str, Any], kind: type[ValueT], place: str = "") -> ValueT:
        """A message; ``place`` is its own within the document.

        Raises
        ------
        InputError
            Naming the file, the place and what would be right.
        """
        where = f"{self._path}: {place}" if place else str(self._path)
        try:
            return from_json(self._resolve(document, place), kind)
        except InvalidValueError as error:
            raise InputError(f"{where}: {error}") from None
        except RecursionError:
            raise InputError(f"{where}: {_TOO_DEEP}") from None

    def source(self, document: dict[str, Any], place: str) -> ProfileSource:
        """A profile that must be stated.

        Raises
        ------
        InputError
            Naming the file, the place and what would be right.
        """
        source = self.value(document, ProfileSource, place)
        if source.content is None and not source.profile_id:
            right = '{"profileId": NAME}, {"content": {...}} or {"table": FILE, "job": NAME}'
            raise InputError(f"{self._path}: {place}: must be {right}, found {json.dumps(document)}")
        return source

    def _resolve(self, value: Any, place: str) -> Any:
        """The document with the content of its files instead of their names."""
        if isinstance(value, list):
            return [self._resolve(each, f"{place}[{number}]") for number, each in enumerate(value)]
        if not isinstance(value, dict):
            return value
        last = place.rpartition(".")[2]
        if last == "profile" and "table" in value:
            return {"content": self._from_table(value, place)}
        if last == "workload":
            value = with_model(self._path, value)
        return {name: self._resolve(each, f"{place}.{name}" if place else name) for name, each in value.items()}

    def _from_table(self, reference: dict[str, Any], place: str) -> dict[str, Any]:
        where = f"{self._path}: {place}"
        if set(reference) - {"table", "job"} or not all(isinstance(value, str) for value in reference.values()):
            raise InputError(f'{where}: must be {{"table": FILE, "job": NAME}}, found {json.dumps(reference)}')
        file = self._path.parent / reference["table"]
        table = self._tables.get(file) or self._tables.setdefault(file, read_table(file))
        job = reference.get("job")
        if job is None or job not in table.rows_by_job:
            job_names = ", ".join(table.jobs)
            raise InputError(
                f"{where}.job: must be a job of {reference['table']} ({job_names}), found {json.dumps(job)}"
            )
        return to_json(profile_content(table, job))


def read_document(path: Path) -> dict[str, Any]:
    """A JSON object from a file; no key of it is there twice.

    Raises
    ------
    InputError
        Naming the file, the line and what would be right.
    """
    text = text_of(path, "JSON")
    try:
        document = json.loads(text, parse_constant=_no_number, object_pairs_hook=_no_twins)
    except json.JSONDecodeError as error:
        refuse_foreign(path, text)
        raise InputError(f"{path}:{error.lineno}: is not valid JSON: {error.msg} (column {error.colno})") from None
    except RecursionError:
        raise InputError(f"{path}: {_TOO_DEEP}") from None
    except ValueError as error:
        raise InputError(f"{path}: is not valid JSON: {error}") from None
    if not isinstance(document, dict):
        raise InputError(f"{path}: must hold a JSON object, found {type(document).__name__}")
    if "model_type" not in document:
        refuse_foreign(path, text, document.keys())
    return document


def holds_json(path: Path) -> bool:
    """Whether a file is a JSON object, by its name or by its first character."""
    suffix = path.suffix.lower()
    if suffix in {".json", ".csv"}:
        return suffix == ".json"
    try:
        with path.open("rb") as file:
            return file.read(HEAD_BYTES).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")
    except OSError:
        return False  # the reader of the file reports the error


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number")


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise ValueError(f"{name!r} occurs twice in one object")
        values[name] = value
    return values
