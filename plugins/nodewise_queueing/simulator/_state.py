"""Everything that a run reads or changes, as a few arrays of records, which its compiled functions pass around."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = [
    "AT_WORK",
    "COMPUTE",
    "COMPUTED",
    "LAW",
    "LINK",
    "LOCK",
    "PLACE",
    "RUN",
    "SERVER",
    "STATION",
    "WAITS_FOR_DOWNLOAD",
    "WORKER",
    "Records",
    "State",
]

Records = npt.NDArray[np.void]

# What a station is for. The first station is where all workers compute.
COMPUTE: Final = 0
LINK: Final = 1
LOCK: Final = 2

# How far a worker's compute phase is.
AT_WORK: Final = 0
WAITS_FOR_DOWNLOAD: Final = 1
COMPUTED: Final = 2

LAW: Final = np.dtype([("kind", "i8"), ("parameter", "f8")])
"""A `Law`."""

STATION: Final = np.dtype(
    [
        ("role", "i8"),  # COMPUTE, LINK or LOCK
        ("server", "i8"),  # server that owns it, -1 = none
        ("in_order", "i8"),  # 1 = first come, first served; 0 = processor sharing or delay
        ("present", "i8"),  # flows present
        ("head", "i8"),  # place of the first in order
        ("clock_s", "f8"),  # service given since the station was last empty: to each flow, or in all if in order
        ("seen_s", "f8"),  # time up to which the clock and the sums are true
        ("next_s", "f8"),  # time of the next completion if nothing arrives, infinite without flows
        ("last_s", "f8"),  # clock at which the last one in order will leave
        ("busy_s", "f8"),  # seconds during which some flow was present
        ("present_s", "f8"),  # flows present, integrated over time
    ]
)

PLACE: Final = np.dtype(
    [
        (
            "leave_s",
            "f8",
        ),  # clock at which the flow in this place leaves: places form a binary heap, or a ring if in order
        ("flow", "i8"),  # number of that flow
        ("rest_s", "f8"),  # service that the flow of this number will still need after it has had its first part
        ("rate", "f8"),  # service per second to a flow in service while this number of flows is present
    ]
)

WORKER: Final = np.dtype(
    [
        ("compute_s", "f8"),  # mean of its computations
        ("head_start_s", "f8"),  # upper limit of what it computes before its first cycle; 0 = it begins with a download
        ("first_parts", "i8"),  # downloads whose exposed part is not there yet
        ("rests", "i8"),  # downloads that are not there in full yet, where part of them is hidden
        ("computing", "i8"),  # AT_WORK, WAITS_FOR_DOWNLOAD or COMPUTED
        ("is_uploading", "i8"),  # 1 = this cycle's uploads have begun
        ("uploads", "i8"),  # shards that are not at their server yet
        ("pushes", "i8"),  # shards that are not applied yet
        ("waits", "i8"),  # 1 = at the barrier
        ("version", "i8"),  # of the model when the cycle began
        ("began_s", "f8"),  # times of this cycle
        ("downloaded_s", "f8"),
        ("computed_s", "f8"),
        ("uploaded_s", "f8"),
        ("pushed_s", "f8"),
    ]
)

SERVER: Final = np.dtype(
    [
        ("download_s", "f8"),  # mean service, 0 = none
        ("upload_s", "f8"),
        ("update_s", "f8"),
        ("download_at", "i8"),  # number of the station, -1 = none
        ("upload_at", "i8"),
        ("update_at", "i8"),
    ]
)

RUN: Final = np.dtype(
    [
        ("download_hidden", "f8"),  # share of a download that comes while the worker computes
        ("upload_hidden_s", "f8"),  # seconds before the end of a compute phase at which its upload begins
        ("awaited", "i8"),  # workers that a round waits for, 0 = no rounds
        ("version", "i8"),  # updates of the model, or rounds, so far
        ("arrived", "i8"),  # workers at the barrier
        ("counted", "i8"),  # cycles of a worker in the sums below
        ("dropped", "i8"),  # gradients that came too late for their round
        ("stale", "i8"),  # updates by others that the counted cycles did not know of
        ("download_s", "f8"),  # seconds that counted cycles spent in each phase
        ("compute_s", "f8"),
        ("upload_s", "f8"),
        ("update_s", "f8"),
        ("barrier_s", "f8"),
    ]
)

AT: Final = np.dtype(
    [
        ("events", "i8"),  # completions of transfers, computations and updates, the warm-up's included
        ("done", "i8"),  # updates, or rounds
        ("batch", "i8"),  # batches that have ended
        ("begin_s", "f8"),  # time at which the warm-up ended
    ]
)
"""Where a run stands."""


class State(NamedTuple):
    """A run of W workers, P servers and S stations.

    Attributes
    ----------
    random : source of the random numbers.
    laws : (3,) LAW of computations, transfers and updates.
    stations : (S,) STATION.
    places : (S, M + 1) PLACE, for flows whose numbers are 0 to M - 1.
    workers : (W,) WORKER.
    servers : (P,) SERVER.
    run : (1,) RUN.
    staleness : (n,) counted cycles by their staleness; the last element counts all that are larger.
    """

    random: np.random.Generator
    laws: Records
    stations: Records
    places: Records
    workers: Records
    servers: Records
    run: Records
    staleness: npt.NDArray[np.int64]
