"""Score layered networks, predicted from facts alone, on measured tables of published networks.

Each job of a table whose model has a layer table in `examples/layers` is predicted without any of its runs, by its
device's entry in the catalogue and by the facts below.

    python research/score_layered.py elasticflow_a100_8_to_64.csv tf_ec2_sync_ps.csv
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from layer_files import layers_of
from nodewise.catalogue.loading import load_catalogue
from nodewise.plugin import Configurations, Network, Options, Profile, SyncMode, Workload, as_ints
from nodewise_partitioning.layered.model import LayeredModel

LAYERS: Final = Path(__file__).parent.parent / "examples" / "layers"


@dataclass(frozen=True, slots=True)
class Known:
    """What a table's source says besides its rows."""

    layers: str
    precision: str
    link_bytes_per_s: float


KNOWN: Final = {
    # Eight A100 and eight InfiniBand HDR adapters a node (D. Gu et al., "ElasticFlow", ASPLOS 2023); convolutions of
    # PyTorch go by TF32 unless told otherwise.
    ("vgg16", "A100"): Known("vgg16", "tf32", 200e9),
    # Instances p2.8xlarge of Amazon EC2: eight GPUs, 10 Gbit/s (TensorFlow's benchmarks page, 2017).
    ("InceptionV3", "K80"): Known("inception_v3", "fp32", 1.25e9),
}
MODES: Final = {"sync": SyncMode.SYNC, "async": SyncMode.ASYNC, "allreduce": SyncMode.ALLREDUCE}


def predicted_steps_per_s(rows: Sequence[dict[str, str]], known: Known) -> list[float]:
    """Of each row, by facts alone."""
    layers = layers_of(LAYERS / f"{known.layers}.csv")
    profile = Profile(
        workload=Workload(layers=layers, precision=known.precision),
        network=Network(link_bytes_per_s=known.link_bytes_per_s),
    )

    def column(name: str) -> list[int]:
        return [int(row[name] or 0) for row in rows]

    asked = Configurations.of(
        len(rows), nodes=column("nodes"), workers=column("workers"), device=rows[0]["device"]
    ).replaced(
        sync_mode=as_ints([int(MODES[row["sync"]]) for row in rows]),
        parameter_servers=as_ints(column("parameter_servers")),
        batch_per_worker=as_ints(column("batch_per_worker")),
    )
    answer = LayeredModel(profile, load_catalogue()).predict(asked, Options())
    steps: list[float] = (asked.cycles_per_step() / answer.step_s).tolist()
    return steps


def main() -> None:
    """Print each job's rows and errors."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tables", type=Path, nargs="+")
    logs: list[float] = []
    print("job                   workers  measured steps/s  predicted    ln ratio  ratio to the job's first row")
    for table in parser.parse_args().tables:
        with table.open(encoding="utf-8", newline="") as lines:
            found = list(csv.DictReader(lines))
        for job in dict.fromkeys(row["job"] for row in found):
            rows = [row for row in found if row["job"] == job]
            known = KNOWN.get((job.split("/", maxsplit=1)[0], rows[0]["device"]))
            if known is None:
                continue
            measured = [float(row["steps_per_s"]) for row in rows]
            steps = predicted_steps_per_s(rows, known)
            for row, true, said in zip(rows, measured, steps, strict=True):
                logs.append(float(np.log(said / true)))
                print(
                    f"{job:20} {row['workers']:>8} {true:17.4g} {said:10.4g} {logs[-1]:11.2f} "
                    f"{true / measured[0]:12.2f} measured {said / steps[0]:6.2f} predicted"
                )
    if logs:
        print(f"mean |ln ratio| {np.abs(logs).mean():.2f}, mean ln ratio {np.mean(logs):.2f}, {len(logs)} rows")


if __name__ == "__main__":
    main()
