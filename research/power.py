"""Errors of the law of device power, on published measurements that it does not see: `python research/power.py`.

`power.csv` holds mean power of whole training runs at the board's limit, transcribed from two publications:
Zeus (You, Chung, Chowdhury: Zeus, NSDI 2023; github.com/ml-energy/zeus, `zeus_nsdi23/trace`, Apache-2.0), and
Perseus (Chung et al.: Reducing energy bloat in large model training, SOSP 2024; same repository, `sosp24_data`,
stage profile of GPT-3 at the highest clock, forward and backward pass). Rows are those whose device is busy: batches at
which the network waits for the host (ShuffleNet below 256, BERT on A40 below 32) and NCF, which does nothing but wait,
are left out; NCF at the largest batch gives the power of a waiting device.
"""

import csv
import itertools
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import fmean, stdev
from typing import TypeAlias

from nodewise.completion.run_energy import OTHER_SHARE, TRANSFORMER_SHARE

Row: TypeAlias = dict[str, str]
TABLE = Path(__file__).with_name("power.csv")


def rows() -> list[Row]:
    """All rows of the table."""
    with TABLE.open() as file:
        return list(csv.DictReader(file))


def watts(row: Row) -> float:
    """Measured power."""
    return float(row["watts"])


def share(row: Row) -> float:
    """Measured power divided by the limit."""
    return watts(row) / float(row["limit_watts"])


def is_transformer(row: Row) -> bool:
    """Whether the workload is a transformer."""
    return row["kind"] == "transformer"


def by(table: Iterable[Row], *names: str) -> dict[tuple[str, ...], list[Row]]:
    """Rows by values of columns."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in table:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return groups


def mean_share(table: Iterable[Row]) -> float:
    """Mean over workloads of the mean share of the limit, so that a workload with more batches weighs no more."""
    return fmean(fmean(map(share, group)) for group in by(table, "device", "workload").values())


def held_out_errors(table: list[Row], *names: str) -> list[tuple[Row, float]]:
    """|predicted / measured - 1| of each row, by shares learned from all rows that differ from it in all columns."""
    errors = []
    for row in table:
        others = [
            each
            for each in table
            if all(each[name] != row[name] for name in names) and is_transformer(each) == is_transformer(row)
        ]
        if others:
            errors.append((row, abs(mean_share(others) / share(row) - 1.0)))
    return errors


def own_run_errors(table: list[Row]) -> list[tuple[Row, float]]:
    """Errors of the other batches, by the power of one measured batch of the same job, the middle one."""
    errors = []
    for group in by(table, "device", "workload").values():
        own = group[len(group) // 2]
        errors += [(row, abs(watts(own) / watts(row) - 1.0)) for row in group if row is not own]
    return errors


def limit_errors(table: list[Row]) -> list[tuple[Row, float]]:
    """Errors of the simple rule: the limit times the utilisation, which is 1 in these rows."""
    return [(row, abs(1.0 / share(row) - 1.0)) for row in table]


def tell(name: str, errors: list[tuple[Row, float]], of: Callable[[Row], bool] = lambda _: True) -> None:
    """One line of the report. Joules per sample are watts over samples/s: the same errors at a measured throughput."""
    chosen = sorted(error for row, error in errors if of(row))
    within = [sum(error <= most for error in chosen) / len(chosen) for most in (0.05, 0.10)]
    print(
        f"{name:58} {len(chosen):3} rows: mean {100 * fmean(chosen):5.1f} %, largest {100 * chosen[-1]:5.1f} %, "
        f"within 5 % {100 * within[0]:3.0f} %, within 10 % {100 * within[1]:3.0f} %"
    )


def utilisations(table: list[Row]) -> None:
    """By workload, how A40 compares with V100 in the fp32 peak that it reaches, and in the share of the limit.

    At the batches that both devices ran. Utilisation is operations by epoch time and peak (data sheets of the
    catalogue), so its ratio needs no count of operations. It is what the shares of workloads other than transformers
    lack: it falls where arithmetic no longer bounds a step, and the share follows it.
    """
    first, second = "V100-PCIe", "A40"
    peaks = {first: 14.0e12, second: 37.4e12}
    for (workload,), group in by(table, "workload").items():
        runs = {(row["device"], row["batch"]): row for row in group}
        pairs = [
            (row, runs[second, batch])
            for (device, batch), row in runs.items()
            if device == first and (second, batch) in runs
        ]
        if pairs:
            faster = fmean(float(a["epoch_seconds"]) / float(b["epoch_seconds"]) for a, b in pairs)
            shares = fmean(share(b) / share(a) for a, b in pairs)
            print(
                f"{workload:20} {second} over {first}: speed {faster:.2f}, utilisation of fp32 "
                f"{faster * peaks[first] / peaks[second]:.2f}, share of the limit {shares:.2f}"
            )


def main() -> None:
    """Print the shares and the errors."""
    table = rows()
    for kind, group in itertools.groupby(sorted(table, key=is_transformer), key=is_transformer):
        of_workloads = [fmean(map(share, each)) for each in by(group, "device", "workload").values()]
        name = "transformers" if kind else "others"
        print(f"{name}: share of the limit {fmean(of_workloads):.3f}, deviation {stdev(of_workloads):.3f}")
    print(f"in use: transformers {TRANSFORMER_SHARE}, others {OTHER_SHARE}")
    for which, of in (("transformers", is_transformer), ("others", lambda row: not is_transformer(row))):
        tell(f"{which}, device left out", held_out_errors(table, "device"), of)
        tell(f"{which}, workload left out", held_out_errors(table, "workload"), of)
        tell(f"{which}, one own batch measured", own_run_errors(table), of)
        tell(f"{which}, limit x utilisation", limit_errors(table), of)
    perseus = [(row, error) for row, error in held_out_errors(table, "source") if row["source"] == "perseus"]
    tell("GPT-3 on A40 (Perseus), source left out", perseus)
    utilisations(table)


if __name__ == "__main__":
    main()
