"""Real servers for tests: in this process with any plugins, or as a process of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2
from patience import PATIENCE_S

from nodewise.hosting.registry import LoadedPlugin, PluginProblem, Registry, load_registry
from nodewise.plugin import DiagnoserRecord, EstimatorRecord, PolicyRecord, SharingModelRecord, TraceReaderRecord
from nodewise_protos.v1 import (
    configuration_pb2,
    prediction_service_pb2_grpc,
    profile_pb2,
    profile_service_pb2_grpc,
    schedule_service_pb2_grpc,
)
from nodewise_protos.v1beta1 import (
    admin_service_pb2_grpc,
    completion_service_pb2_grpc,
    diagnosis_service_pb2_grpc,
    evaluation_service_pb2_grpc,
    plan_service_pb2_grpc,
    sharing_service_pb2_grpc,
    simulation_service_pb2_grpc,
)

COMMAND = (str(Path(sys.executable).parent / "nodewise"),)
PLUGINS_FIRST = {"NODEWISE_HOSTS__START_PATIENCE_S": "60"}
"""Of servers in tests, unless these are about what happens before all plugins are loaded."""


def registry_with(
    estimators: tuple[EstimatorRecord, ...] = (),
    policies: tuple[PolicyRecord, ...] = (),
    *,
    readers: tuple[TraceReaderRecord, ...] = (),
    diagnosers: tuple[DiagnoserRecord, ...] = (),
    sharing_models: tuple[SharingModelRecord, ...] = (),
    mode: str = "inline",
    problems: tuple[PluginProblem, ...] = (),
) -> Registry:
    """The shipped plugins and some more."""
    shipped = load_registry(safe_mode=True)
    return Registry(
        estimators=MappingProxyType({**shipped.estimators, **_loaded(estimators, mode)}),
        policies=MappingProxyType({**shipped.policies, **_loaded(policies, mode)}),
        trace_readers=MappingProxyType({**shipped.trace_readers, **_loaded(readers, mode)}),
        diagnosers=MappingProxyType({**shipped.diagnosers, **_loaded(diagnosers, mode)}),
        problems=problems,
        sharing_models=MappingProxyType({**shipped.sharing_models, **_loaded(sharing_models, mode)}),
    )


def _loaded(records: tuple[Any, ...], mode: str) -> dict[str, Any]:
    return {record.name: LoadedPlugin(record, "tests 1.0", mode) for record in records}


def children_of(pid: int) -> list[int]:
    """Processes that a process has started or adopted, oldest first."""
    found = Path(f"/proc/{pid}/task/{pid}/children")
    if not found.exists():
        pytest.skip("the kernel does not tell a process's children")
    return [int(each) for each in found.read_text().split()]


def _below(pid: int) -> list[int]:
    """Its children and theirs."""
    children = children_of(pid)
    return [*children, *(below for child in children for below in _below(child))]


def ended(pid: int) -> bool:
    """Whether a process is no more; who adopts it may not care to learn how it ended."""
    try:
        stated = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stated.rpartition(")")[2].split()[0] in "ZX"


def workers_of(supervisor: int) -> list[int]:
    """Those under a supervisor, oldest first; not the spare of the only one."""
    return [pid for pid in children_of(supervisor) if name_of(pid) == "nodewise-worker"]


def name_of(pid: int) -> str:
    """As ``ps -o comm`` tells it; empty once the process is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


class Stubs:
    """Every service behind one target; without credentials in plaintext."""

    def __init__(
        self,
        target: str,
        options: Iterable[tuple[str, Any]] = (),
        credentials: grpc.ChannelCredentials | None = None,
    ) -> None:
        options = [("grpc.use_local_subchannel_pool", 1), *options]
        if credentials is None:
            self.channel = grpc.insecure_channel(target, options=options)
        else:
            self.channel = grpc.secure_channel(target, credentials, options=options)
        self.prediction = prediction_service_pb2_grpc.PredictionServiceStub(self.channel)
        self.profile = profile_service_pb2_grpc.ProfileServiceStub(self.channel)
        self.schedule = schedule_service_pb2_grpc.ScheduleServiceStub(self.channel)
        self.simulation = simulation_service_pb2_grpc.SimulationServiceStub(self.channel)
        self.completion = completion_service_pb2_grpc.CompletionServiceStub(self.channel)
        self.plan = plan_service_pb2_grpc.PlanServiceStub(self.channel)
        self.diagnosis = diagnosis_service_pb2_grpc.DiagnosisServiceStub(self.channel)
        self.sharing = sharing_service_pb2_grpc.SharingServiceStub(self.channel)
        self.admin = admin_service_pb2_grpc.AdminServiceStub(self.channel)
        self.evaluation = evaluation_service_pb2_grpc.EvaluationServiceStub(self.channel)

    def __enter__(self) -> Stubs:
        return self

    def __exit__(self, *_: object) -> None:
        self.channel.close()


class ServerProcess:
    """``nodewise serve`` as a process; stopped on leaving the context.

    Parameters
    ----------
    *arguments
        Of the command.
    environment : mapping
        Above that of this process.
    listen : str
        HOST:PORT.
    """

    def __init__(
        self,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        listen: str = "127.0.0.1:0",
    ) -> None:
        self._process = subprocess.Popen(
            [*COMMAND, "serve", "--listen", listen, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **PLUGINS_FIRST, **(environment or {})},
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith("listening on "):
            _, errors = self._process.communicate(timeout=PATIENCE_S)
            raise RuntimeError(f"the server did not start: {line!r} {errors}")
        self.target = line.removeprefix("listening on ").strip()

    @property
    def http_target(self) -> str:
        """Where HTTP is answered; asked once, of a server that does."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().removeprefix("answering HTTP on ").strip()

    @property
    def pid(self) -> int:
        return self._process.pid

    def workers(self) -> list[int]:
        """Its processes that answer calls, or get ready to, oldest first."""
        return workers_of(self.pid)

    def log_until(self, event: str) -> None:
        """Read the log until an event appears in it; blocks until then."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if f'"{event}"' in line:
                return
        raise AssertionError(f"the log ended without {event}")

    def kill(self) -> None:
        """The supervisor alone; its workers drain, and follow."""
        self._process.kill()
        self._process.communicate()

    def power_off(self) -> None:
        """As a power switch would, for all of its processes: none drains."""
        for pid in (self.pid, *_below(self.pid)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.communicate()

    def terminate(self) -> tuple[int, str]:
        """SIGTERM; returns the exit status and what was logged."""
        self._process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> tuple[int, str]:
        """Until it has ended; returns the exit status and what was logged."""
        _, errors = self._process.communicate(timeout=PATIENCE_S)
        return self._process.returncode, errors

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.terminate()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()


class Failure:
    """What a failed call says."""

    def __init__(self, error: grpc.RpcError) -> None:
        assert isinstance(error, grpc.Call)
        self.code = error.code()
        self.message = error.details() or ""
        self.trailers: dict[str, Any] = dict(error.trailing_metadata() or ())
        self.status = status_pb2.Status.FromString(self.trailers.get("grpc-status-details-bin", b""))
        info, request = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
        for detail in self.status.details:
            detail.Unpack(info)
            detail.Unpack(request)
        self.reason, self.domain, self.metadata = info.reason, info.domain, dict(info.metadata)
        self.fields = {violation.field: violation.description for violation in request.field_violations}


def failure_of(call: Any, *arguments: Any, **options: Any) -> Failure:
    """The failure of a call that must fail; a stream is read to its end."""
    try:
        reply = call(*arguments, **options)
        if isinstance(reply, Iterator):
            list(reply)
    except grpc.RpcError as error:
        return Failure(error)
    raise AssertionError("the call did not fail")


def one_worker_phases(
    download_s: float = 0.15876, compute_s: float = 0.29659, upload_s: float = 0.16033, update_s: float = 0.005
) -> profile_pb2.ProfileContent:
    """Phases of one asynchronous worker; by default those of job a1 of the testbed table."""
    return profile_pb2.ProfileContent(
        phase_timings=profile_pb2.PhaseTimings(
            configurations=configuration_pb2.Configurations(
                nodes=[1], workers=[1], parameter_servers=[1], sync_modes=[configuration_pb2.SYNC_MODE_ASYNC]
            ),
            download_seconds=[download_s],
            compute_seconds=[compute_s],
            upload_seconds=[upload_s],
            update_seconds=[update_s],
        )
    )


def inline(content: profile_pb2.ProfileContent | None = None) -> profile_pb2.ProfileSource:
    """A profile in the request itself."""
    return profile_pb2.ProfileSource(content=content or one_worker_phases())


def stored(profile_id: str) -> profile_pb2.ProfileSource:
    """A profile by name."""
    return profile_pb2.ProfileSource(profile_id=profile_id)


def workers(*counts: int) -> configuration_pb2.Configurations:
    """Explicit numbers of workers."""
    return configuration_pb2.Configurations(workers=counts)


def observed(counts: list[int], rates: list[float]) -> profile_pb2.Observations:
    """Measured asynchronous runs."""
    return profile_pb2.Observations(
        configurations=configuration_pb2.Configurations(
            nodes=counts, workers=counts, parameter_servers=[1], sync_modes=[configuration_pb2.SYNC_MODE_ASYNC]
        ),
        steps_per_second=rates,
    )
