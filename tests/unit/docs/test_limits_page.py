"""The page of limits is held to the contract: what sizes work is capped there, or exempt with a reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from nodewise.ports.limits import Limits
from nodewise.rpc.services import SERVICES
from nodewise_values.facts import BY_MESSAGE

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "limits.md"
WHOLE = {
    FieldDescriptor.CPPTYPE_INT32,
    FieldDescriptor.CPPTYPE_INT64,
    FieldDescriptor.CPPTYPE_UINT32,
    FieldDescriptor.CPPTYPE_UINT64,
}

EXEMPT = {
    "indexes of what is listed, offsets of what follows": """
        Configurations.device_indexes Configurations.offer_indexes Configurations.group_device_indexes
        Configurations.placement_offsets Configurations.group_offsets
    """,
    "weights of what was measured": """
        PhaseTimings.steps_counts Observations.steps_counts MeasurementTable.steps_counts
        SuggestMeasurementsRequest.run_steps_count
    """,
    "names of rows that are stored": """
        PhaseTimings.numbers Observations.numbers RetractEvidenceRequest.observation_numbers
        RetractEvidenceRequest.phase_timing_numbers
    """,
    "compared": """
        ProfileSource.minimum_revision ProfileSource.revision GetProfileRequest.revision
        ProfileBatch.sequence_number
    """,
    "names of what wrote a trace": """
        TraceReference.rank TraceReference.world_size TraceChunk.rank TraceChunk.world_size
    """,
    "names of what timed the steps": """
        ReportStepsRequest.rank ReportStepsRequest.world_size ReportStepsRequest.node
    """,
    "numbers of what is kept": """
        ReloadRequest.generation SetCanaryRequest.generation
    """,
    "index of a row that is asked about": """
        CurrentConfiguration.row
    """,
    "seeds": """
        ModelOptions.seed SimulationSettings.seed
    """,
    "bounds that sums are compared with": """
        NodePool.max_nodes QueueQuota.max_devices
    """,
    "compared with what the cluster has; a weight of some policies": """
        ScheduleJob.server_devices ScheduleJob.requested_devices ScheduleJob.restarts_count
    """,
    "repeated in the answer": """
        LifetimeOrigin.machines_count
    """,
    "factors": """
        CompletionOffer.batch_per_worker_samples CompletionOffer.global_batch_samples
        HybridQuestion.batch_per_worker_samples
    """,
    "compared with a job's rows": """
        BacktestRequest.evidence_rows_count
    """,
    "kept as they come": """
        Workload.layers ProfileContent.traces ProfileContent.shared_runs ProfileBatch.shared_runs
    """,
    "prices that rows name": """
        PredictRequest.offers BatchJob.offers BatchPredictRequest.offers SuggestMeasurementsRequest.offers
        PlanRequest.offers
    """,
    "those that the plugin states; others are refused": """
        ModelOptions.parameters ScheduleRequest.policy_parameters SimulateRequest.policy_parameters
    """,
    "looked up by a job's queue": """
        ScheduleRequest.quotas SimulateRequest.quotas
    """,
}
"""Numbers and lists that size nothing, by the reason."""


def requests() -> Iterator[Descriptor]:
    """Messages that requests are made of, each once."""
    pool, seen = descriptor_pool.Default(), set[str]()
    waiting = [method.input_type for name in SERVICES for method in pool.FindServiceByName(name).methods]
    while waiting:
        message = waiting.pop()
        if message.full_name in seen or not message.full_name.startswith("nodewise."):
            continue
        seen.add(message.full_name)
        yield message
        waiting += [field.message_type for field in message.fields if field.message_type is not None]


def sizes() -> set[str]:
    """Fields that may size work: whole numbers whose facts state no greatest, and lists of messages."""
    found = set()
    for message in requests():
        if message.GetOptions().map_entry:
            continue
        facts = BY_MESSAGE.get(message.full_name, {})
        for field in message.fields:
            fact = facts.get(field.name)
            if (field.cpp_type in WHOLE and (fact is None or fact.maximum is None)) or (
                field.message_type is not None and field.is_repeated
            ):
                found.add(f"{message.name}.{field.name}")
    return found


def listed() -> list[str]:
    """Fields of the page's tables."""
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([A-Z]\w+\.\w+)`", row.split("|")[1])]


def test_every_number_of_a_request_is_capped_or_exempt() -> None:
    exempt = [name for names in EXEMPT.values() for name in names.split()]
    assert sorted([*listed(), *exempt]) == sorted(sizes())


def test_the_page_names_settings_that_there_are() -> None:
    named = set(re.findall(r"`limits\.(\w+)`", PAGE.read_text()))
    assert named <= set(Limits.__dataclass_fields__)
