"""Errors of the law of device power, on published measurements that it does not see: `python research/power.py`.

`power.csv` holds mean power of training runs at the board's limit, transcribed from two publications:
Zeus (You, Chung, Chowdhury: Zeus, NSDI 2023; github.com/ml-energy/zeus, `zeus_nsdi23/trace`, Apache-2.0), one device,
and Perseus (Chung et al.: Reducing energy bloat in large model training, SOSP 2024; same repository, `sosp24_data`):
pipelines at the highest limit, whose `compute_ratio` is m / (m + p - 1) for m micro-batches and p stages, and one stage
of GPT-3 at the highest clock. Rows are those whose device is busy. Left out are batches at which the network waits for
the host (ShuffleNet below 256, DeepSpeech2 below 16, BERT on A40 below 32 and elsewhere below 8), T5 on A40, which
takes 2.7 times as long as on half as many A100 (the others at most 1.4 times), and NCF, which does nothing but wait;
NCF at the largest batch gives the power of a waiting device.

The floor of what a profile can tell: at one speed, the power of DeepSpeech2 on V100 falls by 18 % from batch 32 to 128,
and its share of what transformers draw differs by 20 % between devices. Neither operations nor parameters say so.
"""

import csv
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import fmean, median, stdev
from typing import TypeAlias

from nodewise.completion.run_energy import (
    IDLE_SHARE,
    MEMORY_BOUND_SHARE,
    OTHER_SHARE,
    TRANSFORMER_SHARE,
    DevicePower,
    device_watts,
)

Row: TypeAlias = dict[str, str]
Errors: TypeAlias = list[tuple[Row, float]]
TABLE = Path(__file__).with_name("power.csv")
PEAKS = {"P100": 9.3e12, "V100-PCIe": 14.0e12, "RTX6000": 16.3e12, "A40": 37.4e12}
"""FLOP/s of fp32 by the data sheets; Zeus trained its convolutions in fp32."""
FLOPS_PER_EPOCH = {"resnet50": 24.6e9 * 1_281_167, "shufflenetv2": 0.27e9 * 50_000}
"""Forward and backward pass: three times 4.1 G multiply-adds (He et al., CVPR 2016) and 146 M (Ma et al., ECCV 2018,
here at 32 x 32 pixels, with as many positions as the network has there), and the samples of an epoch."""


def rows() -> list[Row]:
    """All rows of the table."""
    with TABLE.open() as file:
        return list(csv.DictReader(file))


def training_watts(row: Row) -> float:
    """Power while the device computes: of a pipeline, measured power without what it draws while it waits."""
    ratio, limit, measured = (float(row[name]) for name in ("compute_ratio", "limit_watts", "watts"))
    idle = IDLE_SHARE * limit
    unit = DevicePower(idle_watts=0.0, training_watts=1.0, log_spread=0.0)
    return idle + (measured - idle) / device_watts(unit, ratio)


def is_transformer(row: Row) -> bool:
    """Whether the workload is a transformer."""
    return row["kind"] == "transformer"


def by(table: Iterable[Row], *names: str) -> dict[tuple[str, ...], list[Row]]:
    """Rows by values of columns."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in table:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return groups


def of_workloads(table: Iterable[Row], value: Callable[[Row], float]) -> list[float]:
    """Means of a value, one for each workload on each device, so that a workload with more batches weighs no more."""
    return [fmean(map(value, group)) for group in by(table, "device", "workload").values()]


def level(table: Iterable[Row], device: str) -> float:
    """Watts of a device while it trains transformers."""
    return fmean(
        of_workloads((row for row in table if row["device"] == device and is_transformer(row)), training_watts)
    )


def share(row: Row) -> float:
    """Power divided by the limit."""
    return training_watts(row) / float(row["limit_watts"])


def utilisation(row: Row) -> float:
    """Operations per second divided by the peak."""
    return FLOPS_PER_EPOCH[row["workload"]] / float(row["epoch_seconds"]) / PEAKS[row["device"]]


def memory_bound_share(table: Iterable[Row], levels: dict[str, float]) -> float:
    """The share m of the law m + (1 - m) u, as the mean of what each workload on each device gives."""

    def of_row(row: Row) -> float:
        used = utilisation(row)
        return (training_watts(row) / levels[row["device"]] - used) / (1.0 - used)

    return fmean(of_workloads(table, of_row))


def left_out_errors(table: Iterable[Row], name: str, law: Callable[[list[Row], Row], float | None]) -> Errors:
    """|predicted / measured - 1| of each row, by a law that is given the rows that differ from it in a column."""
    every = list(table)
    errors = []
    for row in every:
        predicted = law([each for each in every if each[name] != row[name]], row)
        if predicted is not None:
            errors.append((row, abs(predicted / training_watts(row) - 1.0)))
    return errors


def by_limit(others: list[Row], row: Row) -> float:
    """Of a device without measurements: the median share of the limit of transformers."""
    return median(of_workloads(others, share)) * float(row["limit_watts"])


def by_device(others: list[Row], row: Row) -> float | None:
    """Of a device whose power under other transformers is known: the same; None = there are none."""
    return level(others, row["device"]) if any(each["device"] == row["device"] for each in others) else None


def ratio_of(levels: dict[str, float]) -> Callable[[Row], float]:
    """Power divided by that under transformers on the same device."""
    return lambda row: training_watts(row) / levels[row["device"]]


def by_mean_share(levels: dict[str, float]) -> Callable[[list[Row], Row], float]:
    """Of other networks on a known device: the mean share of what transformers draw."""
    return lambda others, row: levels[row["device"]] * fmean(of_workloads(others, ratio_of(levels)))


def by_utilisation(levels: dict[str, float]) -> Callable[[list[Row], Row], float]:
    """Of other networks on a known device: m + (1 - m) u of what transformers draw."""

    def predict(others: list[Row], row: Row) -> float:
        memory_bound = memory_bound_share(others, levels)
        return levels[row["device"]] * (memory_bound + (1.0 - memory_bound) * utilisation(row))

    return predict


def own_run_errors(table: list[Row]) -> Errors:
    """Errors of the other batches, by the power of one measured batch of the same job, the middle one."""
    errors = []
    for group in by(table, "device", "workload").values():
        own = group[len(group) // 2]
        errors += [(row, abs(training_watts(own) / training_watts(row) - 1.0)) for row in group if row is not own]
    return errors


def limit_errors(table: list[Row]) -> Errors:
    """Errors of the simple rule: the limit times the utilisation, which is 1 in these rows."""
    return [(row, abs(1.0 / share(row) - 1.0)) for row in table]


def tell(name: str, errors: Errors) -> None:
    """One line of the report. Joules per sample are watts over samples/s: the same errors at a measured throughput."""
    values = sorted(error for _, error in errors)
    within = [sum(error <= most for error in values) / len(values) for most in (0.05, 0.10)]
    print(
        f"{name:64} {len(values):3} rows: mean {100 * fmean(values):5.1f} %, largest {100 * values[-1]:5.1f} %, "
        f"within 5 % {100 * within[0]:3.0f} %, within 10 % {100 * within[1]:3.0f} %"
    )


def main() -> None:
    """Print levels, shares and errors."""
    table = rows()
    transformers = [row for row in table if is_transformer(row)]
    others = [row for row in table if not is_transformer(row)]
    levels = {device: level(table, device) for (device,) in by(table, "device")}
    for device, watts in levels.items():
        print(f"{device}: {watts:.0f} W while it trains transformers")
    ratio = ratio_of(levels)
    convolutions = [row for row in others if row["workload"] in FLOPS_PER_EPOCH]
    print(f"transformers: median share of the limit {median(of_workloads(transformers, share)):.3f}", end="; ")
    print(f"in use: {TRANSFORMER_SHARE}")
    ratios = of_workloads(others, ratio)
    print(f"others: share of it {fmean(ratios):.3f}, deviation {stdev(ratios):.3f}; in use: {OTHER_SHARE}")
    print(f"memory-bound: {memory_bound_share(convolutions, levels):.3f}; in use: {MEMORY_BOUND_SHARE}")
    for (device, workload), group in by(others, "device", "workload").items():
        used = f", utilisation {fmean(map(utilisation, group)):.2f}" if workload in FLOPS_PER_EPOCH else ""
        low, high = min(map(ratio, group)), max(map(ratio, group))
        print(f"  {workload:17} {device:14} {fmean(map(ratio, group)):.2f} ({low:.2f} to {high:.2f}){used}")

    tell("transformers, known device, workload left out", left_out_errors(transformers, "workload", by_device))
    tell("transformers, known device, source left out", left_out_errors(transformers, "source", by_device))
    tell("transformers, device left out, by its limit", left_out_errors(transformers, "device", by_limit))
    tell("transformers, limit x utilisation", limit_errors(transformers))
    for name in ("device", "workload", "source"):
        tell(
            f"others, known device, {name} of the share left out", left_out_errors(others, name, by_mean_share(levels))
        )
    for name in ("device", "workload"):
        tell(
            f"convolutions, by the mean share, {name} left out",
            left_out_errors(convolutions, name, by_mean_share(levels)),
        )
        tell(
            f"convolutions, by utilisation, {name} left out",
            left_out_errors(convolutions, name, by_utilisation(levels)),
        )
    tell("others, limit x utilisation", limit_errors(others))
    tell("transformers, one own batch measured", own_run_errors(transformers))
    tell("others, one own batch measured", own_run_errors(others))


if __name__ == "__main__":
    main()
