"""`nodewise ingest`: the train rows of tables, and traces, become stored profiles, once however often repeated."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Final

import orjson
from typer import Argument, Option

from nodewise_cli.commands.options import STORE, StoreCall
from nodewise_cli.failures import InputError
from nodewise_cli.inputs.profile_names import profile_id_of
from nodewise_cli.inputs.table_content import observations_of, profile_content, timed_rows, timings_of, train_rows
from nodewise_cli.inputs.table_errors import in_rows
from nodewise_cli.inputs.tables import Table, read_table
from nodewise_cli.inputs.trace_files import profile_name, send_traces, trace_files
from nodewise_cli.views.table import figures, print_table, words
from nodewise_cli.waiting import waiting
from nodewise_client import AppendProfileRequest, Client, GetProfileRequest, NodewiseError, ProfileContent, ProfileView

__all__ = ["ingest", "ingest_job"]

BATCH_ROWS: Final = 1000
_NEVER_S: Final = 86_400.0
"""Batches end when they are full, never by the clock: then a repeated ingest cuts the same batches."""


def ingest(
    files: Annotated[
        list[Path],
        Argument(
            metavar="TABLE.csv|TRACE...",
            help="Measurements tables, or traces of one job: files or directories of .json, .json.gz, .et, one a rank.",
        ),
    ],
    profile: Annotated[
        str | None,
        Option("--profile", metavar="ID", help="Profile of the traces. Default: as their directory or file."),
    ] = None,
    keep_names: Annotated[
        bool, Option("--keep-names", help="Leave paths, host and user names in the traces that are stored.")
    ] = False,
    call: StoreCall = STORE,
) -> None:
    """Store each job of the tables as a profile of its name: its facts and its train rows; or the traces of a job.

    What no profile may be called is shown beside the name that is made of it.

    Repeating an ingest changes nothing; one of tables that was cut goes on where it stopped. Test rows are never sent.
    """
    paths = [path for path in files if path.suffix.lower() != ".csv"]
    tables = [read_table(path) for path in files if path.suffix.lower() == ".csv"]
    if profile is not None and not paths:
        raise InputError("--profile: names the profile of traces; jobs of a table have their own names")
    traces = trace_files(paths) if paths else []
    work = [(table, job) for table in tables for job in table.jobs]
    profiles: dict[str, dict[str, int]] = {}
    with call.connected() as client, waiting("ingesting") as progress:
        # A writer waits for a server that comes back; one that was never there should be said at once.
        client.health()
        for number, (table, job) in enumerate(work):
            progress.tell(number, len(work))
            profiles[profile_id_of(job)] = ingest_job(client, table, job)
        if traces:
            name = profile or profile_name(paths)
            send_traces(client, name, traces, keep_names=keep_names, progress=progress)
            profiles[name] = _held(client, name)
    call.tell(lambda found: {"profiles": found}, _show, profiles)


def _show(profiles: dict[str, dict[str, int]]) -> None:
    names = ("revision", "observations", "traces")
    print_table(
        [words("profile"), *map(figures, names)],
        [[job, *(f"{found[name]:,}" for name in names)] for job, found in profiles.items()],
    )


def ingest_job(client: Client, table: Table, job: str) -> dict[str, int]:
    """Store one job's facts and train rows; returns what the profile then holds."""
    profile_id = profile_id_of(job)
    train = train_rows(table, job)
    timed = timed_rows(table, train)
    try:
        _write(client, table, job, timed, train)
        if profile_id != job:
            named = f"named-{profile_id.rpartition('-')[2]}"
            client.append_profile(AppendProfileRequest(profile_id=profile_id, request_id=named, display_name=job))
    except NodewiseError as error:
        # Fields count the rows of a batch: those of the first are the table's.
        located = in_rows(error, table, train, "batch")
        if located is None or len(timed) + len(train) >= BATCH_ROWS:
            raise
        raise located from None
    return _held(client, profile_id)


def _held(client: Client, profile_id: str) -> dict[str, int]:
    """What a profile holds."""
    stored = client.get_profile(GetProfileRequest(profile_id=profile_id, view=ProfileView.FACTS))
    traces = 0 if stored.content is None else len(stored.content.traces)
    return {"revision": stored.revision, "observations": stored.observations_count, "traces": traces}


def _write(client: Client, table: Table, job: str, timed: list[int], train: list[int]) -> None:
    """One session, named by what it writes: its batches are the same every time, so what is durable is skipped."""
    content = profile_content(table, job)
    with client.ingest(
        profile_id_of(job), session_id=_session(table, content, train), batch_rows=BATCH_ROWS, linger_s=_NEVER_S
    ) as writer:
        done = writer.durable_sequence_number
        # The last batch commits; it holds whatever the full ones before it leave, be it nothing.
        if done > (len(timed) + len(train)) // BATCH_ROWS:
            return
        if not done:
            writer.facts(workload=content.workload, network=content.network)
        skip = done * BATCH_ROWS
        phases, runs = timed[skip:], train[max(0, skip - len(timed)) :]
        if phases:
            writer.phases(timings_of(table, phases))
        if runs:
            writer.observe(observations_of(table, runs))
        writer.commit()


def _session(table: Table, content: ProfileContent, train: list[int]) -> str:
    rows = [{name: column[row] for name, column in table.columns.items() if column[row] is not None} for row in train]
    described = orjson.dumps([repr((content.workload, content.network)), rows], option=orjson.OPT_SORT_KEYS)
    return f"table-{hashlib.sha256(described).hexdigest()}"
