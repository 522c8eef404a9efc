"""What is put down of callers, and how much of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from patience import PATIENCE_S

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.rpc import audit
from nodewise.rpc.audit import REFUSALS_A_SECOND, Audit, is_audited
from nodewise.rpc.services import SERVICES
from nodewise_protos.v1 import prediction_service_pb2, profile_service_pb2, schedule_service_pb2
from nodewise_protos.v1beta1 import admin_service_pb2


class Caller:
    """Of whom gRPC knows the address."""

    def peer(self) -> str:
        return "ipv4:192.0.2.1:4242"


async def test_who_is_turned_away_again_and_again_fills_no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "COUNTED_AFTER_S", 0.01)
    entries: list[Mapping[str, Any]] = []
    counted = asyncio.Event()

    def write(entry: Mapping[str, Any]) -> None:
        entries.append(entry)
        if "other_calls" in entry["what"]:
            counted.set()

    found, caller = Audit(write), Caller()
    error = NodewiseError(Reason.UNAUTHENTICATED, "the call brings no token")
    for number in range(REFUSALS_A_SECOND + 7):
        found.record_refusal("/nodewise.v1.ProfileService/GetProfile", caller, str(number), error)  # type: ignore[arg-type]
    found.record_refusal("/a", caller, "", NodewiseError(Reason.PROFILE_NOT_FOUND, "no news"))  # type: ignore[arg-type]
    assert len(entries) == REFUSALS_A_SECOND
    await asyncio.wait_for(counted.wait(), PATIENCE_S)
    assert (entries[-1]["what"], entries[-1]["outcome"]) == ({"other_calls": 7}, "UNAUTHENTICATED")
    found.record_refusal("/a", caller, "later", error)  # type: ignore[arg-type]
    assert (entries[-1]["request_id"], entries[-1]["peer"]) == ("later", "ipv4:192.0.2.1:4242")


def test_every_method_that_takes_away_or_administers_is_put_down() -> None:
    files = (prediction_service_pb2, profile_service_pb2, schedule_service_pb2, admin_service_pb2)
    services = [each for file in files for each in file.DESCRIPTOR.services_by_name.values()]
    assert {each.full_name for each in services} <= set(SERVICES)
    found = {each.name for service in services for each in service.methods if is_audited(each.full_name)}
    assert found == {
        *("DeleteProfile", "UndeleteProfile", "RetractEvidence"),
        *("Reload", "SetCanary", "Promote", "Rollback", "CreateToken", "RevokeToken", "SetPrior"),
    }
