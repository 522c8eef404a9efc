"""The digest: all that an estimator can see, and nothing else."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from profile_batches import NETWORK, WORKLOAD, observations, varied_observations, varied_timings

from nodewise.domain.configurations import Configurations, Placement
from nodewise.domain.profile import Observations, PhaseTimings, Profile, TraceReference
from nodewise.domain.workload import Network, Workload
from nodewise.profiles.digest import content_digest

TRACE = TraceReference(content_sha256="0" * 64, format="kineto", rank=0, world_size=1, size_bytes=3)
PROFILE = Profile(
    workload=WORKLOAD,
    network=NETWORK,
    phase_timings=varied_timings(3, 1),
    observations=varied_observations(4, 2),
    traces=(TRACE,),
)
COLUMNS = [
    f.name for f in fields(Configurations) if f.name not in {"devices", "precisions", "placement", "worker_groups"}
]


def changed(column: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Another value in the last row only."""
    other = column.copy()
    other[-1] = 1 - other[-1] if other[-1] in {0, 1} else other[-1] - 1
    return other


@pytest.mark.parametrize("part", ["phase_timings", "observations"])
def test_every_column_matters(part: str) -> None:
    runs = getattr(PROFILE, part)
    digests = {content_digest(PROFILE)}
    own = [f.name for f in fields(runs) if f.name != "configurations"]
    for name in own:
        digests.add(content_digest(replace(PROFILE, **{part: replace(runs, **{name: changed(getattr(runs, name))})})))
    for name in COLUMNS:
        other = runs.configurations.replaced(**{name: changed(getattr(runs.configurations, name))})
        digests.add(content_digest(replace(PROFILE, **{part: replace(runs, configurations=other)})))
    groups = runs.configurations.worker_groups
    used = {runs.configurations.devices[int(index)] for index in runs.configurations.device_index}
    renamed = tuple(f"other {name}" if name in used else name for name in runs.configurations.devices)
    others: list[dict[str, Any]] = [
        {"devices": renamed},
        {"precisions": ("x", "y", "z")},
        {"placement": None},
        {"placement": Placement.of([[9]] * len(runs))},
        {"worker_groups": None},
        {"worker_groups": replace(groups, workers=groups.workers + 1)},
        {"worker_groups": replace(groups, compute_factor=groups.compute_factor + 1.0)},
        {"worker_groups": replace(groups, offsets=np.array([0] * len(runs) + [len(groups.workers)]))},
        {"devices": (*runs.configurations.devices[:-1], "another in groups")},
    ]
    for other_columns in others:
        other = runs.configurations.replaced(**other_columns)
        digests.add(content_digest(replace(PROFILE, **{part: replace(runs, configurations=other)})))
    assert len(digests) == 1 + len(own) + len(COLUMNS) + len(others)


def test_every_fact_and_trace_matters() -> None:
    digests = {content_digest(PROFILE)}
    for part, facts in (("workload", WORKLOAD), ("network", NETWORK)):
        for f in fields(facts):
            digests.add(content_digest(replace(PROFILE, **{part: replace(facts, **{f.name: None})})))
    digests.add(content_digest(replace(PROFILE, traces=())))
    for f in fields(TRACE):
        digests.add(content_digest(replace(PROFILE, traces=(replace(TRACE, **{f.name: "other"}),))))
    digests.add(content_digest(replace(PROFILE, traces=(TRACE, TRACE))))
    assert len(digests) == 1 + len(fields(Workload)) + len(fields(Network)) + 2 + len(fields(TRACE))


def test_name_identity_and_times_do_not_matter() -> None:
    named = replace(PROFILE, profile_id="job", uid="u", revision=7, digest="d", create_time_s=1.0, update_time_s=2.0)
    assert content_digest(named) == content_digest(PROFILE)


def test_rows_do_not_move_between_parts() -> None:
    rows = observations(1.0)
    none = replace(PROFILE, phase_timings=PhaseTimings.none(), observations=Observations.none())
    with_rows = replace(none, observations=rows)
    assert content_digest(none) != content_digest(with_rows)
    assert content_digest(Profile()) == content_digest(Profile(observations=observations(1.0).take(np.arange(0))))


def test_how_the_same_rows_are_held_does_not_matter() -> None:
    rows = varied_observations(6, 3)
    digest = content_digest(Profile(observations=rows))
    configurations = rows.configurations
    index = configurations.device_index
    again = configurations.replaced(
        devices=("unused", "c", "b", "a", "only in groups", "a"),
        device_index=np.choose(index, [3, 2, 1]).astype(np.int64),
        worker_groups=configurations.worker_groups.recode(np.array([5, 2, 1, 4])),
    )
    assert content_digest(Profile(observations=replace(rows, configurations=again))) == digest
    wide = np.repeat(rows.steps_per_s, 2)[::2]
    assert not wide.flags.c_contiguous
    assert content_digest(Profile(observations=replace(rows, steps_per_s=wide))) == digest
    plain = observations(1.0, 2.0)
    packed = plain.configurations.replaced(placement=Placement.of([(), ()]))
    assert content_digest(Profile(observations=replace(plain, configurations=packed))) == content_digest(
        Profile(observations=plain)
    )


def test_is_the_digest_of_the_first_release() -> None:
    """A change of it must come with another DIGEST_VERSION, because files remember digests."""
    profile = Profile(workload=Workload(parameter_bytes=8), observations=observations(1.5, 2.5), traces=(TRACE,))
    assert content_digest(profile) == "1afd79b3fef81b273631f116f954742b78890d18a720e1f6f1b3052ea1f51f9b"
