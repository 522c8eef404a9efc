"""`nodewise plugins`: what can be asked, and what was left out and why."""

from __future__ import annotations

from typing import Any

from nodewise_cli.commands.options import AsJson, Server, TimeoutS, Wait
from nodewise_cli.console import print_json, print_table
from nodewise_cli.service import connected
from nodewise_client import (
    Diagnoser,
    Estimator,
    ListDiagnosersResponse,
    ListEstimatorsResponse,
    ListPoliciesResponse,
    Policy,
    TraceReader,
)

__all__ = ["plugins"]


def plugins(server: Server = None, as_json: AsJson = False, timeout_s: TimeoutS = Wait) -> None:
    """List all that plugins bring, with the distributions that brought it, and plugins that were left out."""
    with connected(server, timeout_s) as client:
        entries = _entries(client.list_estimators(), client.list_policies(), client.list_diagnosers())
    if as_json:
        print_json({"plugins": entries})
        return
    columns = ["name", "version", "kind", "distribution", "mode", "status"]
    print_table(
        [*((name, False) for name in columns), ("", False)],
        [[*(entry[name] or "-" for name in columns), entry["description"]] for entry in entries],
    )


def _entries(
    estimators: ListEstimatorsResponse, policies: ListPoliciesResponse, diagnosers: ListDiagnosersResponse
) -> list[dict[str, Any]]:
    entries = [_loaded(found, "estimator") for found in estimators.estimators]
    entries += [_loaded(found, "policy") for found in policies.policies]
    entries += [_loaded(found, "trace_reader") for found in diagnosers.trace_readers]
    entries += [_loaded(found, "diagnoser") for found in diagnosers.diagnosers]
    for problem in dict.fromkeys((*estimators.problems, *policies.problems, *diagnosers.problems)):
        entries.append(
            {
                "name": problem.name,
                "version": None,
                "kind": problem.kind,
                "distribution": problem.distribution,
                "mode": None,
                "status": problem.reason,
                "description": problem.message,
            }
        )
    return entries


def _loaded(found: Estimator | Policy | Diagnoser | TraceReader, kind: str) -> dict[str, Any]:
    return {
        "name": found.name,
        "version": found.version,
        "kind": kind,
        "distribution": found.distribution,
        "mode": found.mode,
        "status": "loaded",
        "description": found.description,
    }
