"""Options of a run whose card is asked for: its work, prices, failures and power."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final

from typer import Option

from nodewise_cli.failures import InputError
from nodewise_cli.inputs.bounds import check_bounds
from nodewise_client import CompletionCheckpoints, RunFailures, RunPower, Work
from nodewise_values import facts

__all__ = ["RunOptions", "run_of", "work_of"]

HOUR_S: Final = 3600.0
MINUTE_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What the options state about the run."""

    samples: Annotated[float | None, Option(help="Work of the run in samples.")] = None
    epochs: Annotated[float | None, Option(help="Work of the run in epochs.")] = None
    tokens: Annotated[float | None, Option(help="Work of the run in tokens.")] = None
    price: Annotated[float | None, Option(help="Price of a node for an hour.")] = None
    currency: Annotated[str, Option(help="Currency of the price, for the table.")] = ""
    deadline_h: Annotated[float | None, Option(metavar="HOURS", help="Time by which the run must be done.")] = None
    device_hours_between_failures: Annotated[
        float | None, Option(metavar="HOURS", help="Mean hours of one device between failures. Default: 50,000.")
    ] = None
    restart_s: Annotated[
        float | None, Option(metavar="SECONDS", help="Time from a failure until the job runs again. Default: 600.")
    ] = None
    checkpoint_s: Annotated[
        float | None,
        Option(metavar="SECONDS", help="Time to save a checkpoint. Default: weights and optimizer at 1 GB/s a node."),
    ] = None
    checkpoint_every_min: Annotated[
        float | None,
        Option(metavar="MINUTES", help="Time between checkpoints, with --checkpoint-s. Default: the best."),
    ] = None
    training_watts: Annotated[
        float | None, Option(metavar="WATTS", help="Power of a device while it computes, if you measured it.")
    ] = None
    idle_watts: Annotated[float | None, Option(metavar="WATTS", help="Power of a device while it waits.")] = None
    host_power_ratio: Annotated[
        float | None, Option(metavar="RATIO", help="Power of a node over that of its devices. Default: 1.4.")
    ] = None
    pue: Annotated[
        float | None, Option(metavar="RATIO", help="Power of the facility over that of its nodes. Default: 1.")
    ] = None
    grid: Annotated[
        float | None,
        Option(metavar="GRAMS", help="Emissions of the grid, g of CO2 for each kWh. Default: none are shown."),
    ] = None
    runs: Annotated[int, Option(min=1, max=1_000_000, help="Simulated runs.")] = 10_000


def run_of(options: RunOptions, tokens_per_sample: int | None) -> dict[str, Any]:
    """Work, price, deadline, failures and power as fields of a request.

    Raises
    ------
    InputError
        Naming the option and what would be right.
    """
    deadline_s = None if options.deadline_h is None else options.deadline_h * HOUR_S
    every_s = None if options.checkpoint_every_min is None else options.checkpoint_every_min * MINUTE_S
    if every_s is not None and options.checkpoint_s is None:
        raise InputError("--checkpoint-every-min: needs --checkpoint-s, the time to save a checkpoint")
    failures = {
        "device_hours_between_failures": options.device_hours_between_failures,
        "restart_seconds": options.restart_s,
    }
    power = {
        "idle_watts": options.idle_watts,
        "training_watts": options.training_watts,
        "host_power_ratio": options.host_power_ratio,
        "power_usage_effectiveness": options.pue,
        "grid_grams_per_kilowatt_hour": options.grid,
    }
    for option, value, fact in (
        ("--price", options.price, facts.ESTIMATE_RUN_REQUEST["price_per_node_hour"]),
        ("--deadline-h", deadline_s, facts.ESTIMATE_RUN_REQUEST["deadline_seconds"]),
        ("--device-hours-between-failures", *_of(failures, facts.RUN_FAILURES, "device_hours_between_failures")),
        ("--restart-s", *_of(failures, facts.RUN_FAILURES, "restart_seconds")),
        ("--checkpoint-s", options.checkpoint_s, facts.COMPLETION_CHECKPOINTS["seconds"]),
        ("--checkpoint-every-min", every_s, facts.COMPLETION_CHECKPOINTS["interval_seconds"]),
        ("--training-watts", *_of(power, facts.RUN_POWER, "training_watts")),
        ("--idle-watts", *_of(power, facts.RUN_POWER, "idle_watts")),
        ("--host-power-ratio", *_of(power, facts.RUN_POWER, "host_power_ratio")),
        ("--pue", *_of(power, facts.RUN_POWER, "power_usage_effectiveness")),
        ("--grid", *_of(power, facts.RUN_POWER, "grid_grams_per_kilowatt_hour")),
    ):
        check_bounds(option, value, fact)
    checkpoints = CompletionCheckpoints(seconds=options.checkpoint_s, interval_seconds=every_s)
    return {
        "work": work_of(options, tokens_per_sample),
        "price_per_node_hour": options.price,
        "deadline_seconds": deadline_s,
        "failures": RunFailures(checkpoints=checkpoints if options.checkpoint_s is not None else None, **failures),
        "power": RunPower(**power),
        "runs_count": options.runs,
    }


def _of(values: dict[str, float | None], bounds: Any, name: str) -> tuple[float | None, Any]:
    return values[name], bounds[name]


def work_of(options: Any, tokens_per_sample: int | None) -> Work | None:
    """The work that options state as samples, epochs or tokens; None = they state none.

    Raises
    ------
    InputError
        Naming the option and what would be right.
    """
    values = {name: getattr(options, name, None) for name in ("samples", "epochs", "tokens")}
    stated = [name for name, value in values.items() if value is not None]
    if len(stated) > 1:
        raise InputError(f"--{stated[1]}: must be left out when --{stated[0]} is given: both state the work")
    for name, value in values.items():
        check_bounds(f"--{name}", value, facts.WORK["epochs" if name == "epochs" else "samples"])
    tokens = values.pop("tokens")
    if tokens is not None:
        if tokens_per_sample is None:
            raise InputError("--tokens: the tokens of a sample are not known; state --samples")
        return Work(samples=tokens / tokens_per_sample)
    return Work(**values) if stated else None
