"""Projected against measured epochs of two convolutional networks on V100, beside ParaDL's projections of them.

The table is table VIII of A. N. Kahira et al., "An oracle for guiding large-scale model/hybrid parallel training of
convolutional neural networks", HPDC 2021 (technical report): seconds of an epoch on 32 to 256 GPUs of the ABCI
supercomputer in four strategies. ParaDL projects from layers that were timed on the GPU; here every number comes from
layer tables, the catalogue and the cost forms of that paper. The table does not say its batches: see `BATCH`.

    python research/compare_paradl.py paradl_table8_measured_vs_projected.csv
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from layer_files import layers_of
from nodewise.catalogue.loading import load_catalogue
from nodewise_laws.collectives import hierarchical_all_reduce_s, ring_all_gather_s
from nodewise_partitioning.layered.costs import LayerCosts
from nodewise_partitioning.layered.devices import Device, device_of

LAYERS: Final = Path(__file__).parent.parent / "examples" / "layers"
SAMPLES: Final = 1_281_167
"""Images of ImageNet's training set, an epoch."""
PER_NODE: Final = 4
NODE_BYTES_PER_S: Final = 25e9
"""ABCI's nodes: four V100, two InfiniBand EDR adapters."""
MESSAGE_S: Final = 20e-6
"""Start of a collective's message, as ParaDL states it."""
BATCH: Final = {"Filter": 32, "Channel": 32, "Filter + data": 64, "Spatial + data": 256}
"""Samples of a group that shares the network, our assumption: the hybrids' as in the authors' published logs of
ResNet-50 (64 and 256 of a node of four), of whole clusters what one device's memory holds."""


def compute_s(costs: LayerCosts, device: Device, batch: int, parts: int) -> float:
    """Both passes of a batch over ``parts`` devices."""
    return float(device.work(costs, batch).flops.sum()) / device.flops_per_s / parts


def model_parallel(costs: LayerCosts, device: Device, gpus: int, batch: int) -> tuple[float, float]:
    """Every layer over all devices: an all-gather forward, an all-reduce backward, of each output but the last."""
    rate = NODE_BYTES_PER_S if gpus > PER_NODE else device.link_bytes_per_s
    gathers = sum(
        ring_all_gather_s(batch * float(size), float(gpus), MESSAGE_S, rate) for size in costs.activation_bytes[:-1]
    )
    return compute_s(costs, device, batch, gpus), 3.0 * gathers


def filter_data(costs: LayerCosts, device: Device, gpus: int, batch: int) -> tuple[float, float]:
    """Layers over the devices of a node, nodes data-parallel."""
    compute, _ = model_parallel(costs, device, PER_NODE, batch)
    gathers = sum(
        ring_all_gather_s(batch * float(size), float(PER_NODE), MESSAGE_S, device.link_bytes_per_s)
        for size in costs.activation_bytes[:-1]
    )
    # Each device's share of the gradients goes around a ring of its own; four share a node's adapters.
    nodes = gpus / PER_NODE
    share = float(costs.parameter_bytes.sum()) / PER_NODE
    across = 2.0 * (nodes - 1.0) * (MESSAGE_S + share / (nodes * NODE_BYTES_PER_S / PER_NODE))
    return compute, 3.0 * gathers + across


def spatial_data(costs: LayerCosts, device: Device, gpus: int, batch: int) -> tuple[float, float]:
    """Strips of each image over the devices of a node, nodes data-parallel."""
    halos = 2.0 * sum(
        2.0 * MESSAGE_S + 2.0 * batch * float(halo) / device.link_bytes_per_s for halo in costs.halo_bytes if halo > 0.0
    )
    gradients = hierarchical_all_reduce_s(
        float(costs.parameter_bytes.sum()),
        float(PER_NODE),
        gpus / PER_NODE,
        MESSAGE_S,
        device.link_bytes_per_s,
        MESSAGE_S,
        NODE_BYTES_PER_S / PER_NODE,
    )
    return compute_s(costs, device, batch, PER_NODE), halos + gradients


Strategy = Callable[[LayerCosts, Device, int, int], tuple[float, float]]
STRATEGIES: Final[Mapping[str, Strategy]] = {
    "Filter": model_parallel,
    "Channel": model_parallel,
    "Filter + data": filter_data,
    "Spatial + data": spatial_data,
}


def epoch_s(costs: LayerCosts, device: Device, strategy: str, gpus: int) -> tuple[float, float]:
    """Compute and communication of an epoch."""
    batch = BATCH[strategy]
    groups = gpus // PER_NODE if "data" in strategy else 1
    steps = SAMPLES / (batch * groups)
    compute, communication = STRATEGIES[strategy](costs, device, gpus, batch)
    return steps * compute, steps * communication


def network(name: str) -> LayerCosts:
    """A network of the examples."""
    return LayerCosts.of(layers_of(LAYERS / f"{name}.csv"))


def main() -> None:
    """Print every cell, and both projections' errors."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("table", type=Path)
    table = parser.parse_args().table
    facts = load_catalogue().device("V100")
    device = None if facts is None else device_of(facts, "fp32")
    if device is None:
        raise SystemExit("the catalogue must hold V100 with its peak in fp32")
    networks = {"ResNet50": network("resnet50"), "VGG16": network("vgg16")}
    with table.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    print("model     gpus  strategy        measured s  here s  error %  ParaDL error %  compute here/measured")
    errors: dict[str, list[float]] = {"here": [], "ParaDL": []}
    for row in rows:
        compute, communication = epoch_s(networks[row["model"]], device, row["strategy"], int(row["gpus"]))
        measured, projected = float(row["emp_total_s"]), float(row["pred_total_s"])
        here = (compute + communication) / measured - 1.0
        errors["here"].append(here)
        errors["ParaDL"].append(projected / measured - 1.0)
        print(
            f"{row['model']:9} {row['gpus']:>4}  {row['strategy']:14} {measured:11.0f} {compute + communication:7.0f} "
            f"{100 * here:8.1f} {100 * errors['ParaDL'][-1]:15.1f} "
            f"{compute:10.0f}/{float(row['emp_comp_s_per_epoch']):.0f}"
        )
    for name, found in errors.items():
        absolute, bias = 100 * np.abs(found), 100 * np.mean(found)
        print(f"{name}: mean {absolute.mean():.1f} %, median {np.median(absolute):.1f} %, bias {bias:.1f} %")
    print(f"order of strategies (Spearman, all cells, log): {_ranks(rows, networks, device):.2f}")


def _ranks(rows: list[dict[str, str]], networks: Mapping[str, LayerCosts], device: Device) -> float:
    measured = [float(row["emp_total_s"]) for row in rows]
    here = [sum(epoch_s(networks[row["model"]], device, row["strategy"], int(row["gpus"]))) for row in rows]
    first, second = (np.argsort(np.argsort(np.log(values))) for values in (measured, here))
    found = float(np.corrcoef(first, second)[0, 1])
    return found if math.isfinite(found) else 0.0


if __name__ == "__main__":
    main()
