"""`nodewise profiles`: what a server has stored, and how to take it out again."""

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
    str, Argument(metavar="ID", help="The profile's name, or the job's that it was made of.", parser=profile_id_of)
]

profiles = Commands(help="List, show, correct, delete and export stored profiles.", no_args_is_help=True)


@profiles.command("list")
def list_profiles(
    prefix: Annotated[str, Argument(metavar="[PREFIX]", help="Only names that begin so.")] = "",
    label: Annotated[
        list[str] | None, Option(metavar="KEY[=VALUE]", help="Only with this label; repeatable: with all of them.")
    ] = None,
    deleted: Annotated[bool, Option("--deleted", help="Deleted ones that can be brought back as well.")] = False,
    call: StoreCall = STORE,
) -> None:
    """List the profiles that a server holds, by name."""
    with call.connect() as client:
        asked = ListProfilesRequest(name_prefix=prefix, labels=tuple(label or ()), show_deleted=deleted)
        found = list(client.list_profiles(asked))
    call.tell(list_document, show_list, found)


@profiles.command()
def usage(call: StoreCall = STORE) -> None:
    """Show what namespaces store, beside their quotas.

    A namespace is the first part of its profiles' names; "-" are names without a slash.
    """
    with call.connect() as client:
        found = client.list_usage().namespaces
    call.tell(usage_document, show_usage, found)


@profiles.command()
def show(profile: ProfileName, call: StoreCall = STORE) -> None:
    """Show a profile's facts, numbered observations and traces."""
    with call.connect() as client:
        found = client.get_profile(profile)
    call.tell(whole_document, show_profile, found)


@profiles.command()
def retract(
    profile: ProfileName,
    observations: Annotated[
        str | None, Option(metavar="NUMBERS", help="Which, by their numbers in `profiles show`: 3 or 1,4-6.")
    ] = None,
    phases: Annotated[
        str | None, Option(metavar="NUMBERS", help="Runs whose phases were timed, by their numbers.")
    ] = None,
    fact: Annotated[
        list[str] | None, Option(metavar="PATH", help="A fact: workload.parameter_bytes; repeatable.")
    ] = None,
    trace: Annotated[
        list[str] | None, Option(metavar="SHA256", help="A trace, as `profiles show` names it; repeatable.")
    ] = None,
    shared_run: Annotated[
        list[str] | None,
        Option(metavar="SHA256", help="A run beside another job, as `profiles show` names it; repeatable."),
    ] = None,
    reason: Annotated[str, Option(help="Why, for the history.")] = "",
    call: StoreCall = STORE,
) -> None:
    """Take evidence out of a profile.

    Observations, timed phases, facts, traces and runs beside other jobs stay in its history.
    """
    if not (observations or phases or fact or trace or shared_run):
        raise InputError("--observations: must say what to take out, or --phases, --fact, --trace or --shared-run must")
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
        found = client.retract_evidence(request)
    call.tell(list_document, show_list, [found])


@profiles.command()
def delete(
    profile: ProfileName,
    etag: Annotated[
        str | None, Option(help="Only in this state, as `profiles list --json` says it. Default: as it is now.")
    ] = None,
    call: StoreCall = STORE,
) -> None:
    """Delete a profile, unless somebody changes it meanwhile.

    For a while `undelete` brings it back.
    """
    with call.connect() as client:
        found = client.get_profile(GetProfileRequest(profile_id=profile, view=ProfileView.BASIC))
        found = client.delete_profile(profile, etag=found.etag if etag is None else etag) or found
    call.tell(list_document, show_deleted, [found])


@profiles.command()
def undelete(profile: ProfileName, call: StoreCall = STORE) -> None:
    """Bring a deleted profile back as it was."""
    with call.connect() as client:
        found = client.undelete_profile(profile)
    call.tell(list_document, show_list, [found])


@profiles.command()
def export(
    profile: ProfileName,
    output: Annotated[Path | None, Option(metavar="OUT.json", help="Write it there. Default: standard output.")] = None,
    call: StoreCall = STORE,
) -> None:
    """Export a profile as a file that `predict` and `suggest` take.

    The file is JSON of nodewise.v1.ProfileContent.
    """
    checked_output(output, "--output", [".json"])
    with call.connect() as client:
        found = client.get_profile(profile)
    text = json.dumps(content_document(found), indent=2) + "\n"
    if output is not None:
        with writing(output):
            output.write_text(text, encoding="utf-8")
    if output is None and not call.as_json:
        sys.stdout.write(text)
    else:
        call.tell(whole_document, lambda profile: show_list([profile]), found)
