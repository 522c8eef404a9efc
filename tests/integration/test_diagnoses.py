"""Replays and diagnoses over a real socket and from the command line, with a reader and diagnosers of the tests."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from patience import PATIENCE_S
from serving import Stubs, failure_of, registry_with, stored
from tiny_traces import TinyDiagnoser, TinyReader, diagnoser, exchange, reader, tiny
from typer.testing import CliRunner

from nodewise.domain.columns import as_floats, as_ints
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.replay import ReplayedStep, Timeline
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.logging import configure_logging
from nodewise.runtime.settings import Settings
from nodewise_cli.app import app
from nodewise_cli.commands import trace_options
from nodewise_cli.inputs.trace_files import trace_files
from nodewise_client import (
    AsyncClient,
    Client,
    DiagnoseRequest,
    DiagnosisProgress,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    ReplayChange,
    ReplayRequest,
    profile_source,
)
from nodewise_protos.v1 import plugin_pb2, prediction_service_pb2, profile_pb2
from nodewise_protos.v1beta1 import diagnosis_service_pb2 as pb

TINY = TinyDiagnoser()
READER = TinyReader()


class Slow(TinyDiagnoser):
    """Works until nobody waits any more."""

    def __init__(self) -> None:
        super().__init__()
        self.began, self.ended = threading.Event(), threading.Event()

    def replay(self, traces: Any, question: Any, run: Any) -> Any:
        self.began.set()
        count = 0
        while run.remaining_s() > 0:
            run.advanced("waiting", count, 0)
            count += 1
            self.ended.wait(0.01)
        self.ended.set()
        return super().replay(traces, question, run)

    diagnose = replay


class Large(TinyDiagnoser):
    """Answers with more events than one message may hold."""

    ROWS = 300_000

    def replay(self, traces: Any, question: Any, run: Any) -> Any:
        rows = np.arange(self.ROWS, dtype=np.int64)
        timeline = Timeline(
            rank=as_ints(rows % 2),
            lane=as_ints(rows % 3),
            name=as_ints(rows % 5000),
            begin_ns=as_ints(rows * 1_000_003 - 5),
            duration_ns=as_ints(rows),
            lanes=("a", "b", "c"),
            names=tuple(f"{place:04d}" + "n" * 996 for place in range(5000)),
        )
        many = tuple(replace(exchange(1, tuple(range(40))), step=1 + place) for place in range(4000))
        return replace(super().replay(traces, question, run), timeline=timeline, collectives=many)


SLOW, LARGE = Slow(), Large()
NAN_STEP = ReplayedStep(
    step=1, measured_host_s=1.0, predicted_host_s=float("nan"), measured_device_s=1.0, predicted_device_s=1.0
)
WRONG: dict[str, dict[str, Any]] = {
    "wrong-nothing": {"steps": ()},
    "wrong-nan": {"steps": (NAN_STEP,)},
    "wrong-step": {"steps": ("step",)},
    "wrong-ranks": {"steps": (replace(NAN_STEP, predicted_host_s=1.0, rank_predicted_host_s=(1.0,) * 9),)},
    "wrong-clock": {"clock_offset_s": as_floats([0.0])},
    "wrong-clock-nan": {"clock_offset_s": as_floats([0.0, float("inf")])},
    "wrong-edges": {"edges": {"launch": 3}},
    "wrong-error": {"host_error": -0.1},
    "wrong-count": {"nodes": 1.5},
    "wrong-word": {"warnings": ("\ud800",)},
    "wrong-exchange": {"collectives": (replace(exchange(1, (0, 1)), wait_s=()),)},
    "wrong-none": {"collectives": None},
}


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    answering: dict[str, Any] = {name: TinyDiagnoser(**wrong) for name, wrong in WRONG.items()}
    answering |= {"tiny": TINY, "slow": SLOW, "large": LARGE}
    answering["raises"] = TinyDiagnoser(raises=SystemExit("inside"))
    answering["refuses"] = TinyDiagnoser(raises=NodewiseError(Reason.EVIDENCE_MISSING, "one step is too few"))
    answering["unbound"] = TinyDiagnoser(bound_by="bad luck")
    records = tuple(diagnoser(each, name) for name, each in answering.items())
    configure_logging("warning")  # the commands share this process: nothing but their answer goes to standard output
    settings = Settings(store="memory:", traces=str(tmp_path_factory.mktemp("traces")), grace_s=1.0)
    with EmbeddedServer(settings, registry_with(readers=(reader(READER),), diagnosers=records)) as server:
        with Client(server.target, timeout_s=30) as client:
            ingest(client, "job", [tiny(0), tiny(1)])
            ingest(client, "twice", [tiny(0), tiny(1), tiny(0, name="again")])
            ingest(client, "mixed", [tiny(0), tiny(1, 4)])
            ingest(client, "broken", [tiny(0), b"tiny trace\nno json\n"])
            ingest(client, "empty", [tiny(0, steps=0)])
        yield server.target


@pytest.fixture(scope="module")
def client(target: str) -> Iterator[Client]:
    with Client(target, timeout_s=30) as found:
        yield found


def ingest(client: Client, name: str, files: Sequence[bytes], rank: int | None = None) -> None:
    import io

    with client.ingest(name) as writer:
        for number, data in enumerate(files):
            writer.trace(io.BytesIO(data), trace_id=f"t{number}", trace_format="auto", rank=rank)


def test_a_replay_says_what_it_rests_on(client: Client) -> None:
    heard: list[DiagnosisProgress] = []
    found = client.replay(ReplayRequest(profile=profile_source("job"), diagnoser="tiny"), on_progress=heard.append)
    assert [step.step_ordinal for step in found.steps] == [1, 2, 3]
    assert found.steps[0].predicted_host_seconds == 0.00101
    assert found.steps[0].lower_host_seconds is None
    assert found.steps[0].rank_measured_host_seconds == (0.001, 0.001)
    assert (found.host_error_ratio, found.persistence_error_ratio, found.in_sample) == (0.01, 0.02, False)
    assert {each.kind: each.missing_count for each in found.edges}["launch"] == 1
    assert found.clock_offset_seconds == (0.0, 1e-3)
    assert [(each.step_ordinal, each.bytes, each.late_ranks) for each in found.collectives] == [
        (1, 4096, (1,)),
        (2, None, (1,)),
        (3, 4096, (1,)),
    ]
    assert found.collectives[0].arrival_seconds == (0.0, 1e-4)
    assert [(each.reason, each.message) for each in found.warnings] == [
        ("DIAGNOSER_WARNING", "a warning of the diagnoser")
    ]
    basis = found.basis
    assert (basis.diagnoser, basis.diagnoser_version) == ("tiny", "1.0")
    assert (basis.profile_id, basis.profile_revision) == ("job", 1)
    assert (basis.ranks, basis.world_size, basis.events_count) == ((0, 1), 2, 24)
    assert [(trace.rank, trace.reader, trace.events_count, trace.steps_count) for trace in basis.traces] == [
        (0, "tiny", 12, 3),
        (1, "tiny", 12, 3),
    ]
    assert basis.peak_memory_bytes > 1 << 20
    assert found.timeline is None
    assert heard
    assert heard[-1].stage == "replaying"


def test_traces_are_read_once_for_all_questions(client: Client) -> None:
    client.replay(ReplayRequest(profile=profile_source("job"), diagnoser="tiny"))
    before = READER.reads
    client.diagnose(DiagnoseRequest(profile=profile_source("job"), diagnoser="tiny"))
    client.replay(ReplayRequest(profile=profile_source("job"), diagnoser="tiny"))
    assert READER.reads == before


def test_a_change_leaves_measured_times_out(client: Client) -> None:
    found = client.replay(
        ReplayRequest(
            profile=profile_source("job"),
            diagnoser="tiny",
            changes=[
                ReplayChange(kind="scale", value=0.5, name_pattern=r"gemm|conv\d", event_kinds=["kernel"], ranks=[1])
            ],
        )
    )
    assert {step.measured_host_seconds for step in found.steps} == {None}
    assert {(step.lower_host_seconds, step.upper_host_seconds) for step in found.steps} == {(0.0009, 0.0011)}
    assert found.host_error_ratio is None
    (change,) = TINY.asked[-1][1].changes
    assert (change.value, change.event_kinds, change.ranks) == (0.5, ("kernel",), (1,))


def test_steps_that_are_fitted_are_not_tested(client: Client) -> None:
    found = client.replay(ReplayRequest(profile=profile_source("job"), diagnoser="tiny", fit_steps=[1, 2]))
    assert [step.step_ordinal for step in found.steps] == [3]
    assert found.persistence_error_ratio is None
    found = client.replay(
        ReplayRequest(profile=profile_source("job"), diagnoser="tiny", fit_steps=[1], test_steps=[1], in_sample=True)
    )
    assert found.in_sample
    for more, field in (
        ({"fit_steps": [1, 2], "test_steps": [2]}, "test_steps[0]"),
        ({"fit_steps": [1, 2, 3]}, "fit_steps"),
        ({"test_steps": [4]}, "test_steps[0]"),
    ):
        with pytest.raises(InvalidArgumentError) as caught:
            client.replay(ReplayRequest(profile=profile_source("job"), diagnoser="tiny", **more))
        assert [violation.field for violation in caught.value.violations] == [field]


def test_timelines_come_as_executed_and_as_recorded(client: Client) -> None:
    found = client.replay(
        ReplayRequest(profile=profile_source("job"), diagnoser="tiny", timeline=True, test_steps=[2, 3])
    )
    executed, recorded = found.timeline, found.recorded
    assert executed is not None
    assert recorded is not None
    assert len(executed) == 24
    assert executed.names[executed.name_indexes[3]] == "</script> all_reduce"
    assert executed.waiting_nanoseconds[3] == executed.duration_nanoseconds[3] // 2
    # Two of three steps, rank 1's clock is 1 ms ahead: a step of 1 ms begins at the other's second one.
    assert len(recorded) == 16
    begins = {
        rank: min(b for b, r in zip(recorded.begin_nanoseconds, recorded.rank_numbers) if r == rank) for rank in (0, 1)
    }
    assert begins == {0: 1_000_000, 1: 0}
    assert {recorded.kinds[kind] for kind in recorded.kind_indexes} == {"operator", "kernel", "collective"}
    assert set(recorded.lanes) == {"thread 1 main", "device 0 stream 7"}


def test_a_large_answer_comes_in_messages_that_a_client_takes(client: Client) -> None:
    found = client.replay(ReplayRequest(profile=profile_source("job"), diagnoser="large", timeline=True))
    timeline = found.timeline
    assert timeline is not None
    assert len(timeline) == Large.ROWS
    assert (timeline.begin_nanoseconds[0], timeline.begin_nanoseconds[-1]) == (-5, (Large.ROWS - 1) * 1_000_003 - 5)
    assert timeline.names[4999].startswith("4999")
    assert sum(timeline.name_indexes) == sum(row % 5000 for row in range(Large.ROWS))
    assert len(found.collectives) == 4000
    assert found.collectives[3999].wait_seconds == pytest.approx(tuple(1e-4 * (39 - place) for place in range(40)))


def test_a_diagnosis(client: Client) -> None:
    heard: list[DiagnosisProgress] = []
    found = client.diagnose(
        DiagnoseRequest(profile=profile_source("job"), diagnoser="tiny", timeline=True, max_bottlenecks=7),
        on_progress=heard.append,
    )
    assert (found.bound_by, found.verdict) == ("skew", "Ranks wait for each other.")
    assert len(found.bottlenecks) == 7
    assert found.bottlenecks[0].rank is None
    assert found.bottlenecks[0].gain_if_removed_seconds == 0.4
    (strategy,) = found.strategies
    assert (strategy.name, strategy.speedup_ratio, strategy.lower_step_seconds, strategy.parts) == (
        "larger buckets",
        1.11,
        None,
        ("a", "b"),
    )
    assert [(each.ranks, each.margin_seconds) for each in found.stragglers] == [((0, 1), 9e-6)]
    assert [each.memory_high_water_bytes for each in found.rank_shares] == [None, 1 << 30]
    parts = [part for each in found.rank_shares for part in each.parts]
    assert [(part.kind, part.what, part.seconds, part.waits_for_rank) for part in parts] == [
        ("waiting", "all_reduce 0", 1e-4, rank) for rank in (None, 0)
    ]
    assert found.complete
    assert found.timeline is not None
    assert heard[-1].stage == "searching"
    assert (
        client.diagnose(
            DiagnoseRequest(profile=profile_source("job"), diagnoser="tiny", max_strategies=0, max_bottlenecks=0)
        ).bottlenecks
        == ()
    )
    assert TINY.asked[-1][2].strategies == 0
    assert TINY.asked[-1][1].profile_id == "job"
    assert (TINY.catalogues[-1].device("Tesla V100") or {})["fp16_flops_per_s"] == 125e12


async def test_the_client_for_asyncio_asks_the_same(target: str) -> None:
    async with AsyncClient(target, timeout_s=30) as client:
        assert "tiny" in [each.name for each in (await client.list_plugins("diagnoser")).plugins]
        heard: list[DiagnosisProgress] = []
        replayed = await client.replay(
            ReplayRequest(profile=profile_source("job"), diagnoser="tiny", timeline=True), on_progress=heard.append
        )
        assert len(replayed.steps) == 3
        assert replayed.timeline is not None
        diagnosed = await client.diagnose(DiagnoseRequest(profile=profile_source("job"), diagnoser="tiny"))
        assert diagnosed.bound_by == "skew"
        assert heard
        with pytest.raises(NotFoundError):
            await client.diagnose(DiagnoseRequest(profile=profile_source("nobody")))


def test_an_inline_profile_names_stored_traces(target: str, client: Client) -> None:
    held = client.get_profile("job").content
    assert held is not None
    assert client.replay(ReplayRequest(profile=profile_source(held), diagnoser="tiny")).basis.profile_id == ""
    one = client.replay(
        ReplayRequest(
            profile=profile_source("twice"),
            diagnoser="tiny",
            trace_sha256s=[trace.content_sha256 for trace in held.traces],
        )
    )
    assert one.basis.ranks == (0, 1)


@pytest.mark.parametrize(
    ("profile", "reason", "said"),
    [
        ("twice", "CONTRADICTORY_FACTS", "rank 0 was recorded twice"),
        ("mixed", "CONTRADICTORY_FACTS", "rank 0 belongs to a job of 2 ranks, rank 1 to one of 4"),
        ("broken", "INVALID_FIELD", "line 2 is no JSON"),
        ("empty", "EVIDENCE_MISSING", "hold no events"),
        ("nobody", "PROFILE_NOT_FOUND", "no profile is named"),
    ],
)
def test_traces_that_are_not_of_one_job_are_refused(target: str, profile: str, reason: str, said: str) -> None:
    with Stubs(target) as stubs:
        for call, request in (
            (stubs.diagnosis.Replay, pb.ReplayRequest(profile=stored(profile), diagnoser="tiny")),
            (stubs.diagnosis.Diagnose, pb.DiagnoseRequest(profile=stored(profile), diagnoser="tiny")),
        ):
            failure = failure_of(call, request)
            assert failure.reason == reason
            assert said in failure.message


def test_a_profile_without_traces_is_refused(target: str) -> None:
    content = profile_pb2.ProfileContent()
    content.workload.parameter_bytes = 4
    with Stubs(target) as stubs:
        request = pb.ReplayRequest(profile=profile_pb2.ProfileSource(content=content), diagnoser="tiny")
        failure = failure_of(stubs.diagnosis.Replay, request)
    assert (failure.reason, failure.metadata["missingFields"]) == ("EVIDENCE_MISSING", "traces")


def change(kind: int = pb.REPLAY_CHANGE_KIND_SCALE, value: float = 1.0, **more: Any) -> dict[str, Any]:
    return {"changes": [pb.ReplayChange(kind=kind, value=value, **more)]}


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"test_steps": [0]}, "test_steps[0]"),
        ({"budget_seconds": -1.0}, "budget_seconds"),
        ({"trace_sha256s": ["x"]}, "trace_sha256s[0]"),
        ({"trace_mapping": {str(place): "" for place in range(257)}}, "trace_mapping"),
        (change(0), "changes[0].kind"),
        (change(value=-1.0), "changes[0].value"),
        (change(value=float("nan")), "changes[0].value"),
        (change(pb.REPLAY_CHANGE_KIND_LINK_BANDWIDTH, 0.0), "changes[0].value"),
        (change(pb.REPLAY_CHANGE_KIND_WORLD_SIZE, 2.5), "changes[0].value"),
        (change(event_kinds=["kernels"]), "changes[0].event_kinds[0]"),
        (change(ranks=[-1]), "changes[0].ranks[0]"),
        (change(name_pattern="(a+)+"), "changes[0].name_pattern"),
        (change(name_pattern="(a|b)*"), "changes[0].name_pattern"),
        (change(name_pattern=".*a.*b.*c"), "changes[0].name_pattern"),
        (change(name_pattern=r"(a)\1"), "changes[0].name_pattern"),
        (change(name_pattern="(?=a)"), "changes[0].name_pattern"),
        (change(name_pattern="("), "changes[0].name_pattern"),
        (change(name_pattern="a" * 257), "changes[0].name_pattern"),
        ({"changes": [pb.ReplayChange(kind=1, value=1)] * 65}, "changes"),
    ],
)
def test_wrong_fields_are_named(target: str, fields: dict[str, Any], path: str) -> None:
    with Stubs(target) as stubs:
        failure = failure_of(
            stubs.diagnosis.Replay, pb.ReplayRequest(profile=stored("job"), diagnoser="tiny", **fields)
        )
    assert failure.code is grpc.StatusCode.INVALID_ARGUMENT
    assert list(failure.fields) == [path]


def test_wrong_fields_of_a_diagnosis_are_named(target: str) -> None:
    with Stubs(target) as stubs:
        for fields, path in (
            ({"max_bottlenecks": 1001}, "max_bottlenecks"),
            ({"largest_batch_ratio": 0.5}, "largest_batch_ratio"),
            ({"steps": [9]}, "steps[0]"),
        ):
            request = pb.DiagnoseRequest(profile=stored("job"), diagnoser="tiny", **fields)
            assert list(failure_of(stubs.diagnosis.Diagnose, request).fields) == [path]


@pytest.mark.parametrize("name", WRONG)
def test_what_a_diagnoser_answers_is_checked(client: Client, name: str) -> None:
    with pytest.raises(InternalError) as caught:
        client.replay(ReplayRequest(profile=profile_source("job"), diagnoser=name))
    assert caught.value.reason == "DIAGNOSER_INVALID_RESULT"


def test_a_diagnosis_that_cannot_be_is_discarded(client: Client) -> None:
    with pytest.raises(InternalError, match="bound_by must be one of") as caught:
        client.diagnose(DiagnoseRequest(profile=profile_source("job"), diagnoser="unbound"))
    assert caught.value.reason == "DIAGNOSER_INVALID_RESULT"


def test_a_diagnoser_that_fails_or_refuses(client: Client) -> None:
    with pytest.raises(InternalError) as caught:
        client.replay(ReplayRequest(profile=profile_source("job"), diagnoser="raises"))
    assert caught.value.reason == "DIAGNOSER_FAILED"
    assert "inside" not in str(caught.value)
    with pytest.raises(Exception, match="one step is too few") as refused:
        client.diagnose(DiagnoseRequest(profile=profile_source("job"), diagnoser="refuses"))
    assert refused.value.reason == "EVIDENCE_MISSING"  # type: ignore[attr-defined]  # a NodewiseError
    with pytest.raises(NotFoundError) as missing:
        client.replay(ReplayRequest(profile=profile_source("job"), diagnoser="nobody"))
    assert missing.value.reason == "DIAGNOSER_NOT_FOUND"


def test_a_caller_who_leaves_ends_the_work(target: str) -> None:
    SLOW.began.clear()
    SLOW.ended.clear()
    with Stubs(target) as stubs:
        call = stubs.diagnosis.Replay(pb.ReplayRequest(profile=stored("job"), diagnoser="slow"), timeout=PATIENCE_S)
        assert SLOW.began.wait(PATIENCE_S)
        assert next(call).HasField("progress")
        call.cancel()
        assert SLOW.ended.wait(PATIENCE_S)


def test_a_budget_ends_the_work_with_an_answer(client: Client) -> None:
    SLOW.ended.clear()
    found = client.replay(ReplayRequest(profile=profile_source("job"), diagnoser="slow", budget_seconds=0.2))
    assert SLOW.ended.is_set()
    assert len(found.steps) == 3


def test_who_can_be_asked_is_listed(target: str, client: Client) -> None:
    diagnosers = client.list_plugins("diagnoser").plugins
    assert {"tiny", "slow", "large"} <= {each.name for each in diagnosers}
    (tiny_reader,) = [each for each in client.list_plugins("trace_reader").plugins if each.name == "tiny"]
    assert (tiny_reader.version, tiny_reader.distribution) == ("1.0", "tests 1.0")
    listed = json.loads(ran("plugins", "--server", target, "--json").stdout)["plugins"]
    assert {("tiny", "trace_reader"), ("tiny", "diagnoser")} <= {(each["name"], each["kind"]) for each in listed}
    with Stubs(target) as stubs:
        asked = prediction_service_pb2.ListPluginsRequest(page_size=2, kind=plugin_pb2.PLUGIN_KIND_DIAGNOSER)
        first = stubs.prediction.ListPlugins(asked)
        assert len(first.plugins) == 2
        asked = prediction_service_pb2.ListPluginsRequest(
            page_token=first.next_page_token, kind=plugin_pb2.PLUGIN_KIND_DIAGNOSER
        )
        rest = stubs.prediction.ListPlugins(asked)
    assert {each.kind for each in rest.plugins} == {plugin_pb2.PLUGIN_KIND_DIAGNOSER}
    assert len(rest.plugins) == len(diagnosers) - 2


def test_a_mapping_reaches_the_reader_and_reads_anew(client: Client) -> None:
    before = READER.reads
    for _ in range(2):
        client.replay(ReplayRequest(profile=profile_source("job"), diagnoser="tiny", trace_mapping={"kernel": "GPU"}))
    assert READER.reads == before + 2
    assert READER.sources[-1].mapping == {"kernel": "GPU"}


# --- the command line


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "run-7"
    folder.mkdir()
    for rank in range(2):
        (folder / f"rank{rank}.et").write_bytes(tiny(rank))
    (folder / "notes.json").write_text("{}")
    (folder / "notes.txt").write_text("nothing")
    return folder


def ran(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


REPLAY_KEYS = {
    "steps", "host_error", "device_error", "persistence_error", "kernel_start_p50_error_s", "events", "nodes", "ranks",
    "load_s", "build_s", "replay_s", "peak_rss_bytes", "edges",
}  # fmt: skip
DIAGNOSIS_KEYS = {"bottlenecks", "strategies", "exposed_communication_s", "bound_by", "stragglers"}


def test_replay_as_json_with_a_timeline(target: str, files: Path, tmp_path: Path, client: Client) -> None:
    before = {profile.profile_id for profile in client.list_profiles()}
    out = tmp_path / "timeline.json"
    result = ran(
        "replay", files, "--server", target, "--diagnoser", "tiny", "--fit-steps", "1-2", "--timeline", out, "--json"
    )
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found.keys() >= REPLAY_KEYS
    assert found["ranks"] == [0, 1]
    (step,) = found["steps"]
    assert step.keys() >= {
        "step", "measured_host_s", "predicted_host_s", "measured_device_s", "predicted_device_s"
    }  # fmt: skip
    assert found["edges"] == {"launch": {"found": 3, "inferred": 2, "missing": 1}}
    assert "notes.json: left out: it is not a trace" in result.stderr
    # What was stored for the question is gone.
    assert {profile.profile_id for profile in client.list_profiles()} == before
    events = json.loads(out.read_text())["traceEvents"]
    processes = {event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert processes == {"rank 0 replayed", "rank 1 replayed", "rank 0 original", "rank 1 original"}
    spans = [event for event in events if event["ph"] == "X"]
    assert {event["pid"] for event in spans} == {0, 1, 1_000_000, 1_000_001}
    waited = [event for event in spans if "args" in event]
    assert all(event["args"]["waiting_us"] + event["args"]["transfer_us"] == event["dur"] for event in waited)
    assert waited


def whole(text: str) -> str:
    """Sentences as they are, however the terminal folds them."""
    return " ".join(text.split())


def test_replay_for_people(target: str, files: Path) -> None:
    result = ran("replay", files, "--server", target, "--diagnoser", "tiny")
    assert result.exit_code == 0
    assert "predicted within 1 % of the step and 1 % on the devices, mean of 3 steps" in whole(result.stdout)
    assert "The mean of the other steps is off by 2 %" in whole(result.stdout)
    assert "nodewise: a warning of the diagnoser" in result.stderr
    changed = ran("replay", files, "--server", target, "--diagnoser", "tiny", "--change", "scale=0.5;events=kernel")
    assert "The changed step takes 1.010 ms, 0.9000 to 1.100 ms depending on the ranks" in whole(changed.stdout)
    checked = ran("replay", files, "--server", target, "--diagnoser", "tiny", "--in-sample")
    assert "This does not measure accuracy" in whole(checked.stdout)


def test_diagnose_as_json_with_pictures(target: str, files: Path, tmp_path: Path) -> None:
    for name in ("picture.html", "picture.png"):
        out = tmp_path / name
        result = ran("diagnose", files, "--server", target, "--diagnoser", "tiny", "--picture", out, "--json")
        assert result.exit_code == 0, result.stderr
        found = json.loads(result.stdout)
        assert found.keys() >= DIAGNOSIS_KEYS
        assert found["bottlenecks"][0].keys() >= {"kind", "what", "rank", "seconds", "gain_if_removed_s"}
        assert found["strategies"][0].keys() >= {"name", "predicted_step_s", "speedup"}
        assert found["stragglers"][0].keys() >= {"collective", "ranks", "margin_s", "imposed_wait_s"}
        assert out.stat().st_size > 1000
    page = (tmp_path / "picture.html").read_text()
    assert "Ranks wait for each other." in page
    assert not re.search(r"(?:src|href)\s*=|https?://", page)
    # A name in the data ends no script.
    assert page.count("</script>") == 2
    data = json.loads(re.search(r'type="application/json">(.*?)</script>', page, re.DOTALL)[1])  # type: ignore[index]
    assert [lane["rank"] for lane in data["lanes"]] == [0, 0, 1, 1]
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_diagnose_writes_a_report(target: str, files: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    result = ran("diagnose", files, "--server", target, "--diagnoser", "tiny", "--report", out)
    assert result.exit_code == 0, result.stderr
    page = out.read_text(encoding="utf-8")
    assert "default-src 'none'" in page
    assert not re.search(r"https?://", page)
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])  # type: ignore[index]
    assert data["sentence"] == "Ranks wait for each other."
    assert [bar["name"] for bar in data["bars"]] == ["rank 0", "rank 1"]
    assert [lane["rank"] for lane in data["lanes"]["lanes"]] == [0, 0, 1, 1]


def test_two_runs_are_compared_from_files_and_from_profiles(target: str, files: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    options = ("--server", target, "--diagnoser", "tiny", "--json")
    result = ran("diagnose", files, "--against", files, "--report", out, *options)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["verdict"].startswith("No relevant difference: a step of rank 0 takes 1.00 against 1.00 ms")
    assert [one["after_step"]["rank"] for one in found["ranks"]] == [0, 1]
    assert found["difference_s"] == 0
    assert sum(part["after_s"] for part in found["parts"]) == pytest.approx(0.001)
    assert found["parts"][0].keys() >= {"kind", "what", "before_s", "after_s", "difference_s", "waits_for_ranks"}
    assert "A step before and after" in out.read_text(encoding="utf-8")
    stored = ran("diagnose", "--profile", "job", "--against", "job", "--rank", "1", *options)
    assert [one["after_step"]["rank"] for one in json.loads(stored.stdout)["ranks"]] == [1]
    ranks = ran("diagnose", "--profile", "job", "--rank", "1", "--against-rank", "0", *options)
    assert json.loads(ranks.stdout)["verdict"].startswith("No relevant difference: a step of rank 1 takes")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rank", "1"], "--rank: needs --against BEFORE or --against-rank R"),
        (["--against-rank", "1"], "--against-rank: needs --against BEFORE, or --rank"),
        (["--against-rank", "1", "--rank", "1"], "--against-rank: needs --against BEFORE, or --rank with another"),
        (["--against", "FILES", "--picture", "x.html"], "--against: cannot be used with --picture or --timeline"),
        (["--against", "FILES", "--rank", "7"], "has no rank 7; recorded: 0, 1"),
        (["--against", "nothing.json"], "nothing.json: no such file"),
        (["--report", "x.txt"], "--report: must end in .html"),
        (["--report", "/nowhere/x.html"], "--report: must be a file in a directory"),
    ],
)
def test_wrong_comparisons(target: str, files: Path, arguments: list[str], said: str) -> None:
    given = [str(files) if argument == "FILES" else argument for argument in arguments]
    result = ran("diagnose", files, "--server", target, "--diagnoser", "tiny", *given)
    assert result.exit_code == 2, result.stderr
    assert said in result.stderr.splitlines()[-1]


def test_profiles_are_compared_one_with_one(target: str) -> None:
    result = ran("diagnose", "--profile", "job", "--against", "a", "--against", "b", "--server", target)
    assert result.exit_code == 2
    assert "--against: must be the name of one profile when --profile is given, found 2" in result.stderr


def test_diagnose_for_people_and_by_profile(target: str) -> None:
    result = ran("diagnose", "--profile", "job", "--server", target, "--diagnoser", "tiny")
    assert result.exit_code == 0
    assert result.stdout.startswith("Ranks wait for each other.")
    assert "tied ranks 0, 1" in result.stdout
    assert "10 of 20" in result.stdout


def test_ingest_stores_traces_once(target: str, files: Path, client: Client) -> None:
    for _ in range(2):
        result = ran("ingest", files, "--server", target, "--json")
        assert result.exit_code == 0, result.stderr
        stored = {"revision": 1, "observations": 0, "traces": 2, "warnings": []}
        assert json.loads(result.stdout) == {"profiles": {"run-7": stored}}
    result = ran("ingest", files / "rank0.et", "--profile", "one", "--server", target, "--json")
    assert json.loads(result.stdout)["profiles"]["one"]["traces"] == 1
    assert client.replay(ReplayRequest(profile=profile_source("run-7"), diagnoser="tiny")).basis.ranks == (0, 1)


def test_ranks_come_from_names_only_where_traces_do_not_say_them(target: str, tmp_path: Path, client: Client) -> None:
    for rank in range(2):
        (tmp_path / f"worker{rank}.json").write_bytes(
            b'tiny trace\n{"rank": 0, "world_size": 0, "steps": 1, "events": 2}\n"ph"'
        )
    assert ran("ingest", tmp_path, "--profile", "named", "--server", target).exit_code == 0
    assert client.replay(ReplayRequest(profile=profile_source("named"), diagnoser="tiny")).basis.ranks == (0, 1)
    for rank in range(2):
        stated = b'{"rank": %d, "world_size": 2, "steps": 1, "events": 2}\n"ph" "distributedInfo": {"rank": 1}' % (
            1 - rank
        )
        (tmp_path / f"worker{rank}.json").write_bytes(b"tiny trace\n" + stated)
    assert ran("ingest", tmp_path, "--profile", "stated", "--server", target).exit_code == 0
    held = client.get_profile("stated").content
    assert held is not None
    assert [trace.rank for trace in held.traces] == [None, None]


def test_paths_and_names_are_taken_out_of_what_is_stored(target: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(
        b'tiny trace\n{"rank": 0, "world_size": 0, "steps": 1, "events": 2, "name": "/home/ada/train.py"}\n"ph"'
    )
    for option, name in (([], "train.py"), (["--keep-names"], "/home/ada/train.py")):
        profile = f"kept-{name[0] == '/'}"
        assert ran("ingest", path, "--profile", profile, "--server", target, *option).exit_code == 0
        with Client(target, timeout_s=30) as client:
            found = client.replay(
                ReplayRequest(profile=profile_source(profile), diagnoser="tiny", timeline=True)
            ).recorded
        assert found is not None
        assert name in found.names


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "either TRACE files, or --profile"),
        (["--profile", "x"], "--server: must name the server"),
        (["FILES", "--fit-steps", "x"], "--fit-steps: must be whole numbers"),
        (["FILES", "--fit-steps", "pow2:1-4"], "--fit-steps: must be steps such as"),
        (["FILES", "--change", "speed=2"], "--change: must begin with one of scale"),
        (["FILES", "--change", "scale=x"], "--change: scale must be a number"),
        (["FILES", "--change", "scale=2;what=3"], "--change: a part after ; must be"),
        (["FILES", "--change", "scale=2;ranks=a"], "--change: ranks must be numbers"),
        (["FILES", "--mapping", "x"], "--mapping: must be KEY=VALUE"),
        (["FILES", "--timeline", "x.txt"], "--timeline: must end in .json"),
        (["FILES", "--timeline", "/nowhere/x.json"], "--timeline: must be a file in a directory"),
        (["nothing.json"], "nothing.json: no such file"),
        (["EMPTY"], "must contain traces"),
        (["FILES", "FILES"], "the file is given twice"),
    ],
)
def test_wrong_arguments(files: Path, tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "empty").mkdir()
    places = {"FILES": str(files), "EMPTY": str(tmp_path / "empty")}
    result = ran("replay", *(places.get(argument, argument) for argument in arguments))
    assert result.exit_code == 2, result.stderr
    assert said in result.stderr.splitlines()[-1]


def test_an_unreadable_trace_ends_with_bad_input(tmp_path: Path, target: str) -> None:
    (tmp_path / "a.json").write_text("no trace")
    assert "a.json: must be" in ran("replay", tmp_path / "a.json").stderr
    (tmp_path / "a.et").write_text("no trace")
    result = ran("replay", tmp_path / "a.et", "--server", target, "--diagnoser", "tiny", "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{tmp_path / 'a.et'}: no reader recognises it" in result.stderr
    result = ran("diagnose", "--profile", "empty", "--server", target, "--diagnoser", "tiny")
    assert result.exit_code == 3


@pytest.mark.parametrize(
    ("names", "ranks"),
    [
        (["rank0.et", "rank1.et"], [0, 1]),
        (["chakra.0.et", "chakra.1.et", "chakra.10.et"], [0, 1, 10]),
        (["worker1_step_5.et", "worker0_step_6.et"], [0, 1]),
        (["run1_0.et", "run2_1.et"], [None, None]),
        (["a1.et", "b2.et"], [None, None]),
        (["rank1a.et", "rank1b.et"], [None, None]),
        (["t1694128201545.et", "t1694128201554.et"], [None, None]),
        (["rank3.et"], [None]),
    ],
)
def test_ranks_that_names_tell(tmp_path: Path, names: list[str], ranks: list[int | None]) -> None:
    for name in names:
        (tmp_path / name).write_bytes(b"x")
    assert [file.rank for file in trace_files([tmp_path])] == ranks


def test_changes_as_written() -> None:
    found = trace_options.parse_change("bandwidth=2; name=all=reduce ;ranks=0,3")
    assert (found.kind, found.value, found.name_pattern, found.ranks) == ("link_bandwidth", 2.0, "all=reduce", (0, 3))
    assert trace_options.parse_steps("2-6:2,1", "--x") == (1, 2, 4, 6)
    assert trace_options.parse_steps("all", "--x") == ()
