from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nodewise_cli.failures import InputError
from nodewise_cli.inputs.documents import read_profile, read_value
from nodewise_client import (
    ConfigurationSettings,
    CurrentAllocation,
    Freshness,
    ModelOptions,
    NodeDevices,
    ProfileContent,
    ProfileSource,
    ScheduleRequest,
    SyncMode,
    Workload,
)

EXAMPLES = Path(__file__).parents[3] / "examples"


def write(folder: Path, document: Any) -> Path:
    path = folder / "file.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def test_a_profile() -> None:
    content = read_profile(EXAMPLES / "profile.json")
    assert content.phase_timings is not None
    assert content.phase_timings.compute_seconds == (0.29659,)
    assert content.workload is not None
    assert content.workload.parameter_bytes == 4_000_000


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ('{"workload": {', ":1: is not valid JSON: "),
        ("[]", "must hold a JSON object, found list"),
        ('{"workload": {"parameter_bytes": NaN}}', "is not valid JSON: NaN is not a number"),
        ('{"workload": {}, "workload": {}}', "is not valid JSON: 'workload' occurs twice in one object"),
        ('{"workload": {"bytes": 5}}', "workload.bytes: is not a field of Workload"),
        ('{"workload": {"parameter_bytes": "many"}}', "workload.parameter_bytes: "),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' * 900 + "{}" + "}" * 900, "nested too deeply"),
    ],
)
def test_files_that_hold_no_profile(tmp_path: Path, document: str, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        read_profile(write(tmp_path, document))
    assert str(caught.value).startswith(str(tmp_path / "file.json"))
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_profile(tmp_path / "none.json")
    (tmp_path / "file.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(InputError, match="byte 0 is not UTF-8"):
        read_profile(tmp_path / "file.json")


def test_profiles_of_a_request_may_be_jobs_of_a_table_beside_it() -> None:
    request: Any = read_value(EXAMPLES / "schedule.json", ScheduleRequest)
    assert len(request.jobs) == 5
    assert list(request.jobs[0].profile.content.observations.steps_per_second) == [9.8756, 37.3494]
    assert request.now == datetime(2020, 4, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ({"table": "none.csv", "job": "a"}, "none.csv: no such file"),
        ({"table": 5, "job": "a"}, 'jobs[0].profile: must be {"table": FILE, "job": NAME}'),
        ({"table": "t.csv", "job": "a", "row": "x"}, 'jobs[0].profile: must be {"table": FILE, "job": NAME}'),
        ({"table": "t.csv", "job": "b"}, 'jobs[0].profile.job: must be a job of t.csv (a), found "b"'),
        ({"table": "t.csv"}, "jobs[0].profile.job: must be a job of t.csv (a), found null"),
    ],
)
def test_profiles_that_are_no_jobs_of_a_table(tmp_path: Path, profile: Any, expected: str) -> None:
    (tmp_path / "t.csv").write_text("job,device,nodes,workers,steps_per_s,split\na,K80,1,1,2,train\n")
    with pytest.raises(InputError) as caught:
        read_value(write(tmp_path, {"jobs": [{"job_id": "x", "profile": profile}]}), ScheduleRequest)
    assert expected in str(caught.value)


def test_everything_in_a_request_is_passed_on(tmp_path: Path) -> None:
    job = {
        "jobId": "x",
        "profile": {"profileId": "stored", "minimumRevision": "3"},
        "remainingSamples": 5.0,
        "allowedDevices": [1, 2],
        "minDevices": 1,
        "maxDevices": 2,
        "allowedPools": ["p"],
        "serverDevices": 1,
        "requestedDevices": 2,
        "submitTime": "2026-01-01T00:00:00Z",
        "attainedServiceDeviceSeconds": 7.0,
        "currentAllocation": {"pool": "p", "placement": [{"nodeIndex": 1, "devicesCount": 2}], "ageSeconds": 9.0},
        "restartCostSeconds": 3.0,
        "weight": 2.0,
        "queue": "q",
        "deadline": "2026-01-02T00:00:00Z",
        "settings": {"syncMode": "SYNC_MODE_ASYNC", "parameterServers": 2},
        "minimumRunSeconds": 4.0,
    }
    inline = {"job_id": "y", "profile": {"content": {"workload": {"tensors_count": 5}}}, "remaining_samples": 1}
    document = {
        "now": "2026-01-01T00:00:00Z",
        "cluster": {"pools": [{"name": "p", "deviceName": "K80", "availableDevices": [2, 2], "pricePerNodeHour": 1.5}]},
        "jobs": [job, inline],
        "policy": "fifo",
        "policyParameters": {"a": 1.0},
        "policyState": "AQI=",
        "quotas": [{"queue": "q", "maxDevices": 3}],
        "options": {
            "estimator": "queueing",
            "intervalCoverage": 0.8,
            "freshness": "FRESHNESS_ALLOW_STALE",
            "allowFallback": True,
            "seed": 5,
        },
    }
    given: Any = read_value(write(tmp_path, document), ScheduleRequest)
    first, second = given.jobs
    assert (first.job_id, first.remaining_samples) == ("x", 5.0)
    assert first.profile == ProfileSource(profile_id="stored", minimum_revision=3)
    assert first.current_allocation == CurrentAllocation(
        pool="p", placement=(NodeDevices(node_index=1, devices_count=2),), age_seconds=9.0
    )
    assert (first.allowed_devices, first.allowed_pools, first.queue, first.weight) == ((1, 2), ("p",), "q", 2.0)
    assert (first.submit_time.day, first.deadline.day) == (1, 2)
    assert first.settings == ConfigurationSettings(sync_mode=SyncMode.ASYNC, parameter_servers=2)
    assert (first.server_devices, first.requested_devices, first.restart_cost_seconds, first.minimum_run_seconds) == (
        1,
        2,
        3,
        4,
    )
    assert second.profile.content == ProfileContent(workload=Workload(tensors_count=5))
    assert given.policy_state == b"\x01\x02"
    assert given.quotas[0].max_devices == 3
    assert given.options == ModelOptions(
        estimator="queueing", interval_coverage=0.8, seed=5, freshness=Freshness.ALLOW_STALE, allow_fallback=True
    )
    assert given.cluster.pools[0].price_per_node_hour == 1.5


def test_a_model_stands_for_a_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = {"model_type": "gpt2", "n_layer": 2, "n_embd": 8, "n_head": 2, "n_positions": 64, "vocab_size": 100}
    workload = read_profile(write(tmp_path, model), 32).workload
    assert workload is not None
    assert workload.transformer is not None
    assert workload.transformer.sequence_length_tokens == 32
    assert "torch_dtype is missing: precision is not stated" in capsys.readouterr().err
    with pytest.raises(InputError, match=r"file.json: n_layer .*: is missing"):
        read_profile(write(tmp_path, {**model, "n_layer": None}))


def test_a_workload_names_its_model(tmp_path: Path) -> None:
    model = {"model_type": "gpt2", "n_layer": 2, "n_embd": 8, "n_head": 2, "vocab_size": 100, "dtype": "float16"}
    (tmp_path / "config.json").write_text(json.dumps(model))
    (tmp_path / "layers.csv").write_text(
        "name,kind,forward_flops_per_sample,parameter_bytes,activation_bytes_per_sample\nfc,dense,2e6,4e6,4000\n"
    )
    facts = {"hugging_face": "config.json", "sequence_length_tokens": 16, "optimizer": "adam", "model_name": "mine"}
    content = read_profile(write(tmp_path, {"workload": facts, "network": {"link_bytes_per_second": 1e9}}))
    assert content.network is not None
    assert content.workload is not None
    assert content.workload.transformer is not None
    assert content.workload.transformer.head_size == 4
    assert (content.workload.optimizer, content.workload.precision) == ("adam", "fp16")
    assert content.workload.model_name == "mine"
    content = read_profile(write(tmp_path, {"workload": {"layer_table": "layers.csv", "samples_per_epoch": 5}}))
    assert content.workload is not None
    assert [layer.name for layer in content.workload.layers] == ["fc"]
    assert content.workload.samples_per_epoch == 5


def test_jobs_of_a_request_name_their_model(tmp_path: Path) -> None:
    (tmp_path / "layers.csv").write_text(
        "name,kind,forward_flops_per_sample,parameter_bytes,activation_bytes_per_sample\nfc,dense,2e6,4e6,4000\n"
    )
    job = {"job_id": "x", "profile": {"content": {"workload": {"layer_table": "layers.csv"}}}}
    request: Any = read_value(write(tmp_path, {"jobs": [job]}), ScheduleRequest)
    assert request.jobs[0].profile.content.workload.layers[0].parameter_bytes == 4_000_000


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        ({"hugging_face": 5}, "workload.hugging_face: must be the path of a file, found 5"),
        ({"hugging_face": "none.json"}, "none.json: cannot be read: No such file"),
        ({"hugging_face": "none.json", "transformer": {}}, "workload.transformer: must be left out"),
        ({"layer_table": "none.csv"}, "none.csv: cannot be read: No such file"),
        ({"layer_table": "none.csv", "layers": []}, "workload.layers: must be left out"),
        ({"hugging_face": "none.json", "sequence_length_tokens": "5"}, "must be a whole number"),
        (
            {"hf": "config.json", "sequence_length_tokens": 5},
            "workload.hf: is not a field of Workload; use hugg",
        ),
        ({"Hugging-Face-Config": "config.json"}, "Config: is not a field of Workload; use hugging_face"),
        ({"model_file": "config.json", "sequence_length_tokens": 5}, "workload.model_file: is not a field of Workload"),
        ({"sequence_length_tokens": 5}, "workload.sequence_length_tokens: needs hugging_face"),
    ],
)
def test_models_that_cannot_be_named(tmp_path: Path, workload: Any, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        read_profile(write(tmp_path, {"workload": workload}))
    assert expected in str(caught.value)


def test_a_length_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--sequence-length: needs the config"):
        read_profile(write(tmp_path, {"workload": {}}), 5)
