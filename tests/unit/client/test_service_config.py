"""The one file that says what the SDKs retry."""

from __future__ import annotations

import json
from pathlib import Path

from nodewise_client import _connection
from nodewise_protos.v1 import (
    diagnosis_service_pb2,
    evaluation_service_pb2,
    plan_service_pb2,
    prediction_service_pb2,
    profile_service_pb2,
    schedule_service_pb2,
)

SHARED = Path(__file__).parents[3] / "protos" / "nodewise" / "v1" / _connection.SERVICE_CONFIG
# Calls that change something each time they are made.
NOT_IDEMPOTENT = {"nodewise.v1.ProfileService/DeleteProfile"}


def test_the_client_ships_the_shared_file():
    assert _connection.service_config() == SHARED.read_text(encoding="utf-8")


def test_every_idempotent_call_with_one_request_is_retried_and_nothing_else():
    modules = (
        prediction_service_pb2,
        profile_service_pb2,
        schedule_service_pb2,
        evaluation_service_pb2,
        diagnosis_service_pb2,
        plan_service_pb2,
    )
    methods = {
        f"{service.full_name}/{method.name}": method.client_streaming
        for module in modules
        for service in module.DESCRIPTOR.services_by_name.values()
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
    assert retried == asked_once - NOT_IDEMPOTENT


def test_the_numbers_are_what_every_runtime_accepts():
    config = json.loads(_connection.service_config())
    for entry in config["methodConfig"]:
        policy = entry.get("retryPolicy")
        if policy is not None:
            assert policy["maxAttempts"] == 4  # runtimes cap at 5
            assert (policy["initialBackoff"], policy["maxBackoff"]) == ("0.05s", "1s")
            assert policy["retryableStatusCodes"] == ["UNAVAILABLE", "CANCELLED"]
    assert 0 < config["retryThrottling"]["maxTokens"] <= 1000
