"""Nodes, tasks and GPUs that a job states: on the command line, in SBATCH_ variables, or in its script."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nodewise_integrations.slurm.submission import Submission

__all__ = ["Shape", "StatedOption", "UnreadableError", "gpus_in", "node_counts", "shape_of", "stated_options"]

_VARIABLES: Final = {
    "SBATCH_ARRAY_INX": "array",
    "SBATCH_CONSTRAINT": "constraint",
    "SBATCH_DISTRIBUTION": "distribution",
    "SBATCH_GPUS": "gpus",
    "SBATCH_GPUS_PER_NODE": "gpus-per-node",
    "SBATCH_GPUS_PER_SOCKET": "gpus-per-socket",
    "SBATCH_GPUS_PER_TASK": "gpus-per-task",
    "SBATCH_GRES": "gres",
    "SBATCH_IGNORE_PBS": "ignore-pbs",
    "SBATCH_OUTPUT": "output",
    "SBATCH_TIMELIMIT": "time",
    "SBATCH_TRES_PER_TASK": "tres-per-task",
}
"""Variables of sbatch for the options that matter here. There are none for nodes and tasks."""


class UnreadableError(Exception):
    """The numbers of a job cannot be determined; the text says why."""


@dataclass(frozen=True, slots=True)
class StatedOption:
    """An option that takes effect."""

    value: str
    source: str
    """Where it is stated: `--gres=gpu:8`, `#SBATCH --gres=gpu:8`, `SBATCH_GRES=gpu:8`."""
    typed: bool
    """Whether it is on the command line or in a variable, and so takes precedence over a prediction."""


def stated_options(
    submission: Submission, script: Submission, environment: Mapping[str, str]
) -> dict[str, StatedOption]:
    """Return the options that take effect, by their long names: the command line, then variables, then the script."""
    found = {
        name: StatedOption(value, f"#SBATCH --{name}={value}", typed=False) for name, value in script.options.items()
    }
    for variable, name in _VARIABLES.items():
        if value := environment.get(variable):
            found[name] = StatedOption(value, f"{variable}={value}", typed=True)
    for name, value in submission.options.items():
        found[name] = StatedOption(value, f"--{name}={value}", typed=True)
    return found


@dataclass(frozen=True, slots=True)
class Shape:
    """Numbers of a job that are stated or can be computed. None = not stated."""

    nodes: int | None
    """None = one of several numbers."""
    tasks_per_node: int | None
    gpus_per_node: int | None
    placed: bool
    """Whether the stated options make Slurm place this many GPUs on each node. If not, it is an assumption."""


_NODES: Final = "nodes"
_TASKS: Final = "tasks"
_GPUS: Final = "gpus"
_TASKS_EACH: Final = "tasks of a node"
_GPUS_EACH: Final = "GPUs of a node"
_GPUS_OF_TASK: Final = "GPUs of a task"
_TASKS_OF_GPU: Final = "tasks of a GPU"
_PRODUCTS: Final = (
    (_TASKS, _NODES, _TASKS_EACH),
    (_GPUS, _NODES, _GPUS_EACH),
    (_GPUS_EACH, _TASKS_EACH, _GPUS_OF_TASK),
    (_GPUS, _TASKS, _GPUS_OF_TASK),
    (_TASKS_EACH, _GPUS_EACH, _TASKS_OF_GPU),
    (_TASKS, _GPUS, _TASKS_OF_GPU),
)
"""The first is the product of the others."""


def shape_of(options: Mapping[str, StatedOption], *, gpus_per_node: int | None = None) -> Shape:
    """Combine the stated numbers as sbatch does. `gpus_per_node` is the owner's wish, which must not contradict them.

    Raises UnreadableError if they cannot be read, do not agree, or leave the number of nodes to Slurm.
    """
    statements = _statements(options)
    known: dict[str, int] = {}
    said = ", ".join(source for _, _, source in statements)
    for name, number, _ in statements:
        if known.setdefault(name, number) != number:
            raise UnreadableError(f"{said}: the numbers of {name} do not agree")
    products = [
        each for each in _PRODUCTS if all(name in known for name in each[1:] if name in {_GPUS_OF_TASK, _TASKS_OF_GPU})
    ]
    _derive(known, products, said)
    if gpus_per_node is not None and known.setdefault(_GPUS_EACH, gpus_per_node) != gpus_per_node:
        raise UnreadableError(f"--nodewise-gpus-per-node={gpus_per_node} contradicts {said}")
    _derive(known, products, said)
    allowed = _counts(options)
    for name in ("nodelist", "nodefile"):
        if name in options and not allowed:
            raise UnreadableError(f"{options[name].source}: the number of nodes is not known; state --nodes")
    if allowed and known.get(_NODES, allowed[0]) not in allowed:
        raise UnreadableError(f"{said}: the numbers of {_NODES} do not agree")
    if not allowed and _NODES not in known:
        # A single task runs on one node, with all its GPUs. Slurm decides on how many nodes several tasks run.
        if known.get(_TASKS, 1) > 1 or (_TASKS not in known and known.get(_GPUS, 1) > 1):
            raise UnreadableError(f"{said}: Slurm decides on the number of nodes; state --nodes")
        known[_NODES] = 1
        _derive(known, products, said)
    if _TASKS not in known and _TASKS_EACH not in known:
        known[_TASKS_EACH] = 1
        _derive(known, products, said)
    each = {name for name, _, _ in statements}
    placed = (
        _GPUS_EACH in each
        or {_TASKS_EACH, _GPUS_OF_TASK} <= each
        or (_GPUS_OF_TASK in each and known.get(_TASKS) == known.get(_NODES))
        or _GPUS_EACH not in known
    )
    if _GPUS_EACH not in known and {_GPUS, _GPUS_OF_TASK} & each:
        raise UnreadableError(f"{said}: Slurm decides on the GPUs of each node; state --gpus-per-node")
    return Shape(known.get(_NODES), known.get(_TASKS_EACH), known.get(_GPUS_EACH), placed)


def _derive(known: dict[str, int], products: Sequence[tuple[str, str, str]], said: str) -> None:
    """Add numbers that follow from the known ones, until there are no more."""
    found = -1
    while found != len(known):
        found = len(known)
        for whole, one, other in products:
            if one in known and other in known:
                number = known[one] * known[other]
                if known.setdefault(whole, number) != number:
                    raise UnreadableError(f"{said}: the numbers of {whole} do not agree")
            for part, rest in ((one, other), (other, one)):
                if whole in known and part in known and rest not in known:
                    known[rest], left = divmod(known[whole], known[part])
                    if left:
                        raise UnreadableError(f"{said}: the {whole} cannot be divided evenly among the {part}")


def _statements(options: Mapping[str, StatedOption]) -> list[tuple[str, int, str]]:
    """Return what each option states: the number's name, the number, and where it is stated."""
    found: list[tuple[str, int, str]] = []
    counts = _counts(options)
    if len(counts) == 1:
        found.append((_NODES, counts[0], options["nodes"].source))
    for option, name in (("ntasks", _TASKS), ("ntasks-per-node", _TASKS_EACH), ("ntasks-per-gpu", _TASKS_OF_GPU)):
        if stated := options.get(option):
            found.append((name, _whole(stated.value, stated), stated.source))
    for option, name in (
        ("gpus", _GPUS),
        ("gpus-per-node", _GPUS_EACH),
        ("gpus-per-socket", _GPUS_EACH),
        ("gpus-per-task", _GPUS_OF_TASK),
        ("gres", _GPUS_EACH),
        ("tres-per-node", _GPUS_EACH),
        ("tres-per-task", _GPUS_OF_TASK),
    ):
        stated = options.get(option)
        number = None if stated is None else gpus_in(option, stated)
        if stated is not None and number is not None:
            each = _sockets(options) if option == "gpus-per-socket" else 1
            found.append((name, number * each, stated.source))
    return found


def _counts(options: Mapping[str, StatedOption]) -> Sequence[int]:
    return node_counts(options["nodes"]) if "nodes" in options else ()


_RANGE: Final = re.compile(r"(\d{1,9})([km]?)(?:-(\d{1,9})([km]?))?(?::(\d{1,9}))?", re.ASCII | re.IGNORECASE)
_MOST_NODES: Final = 1024**2
_TIMES: Final = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4, "p": 1024**5}


def node_counts(stated: StatedOption) -> Sequence[int]:
    """Numbers of nodes that `--nodes` allows: `4`, `2-4`, `1k`, and the sizes `2,4,8` and `2-8:2` of newer Slurm."""
    parts: list[range] = []
    for part in stated.value.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise UnreadableError(f"{stated.source}: is not a number of nodes")
        first = int(match[1]) * _TIMES[match[2].lower()]
        last = first if match[3] is None else int(match[3]) * _TIMES[match[4].lower()]
        parts.append(range(first, last + 1, int(match[5] or 1) or 1))
        if not parts[-1] or first < 1 or last > _MOST_NODES:
            raise UnreadableError(f"{stated.source}: is not a number of nodes")
    return parts[0] if len(parts) == 1 else sorted({count for part in parts for count in part})


_COUNT: Final = re.compile(r"(\d{1,9})([kmgtp]?)", re.ASCII | re.IGNORECASE)
_KIND: Final = re.compile(r"[\w.+-]+", re.ASCII)


def gpus_in(option: str, stated: StatedOption) -> int | None:
    """Return the number of GPUs in `8`, `a100:8`, `gpu:a100:8,nvme:1`; None = it has none. Raises UnreadableError."""
    found: list[int] = []
    for part in stated.value.split(","):
        text = part.strip()
        if option in {"gres", "tres-per-node", "tres-per-task"}:
            name, _, text = re.sub(r"^gres[:/]", "", text).replace("=", ":").partition(":")
            if name in {"mps", "shard"}:
                raise UnreadableError(f"{stated.source}: requests parts of a GPU; predictions need whole GPUs")
            if name != "gpu":
                continue
        elif not text:
            raise UnreadableError(f"{stated.source}: is not a number of GPUs")
        kind, _, number = text.rpartition(":")
        match = _COUNT.fullmatch(number)
        if match is None:
            # A kind without a number means one GPU.
            kind = text
        if kind and not _KIND.fullmatch(kind):
            raise UnreadableError(f"{stated.source}: is not a number of GPUs")
        found.append(1 if match is None else int(match[1]) * _TIMES[match[2].lower()])
    if len(found) > 1:
        raise UnreadableError(f"{stated.source}: names several kinds of GPUs; a prediction needs a single kind")
    if found == [0]:
        raise UnreadableError(f"{stated.source}: requests no GPU")
    return found[0] if found else None


def _sockets(options: Mapping[str, StatedOption]) -> int:
    stated = options.get("sockets-per-node") or options.get("extra-node-info")
    if stated is None:
        raise UnreadableError(f"{options['gpus-per-socket'].source}: --sockets-per-node must be stated too")
    return _whole(stated.value.partition(":")[0], stated)


def _whole(text: str, stated: StatedOption) -> int:
    if not re.fullmatch(r"[1-9]\d{0,8}", text, re.ASCII):
        raise UnreadableError(f"{stated.source}: is not a whole number from 1")
    return int(text)
