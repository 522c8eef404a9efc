"""What the owner of a job asks Slurm for himself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from nodewise_integrations.slurm.submission import Submission, directives, split

__all__ = ["Requests", "read_requests"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Requests that stand above a prediction: those of the command line, and of SBATCH_ variables.

    Lines `#SBATCH` of the script do not: they are what the job gets where Nodewise does not answer. Only where it may
    choose no number of nodes, theirs is the one that a time is predicted for.
    """

    nodes: int | None = None
    """The fewest nodes; None = not stated, or not to be read."""
    nodes_from: str = ""
    """Where they are stated. Empty = nowhere."""
    gpus_per_node: int | None = None
    gpus_per_node_of_script: int | None = None
    """As a line `#SBATCH` says: what the job gets where nothing is filled in."""
    time_from: str = ""
    """Where a time limit is stated. Empty = nowhere."""
    output: str
    """File of the job's output, with Slurm's patterns."""


def read_requests(
    submission: Submission, script: str, environment: Mapping[str, str], *, chosen: bool = False
) -> Requests:
    """What a command line, its script and the environment ask for; `chosen` = a number of nodes may be predicted."""
    options = submission.options
    try:
        in_script = split(directives(script, "#SBATCH")).options
    except ValueError:
        in_script = {}  # sbatch tells what is wrong with it
    usual = "slurm-%A_%a.out" if {"array", "a"} & {*options, *in_script} else "slurm-%j.out"
    output = options.get("output") or environment.get("SBATCH_OUTPUT") or in_script.get("output") or usual
    nodes, nodes_from = options.get("nodes"), "--nodes"
    if nodes is None and not chosen:
        nodes, nodes_from = in_script.get("nodes"), "#SBATCH --nodes"
    per_node = options.get("gpus-per-node") or environment.get("SBATCH_GPUS_PER_NODE")
    return Requests(
        nodes=_first_number(nodes),
        nodes_from="" if nodes is None else f"{nodes_from}={nodes}",
        gpus_per_node=_last_number(per_node),
        gpus_per_node_of_script=_last_number(in_script.get("gpus-per-node")),
        time_from=(
            f"--time={options['time']}"
            if "time" in options
            else "SBATCH_TIMELIMIT"
            if environment.get("SBATCH_TIMELIMIT")
            else ""
        ),
        output=output,
    )


def _first_number(text: str | None) -> int | None:
    """Of `4` and of `2-4` the least; of anything else, such as `1k`, None."""
    match = re.fullmatch(r"([1-9]\d{0,6})(-\d+)?", text or "", re.ASCII)
    return None if match is None else int(match[1])


def _last_number(text: str | None) -> int | None:
    """Of `8` and of `a100:8` the number."""
    match = re.fullmatch(r"(?:[\w.-]+:)?([1-9]\d{0,4})", text or "", re.ASCII)
    return None if match is None else int(match[1])
