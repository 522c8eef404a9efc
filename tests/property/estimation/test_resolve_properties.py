from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodewise.domain.configurations import UNSTATED, Configurations, SyncMode
from nodewise.estimation.resolution import Defaults, fill_unstated

counts = st.integers(1, 512)
rows = st.lists(st.tuples(st.integers(0, 64), st.integers(0, 512)).filter(any), min_size=1, max_size=16)
known = st.builds(
    Defaults,
    sync_modes=st.sampled_from([(), (1,), (2,), (3,)]),
    devices=st.sampled_from([(), ("V100",)]),
    batches_per_worker=st.sampled_from([(), (32,), (16, 32)]),
    parameter_servers=st.sampled_from([(), (1,), (4,)]),
    workers_per_node=st.integers(1, 8),
    link_bytes_per_s=st.sampled_from([0.0, 1e9]),
)


@given(rows, known, st.sampled_from(list(SyncMode)), st.integers(0, 256))
def test_nothing_stays_open_but_what_nobody_knows(
    asked: list[tuple[int, int]], defaults: Defaults, mode: SyncMode, global_batch: int
) -> None:
    nodes, workers = zip(*asked, strict=True)
    open_rows = Configurations.of(len(asked), nodes=nodes, workers=workers, sync_mode=mode, global_batch=global_batch)
    filled = fill_unstated(open_rows, defaults)
    assert filled.workers.min() >= 1
    assert filled.nodes.min() >= 1
    assert filled.sync_mode.min() > SyncMode.UNSPECIFIED
    assert filled.parameter_servers.min() > UNSTATED
    for row, (stated_nodes, stated_workers) in enumerate(asked):
        assert stated_nodes in (0, filled.nodes[row])
        assert stated_workers in (0, filled.workers[row])
    if global_batch:
        assert (filled.batch_per_worker * filled.workers >= global_batch).all()
        assert ((filled.batch_per_worker - 1) * filled.workers < global_batch).all()


@given(rows, known)
def test_resolving_twice_changes_nothing_more(asked: list[tuple[int, int]], defaults: Defaults) -> None:
    nodes, workers = zip(*asked, strict=True)
    once = fill_unstated(Configurations.of(len(asked), nodes=nodes, workers=workers), defaults)
    twice = fill_unstated(once, defaults)
    for name in ("nodes", "workers", "sync_mode", "parameter_servers", "batch_per_worker", "link_bytes_per_s"):
        assert getattr(once, name).tolist() == getattr(twice, name).tolist()
    assert once.device_names() == twice.device_names()
