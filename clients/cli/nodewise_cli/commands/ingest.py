"""`nodewise ingest`: store train rows of tables, and traces, as profiles; repeating an ingest changes nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import orjson
import typer
from typer import Argument, Option

from nodewise_cli.commands.import_options import ImportOptions, import_document, import_table, show_import
from nodewise_cli.commands.options import STORE, StoreCall
from nodewise_cli.commands.trace_options import AllowTruncated, fail_if_truncated
from nodewise_cli.console import print_line, say
from nodewise_cli.failures import InputError
from nodewise_cli.imports.measured_rows import MeasuredRow
from nodewise_cli.inputs.profile_names import profile_id_of
from nodewise_cli.inputs.stored_runs import Difference, difference
from nodewise_cli.inputs.table_content import observations_of, profile_content, timed_rows, timings_of, train_rows
from nodewise_cli.inputs.table_errors import in_rows
from nodewise_cli.inputs.tables import Table, read_table
from nodewise_cli.inputs.trace_files import profile_name, send_traces, trace_files, truncation_of
from nodewise_cli.views.notes import show_notes
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
    ResourceExhaustedError,
    RetractEvidenceRequest,
    UnavailableError,
)

__all__ = ["ingest", "ingest_job"]

_IMPORTS: Final = ImportOptions()
BATCH_ROWS: Final = 1000
REPLACED: Final = "replaced by a table"
_NEVER_S: Final = 86_400.0
"""Batches end when they are full, never by the clock: then a repeated ingest cuts the same batches."""


_TEMPLATE: Final = """\
job,device,nodes,workers,batch_per_worker,samples_per_s
my-job,A100,1,8,256,19800
my-job,A100,2,16,256,38100
my-job,A100,4,32,256,72400
"""


def _print_template(wanted: bool) -> None:
    if wanted:
        print_line(_TEMPLATE.rstrip())
        raise typer.Exit


def ingest(
    files: Annotated[
        list[Path],
        Argument(
            metavar="TABLE.csv|TRACE|RUN...",
            help="Measurements tables; traces of one job, files or directories, one trace for each rank; or with "
            "--from runs of another tool.",
        ),
    ],
    profile: Annotated[
        str | None,
        Option("--profile", metavar="ID", help="Profile of the traces. Default: the name of their directory or file."),
    ] = None,
    prefix: Annotated[
        str | None,
        Option("--prefix", metavar="PREFIX", help="Store the jobs of tables as PREFIX/JOB, such as team-a/m5."),
    ] = None,
    keep_names: Annotated[
        bool,
        Option(
            "--keep-names",
            help="Keep paths, host names and user names in the stored traces. Default: they are removed.",
        ),
    ] = False,
    replace: Annotated[
        bool,
        Option(
            "--replace", help="Remove rows from before that these tables do not hold, from the profiles of their jobs."
        ),
    ] = False,
    allow_truncated: AllowTruncated = False,
    _template: Annotated[
        bool,
        Option(
            "--template", is_eager=True, callback=_print_template, help="Print a table to fill in, and store nothing."
        ),
    ] = False,
    imports: ImportOptions = _IMPORTS,
    call: StoreCall = STORE,
) -> None:
    """Store each job of the tables as a profile of its name, with facts and train rows; or store the traces of a job.

    --from reads what other tools logged: the throughput of each run is the median of its steady steps.

    A job name that is not a valid profile name is converted, and the table shows both.

    Repeating an ingest changes nothing: stored rows do not count twice. An interrupted ingest of tables resumes where
    it stopped. Test rows are never sent. --replace replaces stored rows by those of a corrected table.
    """
    tables, paths, imported = _read(files, imports)
    if imports.table is not None:
        call.tell(lambda rows: {"imported": import_document(rows)}, show_import, imported)
        return
    if profile is not None and not paths:
        raise InputError("--profile: needs traces; the profiles of a table have the names of its jobs")
    if prefix is not None and not tables:
        raise InputError("--prefix: needs a table; --profile names the profile of traces")
    traces = trace_files(paths) if paths else []
    truncations = [why for file in traces if (why := truncation_of(file.path))]
    if truncations and not allow_truncated:
        raise InputError(
            f"{'; '.join(truncations)}. Record the steps again, or store what the traces hold by --allow-truncated"
        )
    work = [(table, job) for table in tables for job in table.jobs]
    for table, job in work if replace else ():
        if not train_rows(table, job):
            text = f"{table.path} has no measured train row of job {job!r}"
            raise InputError(f"--replace: {text}; `nodewise profiles delete` removes a profile")
    profiles: dict[str, dict[str, Any]] = {}
    with call.connect() as client, waiting("ingesting") as progress:
        # A writer waits for a server that comes back; one that was never there should be said at once.
        client.health()
        for number, (table, job) in enumerate(work):
            progress.tell(number, len(work))
            with _tell_stored(f"the job {job!r}", len(profiles), len(train_rows(table, job))):
                profile_id = _profile_id_of(job, prefix)
                profiles[profile_id] = ingest_job(client, table, job, prefix=prefix, replace=replace)
        if traces:
            name = profile or profile_name(paths)
            with _tell_stored("the traces", len(profiles)):
                send_traces(
                    client, name, traces, keep_names=keep_names, allow_truncated=allow_truncated, progress=progress
                )
            profiles[name] = _describe_profile(client, name)
    more = ({"truncated": truncations} if truncations else {}) | (
        {"imported": import_document(imported)} if imported else {}
    )
    call.tell(
        lambda ids: {"profiles": ids} | more,
        lambda ids: _show(ids, imported, verbose=call.verbose),
        profiles,
    )
    fail_if_truncated(truncations)


def _read(files: Sequence[Path], imports: ImportOptions) -> tuple[list[Table], list[Path], list[MeasuredRow]]:
    """Tables, traces, and what was imported."""
    if imports.format is not None:
        table, rows = import_table(files, imports)
        return [table], [], rows
    imports.fail_if_stated()
    tables = [read_table(path) for path in files if path.suffix.lower() == ".csv"]
    return tables, [path for path in files if path.suffix.lower() != ".csv"], []


@contextmanager
def _tell_stored(what: str, stored: int, rows: int = 0) -> Iterator[None]:
    """Add to the error of a store that takes no more: what is stored, and that a repeated ingest resumes."""
    try:
        yield
    except (UnavailableError, ResourceExhaustedError) as error:
        durable = min(rows, int(error.metadata.get("durableSequenceNumber", 0)) * BATCH_ROWS)
        part = f"{durable:,} of {rows:,} rows" if durable else "nothing"
        text = (
            f"{error.message}. Stored: {stored:,} {'profile' if stored == 1 else 'profiles'}, and {part} of {what}; "
            "run the command again to store the rest"
        )
        raise type(error)(text, code=error.code, reason=error.reason, metadata=error.metadata) from None


def _show(profiles: dict[str, dict[str, Any]], imported: Sequence[MeasuredRow], *, verbose: bool) -> None:
    if imported:
        show_import(imported)
    names = ("revision", "observations", "traces")
    print_table(
        [words("profile"), *map(figures, names)],
        [[job, *(f"{counts[name]:,}" for name in names)] for job, counts in profiles.items()],
    )
    for job, counts in profiles.items():
        if there := counts.get("already_there"):
            be = _be(there)
            say(f"{job}: {there:,} of {counts['rows']:,} rows {be} stored already, and {be} not counted twice.")
        if left := counts.get("left_out"):
            say(
                f"{job}: {left:,} of {counts['rows']:,} rows {_be(left)} left out: they were removed from the profile "
                "before; see --replace."
            )
        if retracted := counts.get("retracted"):
            say(f"{job}: {retracted:,} {'row' if retracted == 1 else 'rows'} from before {_be(retracted)} removed.")
    notes = [
        (notice["reason"], f"{job}: {notice['message']}")
        for job, counts in profiles.items()
        for notice in counts["warnings"]
    ]
    show_notes(notes, verbose=verbose)


def _be(count: int) -> str:
    return "is" if count == 1 else "are"


def _profile_id_of(job: str, prefix: str | None) -> str:
    return profile_id_of(_name_of(job, prefix))


def _name_of(job: str, prefix: str | None) -> str:
    return job if prefix is None else f"{prefix.rstrip('/')}/{job}"


def ingest_job(
    client: Client, table: Table, job: str, *, prefix: str | None = None, replace: bool = False
) -> dict[str, Any]:
    """Store the facts and train rows of a job that are not stored yet; returns the contents of the profile.

    ``replace`` retracts everything else in the profile.
    """
    profile_id = _profile_id_of(job, prefix)
    content = profile_content(table, job)
    profile = _find_profile(client, profile_id)
    changes = difference(table, job, content, profile)
    revision = 0 if profile is None else profile.revision
    retracted_count = left_out = 0
    try:
        if replace and changes.stale_facts:  # others may be stated only once these are gone
            _retract(client, profile_id, revision, fact_paths=tuple(changes.stale_facts))
        if not _write(client, table, job, profile_id, changes, f"-{revision}" if replace else ""):
            left_out = len({*changes.timed, *changes.train})
        if profile_id != _name_of(job, prefix):
            request_id = f"named-{profile_id.rpartition('-')[2]}"
            client.append_profile(AppendProfileRequest(profile_id=profile_id, request_id=request_id, display_name=job))
    except NodewiseError as error:
        # Fields count the rows of a batch: those of the first are the table's.
        error_in_rows = in_rows(error, table, changes.train, "batch")
        if error_in_rows is None or len(changes.timed) + len(changes.train) >= BATCH_ROWS:
            raise
        raise error_in_rows from None
    if replace and (changes.stale_observations or changes.stale_phases):
        retracted_count = len(changes.stale_observations) or len(changes.stale_phases)
        _retract(
            client,
            profile_id,
            revision,
            observation_numbers=tuple(changes.stale_observations),
            phase_timing_numbers=tuple(changes.stale_phases),
        )
    counts = {"rows": len(train_rows(table, job)), "already_there": changes.there}
    return _describe_profile(client, profile_id) | counts | {"left_out": left_out, "retracted": retracted_count}


def _find_profile(client: Client, profile_id: str) -> Profile | None:
    """A profile with its content; None = there is none."""
    try:
        return client.get_profile(profile_id)
    except NodewiseError as error:
        if error.reason != "PROFILE_NOT_FOUND":
            raise
        return None


def _retract(client: Client, profile_id: str, revision: int, **evidence: tuple[Any, ...]) -> None:
    """Retract what a table replaces; repeating it changes nothing."""
    digest = hashlib.sha256(repr((revision, sorted(evidence.items()))).encode()).hexdigest()
    request = RetractEvidenceRequest(
        profile_id=profile_id, request_id=f"replaced-{digest}", reason=REPLACED, **evidence
    )
    client.retract_evidence(request)


def _describe_profile(client: Client, profile_id: str) -> dict[str, Any]:
    """The counts of a profile, and warnings about it."""
    profile = client.get_profile(GetProfileRequest(profile_id=profile_id, view=ProfileView.FACTS))
    traces = 0 if profile.content is None else len(profile.content.traces)
    counts = {"revision": profile.revision, "observations": profile.observations_count, "traces": traces}
    return counts | {"warnings": plain(profile.warnings)}


def _write(client: Client, table: Table, job: str, profile_id: str, changes: Difference, suffix: str) -> bool:
    """Write one session, named by its content: its batches are always the same, so durable ones are skipped.

    Returns False if nothing is written because the table was stored before and some of it was retracted since.
    """
    if changes.is_nothing:
        return True
    content, timed_rows_left, train = profile_content(table, job), changes.timed, changes.train
    if changes.there and not suffix:
        every = train_rows(table, job)
        request = IngestBatchRequest(profile_id=profile_id, session_id=_session(table, content, every))
        durable = client.ingest_batch(request).durable_sequence_number
        if durable > (len(timed_rows(table, every)) + len(every)) // BATCH_ROWS:
            return False
    session = f"{_session(table, content, train)}{suffix}"
    with client.ingest(profile_id, session_id=session, batch_rows=BATCH_ROWS, linger_s=_NEVER_S) as writer:
        durable_batches = writer.durable_sequence_number
        # The last batch commits; it holds whatever the full ones before it leave, be it nothing.
        if durable_batches > (len(timed_rows_left) + len(train)) // BATCH_ROWS:
            return False
        if not durable_batches:
            writer.facts(workload=content.workload, network=content.network)
        skip = durable_batches * BATCH_ROWS
        phases, runs = timed_rows_left[skip:], train[max(0, skip - len(timed_rows_left)) :]
        if phases:
            writer.phases(timings_of(table, phases))
        if runs:
            writer.observe(observations_of(table, runs))
        writer.commit()
    return True


def _session(table: Table, content: ProfileContent, train: list[int]) -> str:
    rows = [{name: column[row] for name, column in table.columns.items() if column[row] is not None} for row in train]
    text = orjson.dumps([repr((content.workload, content.network)), rows], option=orjson.OPT_SORT_KEYS)
    return f"table-{hashlib.sha256(text).hexdigest()}"
