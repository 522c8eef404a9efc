"""Options that commands about simulations share, and the specification that they make."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from typer import Argument, Option

from nodewise_cli.failures import InputError

if TYPE_CHECKING:
    from nodewise_cli.inputs.simulation_spec import SpecT

__all__ = ["NEVER_FINISHED", "SimulationQuestion", "specification"]

NEVER_FINISHED: Final = "no job finishes: no job got devices that it can run on"

_PEEK_BYTES: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationQuestion:
    """What the options state about jobs, cluster, policies and time; a specification states the same in a file."""

    given: Annotated[
        Path, Argument(metavar="SPEC.json|JOBS", help="A specification, or a file of jobs with --cluster.")
    ]
    throughputs: Annotated[
        Path | None, Option(metavar="TABLE", help="Throughputs of the jobs: Gavel's table, measurements, or curves.")
    ] = None
    cluster: Annotated[
        str | None, Option(metavar="POOLS", help="Pools, such as v100=8,p100=16 (nodes of one device) or t4=8x4.")
    ] = None
    policy: Annotated[list[str] | None, Option(help="Policy. Default: those in the specification. Repeatable.")] = None
    form: Annotated[
        str | None,
        Option(
            "--format",
            help="gavel, pollux, philly, helios, sacct, alibaba-2020, alibaba-2023 or table. Default: by content.",
        ),
    ] = None
    applications: Annotated[
        str | None, Option(metavar="A,B", help="Applications to use from a Pollux workload. Default: all.")
    ] = None
    clock: Annotated[str | None, Option(help="When the policy decides: events, fixed-rounds or drained-rounds.")] = None
    round_s: Annotated[float | None, Option(metavar="SECONDS", help="Length of a round.")] = None
    restart_cost_s: Annotated[
        float | None, Option(metavar="SECONDS", help="Time lost when a job's devices change.")
    ] = None
    early_stops: Annotated[
        float | None, Option(metavar="P", help="Probability that a job ends early, at a uniformly random point.")
    ] = None


def _is_specification(path: Path) -> bool:
    """Whether a file is a JSON object, or should be one by its name; Philly's log is a JSON list."""
    try:
        with path.open("rb") as file:
            first = file.read(_PEEK_BYTES).removeprefix(codecs.BOM_UTF8).lstrip()[:1]
    except OSError:  # said where the file is read
        first = b""
    return first == b"{" or (path.suffix.lower() == ".json" and first != b"[")


def specification(question: SimulationQuestion, kind: type[SpecT], command: str, **changes: Any) -> SpecT:
    """The specification in a file, or the one that a file of jobs and options make.

    Parameters
    ----------
    command : str
        Whose options these are, for messages.
    **changes
        What the command's own options say besides; None = nothing.

    Raises
    ------
    InputError
        Naming the file or the option and what would be right.
    """
    from nodewise_cli.inputs.documents import read_document
    from nodewise_cli.inputs.simulation_spec import checked_spec, parsed_cluster

    given, early_stops = question.given, question.early_stops
    for name in ("cluster", "policy", "clock", "round_s", "restart_cost_s"):
        changes[name] = getattr(question, name)
    changes["early_stops"] = None if early_stops is None else {"probability": early_stops}
    values = {name: value for name, value in changes.items() if value is not None and value != []}
    if question.cluster is not None:
        try:
            values["cluster"] = parsed_cluster(question.cluster)
        except ValueError as error:
            raise InputError(f"--cluster: {error}") from None
    if question.throughputs is not None:
        values["throughputs"] = str(question.throughputs.resolve())
    if _is_specification(given):
        if question.form is not None or question.applications is not None:
            raise InputError(
                "--format, --applications: need a file of jobs; a specification states them in its own fields"
            )
        return checked_spec(str(given), read_document(given) | values, kind)
    if "cluster" not in values:
        raise InputError(f"--cluster: must state the pools, such as v100=8,p100=16, because {given} is a file of jobs")
    jobs: dict[str, Any] = {"file": given.name, "format": question.form or "auto"}
    if question.applications is not None:
        jobs["applications"] = question.applications.split(",")
    return checked_spec(f"nodewise {command}", {"jobs": jobs, **values}, kind)
