"""Questions to the service, built of arguments as the commands build them of options."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from nodewise_cli.agents.arguments import JobQuestion
from nodewise_cli.agents.known_models import known_model
from nodewise_cli.agents.models import LengthMissingError, described_workload, with_training
from nodewise_cli.device_names import catalogue_key, device_named
from nodewise_cli.failures import InputError
from nodewise_cli.inputs.counts import listed_counts
from nodewise_cli.inputs.objectives import ObjectiveOptions, Rule, goal_of
from nodewise_cli.inputs.questions import AskedJob, Question, asked_job, asked_ranges
from nodewise_cli.inputs.runs import RunOptions, run_of, work_of
from nodewise_client import Client, ConfigurationRange, ProfileContent, Work, Workload, numbers_by_name

__all__ = ["AskedQuestion", "MissingArgumentsError", "argument_names", "ask", "counts_of"]

DEVICES_PER_NODE: Final = 8
HOUR_S: Final = 3600.0
_PEAK: Final = "_flops_per_s"
"""How facts of a device's peaks end, after the number format."""
_ARGUMENTS: Final = {
    "workers_per_node": "devices_per_node",
    "gpus_per_node": "devices_per_node",
    "workers": "devices",
    "batch_per_worker": "micro_batch",
    "price": "price_per_device_hour",
    "link": "link_bytes_per_s",
    "deadline_s": "deadline_h",
    "objective": "objective",
}
"""Arguments by the options or fields that mean the same."""
_OPTION: Final = re.compile(r"--([a-z]+(?:-[a-z]+)*)")
_LAYOUT: Final = (
    *("tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel", "sequence_parallel"),
    *("zero_stage", "recompute", "precision", "device", "link_bytes_per_s", "global_batch"),
)


@dataclass(frozen=True, slots=True)
class Board:
    """A device as it is asked about; None = not known."""

    name: str | None = None
    label: str | None = None
    memory_bytes: float | None = None
    devices_per_node: float | None = None
    formats: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A job with its configurations.

    Attributes
    ----------
    job : AskedJob
    question : Question
        As options would state it.
    devices_per_node : int or None
        None = as in the evidence.
    memory_bytes : float or None
        Of a device; None = not known.
    label : str or None
        Name of the device to show, also where the question names a machine; None = it names none.
    assumed : list of str
    """

    job: AskedJob
    question: Question
    devices_per_node: int | None
    memory_bytes: float | None
    label: str | None
    assumed: list[str]

    @property
    def ranges(self) -> tuple[ConfigurationRange, ...]:
        """The configurations."""
        return asked_ranges(self.question, self.job)

    def goal(self, arguments: Any, client: Client, **objective: Any) -> dict[str, Any]:
        """Work, prices and objective of a question, as fields of a request."""
        work = self.work(arguments, client)
        price = self.node_price(arguments)
        costs = objective.get("rule") is Rule.LEAST_COST or objective.get("max_cost") is not None
        if costs and price is None:
            raise MissingArgumentsError(["price_per_device_hour"])
        counts = counts_of(self.question.workers, "devices")
        if costs and len(counts) > 1 and any(count % (self.devices_per_node or 1) for count in counts):
            raise InputError(
                f"--devices: must be multiples of the {self.devices_per_node} devices in a node to compare costs"
            )
        if costs and work is None:
            raise MissingArgumentsError(["tokens"])
        prices = None if price is None else [repr(price)]
        work = work or Work()
        return goal_of(ObjectiveOptions(samples=work.samples, epochs=work.epochs, prices=prices, **objective))

    def work(self, arguments: Any, client: Client) -> Work | None:
        """The work of a run; None = it is not stated."""
        return work_of(arguments, None if arguments.tokens is None else self.job.tokens_per_sample(client))

    def run(self, arguments: Any, client: Client) -> dict[str, Any]:
        """Work, price, deadline, failures and power of a run."""
        options = RunOptions(
            **{name: getattr(arguments, name) for name in ("tokens", "samples", "epochs", "deadline_h")},
            price=self.node_price(arguments),
            device_hours_between_failures=arguments.device_hours_between_failures,
            grid=arguments.grid_g_per_kwh,
        )
        return run_of(options, self.job.tokens_per_sample(client))

    def node_price(self, arguments: Any) -> float | None:
        """The price of a node for an hour."""
        of_device: float | None = arguments.price_per_device_hour
        of_node: float | None = arguments.price_per_node_hour
        if of_device is None or of_node is not None:
            if of_device is not None:
                raise InputError("--price-per-node-hour: must be left out when price_per_device_hour is given")
            return of_node
        if self.devices_per_node is None:
            raise InputError("--devices-per-node: must be given with price_per_device_hour, such as 8")
        count = self.question.workers or ""
        if not count.isdigit():
            return of_device * self.devices_per_node
        # The only row's nodes may not be full: only devices that work are paid.
        nodes = -(-int(count) // self.devices_per_node)
        return of_device * int(count) / nodes


class MissingArgumentsError(InputError):
    """Arguments without which there is no answer."""

    def __init__(self, names: list[str], text: str = "") -> None:
        super().__init__(text or f"must be given: {', '.join(names)}")
        self.names: Final = names


def ask(
    arguments: JobQuestion,
    client: Client,
    *,
    nodes: str | None = None,
    devices: str | None = None,
    required: Sequence[str] = (),
) -> AskedQuestion:
    """The question that arguments state, on such numbers of nodes or devices.

    Parameters
    ----------
    required : sequence of str
        Arguments that must be given besides the job; "nodes" or devices instead.

    Raises
    ------
    InputError
        Naming the arguments and what would be right.
    """
    sources = [name for name in ("model", "profile", "measured") if getattr(arguments, name) is not None]
    if len(sources) > 1:
        raise InputError(f"{sources[1]}: must be left out when {sources[0]} is given")
    board, assumed = _board(arguments, client)
    if missing := _missing(arguments, required, is_scaled=bool(nodes or devices)):
        raise MissingArgumentsError(missing)
    settings = {name: getattr(arguments, name) for name in _LAYOUT if getattr(arguments, name) is not None}
    per_node = arguments.devices_per_node
    if arguments.model is not None:
        settings["device"] = board.name
        if per_node is None:
            per_node = _usual_devices_per_node(board, devices)
            assumed.append(f"{per_node} device{'s' if per_node > 1 else ''} in a node")
    question = Question(
        nodes=nodes,
        workers=devices,
        workers_per_node=per_node,
        batch_per_worker=arguments.micro_batch,
        profile=arguments.profile,
        sequence_length=arguments.sequence_length,
        **settings,
    )
    if arguments.measured is not None:
        runs = ",".join(f"{run.nodes}={run.throughput!r}" for run in arguments.measured)
        question = replace(question, measured_runs=runs, unit=arguments.unit, gpus_per_node=per_node)
        per_node = per_node or 1
    if arguments.model is None:
        job = asked_job(question, "", without_batch=True)
    else:
        try:
            workload, more = described_workload(arguments.model, arguments)
        except LengthMissingError as error:
            raise MissingArgumentsError(["sequence_length"], str(error)) from None
        assumed += more
        job = AskedJob(ProfileContent(workload=workload), "model")
    _check_training(arguments)
    if isinstance(job.profile, ProfileContent):
        workload, more = with_training(job.profile.workload or Workload(), arguments, board.formats)
        job = replace(job, profile=replace(job.profile, workload=workload))
        assumed += more
    return AskedQuestion(job, question, per_node, board.memory_bytes, board.label, assumed)


def _missing(arguments: JobQuestion, required: Sequence[str], *, is_scaled: bool) -> list[str]:
    """Arguments that must be given and are not."""
    model = arguments.model
    is_sized = model is not None and (model.parameters is not None or model.layers is not None)
    is_named = model is not None and model.name is not None and known_model(model.name) is not None
    is_other = model is not None and model.flops_per_sample is not None and model.layers is None
    has_config = model is not None and model.config is not None
    is_transformer = has_config or ((is_sized or is_named) and not is_other)
    needed = [
        *(["model"] if model is None and arguments.profile is None and arguments.measured is None else []),
        *(["device"] if arguments.profile is None and arguments.measured is None else []),
        *(["sequence_length"] if is_transformer and not has_config else []),
        *(name for name in required if name != "global_batch" or model is None or is_transformer),
    ]
    return [
        name
        for name in dict.fromkeys(needed)
        if name == "model" or (getattr(arguments, name) is None and not (name == "nodes" and is_scaled))
    ]


def _check_training(arguments: JobQuestion) -> None:
    """Refuse what cannot be meant of training.

    Raises
    ------
    InputError
        Frozen weights without their share, nothing to train, or epochs of a data set of unknown size.
    """
    frozen, rank = arguments.frozen_weights, arguments.adapter_rank
    if arguments.frozen_weight_bits is not None and frozen is None and rank is None:
        raise MissingArgumentsError(
            ["frozen_weights", "adapter_rank"], "frozen_weight_bits: needs the share of weights that are not trained"
        )
    if frozen == 1.0 and rank is None:
        raise InputError(
            "frozen_weights: must be below 1: nothing would be trained, and Nodewise is not about inference"
        )
    if getattr(arguments, "epochs", None) is not None and arguments.profile is None:
        raise InputError(
            "epochs: the size of the data set is not known: state samples (epochs x samples of it) or tokens"
        )


def _board(arguments: JobQuestion, client: Client) -> tuple[Board, list[str]]:
    """The device of the question, by a name that states its memory if the catalogue has one, and what is assumed.

    Raises
    ------
    InputError
        If the question needs a device of the catalogue and states none.
    """
    if arguments.device is None:
        return Board(), []
    try:
        device, name = device_named(arguments.device, client.list_devices().devices)
    except InputError as error:
        if arguments.model is None:
            return Board(arguments.device, arguments.device), []
        raise InputError(f"device: {error}; the resource nodewise://devices lists all") from None
    facts = numbers_by_name(device.facts)
    label = name if catalogue_key(device.name) in catalogue_key(name) else device.name
    formats = tuple(fact.removesuffix(_PEAK) for fact in facts if fact.endswith(_PEAK))
    board = Board(name, label, facts.get("memory_bytes"), facts.get("devices_per_node"), formats)
    sized = f"{name}-{round((board.memory_bytes or 0) / 1e9)}GB"
    if arguments.model is None or sized.casefold() not in (alias.casefold() for alias in device.aliases):
        return board, []
    return replace(board, name=sized, label=sized), [f"{sized}: state the device with its memory if yours has more"]


def counts_of(value: int | str | None, name: str) -> tuple[int, ...]:
    """Numbers that an argument lists; powers of two too.

    Raises
    ------
    InputError
    """
    return listed_counts(None if value is None else str(value), f"--{name}", name, powers=True)


def argument_names(text: str) -> str:
    """A message of the command line with arguments in place of its options."""

    def name_of(match: re.Match[str]) -> str:
        name = match[1].replace("-", "_")
        return _ARGUMENTS.get(name, name)

    return _OPTION.sub(name_of, text)


def _usual_devices_per_node(board: Board, devices: str | None) -> int:
    """Those of the catalogue, or else eight; the only number of devices where that is smaller."""
    usual = int(board.devices_per_node or DEVICES_PER_NODE)
    is_small = devices is not None and devices.isdigit() and 0 < int(devices) < usual
    return int(devices or 0) if is_small else usual
