"""Metrics for Prometheus. Calls are noted as they end, and state is sampled, so that no call waits for it.

Where ``PROMETHEUS_MULTIPROC_DIR`` names a folder, the page of each worker has the figures of all workers.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from weakref import WeakKeyDictionary

import structlog
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from nodewise.domain.errors import NodewiseError
from nodewise.hosting.counts import CallCounts
from nodewise.ports.cache import CacheSpace
from nodewise.profiles.store import ProfileStore
from nodewise.profiles.writer import StoreWriter
from nodewise.rpc.classes import Admission

if TYPE_CHECKING:
    from nodewise.runtime.generations.traffic_router import Tracks
    from nodewise.runtime.health import Health
    from nodewise.runtime.scoring import Scoring

__all__ = ["COUNTERS", "DURATION", "GAUGES", "Metrics"]

_log = structlog.get_logger(__name__)

Mode = Literal["livesum", "liveall", "livemin", "livemostrecent"]

FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"
SAMPLE_S: Final = 5.0
"""Seconds between two samples: below the usual interval of a scrape, which is 15 s."""
RECORD_S: Final = 0.5
"""Seconds after which calls that ended are in the figures, whichever worker is scraped."""
BUCKETS_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""From a cached reply, which takes a fraction of a millisecond, to a long call."""
DURATION: Final = (
    "nodewise_rpc_duration_seconds",
    "Calls that ended: their time, by method, transport (grpc, http) and status code.",
    ("method", "transport", "code"),
)
COUNTERS: Final = (
    ("nodewise_queue_refused_calls", "Calls that would have waited too long.", ("queue",)),
    ("nodewise_queue_wait_seconds", "Time that calls waited for a permit.", ("queue",)),
    ("nodewise_replies", "Small questions by whether their reply was known (yes, no).", ("known",)),
    ("nodewise_plugin_calls", "Calls of plugins (outcome ok, failed).", ("distribution", "method", "outcome")),
    ("nodewise_plugin_call_seconds", "Time of calls of plugins.", ("distribution", "method")),
    ("nodewise_store_writes", "Transactions that wrote to the store.", ()),
    ("nodewise_store_write_seconds", "Time of these transactions.", ()),
    ("nodewise_ingested_rows", "Observations that were written, those sent again included.", ()),
    ("nodewise_estimator_observations", "Observations that were scored.", ("estimator", "namespace")),
    ("nodewise_estimator_absolute_log_error", "Sum of |ln(predicted / observed)|.", ("estimator", "namespace")),
    ("nodewise_estimator_intervals", "Observations that an interval was predicted for.", ("estimator", "namespace")),
    ("nodewise_estimator_covered", "Observations within their interval.", ("estimator", "namespace")),
)
"""Name without its suffix ``_total``, help and labels."""
GAUGES: Final[tuple[tuple[str, str, tuple[str, ...], Mode], ...]] = (
    ("nodewise_queue_waiting_calls", "Calls that wait for a permit.", ("queue",), "livesum"),
    ("nodewise_queue_permits_in_use", "Calls at work.", ("queue",), "livesum"),
    ("nodewise_queue_permits", "Calls that may be at work at a time.", ("queue",), "livesum"),
    ("nodewise_plugin_breakers_open", "Estimators that are not called as they failed.", ("distribution",), "livesum"),
    ("nodewise_plugin_hosts", "Plugin hosts.", ("distribution",), "livesum"),
    ("nodewise_plugin_hosts_alive", "Plugin hosts with a process.", ("distribution",), "livesum"),
    ("nodewise_generation", "Number of the generation; 0 = what is installed.", ("track",), "livemostrecent"),
    ("nodewise_cache_bytes", "Bytes that caches hold.", (), "livesum"),
    ("nodewise_cache_capacity_bytes", "Bytes that caches may hold.", (), "livesum"),
    ("nodewise_store_up", "1 while every worker reaches the store, else 0.", (), "livemin"),
    ("nodewise_store_waiting_writes", "Writes that wait.", (), "livesum"),
    ("nodewise_store_profiles", "Profiles stored.", (), "livemostrecent"),
    ("nodewise_store_bytes", "Bytes stored (kind rows, traces).", ("kind",), "livemostrecent"),
    ("nodewise_workers", "Workers that serve.", (), "livesum"),
    ("nodewise_worker_cpu_seconds", "CPU time of a worker since its start.", (), "liveall"),
    ("nodewise_worker_resident_memory_bytes", "Memory of a worker.", (), "liveall"),
)
"""Name, help, labels, and how the values of several workers are combined."""
QUEUES: Final = ("questions", "ingest", "computing", "long_calls")


class Metrics:
    """Metrics of one worker.

    Parameters
    ----------
    admission, writer, store, space, health, scoring
        Their state is sampled.
    tracks : callable
        The generations that answer now.
    """

    def __init__(
        self,
        admission: Admission,
        writer: StoreWriter,
        store: ProfileStore,
        space: CacheSpace,
        health: Health,
        scoring: Scoring | None,
        tracks: Callable[[], Tracks],
    ) -> None:
        self.registry = CollectorRegistry()
        self._admission, self._writer, self._store, self._space = admission, writer, store, space
        self._health, self._scoring, self._tracks = health, scoring, tracks
        name, text, labels = DURATION
        self._duration = Histogram(name, text, labels, registry=self.registry, buckets=BUCKETS_S)
        self._calls: deque[tuple[str, str, str, float]] = deque()
        self._observers: dict[tuple[str, str, str], Callable[[float], None]] = {}
        self._counters = {name: Counter(name, text, labels, registry=self.registry) for name, text, labels in COUNTERS}
        self._gauges = {
            name: Gauge(name, text, labels, registry=self.registry, multiprocess_mode=mode)
            for name, text, labels, mode in GAUGES
        }
        self._of_plugins: dict[tuple[str, str], int] = {}
        self._samples: dict[Hashable, float] = {}
        self._plugins: WeakKeyDictionary[CallCounts, dict[Hashable, float]] = WeakKeyDictionary()

    def observe(self, path: str, transport: str, seconds: float, code: str) -> None:
        """Note a call that ended, for the next sample or scrape: many at a time cost a fraction of one at a time."""
        self._calls.append((path, transport, code, seconds))

    def _record_calls(self) -> None:
        while self._calls:
            path, transport, code, seconds = self._calls.popleft()
            key = path, transport, code
            observer = self._observers.get(key)
            if observer is None:
                observer = self._observers[key] = self._duration.labels(path.lstrip("/"), transport, code).observe
            observer(seconds)

    async def run(self, looks: Executor) -> None:
        """Sample again and again, until cancelled.

        Parameters
        ----------
        looks : Executor
            A thread for calls of the store.
        """
        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    self.sample()
                    await loop.run_in_executor(looks, self._sample_store)
                except Exception:  # noqa: BLE001  # calls are answered without metrics too
                    _log.exception("metrics_not_sampled")
                for _ in range(round(SAMPLE_S / RECORD_S)):
                    await asyncio.sleep(RECORD_S)
                    self._record_calls()
        finally:
            self._record_calls()

    def sample(self) -> None:
        """Sample the state of this process."""
        self._record_calls()
        for name in QUEUES:
            queue = getattr(self._admission, name)
            self._set("nodewise_queue_waiting_calls", queue.waiting, name)
            self._set("nodewise_queue_permits_in_use", queue.permits - queue.free, name)
            self._set("nodewise_queue_permits", queue.permits, name)
            self._count("nodewise_queue_refused_calls", queue.refused, name)
            self._count("nodewise_queue_wait_seconds", queue.waited_s, name)
        for label, count in zip(("no", "yes"), self._admission.replies):
            self._count("nodewise_replies", count, label)
        self._set("nodewise_cache_bytes", self._space.weight)
        self._set("nodewise_cache_capacity_bytes", self._space.capacity)
        self._set("nodewise_store_waiting_writes", self._writer.waiting)
        self._set("nodewise_store_up", not self._health.store_cause)
        self._count("nodewise_store_writes", self._writer.writes)
        self._count("nodewise_store_write_seconds", self._writer.write_s)
        self._count("nodewise_ingested_rows", self._writer.rows)
        self._set("nodewise_workers", 1)
        self._set("nodewise_worker_cpu_seconds", time.process_time())
        self._set("nodewise_worker_resident_memory_bytes", _resident_bytes())
        self._sample_plugins()
        for (estimator, namespace), sums in () if self._scoring is None else list(self._scoring.sums.items()):
            about = estimator, namespace
            self._count("nodewise_estimator_observations", sums.observations, *about)
            self._count("nodewise_estimator_absolute_log_error", sums.absolute_log_error, *about)
            self._count("nodewise_estimator_intervals", sums.intervals, *about)
            self._count("nodewise_estimator_covered", sums.covered, *about)

    def _sample_plugins(self) -> None:
        tracks = self._tracks()
        self._set("nodewise_generation", tracks.stable.loaded_plugins.number, "stable")
        self._set("nodewise_generation", 0 if tracks.canary is None else tracks.canary.loaded_plugins.number, "canary")
        gauges = dict.fromkeys(self._of_plugins, 0)  # a gauge of a plugin that is gone falls to 0
        for host in {host for registry in tracks.registries for host in registry.hosts}:
            name = host.distribution.split(" ")[0]
            gauges["nodewise_plugin_hosts", name] = 1
            gauges["nodewise_plugin_hosts_alive", name] = int(host.pid is not None)
        kinds = (kind for registry in tracks.registries for kind in registry.by_kind.values())
        plugins = {id(each.calls): each for kind in kinds for each in kind.values()}
        for each in plugins.values():
            name = each.distribution.split(" ")[0]
            if each.breaker is not None:
                key = "nodewise_plugin_breakers_open", name
                gauges[key] = gauges.get(key, 0) + (not each.breaker.is_closed)
            before = self._plugins.setdefault(each.calls, {})
            for method, tally in each.calls.by_method().items():
                self._count("nodewise_plugin_calls", tally.calls - tally.failures, name, method, "ok", before=before)
                self._count("nodewise_plugin_calls", tally.failures, name, method, "failed", before=before)
                self._count("nodewise_plugin_call_seconds", tally.seconds, name, method, before=before)

        for (gauge, name), value in gauges.items():
            self._set(gauge, value, name)
        self._of_plugins = gauges

    def _sample_store(self) -> None:
        try:
            usage = self._store.usage().values()
        except NodewiseError:  # nodewise_store_up reports it
            return
        self._set("nodewise_store_profiles", sum(each.profiles for each in usage))
        self._set("nodewise_store_bytes", sum(each.stored_bytes for each in usage), "rows")
        self._set("nodewise_store_bytes", sum(each.trace_bytes for each in usage), "traces")

    def _set(self, name: str, value: float, *labels: str) -> None:
        self._child(self._gauges[name], labels).set(value)

    def _count(self, name: str, value: float, *labels: str, before: dict[Hashable, float] | None = None) -> None:
        """Add the increase of a count since its last sample, which is in ``before``, to a counter."""
        samples = self._samples if before is None else before
        key = name, labels
        self._child(self._counters[name], labels).inc(max(0.0, value - samples.get(key, 0.0)))
        samples[key] = value

    @staticmethod
    def _child(metric: Any, labels: tuple[str, ...]) -> Any:
        return metric.labels(*labels) if labels else metric

    async def page(self, _query: str) -> tuple[int, bytes, str]:
        """The answer to a scrape; of all workers where they share a folder."""
        self._record_calls()
        return 200, await asyncio.to_thread(_text, self.registry), CONTENT_TYPE_LATEST


def _text(registry: CollectorRegistry) -> bytes:
    if FOLDER in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)


def _resident_bytes() -> int:
    try:
        text = Path("/proc/self/statm").read_text(encoding="ascii")
        return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # where there is no /proc
        return 0
