"""`nodewise ingest`: the train rows of tables, and traces, become stored profiles, once however often repeated."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Any, Final

import orjson
from typer import Argument, Option

from nodewise_cli.commands.options import STORE, StoreCall
from nodewise_cli.commands.trace_options import AllowTruncated, fail_if_truncated
from nodewise_cli.console import say
from nodewise_cli.failures import InputError
from nodewise_cli.inputs.profile_names import profile_id_of
from nodewise_cli.inputs.stored_runs import Difference, difference
from nodewise_cli.inputs.table_content import observations_of, profile_content, timed_rows, timings_of, train_rows
from nodewise_cli.inputs.table_errors import in_rows
from nodewise_cli.inputs.tables import Table, read_table
from nodewise_cli.inputs.trace_files import profile_name, send_traces, trace_files, truncation_of
from nodewise_cli.views.plain import plain
from nodewise_cli.views.table import figures, print_table, words
from nodewise_cli.waiting import waiting
from nodewise_client import (
    AppendProfileRequest,
    Client,
    GetProfileRequest,
    IngestBatchRequest,
    NodewiseError,
    Profile,
    ProfileContent,
    ProfileView,
    RetractEvidenceRequest,
)

__all__ = ["ingest", "ingest_job"]

BATCH_ROWS: Final = 1000
REPLACED: Final = "replaced by a table"
_NEVER_S: Final = 86_400.0
"""Batches end when they are full, never by the clock: then a repeated ingest cuts the same batches."""


def ingest(
    files: Annotated[
        list[Path],
        Argument(
            metavar="TABLE.csv|TRACE...",
            help="Measurements tables, or traces of one job: files or directories, one a rank.",
        ),
    ],
    profile: Annotated[
        str | None,
        Option("--profile", metavar="ID", help="Profile of the traces. Default: as their directory or file."),
    ] = None,
    keep_names: Annotated[
        bool, Option("--keep-names", help="Leave paths, host and user names in the traces that are stored.")
    ] = False,
    replace: Annotated[
        bool, Option("--replace", help="Take out the measured rows that the profiles of these jobs held from before.")
    ] = False,
    allow_truncated: AllowTruncated = False,
    call: StoreCall = STORE,
) -> None:
    """Store each job of the tables as a profile of its name: its facts and its train rows; or the traces of a job.

    What no profile may be called is shown beside the name that is made of it.

    Repeating an ingest changes nothing: rows that are there already are not counted twice. One of tables that was cut
    goes on where it stopped. Test rows are never sent. --replace puts a corrected table in the place of what was there.
    """
    paths = [path for path in files if path.suffix.lower() != ".csv"]
    tables = [read_table(path) for path in files if path.suffix.lower() == ".csv"]
    if profile is not None and not paths:
        raise InputError("--profile: names the profile of traces; jobs of a table have their own names")
    traces = trace_files(paths) if paths else []
    truncated = [why for file in traces if (why := truncation_of(file.path))]
    if truncated and not allow_truncated:
        raise InputError(f"{'; '.join(truncated)}. Record the steps again, or store what there is by --allow-truncated")
    work = [(table, job) for table in tables for job in table.jobs]
    for table, job in work if replace else ():
        if not train_rows(table, job):
            text = f"needs measured rows of split train: {table.path} has none of job {job!r}"
            raise InputError(f"--replace: {text}; `nodewise profiles delete` takes a profile away")
    profiles: dict[str, dict[str, Any]] = {}
    with call.connect() as client, waiting("ingesting") as progress:
        # A writer waits for a server that comes back; one that was never there should be said at once.
        client.health()
        for number, (table, job) in enumerate(work):
            progress.tell(number, len(work))
            profiles[profile_id_of(job)] = ingest_job(client, table, job, replace=replace)
        if traces:
            name = profile or profile_name(paths)
            send_traces(client, name, traces, keep_names=keep_names, allow_truncated=allow_truncated, progress=progress)
            profiles[name] = _describe_profile(client, name)
    call.tell(lambda found: {"profiles": found} | ({"truncated": truncated} if truncated else {}), _show, profiles)
    fail_if_truncated(truncated)


def _show(profiles: dict[str, dict[str, Any]]) -> None:
    names = ("revision", "observations", "traces")
    print_table(
        [words("profile"), *map(figures, names)],
        [[job, *(f"{found[name]:,}" for name in names)] for job, found in profiles.items()],
    )
    for job, found in profiles.items():
        if there := found.get("already_there"):
            be = _be(there)
            say(f"{job}: {there:,} of {found['rows']:,} rows {be} there already, and {be} not counted twice.")
        if left := found.get("left_out"):
            say(f"{job}: {left:,} of {found['rows']:,} rows {_be(left)} left out, as once taken out; see --replace.")
        if taken := found.get("retracted"):
            say(f"{job}: {taken:,} {'row' if taken == 1 else 'rows'} from before {_be(taken)} taken out.")
        for notice in found["warnings"]:
            say(f"Note: {job}: {notice['message']}")


def _be(count: int) -> str:
    return "is" if count == 1 else "are"


def ingest_job(client: Client, table: Table, job: str, *, replace: bool = False) -> dict[str, Any]:
    """Store one job's facts and train rows, those that are not there already; returns what the profile then holds.

    ``replace`` takes out what it held besides.
    """
    profile_id = profile_id_of(job)
    content = profile_content(table, job)
    stored = _find_profile(client, profile_id)
    found = difference(table, job, content, stored)
    revision = 0 if stored is None else stored.revision
    retracted = left_out = 0
    try:
        if replace and found.stale_facts:  # others may be stated only once these are gone
            _retract(client, profile_id, revision, fact_paths=tuple(found.stale_facts))
        if not _write(client, table, job, content, found, f"-{revision}" if replace else ""):
            left_out = len({*found.timed, *found.train})
        if profile_id != job:
            named = f"named-{profile_id.rpartition('-')[2]}"
            client.append_profile(AppendProfileRequest(profile_id=profile_id, request_id=named, display_name=job))
    except NodewiseError as error:
        # Fields count the rows of a batch: those of the first are the table's.
        located = in_rows(error, table, found.train, "batch")
        if located is None or len(found.timed) + len(found.train) >= BATCH_ROWS:
            raise
        raise located from None
    if replace and (found.stale_observations or found.stale_phases):
        retracted = len(found.stale_observations) or len(found.stale_phases)
        _retract(
            client,
            profile_id,
            revision,
            observation_numbers=tuple(found.stale_observations),
            phase_timing_numbers=tuple(found.stale_phases),
        )
    counts = {"rows": len(train_rows(table, job)), "already_there": found.there}
    return _describe_profile(client, profile_id) | counts | {"left_out": left_out, "retracted": retracted}


def _find_profile(client: Client, profile_id: str) -> Profile | None:
    """A profile with what it holds; None = there is none."""
    try:
        return client.get_profile(profile_id)
    except NodewiseError as error:
        if error.reason != "PROFILE_NOT_FOUND":
            raise
        return None


def _retract(client: Client, profile_id: str, revision: int, **evidence: tuple[Any, ...]) -> None:
    """Take out what a table replaces; the same again changes nothing."""
    told = hashlib.sha256(repr((revision, sorted(evidence.items()))).encode()).hexdigest()
    request = RetractEvidenceRequest(profile_id=profile_id, request_id=f"replaced-{told}", reason=REPLACED, **evidence)
    client.retract_evidence(request)


def _describe_profile(client: Client, profile_id: str) -> dict[str, Any]:
    """What a profile holds, and what is doubtful of it."""
    stored = client.get_profile(GetProfileRequest(profile_id=profile_id, view=ProfileView.FACTS))
    traces = 0 if stored.content is None else len(stored.content.traces)
    held = {"revision": stored.revision, "observations": stored.observations_count, "traces": traces}
    return held | {"warnings": plain(stored.warnings)}


def _write(client: Client, table: Table, job: str, content: ProfileContent, found: Difference, suffix: str) -> bool:
    """One session, named by what it writes: its batches are the same every time, so what is durable is skipped.

    Returns False where nothing is written because the table was stored before, and some of it taken out since.
    """
    if found.is_nothing:
        return True
    profile_id, timed, train = profile_id_of(job), found.timed, found.train
    if found.there and not suffix:
        every = train_rows(table, job)
        request = IngestBatchRequest(profile_id=profile_id, session_id=_session(table, content, every))
        durable = client.ingest_batch(request).durable_sequence_number
        if durable > (len(timed_rows(table, every)) + len(every)) // BATCH_ROWS:
            return False
    session = f"{_session(table, content, train)}{suffix}"
    with client.ingest(profile_id, session_id=session, batch_rows=BATCH_ROWS, linger_s=_NEVER_S) as writer:
        done = writer.durable_sequence_number
        # The last batch commits; it holds whatever the full ones before it leave, be it nothing.
        if done > (len(timed) + len(train)) // BATCH_ROWS:
            return False
        if not done:
            writer.facts(workload=content.workload, network=content.network)
        skip = done * BATCH_ROWS
        phases, runs = timed[skip:], train[max(0, skip - len(timed)) :]
        if phases:
            writer.phases(timings_of(table, phases))
        if runs:
            writer.observe(observations_of(table, runs))
        writer.commit()
    return True


def _session(table: Table, content: ProfileContent, train: list[int]) -> str:
    rows = [{name: column[row] for name, column in table.columns.items() if column[row] is not None} for row in train]
    described = orjson.dumps([repr((content.workload, content.network)), rows], option=orjson.OPT_SORT_KEYS)
    return f"table-{hashlib.sha256(described).hexdigest()}"
