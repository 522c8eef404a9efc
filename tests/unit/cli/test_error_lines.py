"""Refusals of several estimators: the nearest one's reason, and all with --verbose."""

from __future__ import annotations

from nodewise_cli.errors import explain_error
from nodewise_client import RefusedError

JOINT = RefusedError(
    "no estimator can answer (model: the micro-batch (of a replica) is not known; line: runs: none; scaling: no run)",
    reason="EVIDENCE_MISSING",
    metadata={"missingFields": "batch_per_worker,global_batch,observations"},
)


def test_the_nearest_is_told_with_what_to_state() -> None:
    assert explain_error(JOINT) == (
        "EVIDENCE_MISSING: state --global-batch or --batch-per-worker: no estimator can answer "
        "(model: the micro-batch (of a replica) is not known; 2 other estimators: see --verbose)"
    )


def test_all_are_told_where_that_is_asked() -> None:
    told = explain_error(JOINT, verbose=True)
    assert "line: runs: none; scaling: no run" in told
    assert told.endswith("missing: batch_per_worker, global_batch, observations")


def test_a_single_refusal_is_as_it_was() -> None:
    error = RefusedError("no run is known", reason="EVIDENCE_MISSING", metadata={"missingFields": "observations"})
    assert explain_error(error) == "EVIDENCE_MISSING: no run is known; missing: observations"
