"""What a job requests from Slurm, and which of these requests a prediction may change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from nodewise_integrations.slurm.body import literals
from nodewise_integrations.slurm.stated import (
    Shape,
    StatedOption,
    UnreadableError,
    gpus_in,
    node_counts,
    shape_of,
    stated_options,
)
from nodewise_integrations.slurm.submission import Submission, sbatch_directives, translated
from nodewise_integrations.slurm.wishes import AUTO, Wishes

__all__ = ["Requests", "read_requests"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """What to ask about, and which options may be filled in.

    Requests on the command line and in SBATCH_ variables take precedence over a prediction. Lines `#SBATCH` apply if
    Nodewise does not answer. If it does, its number of nodes replaces theirs, with the numbers that depend on it.
    """

    problem: str = ""
    """Why no prediction is possible, so that the job is submitted unchanged. Empty = one is possible."""
    heterogeneous: bool = False
    """Whether the job has several components."""
    counts: tuple[int, ...] = ()
    """Numbers of nodes to ask about."""
    nodes_from: str = ""
    """Why the number of nodes is fixed. Empty = Nodewise chooses it."""
    kept: str = ""
    """Why Nodewise does not choose the number of nodes although the owner wants it to. Empty = it may choose."""
    narrows: bool = False
    """Whether a range was typed, which the chosen number must replace."""
    gpus_per_node: int | None = None
    """GPUs of each node, as the job or the owner states; None = as in the job's evidence."""
    gpus_placed: bool = True
    """Whether Slurm must place this many GPUs on each node. If not, this is only an assumption."""
    fills_gpus: bool = False
    """Whether `--gpus-per-node` is to be filled in."""
    tasks_per_node: int | None = None
    """Tasks of each node, if the total number of tasks is stated and must follow the nodes."""
    gpus_kind: str | None = None
    """Prefix of the total number of GPUs, if it is stated and must follow the nodes: `a100:`, or empty."""
    time_from: str = ""
    """Option with a time limit that takes precedence over a prediction. Empty = there is none."""
    output: str
    """File of the job's output, with Slurm's patterns."""


def read_requests(submission: Submission, script: str, environment: Mapping[str, str], wishes: Wishes) -> Requests:
    """Combine the requests of the command line, the script and the environment with the owner's wishes."""
    header = sbatch_directives(script)
    options = stated_options(submission, header, environment)
    output = options.get("output")
    usual = "slurm-%A_%a.out" if "array" in options else "slurm-%j.out"
    found = Requests(
        heterogeneous=submission.heterogeneous or header.heterogeneous,
        time_from=_time_from(options),
        output=usual if output is None else output.value,
    )
    problem = submission.problem or header.problem or _foreign(options, script)
    if not problem:
        try:
            return _with_counts(found, options, wishes, script or submission.options.get("wrap", ""))
        except UnreadableError as error:
            problem = str(error)
    return replace(found, problem=problem, gpus_per_node=_wished(wishes))


def _foreign(options: Mapping[str, StatedOption], script: str) -> str:
    line = "" if "ignore-pbs" in options else translated(script)
    return line and f"sbatch translates {line!r}; state it in a line #SBATCH, or add --ignore-pbs"


def _time_from(options: Mapping[str, StatedOption]) -> str:
    limit = options.get("time")
    if limit is not None and limit.typed:
        return limit.source
    # Slurm refuses a limit below --time-min.
    return options["time-min"].source if "time-min" in options else ""


_OF_GPUS: Final = (
    "gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task", "gres", "tres-per-node", "tres-per-task",
)  # fmt: skip


def _wished(wishes: Wishes) -> int | None:
    return int(wishes.gpus_per_node) if wishes.gpus_per_node not in {"", AUTO} else None


def _with_counts(found: Requests, options: dict[str, StatedOption], wishes: Wishes, body: str) -> Requests:
    wished = _wished(wishes)
    if any(options[name].typed for name in _OF_GPUS if name in options):
        wished = None
    elif wished is not None:
        # The wish replaces this option.
        options.pop("gpus-per-node", None)
    shape = shape_of(options, gpus_per_node=wished)
    allowed = node_counts(options["nodes"]) if "nodes" in options else ()
    typed = "nodes" in options and options["nodes"].typed
    fills_gpus = (wished is not None and not _states_gpus_of_each(options)) or (
        wishes.gpus_per_node == AUTO and shape.gpus_per_node is None
    )
    found = replace(
        found,
        gpus_per_node=shape.gpus_per_node,
        gpus_placed=shape.placed or fills_gpus,
        fills_gpus=fills_gpus,
    )
    chosen: tuple[int, ...] = ()
    kept = ""
    if wishes.nodes and not (typed and len(allowed) == 1):
        chosen = tuple(count for count in wishes.nodes if len(allowed) < 2 or count in allowed)
        kept = _stands_against(options, shape)
        if not chosen:
            kept = f"{options['nodes'].source} allows none of the numbers that Nodewise may choose"
        if not kept:
            chosen, kept = _as_commands_say(chosen, shape.nodes if _states_nodes(options) else None, body)
    if chosen and not kept:
        kind, colon, _ = options["gpus"].value.rpartition(":") if "gpus" in options else ("", "", "")
        return replace(
            found,
            counts=chosen,
            narrows=typed,
            tasks_per_node=shape.tasks_per_node if "ntasks" in options else None,
            gpus_kind=kind + colon if "gpus" in options else None,
        )
    own = allowed[0] if shape.nodes is None else shape.nodes
    placed = found.gpus_placed or own == 1
    return replace(found, counts=(own,), nodes_from=_why(options, allowed), kept=kept, gpus_placed=placed)


def _states_gpus_of_each(options: Mapping[str, StatedOption]) -> bool:
    """Whether an option other than --gpus states GPUs, which --gpus-per-node might contradict."""
    return any(gpus_in(name, options[name]) is not None for name in _OF_GPUS[1:] if name in options)


def _states_nodes(options: Mapping[str, StatedOption]) -> bool:
    return any(name in options for name in ("nodes", "ntasks", "gpus"))


def _why(options: Mapping[str, StatedOption], allowed: Sequence[int]) -> str:
    if allowed:
        source = options["nodes"].source
        return f"as stated by {source}" if len(allowed) == 1 else f"the lowest number of {source}"
    stated = [options[name].source for name in ("ntasks", "ntasks-per-node", *_OF_GPUS) if name in options]
    if _states_nodes(options):
        return f"computed from {', '.join(stated)}"
    return "Slurm's default if no number is stated"


def _stands_against(options: Mapping[str, StatedOption], shape: Shape) -> str:
    """Return the option that another number of nodes would contradict. Empty = there is none."""
    for name, sets in (
        ("nodelist", True),
        ("nodefile", True),
        ("distribution", "arbitrary" in options.get("distribution", _NONE).value),
        ("constraint", "*" in options.get("constraint", _NONE).value),
    ):
        if sets and name in options:
            return f"{options[name].source} determines which nodes are used"
    for name, each in (("ntasks", shape.tasks_per_node), ("gpus", shape.gpus_per_node)):
        if name in options and (options[name].typed or each is None):
            return f"{options[name].source} is the total on all nodes"
    return ""


def _as_commands_say(counts: tuple[int, ...], own: int | None, body: str) -> tuple[tuple[int, ...], str]:
    """Return the numbers of nodes that agree with the commands of a script, or why there is no choice."""
    for literal in literals(body):
        if literal.most <= 1 and own not in {None, 1} and (literal.of_step or not literal.of_nodes):
            continue  # a step beside the training
        if not literal.of_nodes or not (own is None or literal.fewest <= own <= literal.most):
            return (), literal.source
        counts = tuple(count for count in counts if literal.fewest <= count <= literal.most)
        if not counts or counts == (own,):
            return (), literal.source
    return counts, ""


_NONE: Final = StatedOption("", "", typed=False)
