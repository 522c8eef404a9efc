"""`nodewise profiles`: what a server has stored, and how to take it out again."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from nodewise_cli.commands.options import AsJson, HolderServer, TimeoutS, Wait, holder
from nodewise_cli.console import print_json, say
from nodewise_cli.failures import InputError
from nodewise_cli.inputs.counts import listed_counts
from nodewise_cli.inputs.profile_names import profile_id_of
from nodewise_cli.outputs import checked_output, writing
from nodewise_cli.service import connected
from nodewise_cli.views.profiles import content_document, document, moment, show_list, show_profile
from nodewise_client import (
    DeleteProfileRequest,
    GetProfileRequest,
    ListProfilesRequest,
    Profile,
    ProfileView,
    RetractEvidenceRequest,
    UndeleteProfileRequest,
)

__all__ = ["profiles"]

ProfileName: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="ID", help="The profile's name, or the job's that it was made of.", parser=profile_id_of),
]

profiles = typer.Typer(help="List, show, correct, delete and export stored profiles.", no_args_is_help=True)


@profiles.command("list")
def list_profiles(
    prefix: Annotated[str, typer.Argument(metavar="[PREFIX]", help="Only names that begin so.")] = "",
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY[=VALUE]", help="Only with this label; repeatable: with all of them."),
    ] = None,
    deleted: Annotated[bool, typer.Option("--deleted", help="Deleted ones that can be brought back as well.")] = False,
    server: HolderServer = None,
    as_json: AsJson = False,
    timeout_s: TimeoutS = Wait,
) -> None:
    """List the profiles that a server holds, by name."""
    with connected(holder(server), timeout_s) as client:
        asked = ListProfilesRequest(name_prefix=prefix, labels=tuple(label or ()), show_deleted=deleted)
        found = list(client.list_profiles(asked))
    _tell(as_json, *found)


def _tell(as_json: bool, *found: Profile) -> None:
    if as_json:
        print_json({"profiles": [document(profile) for profile in found]})
    else:
        show_list(found)


@profiles.command()
def show(
    profile: ProfileName, server: HolderServer = None, as_json: AsJson = False, timeout_s: TimeoutS = Wait
) -> None:
    """Show a profile's facts, numbered observations and traces."""
    with connected(holder(server), timeout_s) as client:
        found = client.get_profile(profile)
    if as_json:
        print_json({"profiles": [{**document(found), "content": content_document(found)}]})
    else:
        show_profile(found)


@profiles.command()
def retract(
    profile: ProfileName,
    observations: Annotated[
        str | None, typer.Option(metavar="NUMBERS", help="Which, by their numbers in `profiles show`: 3 or 1,4-6.")
    ] = None,
    phases: Annotated[
        str | None, typer.Option(metavar="NUMBERS", help="Runs whose phases were timed, by their numbers.")
    ] = None,
    fact: Annotated[
        list[str] | None, typer.Option(metavar="PATH", help="A fact: workload.parameter_bytes; repeatable.")
    ] = None,
    trace: Annotated[
        list[str] | None, typer.Option(metavar="SHA256", help="A trace, as `profiles show` names it; repeatable.")
    ] = None,
    reason: Annotated[str, typer.Option(help="Why, for the history.")] = "",
    server: HolderServer = None,
    as_json: AsJson = False,
    timeout_s: TimeoutS = Wait,
) -> None:
    """Take evidence out of a profile.

    Observations, timed phases, facts and traces stay in its history.
    """
    if not (observations or phases or fact or trace):
        raise InputError("--observations: must say what to take out, or --phases, --fact or --trace must")
    request = RetractEvidenceRequest(
        profile_id=profile,
        observation_numbers=_numbers(observations, "--observations", "observations"),
        phase_timing_numbers=_numbers(phases, "--phases", "timed runs"),
        fact_paths=tuple(fact or ()),
        trace_sha256s=tuple(trace or ()),
        reason=reason,
    )
    with connected(holder(server), timeout_s) as client:
        found = client.retract_evidence(request)
    _tell(as_json, found)


def _numbers(given: str | None, option: str, what: str) -> tuple[int, ...]:
    return () if given is None else listed_counts(given, option, what)


@profiles.command()
def delete(
    profile: ProfileName,
    etag: Annotated[
        str | None, typer.Option(help="Only in this state, as `profiles list --json` says it. Default: as it is now.")
    ] = None,
    server: HolderServer = None,
    as_json: AsJson = False,
    timeout_s: TimeoutS = Wait,
) -> None:
    """Delete a profile, unless somebody changes it meanwhile.

    For a while `undelete` brings it back.
    """
    with connected(holder(server), timeout_s) as client:
        found = client.get_profile(GetProfileRequest(profile_id=profile, view=ProfileView.BASIC))
        asked = DeleteProfileRequest(profile_id=profile, etag=found.etag if etag is None else etag)
        found = client.delete_profile(asked) or found
    if as_json:
        print_json({"profiles": [document(found)]})
        return
    until = "" if found.purge_time is None else f" It can be brought back until {moment(found.purge_time)}."
    say(f"Deleted {profile}, which held {found.observations_count:,} observations.{until}")


@profiles.command()
def undelete(
    profile: ProfileName, server: HolderServer = None, as_json: AsJson = False, timeout_s: TimeoutS = Wait
) -> None:
    """Bring a deleted profile back as it was."""
    with connected(holder(server), timeout_s) as client:
        found = client.undelete_profile(UndeleteProfileRequest(profile_id=profile))
    _tell(as_json, found)


@profiles.command()
def export(
    profile: ProfileName,
    output: Annotated[
        Path | None, typer.Option(metavar="OUT.json", help="Write it there. Default: standard output.")
    ] = None,
    server: HolderServer = None,
    as_json: AsJson = False,
    timeout_s: TimeoutS = Wait,
) -> None:
    """Export a profile as a file that `predict` and `suggest` take.

    The file is JSON of nodewise.v1.ProfileContent.
    """
    checked_output(output, "--output", [".json"])
    with connected(holder(server), timeout_s) as client:
        found = client.get_profile(profile)
    content = content_document(found)
    text = json.dumps(content, indent=2) + "\n"
    if output is not None:
        with writing(output):
            output.write_text(text, encoding="utf-8")
    if as_json:
        print_json({"profiles": [{**document(found), "content": content}]})
    elif output is None:
        sys.stdout.write(text)
    else:
        show_list([found])
