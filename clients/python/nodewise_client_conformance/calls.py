"""Calls of the client by the names of the contract's methods, and what they tell as the contract's messages."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any, Final, TypeVar

import nodewise_values as values
from nodewise_client import AsyncClient, BatchPredictResult, JobOutcome, NodewiseError, Prediction, PredictResult
from nodewise_client_conformance.clients import Clients
from nodewise_values.value import Value, unknown_number
from nodewise_values.wire import from_json, to_json

ValueT = TypeVar("ValueT", bound=Value)
# Methods of the client that give the part of a reply that callers want.
_PARTS: Final[dict[str, str]] = {
    "AppendProfile": "profile", "GetProfile": "profile", "DeleteProfile": "profile", "UndeleteProfile": "profile",
    "RetractEvidence": "profile", "IngestBatch": "state",
}  # fmt: skip
# Listings that the client asks for as a whole.
_WITHOUT_REQUEST: Final = frozenset({
    "ListEstimators", "ListDevices", "ListPolicies", "ListUsage", "ListPlugins", "ListPluginStates", "Promote",
    "Rollback",
})  # fmt: skip


@dataclass
class CallOutcome:
    """The results of a call so far."""

    replies: list[Any] | None = None
    rows: list[dict[str, Any]] | None = None


async def make_call(clients: Clients, line: dict[str, Any], outcome: CallOutcome) -> None:
    """Make the call of a line; what it tells is there also where it fails or is cancelled."""
    client = clients.of(line)
    within: dict[str, Any] = {}
    if (timeout_s := line.get("options", {}).get("timeout_seconds")) is not None:
        within["timeout_s"] = timeout_s
    face = line["face"]
    if face == "ingest":
        outcome.replies = [await _ingest(client, line["ingest"])]
        return
    name = line["method"].rpartition("/")[2]
    requests = [from_json(each, getattr(values, f"{name}Request")) for each in line.get("requests", [])]
    if face == "rows":
        outcome.rows = _rows(await getattr(client, _snake(name))(requests[0], **within))
    elif face == "stream":
        outcome.replies = []
        async for answer in client.stream_predict(requests, **within):
            outcome.replies.append(to_json(_stream_response(answer)))
            if len(outcome.replies) == line.get("cancel_after_replies"):
                return
    elif face == "watch":
        outcome.replies = []
        async for event in client.watch_profiles(*requests, **within):
            outcome.replies.append(to_json(event))
            if len(outcome.replies) == line.get("cancel_after_replies"):
                return
    elif face == "pages":
        outcome.replies = await _call_listing(client, name, requests, within)
    else:
        outcome.replies = [await _call_unary(client, name, requests, within, progress=face == "progress")]


async def _call_unary(
    client: AsyncClient, name: str, requests: list[Any], within: dict[str, Any], *, progress: bool
) -> Any:
    method = getattr(client, _snake(name))
    if name == "ListProfiles":
        profiles = [each async for each in method(*requests, **within)]
        return to_json(values.ListProfilesResponse(profiles=tuple(profiles)))
    if name == "RevokeToken":
        reply = await method(requests[0].token_id, **within)
        return to_json(
            reply if isinstance(reply, values.RevokeTokenResponse) else values.RevokeTokenResponse(token=reply)
        )
    if name == "ListPlugins":
        return to_json(await method(requests[0].kind, **within))
    reply = await method(*(() if name in _WITHOUT_REQUEST else requests), **within)
    if progress:
        kind: Any = getattr(values, f"{name}Response")
        result: Any = next(each.type for each in fields(kind) if each.name == "result")
        result_kind = getattr(values, str(result).partition(" ")[0])
        return to_json(kind(result=_plain(reply, result_kind)))
    if name in _PARTS:
        return to_json(getattr(values, f"{name}Response")(**{_PARTS[name]: reply}))
    if isinstance(reply, PredictResult):
        return to_json(_plain(reply, values.PredictResponse))
    return to_json(reply.response if isinstance(reply, BatchPredictResult) else reply)


async def _call_listing(client: AsyncClient, name: str, requests: list[Any], within: dict[str, Any]) -> list[Any]:
    method = getattr(client, _snake(name))
    if name == "ListProfiles":
        return [to_json(each) async for each in method(*requests, **within)]
    if name == "GetProfile":
        profile = await method(*requests, **within)
        return [to_json(profile)]
    reply = await method(*(() if name in _WITHOUT_REQUEST else requests), **within)
    items = next(getattr(reply, each.name) for each in fields(reply) if isinstance(getattr(reply, each.name), tuple))
    return [to_json(each) for each in items]


def _stream_response(answer: Any) -> values.StreamPredictResponse:
    fields: dict[str, Any] = {}
    if isinstance(answer.result, PredictResult):
        fields["predict"] = _plain(answer.result, values.PredictResponse)
    elif answer.result is not None:
        fields["batch"] = answer.result.response
    elif answer.error is not None and answer.error.reason:
        fields["problem"] = _problem(answer.error)
    return values.StreamPredictResponse(question_id=answer.question_id, **fields)


def _problem(error: NodewiseError) -> values.Problem:
    metadata = dict(error.metadata)
    missing = metadata.pop("missingFields", "")
    return values.Problem(
        reason=error.reason,
        message=error.message,
        missing_fields=tuple(missing.split(",")) if missing else (),
        violations=error.violations,
        metadata=metadata,
        retry_delay_seconds=error.retry_delay_s,
    )


def _plain(value: Any, kind: type[ValueT]) -> ValueT:
    """What a richer answer says, as the contract's own value."""
    return kind(**{each.name: getattr(value, each.name) for each in fields(kind)})  # type: ignore[arg-type]  # every value is a dataclass


def _rows(answer: PredictResult | BatchPredictResult) -> list[dict[str, Any]]:
    if isinstance(answer, PredictResult):
        return [_row(each) for each in answer]
    if not answer.outcomes:
        return [_row(each) for each in answer.rows]
    return [row for number, outcome in enumerate(answer) for row in _job(number, outcome)]


def _job(number: int, outcome: JobOutcome) -> list[dict[str, Any]]:
    if outcome.error is not None:
        return [{"job": number, "error": {"reason": outcome.error.reason, "message": outcome.error.message}}]
    return [{"job": number, **_row(each)} for each in outcome.rows]


def _row(row: Prediction) -> dict[str, Any]:
    refusal, unknown = row.refusal, unknown_number(row.status)
    return {
        "nodes": row.nodes or None,
        "workers": row.workers or None,
        "status": f"ROW_STATUS_{row.status.name}" if unknown is None else unknown,
        "step_seconds": row.step_seconds,
        "samples_per_second": row.samples_per_second,
        "lower_samples_per_second": row.lower_samples_per_second,
        "upper_samples_per_second": row.upper_samples_per_second,
        "memory_bytes": row.memory_bytes,
        "bottleneck": row.bottleneck,
        "reason": None if refusal is None or refusal.problem is None else refusal.problem.reason,
    }


async def _ingest(client: AsyncClient, ingest: dict[str, Any]) -> dict[str, int]:
    async with client.ingest(ingest["profile_id"], session_id=ingest.get("session_id")) as writer:
        revision = 0
        for each in ingest["batches"]:
            batch = from_json(each, values.ProfileBatch)
            if batch.workload is not None or batch.network is not None:
                await writer.facts(workload=batch.workload, network=batch.network)
            if batch.phase_timings is not None:
                await writer.phases(batch.phase_timings)
            if batch.observations is not None:
                await writer.observe(batch.observations)
            await writer.flush()
        if ingest.get("commit"):
            revision = (await writer.commit()).revision
        return {"durable": writer.durable_sequence_number, "revision": revision}


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
