"""JSON files that hold a message of the service: a profile, a request for a schedule or a plan."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

from nodewise_cli.failures import InputError, unreadable
from nodewise_cli.inputs.model_files import is_model, with_model, workload_of_model
from nodewise_cli.inputs.table_content import profile_content
from nodewise_cli.inputs.tables import Table, read_table
from nodewise_client import PlanConstraints, PlanPool, PlanRequest, ProfileContent, ProfileSource, ScheduleRequest
from nodewise_values.value import Value
from nodewise_values.wire import InvalidValueError, from_json, to_json

__all__ = ["profile_source", "read_document", "read_plan_request", "read_profile", "read_schedule_request"]

ValueT = TypeVar("ValueT", bound=Value)
_CAPITAL: Final = re.compile(r"(?=[A-Z])")


def read_profile(path: Path, sequence_length: int | None = None) -> ProfileContent:
    """A profile: protobuf's JSON of `nodewise.v1.ProfileContent`, or the `config.json` of a Hugging Face model.

    Its workload may name files in the place of what they hold (``model_files.with_model``). ``sequence_length`` is of a
    `config.json` alone: tokens per sample.

    Raises
    ------
    InputError
        Naming the file, the place and what would be right.
    """
    document = read_document(path)
    if is_model(document):
        return ProfileContent(workload=workload_of_model(path, document, sequence_length))
    if sequence_length is not None:
        raise InputError(f"--sequence-length: must come with the config.json of a model, {path} is a profile")
    return _parsed(path, _with_files(path, document), ProfileContent)


def _with_files(path: Path, document: dict[str, Any]) -> dict[str, Any]:
    workload = document.get("workload")
    return {**document, "workload": with_model(path, workload)} if isinstance(workload, dict) else document


def read_schedule_request(path: Path) -> ScheduleRequest:
    """A request: protobuf's JSON of `nodewise.v1.ScheduleRequest`.

    A job's profile may also be ``{"table": FILE, "job": NAME}``: the job of a measurements table, its path relative to
    the request's.

    Raises
    ------
    InputError
        Naming the file, the place and what would be right.
    """
    document = read_document(path)
    jobs = document.get("jobs", [])
    tables: dict[Path, Table] = {}
    for index, job in enumerate(jobs if isinstance(jobs, list) else []):
        profile = job.get("profile") if isinstance(job, dict) else None
        if isinstance(profile, dict) and "table" in profile:
            job["profile"] = {"inline": _from_table(path, f"jobs[{index}].profile", profile, tables)}
        elif isinstance(profile, dict) and isinstance(profile.get("inline"), dict):
            profile["inline"] = _with_files(path, profile["inline"])
    return _parsed(path, document, ScheduleRequest)


def profile_source(path: Path, field: str, given: dict[str, Any], tables: dict[Path, Table]) -> ProfileSource:
    """A profile as documents give it: a stored one's name, the profile itself, or a job of a measurements table.

    Parameters
    ----------
    path, field : Path, str
        The document and the place in it; a table's path is relative to the document's.
    tables : dict
        Tables that were read already.

    Raises
    ------
    InputError
        Naming the file, the place and what would be right.
    """
    if "table" in given:
        given = {"inline": _from_table(path, field, given, tables)}
    elif isinstance(given.get("inline"), dict):
        given = {"inline": _with_files(path, given["inline"])}
    try:
        source = from_json(given, ProfileSource)
    except InvalidValueError as error:
        raise InputError(f"{path}: {field}: is no profile: {error}") from None
    if source.inline is None and not source.profile_id:
        right = '{"profileId": NAME}, {"inline": {...}} or {"table": FILE, "job": NAME}'
        raise InputError(f"{path}: {field}: must be {right}, found {json.dumps(given)}")
    return source


def read_plan_request(path: Path) -> PlanRequest:
    """A request: protobuf's JSON of `nodewise.v1.PlanRequest`.

    Its profile may also be ``{"table": FILE, "job": NAME}``, and an inline workload may name a model's files, as in a
    schedule's request.

    Raises
    ------
    InputError
        Naming the file, the place and what would be right.
    """
    document = read_document(path)
    profile = document.get("profile")
    if isinstance(profile, dict) and "table" in profile:
        document["profile"] = {"inline": _from_table(path, "profile", profile, {})}
    elif isinstance(profile, dict) and isinstance(profile.get("inline"), dict):
        profile["inline"] = _with_files(path, profile["inline"])
    constraints = document.get("constraints")
    if isinstance(constraints, dict):
        _require_counts(path, "constraints", constraints, PlanConstraints)
        pools = constraints.get("pools")
        for number, pool in enumerate(pools if isinstance(pools, list) else []):
            if isinstance(pool, dict):
                _require_counts(path, f"constraints.pools[{number}]", pool, PlanPool)
    return _parsed(path, document, PlanRequest)


def _require_counts(path: Path, place: str, given: dict[str, Any], kind: type[Value]) -> None:
    """Refuse sets of counts that are written as a list or a number, and say how they are written."""
    sets = {each.name for each in fields(kind) if "CountSet" in str(each.type)}  # type: ignore[arg-type]  # a dataclass
    for name, value in given.items():
        if _CAPITAL.sub("_", name).lower() in sets and value is not None and not isinstance(value, dict):
            right = '{"values": [1, 2]} or {"ranges": [{"first": 1, "last": 8}]}'
            raise InputError(f"{path}: {place}.{name}: must be like {right}, found {json.dumps(value)}")


def _from_table(path: Path, field: str, given: dict[str, Any], tables: dict[Path, Table]) -> dict[str, Any]:
    unknown = sorted(set(given) - {"table", "job"})
    if unknown or not all(isinstance(value, str) for value in given.values()):
        raise InputError(f'{path}: {field}: must be {{"table": FILE, "job": NAME}}, found {json.dumps(given)}')
    file = path.parent / given["table"]
    if file not in tables:
        tables[file] = read_table(file)
    table = tables[file]
    job = given.get("job")
    if not isinstance(job, str) or job not in table.rows_by_job:
        known = ", ".join(table.jobs)
        raise InputError(f"{path}: {field}.job: must be a job of {given['table']} ({known}), found {json.dumps(job)}")
    return to_json(profile_content(table, job))


def read_document(path: Path) -> dict[str, Any]:
    """A JSON object from a file; no key of it is there twice.

    Raises
    ------
    InputError
        Naming the file, the line and what would be right.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise unreadable(path, error) from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is no JSON: byte {error.start} is no UTF-8") from None
    try:
        document = json.loads(text, parse_constant=_no_number, object_pairs_hook=_no_twins)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: is no JSON: {error.msg} (column {error.colno})") from None
    except RecursionError:
        raise InputError(f"{path}: is no request: it is nested too deeply") from None
    except ValueError as error:
        raise InputError(f"{path}: is no JSON: {error}") from None
    if not isinstance(document, dict):
        raise InputError(f"{path}: must hold a JSON object, found {type(document).__name__}")
    return document


def _parsed(path: Path, document: dict[str, Any], kind: type[ValueT]) -> ValueT:
    try:
        return from_json(document, kind)
    except InvalidValueError as error:
        raise InputError(f"{path}: is no nodewise.v1.{kind.__name__}: {error}") from None


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twin = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twin!r} is there twice in one object")
    return found
