"""`nodewise profiles`: what a server stores, and how to remove it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, TypeAlias

from typer import Argument, Option

from nodewise_cli.commands.options import STORE, Commands, StoreCall
from nodewise_cli.failures import InputError
from nodewise_cli.inputs.counts import listed_counts
from nodewise_cli.inputs.profile_names import profile_id_of
from nodewise_cli.outputs import checked_output, writing
from nodewise_cli.views.profiles import (
    content_document,
    list_document,
    show_deleted,
    show_list,
    show_profile,
    show_usage,
    usage_document,
    whole_document,
)
from nodewise_client import GetProfileRequest, ListProfilesRequest, ProfileView, RetractEvidenceRequest

__all__ = ["profiles"]

ProfileName: TypeAlias = Annotated[
    str, Argument(metavar="ID", help="Name of the profile, or of the job that it was made from.", parser=profile_id_of)
]

profiles = Commands(help="List, show, correct, delete and export stored profiles.", no_args_is_help=True)


@profiles.command("list")
def list_profiles(
    prefix: Annotated[str, Argument(metavar="[PREFIX]", help="Only names with this prefix.")] = "",
    label: Annotated[
        list[str] | None,
        Option(metavar="KEY[=VALUE]", help="Only profiles with this label. Repeatable: profiles with all labels."),
    ] = None,
    deleted: Annotated[bool, Option("--deleted", help="Also list deleted profiles that can be restored.")] = False,
    call: StoreCall = STORE,
) -> None:
    """List the profiles that a server stores, by name."""
    with call.connect() as client:
        request = ListProfilesRequest(name_prefix=prefix, labels=tuple(label or ()), show_deleted=deleted)
        entries = list(client.list_profiles(request))
    call.tell(list_document, show_list, entries)


@profiles.command()
def usage(call: StoreCall = STORE) -> None:
    """Show what each namespace stores, and its quotas.

    A namespace is the first part of its profiles' names; "-" are names without a slash.
    """
    with call.connect() as client:
        namespaces = client.list_usage().namespaces
    call.tell(usage_document, show_usage, namespaces)


@profiles.command()
def show(profile: ProfileName, call: StoreCall = STORE) -> None:
    """Show a profile's facts, numbered observations and traces."""
    with call.connect() as client:
        content = client.get_profile(profile)
    call.tell(whole_document, show_profile, content)


@profiles.command()
def retract(
    profile: ProfileName,
    observations: Annotated[
        str | None,
        Option(metavar="NUMBERS", help="Observations to remove, by their numbers in `profiles show`: 3 or 1,4-6."),
    ] = None,
    phases: Annotated[
        str | None, Option(metavar="NUMBERS", help="Runs with timed phases to remove, by their numbers.")
    ] = None,
    fact: Annotated[
        list[str] | None, Option(metavar="PATH", help="Fact to remove, such as workload.parameter_bytes; repeatable.")
    ] = None,
    trace: Annotated[
        list[str] | None, Option(metavar="SHA256", help="Trace to remove, by its hash in `profiles show`; repeatable.")
    ] = None,
    shared_run: Annotated[
        list[str] | None,
        Option(metavar="SHA256", help="Run beside another job to remove, by its hash in `profiles show`; repeatable."),
    ] = None,
    reason: Annotated[str, Option(metavar="TEXT", help="Reason, for the history.")] = "",
    call: StoreCall = STORE,
) -> None:
    """Remove evidence from a profile.

    Observations, timed phases, facts, traces and runs beside other jobs stay in its history.
    """
    if not (observations or phases or fact or trace or shared_run):
        raise InputError("--observations: state what to remove by it, or by --phases, --fact, --trace or --shared-run")
    request = RetractEvidenceRequest(
        profile_id=profile,
        observation_numbers=listed_counts(observations, "--observations", "observations"),
        phase_timing_numbers=listed_counts(phases, "--phases", "timed runs"),
        fact_paths=tuple(fact or ()),
        trace_sha256s=tuple(trace or ()),
        shared_run_sha256s=tuple(shared_run or ()),
        reason=reason,
    )
    with call.connect() as client:
        result = client.retract_evidence(request)
    call.tell(list_document, show_list, [result])


@profiles.command()
def delete(
    profile: ProfileName,
    etag: Annotated[
        str | None,
        Option(help="Delete only this revision, by its etag in `profiles list --json`. Default: the current one."),
    ] = None,
    call: StoreCall = STORE,
) -> None:
    """Delete a profile, unless another caller changes it meanwhile.

    `undelete` restores it for a limited time.
    """
    with call.connect() as client:
        result = client.get_profile(GetProfileRequest(profile_id=profile, view=ProfileView.BASIC))
        result = client.delete_profile(profile, etag=result.etag if etag is None else etag) or result
    call.tell(list_document, show_deleted, [result])


@profiles.command()
def undelete(profile: ProfileName, call: StoreCall = STORE) -> None:
    """Restore a deleted profile."""
    with call.connect() as client:
        result = client.undelete_profile(profile)
    call.tell(list_document, show_list, [result])


@profiles.command()
def export(
    profile: ProfileName,
    output: Annotated[Path | None, Option(metavar="OUT.json", help="File to write. Default: standard output.")] = None,
    call: StoreCall = STORE,
) -> None:
    """Export a profile as a file that `predict` and `suggest` take.

    The file is a profile (see `nodewise schema profile`).
    """
    checked_output(output, "--output", [".json"])
    with call.connect() as client:
        result = client.get_profile(profile)
    text = json.dumps(content_document(result), indent=2) + "\n"
    if output is not None:
        with writing(output):
            output.write_text(text, encoding="utf-8")
    if output is None and not call.as_json:
        sys.stdout.write(text)
    else:
        call.tell(whole_document, lambda profile: show_list([profile]), result)
