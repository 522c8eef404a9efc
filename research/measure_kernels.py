"""What modern devices reach of their peaks and links: matrix products, flash attention, collectives inside a node.

    python research/measure_kernels.py $NODEWISE_DATA/kernels

prints the tables of `kernels.md`; with `--entries`, the entries of the catalogue that hold the same.

    matrix products  t = ramp_s + F / (share x peak), F = 2 m n k; each of m, n, k at least 1024
    attention        F = 2 batch s^2 heads head_size: forward, the causal half alone
    collectives      bus = traffic / t of the largest size, traffic = S (n - 1) / n, twice that for an all-reduce

Shares are of the catalogue's peak without sparsity. What is measured is a forward pass of one kernel, repeated: what a
training step reaches is fitted to steps.

Source of the times: ai-dynamo/aiconfigurator (095f58a5), Apache-2.0.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import numpy as np

from nodewise.catalogue.loading import load_catalogue
from nodewise.plugin import Catalogue, Floats
from nodewise_laws.collectives import affine_s

PRECISIONS: Final = {"bfloat16": "bf16", "fp8": "fp8", "fp8_block": "fp8_block", "nvfp4": "fp4"}
PEAKS: Final = {"bf16": "bf16", "fp8": "fp8", "fp8_block": "fp8", "fp4": "fp4"}
SMALLEST: Final = 1024
"""Of m, n and k: below, a product waits for memory (these devices make 150 to 600 FLOP while a byte is read)."""
LARGE_FLOPS: Final = 2.0**38
"""Sizes at which every device has left its ramp: products of training, and attention of long sequences."""
SOURCE: Final = "ai-dynamo/aiconfigurator (095f58a5), Apache-2.0: kernels of inference, forward passes alone"
QUANTILE: Final = 0.99
"""Stands for the largest share: single rows are at the mercy of clocks."""
COLLECTIVES: Final = ("all_reduce", "all_gather", "reduce_scatter", "alltoall")

Rows = dict[tuple[str, ...], list[tuple[float, ...]]]


def read(path: Path, keys: tuple[str, ...], numbers: tuple[str, ...]) -> Rows:
    """Numbers of a table's rows by the device and further keys."""
    found: Rows = defaultdict(list)
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found[tuple(row[key] for key in ("device", *keys))].append(tuple(float(row[name]) for name in numbers))
    return found


def peak_of(catalogue: Catalogue, device: str, precision: str) -> float | None:
    """FLOP/s; None = the catalogue does not say."""
    return (catalogue.device(device) or {}).get(f"{precision}_flops_per_s")


def name_of(catalogue: Catalogue, device: str) -> str:
    """The name of the catalogue's entry."""
    return next(each.name for each in catalogue.listed if each.facts is catalogue.device(device))


def shares_of(flops: Floats, seconds: Floats, peak: float) -> dict[str, float]:
    """Largest share, median share of large sizes, and t = ramp_s + F / (share x peak) by relative errors."""
    shares = flops / seconds / peak
    ramp_s, per_flop = affine_s(flops, seconds)
    return {
        "largest_share": float(np.quantile(shares, QUANTILE)),
        "large_share": float(np.median(shares[flops >= LARGE_FLOPS])),
        "fitted_share": 1.0 / (per_flop * peak),
        "ramp_s": ramp_s,
        "half_flops": ramp_s / per_flop,
    }


def matrix_products(folder: Path, catalogue: Catalogue) -> Iterable[tuple[str, str, dict[str, float]]]:
    """By device and format: largest share, median share of large products, the ramp, the size of half the share."""
    rows = read(folder / "matrix_products.csv", ("gemm_dtype",), ("m", "n", "k", "latency_ms"))
    for (device, kind), values in sorted(rows.items()):
        precision = PRECISIONS[kind]
        peak = peak_of(catalogue, device, PEAKS[precision])
        if peak is None:
            continue
        table = np.array(values)
        table = table[table[:, :3].min(axis=1) >= SMALLEST]
        flops, seconds = 2.0 * table[:, :3].prod(axis=1), 1e-3 * table[:, 3]
        yield name_of(catalogue, device), precision, shares_of(flops, seconds, peak)


def attention(folder: Path, catalogue: Catalogue) -> Iterable[tuple[str, int, dict[str, float]]]:
    """By device and head size, bf16 with its keys in bf16: as matrix products; the slow Triton fallback left out."""
    numbers = ("batch_size", "sequence_length", "attention_heads", "latency_ms")
    rows = read(folder / "attention.csv", ("head_size", "kernel_source", "attn_dtype", "kv_cache_dtype"), numbers)
    for (device, head_size, kernel, *formats), values in sorted(
        rows.items(), key=lambda each: (each[0][0], int(each[0][1]))
    ):
        peak = peak_of(catalogue, device, "bf16")
        if peak is None or formats != ["bfloat16", "bfloat16"] or "triton" in kernel:
            continue
        batch, sequence, heads, milliseconds = np.array(values).T
        flops = 2.0 * batch * sequence**2 * heads * float(head_size)
        yield name_of(catalogue, device), int(head_size), shares_of(flops, 1e-3 * milliseconds, peak)


def collectives(folder: Path, catalogue: Catalogue) -> Iterable[tuple[str, str, int, dict[str, float]]]:
    """By device, collective and ranks: bus bandwidth at the largest size, as a share of the link; smallest latency."""
    rows = read(folder / "collectives.csv", ("collective", "ranks", "dtype"), ("message_bytes", "latency_ms"))
    in_order = sorted(rows.items(), key=lambda each: (each[0][0], COLLECTIVES.index(each[0][1]), int(each[0][2])))
    for (device, collective, text, dtype), values in in_order:
        facts = catalogue.device(device)
        if facts is None or dtype != "half":
            continue
        ranks = int(text)
        size, milliseconds = np.array(sorted(values)).T
        bus = size * (ranks - 1) / ranks * (2.0 if collective == "all_reduce" else 1.0) / (1e-3 * milliseconds)
        yield (
            name_of(catalogue, device),
            collective,
            ranks,
            {
                "bus_bytes_per_s": float(bus[-1]),
                "link_share": float(bus[-1] / facts["intra_node_link_bytes_per_s"]),
                "latency_s": 1e-3 * float(milliseconds.min()),
                "half_bytes": float(size[np.flatnonzero(bus >= 0.5 * bus[-1])[0]]),
            },
        )


def entries(folder: Path, catalogue: Catalogue) -> Iterable[str]:
    """Those of the catalogue, `server/nodewise/catalogue/facts.toml`, in TOML."""
    heads: dict[str, dict[int, float]] = defaultdict(dict)
    for device, head_size, of in attention(folder, catalogue):
        heads[device][head_size] = round(of["large_share"], 2)
    for device, precision, of in matrix_products(folder, catalogue):
        # One table of fp8 an entry: that of scales by tensor and row, which is affine in the work.
        if precision == "fp8_block":
            continue
        yield f'[efficiencies."{device} {precision}"]\ndevice = "{device}"\nprecision = "{precision}"'
        yield f"matrix_share = {of['fitted_share']:.2f}"
        if precision == "bf16":
            yield f"head_sizes = {list(heads[device])}\nattention_shares = {list(heads[device].values())}"
        yield f'source = "{SOURCE}"\n'


def main() -> None:
    """Print the tables, or the entries."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of matrix_products.csv, attention.csv and collectives.csv")
    parser.add_argument(
        "--entries", action="store_true", help="print the catalogue's entries in the place of the tables"
    )
    arguments = parser.parse_args()
    folder, catalogue = arguments.folder, load_catalogue()
    if arguments.entries:
        print("\n".join(entries(folder, catalogue)))
        return
    _print_shares("format", matrix_products(folder, catalogue))
    _print_shares("head size", attention(folder, catalogue))
    print("| device | collective | ranks | bus, GB/s | of the link | latency, us | half at, MiB |")
    print("|---|---|---|---|---|---|---|")
    for device, collective, ranks, of in collectives(folder, catalogue):
        print(
            f"| {device} | {collective} | {ranks} | {of['bus_bytes_per_s'] / 1e9:.1f} | {of['link_share']:.2f} "
            f"| {of['latency_s'] * 1e6:.1f} | {of['half_bytes'] / 2**20:.3g} |"
        )


def _print_shares(what: str, rows: Iterable[tuple[str, str | int, dict[str, float]]]) -> None:
    print(
        f"| device | {what} | largest share | of large ones | fitted | ramp, us | half at, GFLOP |\n"
        "|---|---|---|---|---|---|---|"
    )
    for device, kind, of in rows:
        print(
            f"| {device} | {kind} | {of['largest_share']:.2f} | {of['large_share']:.2f} | {of['fitted_share']:.2f} "
            f"| {of['ramp_s'] * 1e6:.0f} | {of['half_flops'] / 1e9:.3g} |"
        )
    print()


if __name__ == "__main__":
    main()
