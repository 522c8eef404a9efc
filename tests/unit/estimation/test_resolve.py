from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from estimators import profile_of

from nodewise.catalogue.loading import load_catalogue
from nodewise.domain.columns import as_floats, as_ints, constant_floats
from nodewise.domain.configurations import UNSTATED, Configurations, Placement, Recomputation, SyncMode
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.profile import Observations, PhaseTimings, Profile
from nodewise.domain.workload import Network
from nodewise.estimation.resolution import Defaults, defaults_of, fill_unstated, on_devices


def defaults(**values: Any) -> Defaults:
    nothing: dict[str, Any] = {
        "sync_modes": (),
        "devices": (),
        "batches_per_worker": (),
        "parameter_servers": (),
        "workers_per_node": 1,
        "link_bytes_per_s": 0.0,
    }
    return Defaults(**(nothing | values))


def test_a_machines_name_is_its_device_nodes_and_link() -> None:
    asked = Configurations.of(4, nodes=[2, 0, 2, 2], workers=[0, 17, 4, 4]).replaced(
        devices=("p5.48xlarge", "a3-mega", "p5", "H100"),
        device_index=as_ints([0, 1, 2, 3]),
        link_bytes_per_s=as_floats([0.0, 0.0, 7e9, 0.0]),
    )
    found = on_devices(asked, load_catalogue())
    assert found.device_names() == ["H100"] * 4
    assert found.nodes.tolist() == [2, 3, 2, 2]
    assert found.workers.tolist() == [16, 17, 4, 4]
    assert found.link_bytes_per_s.tolist() == [400e9, 200e9, 7e9, 0.0]
    assert on_devices(found, load_catalogue()) is found


def test_defaults_come_from_timings_and_observations_together() -> None:
    observed = Configurations.of(
        2,
        nodes=[1, 2],
        workers=[4, 7],
        device="V100",
        sync_mode=SyncMode.ASYNC,
        batch_per_worker=32,
        parameter_servers=2,
    )
    timed = Configurations.of(1, nodes=1, workers=1, sync_mode=SyncMode.SYNC)
    profile = Profile(
        network=Network(link_bytes_per_s=1e9),
        observations=Observations.of(observed, constant_floats(2, 1.0)),
        phase_timings=PhaseTimings(
            configurations=timed,
            download_s=as_floats([1.0]),
            compute_s=as_floats([1.0]),
            upload_s=as_floats([1.0]),
            update_s=as_floats([1.0]),
            compute_variation=as_floats([0.0]),
            transfer_variation=as_floats([0.0]),
            hidden_s=as_floats([0.0]),
            steps=as_ints([1]),
        ),
    )
    assert defaults_of(profile) == Defaults(
        sync_modes=(SyncMode.ASYNC, SyncMode.SYNC),
        devices=("V100",),
        batches_per_worker=(32,),
        parameter_servers=(2,),
        workers_per_node=4,
        link_bytes_per_s=1e9,
    )


def test_nothing_known_says_nothing() -> None:
    assert defaults_of(Profile()) == defaults()


def test_recomputation_is_that_of_all_runs_if_they_agree() -> None:
    asked = Configurations.of(2, nodes=1, workers=1).replaced(
        recomputation=as_ints([Recomputation.UNSPECIFIED, Recomputation.FULL])
    )

    def found(*seen: Recomputation) -> list[int]:
        return fill_unstated(asked, defaults(recomputations=seen)).recomputation.tolist()

    assert found(Recomputation.NONE) == [Recomputation.NONE, Recomputation.FULL]
    assert found() == found(Recomputation.NONE, Recomputation.SELECTIVE) == [0, Recomputation.FULL]


def test_what_is_stated_stays() -> None:
    stated = Configurations.of(
        2,
        nodes=[1, 2],
        workers=[4, 8],
        device="T4",
        sync_mode=SyncMode.SYNC,
        parameter_servers=3,
        batch_per_worker=8,
        link_bytes_per_s=5.0,
    )
    known = defaults(
        sync_modes=(1,), devices=("V100",), batches_per_worker=(32,), parameter_servers=(1,), workers_per_node=8,
        link_bytes_per_s=1e9,
    )  # fmt: skip
    assert fill_unstated(stated, known) is stated


def test_open_columns_are_filled_from_the_evidence() -> None:
    known = defaults(
        sync_modes=(SyncMode.ASYNC,),
        devices=("V100",),
        batches_per_worker=(32,),
        parameter_servers=(2,),
        workers_per_node=4,
        link_bytes_per_s=1e9,
    )
    filled = fill_unstated(Configurations.of(3, nodes=[2, 0, 3], workers=[0, 9, 5]), known)
    assert filled.workers.tolist() == [8, 9, 5]
    assert filled.nodes.tolist() == [2, 3, 3]
    assert filled.device_names() == ["V100"] * 3
    assert set(filled.sync_mode.tolist()) == {SyncMode.ASYNC}
    assert set(filled.parameter_servers.tolist()) == {2}
    assert set(filled.batch_per_worker.tolist()) == {32}
    assert set(filled.link_bytes_per_s.tolist()) == {1e9}


def test_without_evidence_all_reduce_on_single_device_nodes_and_no_batch() -> None:
    filled = fill_unstated(Configurations.of(1, nodes=4), defaults())
    assert filled.sync_mode.tolist() == [SyncMode.ALLREDUCE]
    assert filled.workers.tolist() == [4]
    assert filled.parameter_servers.tolist() == [0]
    assert filled.batch_per_worker.tolist() == [0]
    assert filled.device_names() == [""]


def test_all_reduce_has_no_parameter_server_whatever_the_evidence_has() -> None:
    rows = Configurations.of(2, workers=2).replaced(sync_mode=as_ints([SyncMode.ALLREDUCE, SyncMode.SYNC]))
    filled = fill_unstated(rows, defaults(sync_modes=(SyncMode.SYNC,), parameter_servers=(4,)))
    assert filled.parameter_servers.tolist() == [0, 4]


def test_one_server_where_the_evidence_does_not_tell() -> None:
    rows = Configurations.of(1, workers=2, sync_mode=SyncMode.ASYNC, parameter_servers=UNSTATED)
    filled = fill_unstated(rows, defaults())
    assert filled.parameter_servers.tolist() == [1]


@pytest.mark.parametrize(
    ("known", "field"),
    [
        (defaults(sync_modes=(1, 3)), "configurations.sync_modes"),
        (defaults(devices=("K80", "V100")), "configurations.device_names"),
        (defaults(sync_modes=(1,), parameter_servers=(1, 2)), "configurations.parameter_servers"),
    ],
)
def test_several_values_in_the_evidence_have_to_be_told_apart(known: Defaults, field: str) -> None:
    with pytest.raises(NodewiseError) as caught:
        fill_unstated(Configurations.of(1, workers=2), known)
    assert caught.value.reason == Reason.INVALID_FIELD
    assert [violation.field for violation in caught.value.violations] == [field]
    assert "must be stated" in caught.value.message


def test_several_batches_in_the_evidence_leave_the_batch_unknown() -> None:
    filled = fill_unstated(Configurations.of(1, workers=2), defaults(batches_per_worker=(16, 32)))
    assert filled.batch_per_worker.tolist() == [0]


def test_a_global_batch_is_shared_and_rounded_up() -> None:
    filled = fill_unstated(Configurations.of(3, workers=[2, 4, 6], global_batch=64), defaults(batches_per_worker=(32,)))
    assert filled.batch_per_worker.tolist() == [32, 16, 11]


def test_replicas_share_a_global_batch_not_workers() -> None:
    rows = Configurations.of(2, workers=8, global_batch=64)
    split = rows.replaced(tensor_parallel=as_ints([4, 4]), data_parallel=as_ints([0, 2]), accumulation=as_ints([1, 2]))
    assert fill_unstated(split, defaults()).batch_per_worker.tolist() == [32, 16]


def test_a_device_is_filled_only_where_it_is_open() -> None:
    rows = Configurations.of(2, workers=2).replaced(devices=("T4", ""), device_index=as_ints([0, 1]))
    assert fill_unstated(rows, defaults(devices=("V100",))).device_names() == ["T4", "V100"]
    unused = Configurations.of(1, workers=2).replaced(devices=("T4", ""), device_index=as_ints([0]))
    assert fill_unstated(unused, defaults(devices=("K80", "V100"))).device_names() == ["T4"]


def test_resolved_columns_are_read_only() -> None:
    filled = fill_unstated(Configurations.of(2, nodes=[1, 2]), defaults_of(profile_of()))
    for name in ("nodes", "workers", "parameter_servers", "batch_per_worker", "sync_mode", "link_bytes_per_s"):
        with pytest.raises(ValueError, match="read-only"):
            np.asarray(getattr(filled, name))[0] = 1


def test_all_reduce_does_not_ask_which_number_of_servers() -> None:
    filled = fill_unstated(
        Configurations.of(1, workers=2, sync_mode=SyncMode.ALLREDUCE), defaults(parameter_servers=(1, 2))
    )
    assert filled.parameter_servers.tolist() == [0]


def contradictions(rows: Configurations) -> list[str]:
    with pytest.raises(NodewiseError) as caught:
        fill_unstated(rows, defaults())
    assert caught.value.reason == Reason.CONTRADICTORY_FACTS
    return [violation.field for violation in caught.value.violations]


def test_degrees_that_the_workers_cannot_fill_are_named() -> None:
    rows = Configurations.of(2, workers=8)
    two, four = as_ints([1, 2]), as_ints([1, 4])
    split = rows.replaced(tensor_parallel=two, pipeline_parallel=four)
    assert fill_unstated(split, defaults()).replicas().tolist() == [8, 1]
    assert contradictions(split.replaced(data_parallel=two)) == [
        "configurations.tensor_parallel_degrees[1]",
        "configurations.pipeline_parallel_degrees[1]",
        "configurations.data_parallel_degrees[1]",
    ]
    huge = as_ints([1, 1 << 40])
    assert contradictions(rows.replaced(tensor_parallel=huge, context_parallel=huge)) == [
        "configurations.tensor_parallel_degrees[1]",
        "configurations.context_parallel_degrees[1]",
    ]


def test_backup_workers_leave_one_to_wait_for() -> None:
    rows = Configurations.of(1, workers=4, sync_mode=SyncMode.SYNC)
    filled = fill_unstated(rows.replaced(backup_workers=as_ints([1]), global_batch=as_ints([33])), defaults())
    assert (filled.replicas().tolist(), filled.batch_per_worker.tolist()) == ([3], [11])
    assert contradictions(rows.replaced(backup_workers=as_ints([4]))) == ["configurations.backup_workers[0]"]


def test_a_step_counts_the_batches_that_are_waited_for() -> None:
    modes = as_ints([SyncMode.SYNC, SyncMode.ASYNC])
    rows = Configurations.of(2, workers=4, batch_per_worker=8).replaced(sync_mode=modes, backup_workers=as_ints([1, 1]))
    assert rows.samples_per_step().tolist() == [24.0, 8.0]
    assert rows.minibatches_per_step().tolist() == [3, 1]


def test_samples_of_a_step_exceed_any_integer() -> None:
    most = 2**31 - 1
    rows = Configurations.of(1, workers=131_072, batch_per_worker=most).replaced(accumulation=as_ints([1 << 20]))
    assert rows.samples_per_step()[0] == pytest.approx(most * 2.0**20 * 131_072)


def test_a_placement_says_how_many_nodes_and_workers() -> None:
    rows = Configurations.of(3, workers=[0, 5, 0], nodes=[0, 0, 2]).replaced(
        placement=Placement.of([(4, 2), (), (1, 1)])
    )
    filled = fill_unstated(rows, defaults(workers_per_node=4))
    assert (filled.nodes.tolist(), filled.workers.tolist()) == ([2, 2, 2], [6, 5, 2])
    wrong = Configurations.of(1, workers=7).replaced(placement=Placement.of([(4, 2)]))
    assert contradictions(wrong) == ["configurations.workers[0]"]
