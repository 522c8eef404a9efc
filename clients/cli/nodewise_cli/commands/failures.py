"""`nodewise failures`: how often devices of a cluster fail, from the recorded events of its nodes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from typer import Argument, Option

from nodewise_cli.commands.options import AsJson
from nodewise_cli.console import print_json, say
from nodewise_cli.failures import InputError
from nodewise_cli.inputs.node_events import Outage, read_outages
from nodewise_cli.views.numbers import count_of, format_number, lasting

__all__ = ["failures"]

COVERAGE: Final = 0.9
HOUR_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class FailureRate:
    """Failures in so many device-hours, and device-hours between two with their interval; ``upper`` None = no bound."""

    failures: int
    nodes: int
    device_hours: float
    lower: float
    upper: float | None
    mean_outage_s: float | None

    @property
    def between(self) -> float:
        """The value to state: the mean, or its lower bound where nothing failed."""
        return self.device_hours / self.failures if self.failures else self.lower


def failures(
    events: Annotated[
        Path,
        Argument(
            metavar="EVENTS",
            help="Output of `sacctmgr show event -P start=...` (Slurm) or of `kubectl get events -A -o json`.",
        ),
    ],
    nodes: Annotated[int, Option(min=1, help="Nodes of the cluster, also those without events.")],
    devices_per_node: Annotated[int, Option(min=1, help="Devices in a node.")],
    hours: Annotated[float, Option(metavar="HOURS", min=0.0, help="Length of the time that the events cover.")],
    as_json: AsJson = False,
) -> None:
    """Estimate the mean device-hours between failures of a cluster from the events of its nodes.

    Failures are nodes that went down or failed (Slurm) or were not ready (Kubernetes, which deletes events after an
    hour: collect them); nodes that were drained first are not counted. `nodewise card` and `nodewise schedule` take the
    result as --device-hours-between-failures.
    """
    outages = read_outages(events)
    begins_s = [outage.begin_s for outage in outages]
    span = (max(begins_s) - min(begins_s)) / HOUR_S if outages else 0.0
    if hours < span:
        raise InputError(f"--hours: must be at least {span:.4g}, the hours between the first event and the last")
    rate = _rate(outages, nodes, devices_per_node, hours)
    if as_json:
        print_json(_document(rate))
    else:
        _show(rate)


def _rate(outages: list[Outage], nodes: int, devices_per_node: int, hours: float) -> FailureRate:
    """The rate, with the quantiles of Gamma laws of F and F + 1 events (F. Garwood, Biometrika 28, 1936).

    Raises
    ------
    InputError
    """
    from scipy.special import gammaincinv

    known_s = [outage.end_s - outage.begin_s for outage in outages if outage.end_s is not None]
    device_hours = devices_per_node * (nodes * hours - sum(known_s) / HOUR_S)
    failed_nodes = len({outage.node for outage in outages})
    if failed_nodes > nodes:
        raise InputError(f"--nodes: must be at least {failed_nodes}, the nodes with failures, found {nodes}")
    if device_hours <= 0.0:
        raise InputError(f"--hours: must be more than the nodes were down, found {hours:g}")
    count, tail = len(outages), 0.5 * (1.0 - COVERAGE)
    return FailureRate(
        failures=count,
        nodes=failed_nodes,
        device_hours=device_hours,
        lower=device_hours / float(gammaincinv(count + 1, 1.0 - tail)),
        upper=device_hours / float(gammaincinv(count, tail)) if count else None,
        mean_outage_s=sum(known_s) / len(known_s) if known_s else None,
    )


def _document(rate: FailureRate) -> dict[str, Any]:
    return {
        "failures": rate.failures,
        "nodes": rate.nodes,
        "device_hours": rate.device_hours,
        "device_hours_between_failures": rate.between,
        "lower_device_hours": rate.lower,
        "upper_device_hours": rate.upper,
        "coverage": COVERAGE,
        "mean_outage_s": rate.mean_outage_s,
    }


def _show(rate: FailureRate) -> None:
    total, low = format_number(rate.device_hours), format_number(rate.lower)
    if rate.upper is None:
        say(f"No failure in {total} device-hours: more than {low} device-hours between failures, with 95 %.")
    else:
        say(
            f"{count_of(rate.failures, 'failure')} of {count_of(rate.nodes, 'node')} in {total} device-hours: "
            f"{format_number(rate.between)} device-hours between failures (90 %: {low} to {format_number(rate.upper)})."
        )
    if rate.mean_outage_s is not None:
        say(f"An outage lasts {lasting(rate.mean_outage_s)} on average.")
    say(f"State it as --device-hours-between-failures {rate.between:.0f}, or deviceHoursBetweenFailures of a pool.")
