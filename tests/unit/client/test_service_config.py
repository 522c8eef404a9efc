"""The one file that says what the SDKs retry."""

from __future__ import annotations

import json
from pathlib import Path

from fake_nodewise import SERVICES, FakeServer

from nodewise_client import Client, PredictRequest, ScheduleRequest, _connection

SHARED = Path(__file__).parents[3] / "protos" / "nodewise" / "v1" / _connection.SERVICE_CONFIG


def test_the_client_ships_the_shared_file():
    assert _connection.service_config() == SHARED.read_text(encoding="utf-8")


def test_every_call_with_one_request_is_retried_and_nothing_else():
    methods = {
        f"{service.full_name}/{method.name}": method.client_streaming
        for service in SERVICES
        if service.name != "AdminService"  # who changes what serves learns of each failure
        for method in service.methods
    }
    asked_once = {name for name, streaming in methods.items() if not streaming}
    config = json.loads(_connection.service_config())
    retried = {
        f"{name['service']}/{name['method']}"
        for entry in config["methodConfig"]
        if "retryPolicy" in entry
        for name in entry["name"]
    }
    assert retried == asked_once


def test_the_numbers_are_what_every_runtime_accepts():
    config = json.loads(_connection.service_config())
    for entry in config["methodConfig"]:
        policy = entry.get("retryPolicy")
        if policy is not None:
            assert policy["maxAttempts"] == 4  # runtimes cap at 5
            assert (policy["initialBackoff"], policy["maxBackoff"]) == ("0.05s", "1s")
            assert policy["retryableStatusCodes"] == ["UNAVAILABLE", "CANCELLED"]
    assert 0 < config["retryThrottling"]["maxTokens"] <= 1000


def test_a_deadline_that_is_stated_holds_though_the_file_has_a_shorter_one():
    fake = FakeServer()
    try:
        with Client(fake.target) as client:
            client.predict(PredictRequest(), timeout_s=120.0)
            assert 60.0 < fake.remaining_s <= 121.0
            client.predict(PredictRequest())
            assert fake.remaining_s <= 11.0
            client.schedule(ScheduleRequest())
            assert 11.0 < fake.remaining_s <= 61.0
    finally:
        fake.stop()
