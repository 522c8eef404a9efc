"""What a planted distribution does: an estimator, a policy, a reader or a diagnoser that is right but for one fault.

Copied beside the planted module, which calls :func:`hooks`; nothing here is imported by a server unless it is planted.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from nodewise.plugin import (
    Allocation,
    Assessment,
    Configurations,
    DiagnoserRecord,
    Diagnosis,
    EstimatorRecord,
    EventKind,
    Grant,
    Lane,
    PolicyRecord,
    Predictions,
    Replay,
    ReplayedStep,
    RowStatus,
    Trace,
    TraceReaderRecord,
    TraceSteps,
    as_floats,
    constant_ints,
    freeze,
    hookimpl,
)

SLOW_S: Final = 0.5
"""A thousand times what others take, and within the budget of a call."""
TAKEN_BYTES: Final = 3 << 30
"""More than a plugin may take in tests, less than what would starve the machine where nothing holds it back."""
CHUNK_BYTES: Final = 64 << 20
PRINTED_LINES: Final = 5_000
"""Several times what a pipe holds."""


class _NotForYou(BaseException):
    """What no handler of exceptions expects."""


def _raise(error: type[BaseException]) -> Callable[[], None]:
    def fault() -> None:
        raise error("a secret of the plugin")

    return fault


def _hang() -> None:
    threading.Event().wait()


def _spin() -> None:
    while True:
        pass


def _hold_the_gil() -> None:
    """Sleep in C without letting other threads of the interpreter run."""
    ctypes.PyDLL(None).sleep(1_000_000)


def _segfault() -> None:
    ctypes.string_at(0)


def _allocate() -> None:
    kept = [np.ones(CHUNK_BYTES // 8) for _ in range(TAKEN_BYTES // CHUNK_BYTES)]
    raise RuntimeError(f"a secret: nothing held it back from {len(kept)} pieces")


def _print() -> None:
    for number in range(PRINTED_LINES):
        print("line", number, "x" * 40)
        if number % 10 == 0:
            print("line", number, file=sys.stderr)


def _fork() -> None:
    if not os.fork():
        threading.Event().wait()


def _threads() -> None:
    for _ in range(8):
        threading.Thread(target=threading.Event().wait).start()


def _sleep() -> None:
    time.sleep(SLOW_S)


def _close_descriptors() -> None:
    os.closerange(0, 1024)


ACTS: Final[Mapping[str, Callable[[], None]]] = MappingProxyType(
    {
        "raise": _raise(RuntimeError),
        "interrupt": _raise(KeyboardInterrupt),
        "exit": _raise(SystemExit),
        "bare": _raise(_NotForYou),
        "memory-error": _raise(MemoryError),
        "os-exit": lambda: os._exit(3),
        "segfault": _segfault,
        "hang": _hang,
        "spin": _spin,
        "gil": _hold_the_gil,
        "allocate": _allocate,
        "close-descriptors": _close_descriptors,
        "print": _print,
        "fork": _fork,
        "threads": _threads,
        "slow": _sleep,
    }
)
"""What is done before the right answer is given."""
ANSWERS: Final[Mapping[str, Callable[[Any], Any]]] = MappingProxyType(
    {
        "nan": lambda right: _spoilt(right, float("nan")),
        "shapes": lambda right: _spoilt(right, None),
        "nothing": lambda right: None,
        "an-object": lambda right: object(),
        "a-function": lambda right: lambda: right,
    }
)
"""What is answered instead of what is right."""
HARMLESS: Final = frozenset({"print", "fork", "threads", "slow"})
"""Faults after which the right answer is given: whoever asks is served."""


def _spoilt(right: Any, value: float | None) -> Any:
    if isinstance(right, Predictions):
        steps = np.full(len(right.step_s), value) if value is not None else np.ones(len(right.step_s) + 1)
        return replace(right, step_s=freeze(steps))
    if isinstance(right, Allocation):
        return Allocation(grants=(Grant(value if value is not None else 2**40),))  # type: ignore[arg-type]  # on purpose
    return [right, value]


def _trace(source: Any) -> Trace:
    """Three steps of a millisecond, each all of one operator."""
    begin_ns = np.arange(3, dtype=np.int64) * 1_000_000
    unknown, first = np.full(3, -1, dtype=np.int64), np.zeros(3, dtype=np.int32)
    return Trace(
        rank=max(source.rank, 0),
        world_size=max(source.world_size, 1),
        format="planted",
        names=("forward",),
        name=first,
        lanes=(Lane(device=-1, number=0, name="loop"),),
        lane=first,
        kind=np.full(3, EventKind.OPERATOR, dtype=np.int8),
        begin_ns=begin_ns,
        duration_ns=np.full(3, 1_000_000, dtype=np.int64),
        correlation=unknown,
        sequence=unknown,
        forward_lane=np.full(3, -1, dtype=np.int32),
        bytes=unknown,
        steps=TraceSteps(number=np.arange(3, dtype=np.int64), begin_ns=begin_ns, end_ns=begin_ns + 1_000_000),
    )


class Faulty:
    """Estimator, model, policy, reader and diagnoser in one; right but for one fault in one method."""

    def __init__(self, method: str, fault: str) -> None:
        self._method, self._fault = method, fault

    def _done(self, method: str, right: Any) -> Any:
        if method != self._method:
            return right
        if self._fault in ACTS:
            ACTS[self._fault]()
            return right
        return ANSWERS[self._fault](right)

    def assess(self, profile: Any, query: Any) -> Any:
        # As sure as one can be: whoever chooses must look at it.
        return self._done("assess", Assessment(evidence=("a claim",), strength=1.0))

    def fit(self, profile: Any, context: Any) -> Any:
        return self._done("fit", self)

    def predict(self, configurations: Configurations, options: Any) -> Any:
        rows = len(configurations)
        ones = freeze(np.ones(rows))
        right = Predictions(
            status=constant_ints(rows, RowStatus.ANSWERED),
            step_s=ones,
            log_spread=freeze(np.full(rows, 0.1)),
            breakdown_s={"compute": ones},
            bottlenecks=("compute",),
            bottleneck_index=constant_ints(rows, 0),
            extrapolation=ones,
        )
        return self._done("predict", right)

    def decide(self, state: Any, curves: Any, budget: Any) -> Any:
        return self._done("decide", Allocation(grants=tuple(Grant(0) for _ in state.jobs)))

    def recognises(self, head: bytes, source: Any) -> Any:
        return self._done("recognises", 0.0)

    def read(self, stream: Any, source: Any) -> Any:
        return self._done("read", [_trace(source)])

    def replay(self, traces: Any, question: Any, context: Any) -> Any:
        step = ReplayedStep(
            step=1, measured_host_s=1.0, predicted_host_s=1.0, measured_device_s=0.0, predicted_device_s=0.0
        )
        right = Replay(
            steps=(step,),
            host_error=0.0,
            device_error=None,
            persistence_error=None,
            kernel_start_p50_error_s=None,
            kernel_start_p95_error_s=None,
            in_sample=True,
            events=0,
            nodes=0,
            ranks=(0,),
            world_size=1,
            edges={},
            clock_offset_s=as_floats([0.0]),
            clock_uncertainty_s=as_floats([0.0]),
            collectives=(),
            build_s=0.0,
            replay_s=0.0,
        )
        return self._done("replay", right)

    def diagnose(self, traces: Any, profile: Any, question: Any, context: Any) -> Any:
        right = Diagnosis(
            bottlenecks=(),
            strategies=(),
            stragglers=(),
            bound_by="host",
            verdict="the host computes throughout",
            step_s=1.0,
            persistence_s=0.0,
            exposed_communication_s=0.0,
        )
        return self._done("diagnose", right)


_RECORDS: Final[Mapping[str, tuple[str, type, str]]] = MappingProxyType(
    {
        "estimator": ("nodewise_estimators", EstimatorRecord, "estimator"),
        "policy": ("nodewise_policies", PolicyRecord, "policy"),
        "reader": ("nodewise_trace_readers", TraceReaderRecord, "reader"),
        "diagnoser": ("nodewise_diagnosers", DiagnoserRecord, "diagnoser"),
    }
)


def hooks(name: str, kind: str, method: str, fault: str) -> dict[str, Any]:
    """The hook of a planted module.

    Parameters
    ----------
    name : str
        Of the plugin.
    kind : str
        ``estimator``, ``policy``, ``reader`` or ``diagnoser``.
    method : str
        The one that is at fault; ``import`` and ``hook`` are at fault while the plugin is loaded, ``api`` states a
        plugin API that no server has, and ``none`` is right throughout.
    fault : str
        Of ACTS or ANSWERS.
    """
    if method == "import":
        ACTS[fault]()
    hook, record, attribute = _RECORDS[kind]

    def registered() -> list[Any]:
        if method == "hook":
            ACTS[fault]()
        api = {"plugin_api": ">=9,<10"} if method == "api" else {}
        stated = {"name": name, "version": "1.0", "description": "planted", attribute: Faulty(method, fault)}
        return [record(**stated, **api)]

    registered.__name__ = hook
    return {hook: hookimpl(registered)}
