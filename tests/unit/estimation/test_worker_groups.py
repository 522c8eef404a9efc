"""Rows of unlike workers, as columns and as they are resolved, ranked and judged."""

from __future__ import annotations

import pytest
from estimators import asked, predictions_of

from nodewise.domain.columns import as_floats, as_ints
from nodewise.domain.configurations import Configurations, SyncMode, WorkerGroup, WorkerGroups
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.objective import LeastTime, Objective
from nodewise.domain.predictions import Options
from nodewise.domain.workload import Workload
from nodewise.estimation.answer.objectives import verdict_of
from nodewise.estimation.resolution import Defaults, fill_unstated
from nodewise.evaluation.ordering import compact, configuration_ranks

DEVICES = ("V100", "K80", "unused")
SLOW = WorkerGroup("V100", 1, 2.0)
DEFAULTS = Defaults(
    sync_modes=(int(SyncMode.SYNC),),
    devices=("P100",),
    batches_per_worker=(),
    parameter_servers=(1,),
    workers_per_node=2,
    link_bytes_per_s=0.0,
)


def grouped(*rows: list[WorkerGroup], workers: int = 0) -> Configurations:
    plain = Configurations.of(len(rows), workers=workers)
    return plain.replaced(devices=DEVICES, worker_groups=WorkerGroups.of(rows, DEVICES))


def test_rows_are_taken_and_joined_with_their_groups() -> None:
    rows = grouped([SLOW], [], [WorkerGroup("K80", 3), SLOW])
    taken = rows.take(as_ints([2, 1]))
    assert [taken.groups(row) for row in range(2)] == [(WorkerGroup("K80", 3), SLOW), (WorkerGroup("V100", 0),)]
    other = Configurations.of(1, workers=5, device="K80")
    joined = Configurations.concatenated([other, taken, rows])
    assert joined.groups(0) == (WorkerGroup("K80", 5),)
    assert joined.groups(1) == (WorkerGroup("K80", 3), SLOW)
    assert joined.groups(3) == (SLOW,)
    assert joined.has_groups
    assert not other.has_groups
    assert joined.grouped().tolist() == [False, True, False, True, False, True]


def test_workers_follow_from_groups_and_nodes_from_the_evidence() -> None:
    found = fill_unstated(grouped([SLOW, WorkerGroup("V100", 3)], [WorkerGroup("V100", 5)]), DEFAULTS)
    assert (found.workers.tolist(), found.nodes.tolist()) == ([4, 5], [2, 3])
    with pytest.raises(NodewiseError, match=r"workers\[1\]: is 4, but the row's groups have 1") as caught:
        fill_unstated(grouped([SLOW, WorkerGroup("V100", 3)], [SLOW], workers=4), DEFAULTS)
    assert caught.value.reason == Reason.CONTRADICTORY_FACTS


def test_groups_without_a_device_run_on_that_of_the_evidence() -> None:
    unnamed = Configurations.of(1).replaced(
        worker_groups=WorkerGroups.of([[WorkerGroup("", 2), WorkerGroup("", 1, 3.0)]], ("",))
    )
    assert fill_unstated(unnamed, DEFAULTS).groups(0) == (WorkerGroup("P100", 2), WorkerGroup("P100", 1, 3.0))


@pytest.mark.parametrize("name", ["hybrid_sync_fraction", "hybrid_switch_s"])
def test_only_hybrids_say_how_a_hybrid_runs(name: str) -> None:
    rows = asked(2, 4).replaced(**{name: as_floats([0.0, 0.5])})
    assert fill_unstated(rows.replaced(sync_mode=as_ints([1, 4])), DEFAULTS) is not None
    with pytest.raises(NodewiseError, match=r"\[1\]: must be 0 where sync_modes is SYNC"):
        fill_unstated(rows, DEFAULTS)


def test_groups_that_say_nothing_rank_as_none_and_unused_devices_go() -> None:
    rows = grouped([WorkerGroup("V100", 4)], [], [SLOW, WorkerGroup("V100", 3)], [WorkerGroup("K80", 4)], workers=4)
    ranks = configuration_ranks(rows).tolist()
    assert ranks[0] == ranks[1]
    assert len(set(ranks)) == 3
    small = compact(rows)
    assert small.devices == ("K80", "V100")
    assert [small.groups(row) for row in range(4)] == [rows.groups(row) for row in range(4)]
    assert compact(grouped([], [])).worker_groups is None


def test_what_is_spent_once_may_turn_the_order() -> None:
    rows = asked(1, 2, batch_per_worker=1, sync_mode=SyncMode.HYBRID)
    predictions = predictions_of([1.0, 1.0], once_s=as_floats([0.0, 60.0]))
    rate = as_floats([1.0, 2.0])

    def best(samples: float) -> tuple[int, list[float]]:
        objective = Objective(rule=LeastTime(), remaining_samples=samples)
        verdict = verdict_of(objective, rows, predictions, rate, rate, Workload())
        assert verdict.recommendation is not None
        assert verdict.finish_s is not None
        return verdict.recommendation.row, verdict.finish_s.tolist()

    assert best(100.0) == (0, [100.0, 110.0])
    assert best(200.0) == (1, [200.0, 160.0])


def test_time_that_is_left_is_no_part_of_a_question() -> None:
    class Nothing:
        def remaining_s(self) -> float:
            return 0.0

    assert Options(budget=Nothing()) == Options()
    assert hash(Options(budget=Nothing())) == hash(Options())
    assert Options(simulated_steps=1) != Options()
