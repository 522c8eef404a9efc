"""`nodewise profiles`: what a server has stored, and how to take it out again."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from nodewise_cli.commands.options import AsJson, HolderServer, TimeoutS, Wait, holder
from nodewise_cli.console import print_json, say
from nodewise_cli.inputs.counts import listed_counts
from nodewise_cli.outputs import checked_output, writing
from nodewise_cli.service import connected
from nodewise_cli.views.profiles import content_document, document, show_list, show_profile
from nodewise_client import DeleteProfileRequest, ListProfilesRequest, RetractObservationsRequest

__all__ = ["profiles"]

ProfileName: TypeAlias = Annotated[str, typer.Argument(metavar="ID", help="The profile's name.")]

profiles = typer.Typer(help="List, show, correct, delete and export stored profiles.", no_args_is_help=True)


@profiles.command("list")
def list_profiles(
    prefix: Annotated[str, typer.Argument(metavar="[PREFIX]", help="Only names that begin so.")] = "",
    server: HolderServer = None,
    as_json: AsJson = False,
    timeout_s: TimeoutS = Wait,
) -> None:
    """List the profiles that a server holds, by name."""
    with connected(holder(server), timeout_s) as client:
        found = list(client.list_profiles(ListProfilesRequest(name_prefix=prefix)))
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
        str, typer.Option(metavar="NUMBERS", help="Which, by their numbers in `profiles show`: 3 or 1,4-6.")
    ],
    reason: Annotated[str, typer.Option(help="Why, for the history.")] = "",
    server: HolderServer = None,
    as_json: AsJson = False,
    timeout_s: TimeoutS = Wait,
) -> None:
    """Take observations out of a profile; they stay in its history."""
    numbers = listed_counts(observations, "--observations", "observations")
    with connected(holder(server), timeout_s) as client:
        found = client.retract_observations(
            RetractObservationsRequest(profile_id=profile, numbers=tuple(numbers), reason=reason)
        )
    if as_json:
        print_json({"profiles": [document(found)]})
    else:
        show_list([found])


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
    """Delete a profile, unless somebody changes it meanwhile."""
    with connected(holder(server), timeout_s) as client:
        found = client.get_profile(profile)
        client.delete_profile(DeleteProfileRequest(profile_id=profile, etag=found.etag if etag is None else etag))
    if as_json:
        print_json({"profiles": [document(found)]})
    else:
        say(f"Deleted {profile}, which held {found.observations_count:,} observations.")


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
