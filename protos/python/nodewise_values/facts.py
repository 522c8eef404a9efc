"""Facts about columns and other fields, as the contract states them on the fields themselves."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from nodewise_values.fact import Fact, by_field

__all__ = [
    "ARCHITECTURES",
    "AVAILABILITY_LAW",
    "AVAILABILITY_RECORD",
    "BATCH_BOUNDS",
    "BOTTLENECK",
    "BY_MESSAGE",
    "COMPLETION_CHECKPOINTS",
    "COMPLETION_GROUP",
    "COMPLETION_OFFER",
    "COMPLETION_SPEEDS",
    "CONFIGURATIONS",
    "CONFIGURATION_RANGE",
    "CONFIGURATION_SETTINGS",
    "COUNT_RANGE",
    "CREATE_TOKEN_REQUEST",
    "CURRENT_CONFIGURATION",
    "DELETE_PROFILE_REQUEST",
    "DEVICE_PROCESSORS",
    "DIAGNOSE_REQUEST",
    "DIAGNOSIS_BASIS",
    "EMPIRICAL_LIFETIMES",
    "ENCODER",
    "ESTIMATE_COMPLETION_REQUEST",
    "EXPONENTIAL_LIFETIMES",
    "FEWEST_DEVICES",
    "FLEET_RECORD",
    "GET_PROFILE_REQUEST",
    "HYBRID_QUESTION",
    "HYBRID_RUN",
    "KERNEL_LAUNCH",
    "KNEE",
    "KNOWN_REVOCATIONS",
    "LAYER",
    "LEAST_COST",
    "LEAST_TIME",
    "LIFETIME_DATA_SET",
    "LIFETIME_ORIGIN",
    "MEASUREMENT_TABLE",
    "MODEL_OPTIONS",
    "NETWORK",
    "NODE_POOL",
    "NODE_PRICES",
    "NODE_REPLACEMENT",
    "OBJECTIVE",
    "OBSERVATIONS",
    "OBSERVED_LIFETIMES",
    "OFFER",
    "ON_DEMAND_QUESTION",
    "PHASE_TIMINGS",
    "PLAN_CONSTRAINTS",
    "PLAN_POOL",
    "PLAN_REQUEST",
    "PREDICT_OPTIONS",
    "PREDICT_SHARING_REQUEST",
    "PROFILE",
    "PROFILE_BATCH",
    "PROFILE_SOURCE",
    "RANK_SHARES",
    "READ_TRACE",
    "REPLAYED_STEP",
    "REPLAY_REQUEST",
    "REPORT_STEPS_REQUEST",
    "RETRACT_EVIDENCE_REQUEST",
    "REVOKE_TOKEN_REQUEST",
    "SAVED_BYTES",
    "SCHEDULE_JOB",
    "SHARED_DEVICE",
    "SHARED_DEVICE_RUN",
    "SHARED_PAIR",
    "SHARED_RUN",
    "SHARING_JOB",
    "SIMULATION_CHECKPOINTS",
    "SIMULATION_EARLY_STOPS",
    "SIMULATION_JOBS",
    "SIMULATION_NODE_FAILURES",
    "SIMULATION_PREDICTION_ERROR",
    "SIMULATION_SETTINGS",
    "STATISTICAL_EFFICIENCY",
    "STEP_ALARM",
    "STEP_ELSEWHERE",
    "STEP_PART",
    "STRATEGY",
    "SUGGEST_MEASUREMENTS_REQUEST",
    "TRACE_CHUNK",
    "TRACE_REFERENCE",
    "TRANSFORMER",
    "WEIBULL_LIFETIMES",
    "WORK",
    "WORKLOAD",
    "Fact",
]

CONFIGURATIONS: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="nodes",
        row="nodes",
        csv="nodes",
        kind="int",
        unit="nodes",
        default=0,
        minimum=1,
        meaning=(
            "Machines that run workers. Default: as many as the workers need, packed at the job's workers per node."
        ),
    ),
    Fact(
        field="workers",
        row="workers",
        csv="workers",
        kind="int",
        unit="workers",
        default=0,
        minimum=1,
        meaning=(
            "Training processes in total, one per device. Default: as many as the row's placement or groups hold, else "
            "nodes times the job's workers per node."
        ),
    ),
    Fact(
        field="parameter_servers",
        row="parameter_servers",
        csv="parameter_servers",
        kind="int",
        unit="servers",
        minimum=0,
        maximum=1048576,
        meaning=(
            "Parameter servers. Default 0 for all-reduce, otherwise as in the job's evidence (1 where that does not "
            "tell)."
        ),
    ),
    Fact(
        field="device_names",
        row="device",
        csv="device",
        kind="str",
        unit="",
        maximum_length=64,
        meaning='Dictionary of accelerator names, e.g. "V100". One name and no indexes: it holds for all rows.',
    ),
    Fact(
        field="sync_modes",
        row="sync_mode",
        csv="sync",
        kind="enum",
        unit="",
        default=0,
        minimum=0,
        maximum=4,
        meaning="How gradients are exchanged. Default: as in the job's evidence.",
    ),
    Fact(
        field="placement_workers",
        row="placement",
        csv="placement",
        kind="int",
        unit="workers",
        minimum=1,
        meaning=(
            "Workers on each node of a row's placement; the sum is the row's workers, the number of entries its nodes."
        ),
    ),
    Fact(
        field="batch_per_worker_samples",
        row="batch_per_worker",
        csv="batch_per_worker",
        kind="float",
        unit="samples",
        whole=True,
        default=0,
        minimum=1,
        maximum=2147483647,
        meaning=(
            "Samples per worker and micro-step. Empty or 0 in a row: as in the job's evidence, where that tells. Whole "
            "numbers; the type leaves room for samples that several workers share."
        ),
    ),
    Fact(
        field="accumulation_steps",
        row="accumulation",
        csv="accumulation",
        kind="int",
        unit="micro-steps",
        default=1,
        minimum=1,
        maximum=1048576,
        meaning="Micro-steps whose gradients are added before an exchange. Default 1.",
    ),
    Fact(
        field="global_batch_samples",
        row="global_batch",
        csv="global_batch",
        kind="float",
        unit="samples",
        whole=True,
        default=0,
        minimum=1,
        maximum=2147483647,
        meaning=(
            "Samples per step over all workers (asynchronous and hybrid: of one mini-batch from each worker). Empty or "
            "0 in a row: replicas times batch per worker times accumulation steps. Given without a batch per worker "
            "(strong scaling), the batch per worker is rounded up."
        ),
    ),
    Fact(
        field="link_bytes_per_second",
        row="link_bytes_per_s",
        csv="link_bytes_per_s",
        kind="float",
        unit="bytes/s",
        default=0.0,
        minimum=1.0,
        meaning=(
            "Link of a parameter server or node, bytes per second and direction. Empty or 0 in a row: the job's own."
        ),
    ),
    Fact(
        field="tensor_parallel_degrees",
        row="tensor_parallel",
        csv="tensor_parallel",
        kind="int",
        unit="devices",
        default=1,
        minimum=1,
        maximum=1048576,
        meaning="Tensor-parallel degree. Default 1.",
    ),
    Fact(
        field="pipeline_parallel_degrees",
        row="pipeline_parallel",
        csv="pipeline_parallel",
        kind="int",
        unit="stages",
        default=1,
        minimum=1,
        maximum=1048576,
        meaning="Pipeline stages. Default 1.",
    ),
    Fact(
        field="data_parallel_degrees",
        row="data_parallel",
        csv="data_parallel",
        kind="int",
        unit="replicas",
        default=0,
        minimum=1,
        maximum=1048576,
        meaning="Data-parallel replicas. Empty or 0 in a row: workers divided by the product of the other degrees.",
    ),
    Fact(
        field="expert_parallel_degrees",
        row="expert_parallel",
        csv="expert_parallel",
        kind="int",
        unit="devices",
        default=1,
        minimum=1,
        maximum=1048576,
        meaning="Expert-parallel degree. Default 1.",
    ),
    Fact(
        field="context_parallel_degrees",
        row="context_parallel",
        csv="context_parallel",
        kind="int",
        unit="devices",
        default=1,
        minimum=1,
        maximum=1048576,
        meaning="Context-parallel (sequence-dimension) degree. Default 1.",
    ),
    Fact(
        field="sequence_parallel",
        row="sequence_parallel",
        csv="sequence_parallel",
        kind="bool",
        unit="",
        default=0,
        minimum=0,
        maximum=1,
        meaning="Whether layer norms and dropouts are split along the sequence. Default false.",
    ),
    Fact(
        field="interleave_degrees",
        row="interleave",
        csv="interleave",
        kind="int",
        unit="chunks",
        default=1,
        minimum=1,
        maximum=1048576,
        meaning="Model chunks per pipeline stage. Default 1.",
    ),
    Fact(
        field="zero_stages",
        row="zero_stage",
        csv="zero_stage",
        kind="int",
        unit="",
        default=0,
        minimum=0,
        maximum=3,
        meaning="ZeRO stage, 0 to 3. Default 0.",
    ),
    Fact(
        field="recomputations",
        row="recomputation",
        csv="recompute",
        kind="enum",
        unit="",
        default=0,
        minimum=0,
        maximum=3,
        meaning="What is recomputed in the backward pass.",
    ),
    Fact(
        field="precisions",
        row="precision",
        csv="precision",
        kind="str",
        unit="",
        maximum_length=16,
        meaning='Number format of weights and activations, e.g. "fp16". An empty text is the job\'s own.',
    ),
    Fact(
        field="backup_workers",
        row="backup_workers",
        csv="backup_workers",
        kind="int",
        unit="workers",
        default=0,
        minimum=0,
        maximum=1048576,
        meaning="Synchronous training: workers of each step whose result is not waited for. Default 0.",
    ),
    Fact(
        field="hybrid_sync_fractions",
        row="hybrid_sync_fraction",
        csv="hybrid_sync_fraction",
        kind="float",
        unit="",
        default=0.0,
        minimum=0.0,
        maximum=1.0,
        meaning=(
            "Hybrid training: share of each worker's mini-batches that is run synchronously, 0 to 1. Other modes: 0."
        ),
    ),
    Fact(
        field="hybrid_switch_seconds",
        row="hybrid_switch_s",
        csv="hybrid_switch_s",
        kind="float",
        unit="s",
        default=0.0,
        minimum=0.0,
        maximum=10000000.0,
        meaning=(
            "Hybrid training: seconds lost once at the switch from synchronous to asynchronous. Default 0. Other "
            "modes: 0."
        ),
    ),
    Fact(
        field="group_workers",
        row="groups",
        csv="groups",
        kind="int",
        unit="workers",
        minimum=1,
        meaning="Workers of each group; the sum is the row's workers.",
    ),
    Fact(
        field="offer_names",
        row="offer",
        csv=None,
        kind="str",
        unit="",
        maximum_length=64,
        meaning="Dictionary of names of the question's offers. One name and no indexes: it holds for all rows.",
    ),
)
"""Of Configurations, by field."""

CONFIGURATION_SETTINGS: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="parameter_servers",
        row="parameter_servers",
        csv="parameter_servers",
        kind="int",
        unit="servers",
        minimum=0,
        maximum=1048576,
        meaning=(
            "Parameter servers. Absent = 0 for all-reduce, otherwise as in the job's evidence (1 where that does not "
            "tell)."
        ),
    ),
    Fact(
        field="device_name",
        row="device",
        csv="device",
        kind="str",
        unit="",
        maximum_length=64,
        meaning='Accelerator, e.g. "V100". Empty = that of the job\'s evidence.',
    ),
    Fact(
        field="sync_mode",
        row="sync_mode",
        csv="sync",
        kind="enum",
        unit="",
        default=0,
        minimum=0,
        maximum=4,
        meaning="How gradients are exchanged. Absent = as in the job's evidence.",
    ),
    Fact(
        field="batch_per_worker_samples",
        row="batch_per_worker",
        csv="batch_per_worker",
        kind="float",
        unit="samples",
        whole=True,
        default=0,
        minimum=1,
        maximum=2147483647,
        meaning=(
            "Samples per worker and micro-step. Absent = as in the job's evidence, where that tells. Whole numbers."
        ),
    ),
    Fact(
        field="accumulation_steps",
        row="accumulation",
        csv="accumulation",
        kind="int",
        unit="micro-steps",
        default=1,
        minimum=1,
        maximum=1048576,
        meaning="Micro-steps whose gradients are added before an exchange. Absent = 1.",
    ),
    Fact(
        field="global_batch_samples",
        row="global_batch",
        csv="global_batch",
        kind="float",
        unit="samples",
        whole=True,
        default=0,
        minimum=1,
        maximum=2147483647,
        meaning=(
            "Samples per step over all workers (asynchronous and hybrid: of one mini-batch from each worker). Absent = "
            "replicas times batch per worker times accumulation steps. Given without a batch per worker (strong "
            "scaling), the batch per worker is rounded up."
        ),
    ),
    Fact(
        field="link_bytes_per_second",
        row="link_bytes_per_s",
        csv="link_bytes_per_s",
        kind="float",
        unit="bytes/s",
        default=0.0,
        minimum=1.0,
        meaning="Link of a parameter server or node, bytes per second and direction. Absent = the job's own.",
    ),
    Fact(
        field="tensor_parallel_degree",
        row="tensor_parallel",
        csv="tensor_parallel",
        kind="int",
        unit="devices",
        default=1,
        minimum=1,
        maximum=1048576,
        meaning="Tensor-parallel degree. Absent = 1.",
    ),
    Fact(
        field="pipeline_parallel_degree",
        row="pipeline_parallel",
        csv="pipeline_parallel",
        kind="int",
        unit="stages",
        default=1,
        minimum=1,
        maximum=1048576,
        meaning="Pipeline stages. Absent = 1.",
    ),
    Fact(
        field="data_parallel_degree",
        row="data_parallel",
        csv="data_parallel",
        kind="int",
        unit="replicas",
        default=0,
        minimum=1,
        maximum=1048576,
        meaning="Data-parallel replicas. Absent = workers divided by the product of the other degrees.",
    ),
    Fact(
        field="expert_parallel_degree",
        row="expert_parallel",
        csv="expert_parallel",
        kind="int",
        unit="devices",
        default=1,
        minimum=1,
        maximum=1048576,
        meaning="Expert-parallel degree. Absent = 1.",
    ),
    Fact(
        field="context_parallel_degree",
        row="context_parallel",
        csv="context_parallel",
        kind="int",
        unit="devices",
        default=1,
        minimum=1,
        maximum=1048576,
        meaning="Context-parallel (sequence-dimension) degree. Absent = 1.",
    ),
    Fact(
        field="sequence_parallel",
        row="sequence_parallel",
        csv="sequence_parallel",
        kind="bool",
        unit="",
        default=0,
        minimum=0,
        maximum=1,
        meaning="Whether layer norms and dropouts are split along the sequence. Absent = false.",
    ),
    Fact(
        field="interleave_degree",
        row="interleave",
        csv="interleave",
        kind="int",
        unit="chunks",
        default=1,
        minimum=1,
        maximum=1048576,
        meaning="Model chunks per pipeline stage. Absent = 1.",
    ),
    Fact(
        field="zero_stage",
        row="zero_stage",
        csv="zero_stage",
        kind="int",
        unit="",
        default=0,
        minimum=0,
        maximum=3,
        meaning="ZeRO stage, 0 to 3. Absent = 0.",
    ),
    Fact(
        field="recomputation",
        row="recomputation",
        csv="recompute",
        kind="enum",
        unit="",
        default=0,
        minimum=0,
        maximum=3,
        meaning="What is recomputed in the backward pass.",
    ),
    Fact(
        field="precision",
        row="precision",
        csv="precision",
        kind="str",
        unit="",
        maximum_length=16,
        meaning='Number format of weights and activations, e.g. "fp16". Empty = the job\'s own.',
    ),
    Fact(
        field="backup_workers",
        row="backup_workers",
        csv="backup_workers",
        kind="int",
        unit="workers",
        default=0,
        minimum=0,
        maximum=1048576,
        meaning="Synchronous training: workers of each step whose result is not waited for. Absent = 0.",
    ),
    Fact(
        field="hybrid_sync_fraction",
        row="hybrid_sync_fraction",
        csv="hybrid_sync_fraction",
        kind="float",
        unit="",
        default=0.0,
        minimum=0.0,
        maximum=1.0,
        meaning=(
            "Hybrid training: share of each worker's mini-batches that is run synchronously, 0 to 1. Absent = 0. Other "
            "modes: 0."
        ),
    ),
    Fact(
        field="hybrid_switch_seconds",
        row="hybrid_switch_s",
        csv="hybrid_switch_s",
        kind="float",
        unit="s",
        default=0.0,
        minimum=0.0,
        maximum=10000000.0,
        meaning=(
            "Hybrid training: seconds lost once at the switch from synchronous to asynchronous. Absent = 0. Other "
            "modes: 0."
        ),
    ),
    Fact(
        field="offer_name",
        row="offer",
        csv=None,
        kind="str",
        unit="",
        maximum_length=64,
        meaning="Name of one of the question's offers. Empty = as said of Offer.",
    ),
)
"""Of ConfigurationSettings, by field."""

COUNT_RANGE: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="first",
        row="first",
        csv=None,
        kind="int",
        unit="",
        minimum=1,
        required=True,
        meaning="First value.",
    ),
    Fact(
        field="last",
        row="last",
        csv=None,
        kind="int",
        unit="",
        minimum=1,
        required=True,
        meaning="Last value, at least first.",
    ),
    Fact(
        field="step",
        row="step",
        csv=None,
        kind="int",
        unit="",
        default=1,
        minimum=1,
        meaning="Increment. Absent = 1. Not with powers_of_two.",
    ),
)
"""Of CountRange, by field."""

CONFIGURATION_RANGE: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="workers_per_node",
        row="workers_per_node",
        csv=None,
        kind="int",
        unit="workers",
        minimum=1,
        maximum=1024,
        meaning="Devices used on each node. Absent = as in the job's evidence (1 where that does not tell).",
    ),
)
"""Of ConfigurationRange, by field."""

MODEL_OPTIONS: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="interval_coverage",
        row="interval_coverage",
        csv=None,
        kind="float",
        unit="",
        default=0.9,
        minimum=0.0,
        maximum=0.9999,
        exclusive_minimum=True,
        meaning="Coverage of the interval. Absent = 0.9.",
    ),
)
"""Of ModelOptions, by field."""

PREDICT_OPTIONS: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="simulated_steps_count",
        row="simulated_steps_count",
        csv=None,
        kind="int",
        unit="steps",
        minimum=1,
        meaning=(
            "Steps that a simulation counts in each row after warming up: workers' cycles (asynchronous), else rounds. "
            "Absent = as many as the estimator thinks right. Rows times steps are capped (LIMIT_EXCEEDED, "
            "simulated_steps_per_call). Only with FIDELITY_SIMULATE."
        ),
    ),
)
"""Of PredictOptions, by field."""

SHARED_DEVICE_RUN: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="device_name",
        row="device",
        csv=None,
        kind="str",
        unit="",
        maximum_length=64,
        meaning='Accelerator, e.g. "V100".',
    ),
    Fact(
        field="partner_profile_id",
        row="partner_profile_id",
        csv=None,
        kind="str",
        unit="",
        maximum_length=128,
        meaning="Profile of the other job. It need not be stored.",
    ),
    Fact(
        field="share",
        row="share",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=10.0,
        meaning="Share of its solo speed that this job kept, 1 = all of it.",
    ),
    Fact(
        field="partner_share",
        row="partner_share",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=10.0,
        meaning="Share that the other one kept.",
    ),
)
"""Of SharedDeviceRun, by field."""

WORKLOAD: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="model_name",
        row="model_name",
        csv=None,
        kind="str",
        unit="",
        maximum_length=256,
        meaning="Name of the model, for people.",
    ),
    Fact(
        field="parameter_bytes",
        row="parameter_bytes",
        csv="parameter_bytes",
        kind="float",
        unit="bytes",
        whole=True,
        minimum=1,
        maximum=9007199254740992,
        meaning=(
            "Bytes of the parameters (and of the gradient) that cross the network per worker and direction in a step."
        ),
    ),
    Fact(
        field="tensors_count",
        row="tensors",
        csv="tensors",
        kind="int",
        unit="tensors",
        minimum=1,
        maximum=10000000,
        meaning="Tensors that the parameters are sent in.",
    ),
    Fact(
        field="flops_per_sample",
        row="flops_per_sample",
        csv="flops_per_sample",
        kind="float",
        unit="FLOPs/sample",
        minimum=0.0,
        exclusive_minimum=True,
        meaning="Floating-point operations of forward and backward pass per sample.",
    ),
    Fact(
        field="samples_per_epoch",
        row="samples_per_epoch",
        csv=None,
        kind="float",
        unit="samples",
        whole=True,
        minimum=1,
        maximum=9007199254740992,
        meaning="Samples in one epoch.",
    ),
    Fact(
        field="epochs_count",
        row="epochs",
        csv=None,
        kind="float",
        unit="epochs",
        minimum=0.0,
        exclusive_minimum=True,
        meaning="Epochs to train.",
    ),
    Fact(
        field="framework",
        row="framework",
        csv="framework",
        kind="str",
        unit="",
        maximum_length=64,
        meaning='Training framework, e.g. "pytorch". Empty = not known.',
    ),
    Fact(
        field="optimizer",
        row="optimizer",
        csv="optimizer",
        kind="str",
        unit="",
        maximum_length=64,
        meaning='Optimizer, e.g. "adam", "adamw", "sgd", "lion", "adafactor", "muon". Empty = not known.',
    ),
    Fact(
        field="precision",
        row="precision",
        csv=None,
        kind="str",
        unit="",
        maximum_length=16,
        meaning='Number format of weights and activations, e.g. "fp16". Empty = not known.',
    ),
    Fact(
        field="shard_bytes",
        row="shard_bytes",
        csv=None,
        kind="float",
        unit="bytes",
        whole=True,
        minimum=0,
        maximum=9007199254740992,
        meaning=(
            "Bytes of the parameters that each parameter server holds, one entry per server; they add up to "
            "parameter_bytes where that is known. Empty = not known."
        ),
    ),
    Fact(
        field="shard_tensors_counts",
        row="shard_tensors",
        csv=None,
        kind="int",
        unit="tensors",
        minimum=0,
        maximum=10000000,
        meaning=(
            "Tensors that each parameter server holds, one entry per server; they add up to tensors_count where that "
            "is known. Empty = not known."
        ),
    ),
    Fact(
        field="dropout",
        row="dropout",
        csv="dropout",
        kind="bool",
        unit="",
        default=0,
        minimum=0,
        maximum=1,
        meaning=(
            "Whether dropout sets values to 0, so that its masks are kept. Absent = not known: estimators say what "
            "they take."
        ),
    ),
    Fact(
        field="frozen_weights_share",
        row="frozen_weights_share",
        csv="frozen_weights",
        kind="float",
        unit="",
        minimum=0.0,
        maximum=1.0,
        meaning="Share of the weights that are not trained, as with adapters (LoRA). Absent = 0: all are trained.",
    ),
    Fact(
        field="frozen_weight_bits",
        row="frozen_weight_bits",
        csv="frozen_weight_bits",
        kind="float",
        unit="bits",
        minimum=1.0,
        maximum=64.0,
        meaning=(
            "Bits that a weight which is not trained is held in, e.g. 4 (QLoRA). Absent = those of the number format."
        ),
    ),
    Fact(
        field="offload",
        row="offload",
        csv="offload",
        kind="str",
        unit="",
        maximum_length=16,
        meaning=(
            'What is kept in the host\'s memory: "none", "optimizer" (its states, and its step there) or "parameters" '
            "(these as well). Empty = none."
        ),
    ),
    Fact(
        field="reduction_precision",
        row="reduction_precision",
        csv="reduction_precision",
        kind="str",
        unit="",
        maximum_length=16,
        meaning=(
            'Number format that gradients are added up in over replicas, e.g. "bf16". Empty = that of the software.'
        ),
    ),
    Fact(
        field="sharding_devices_count",
        row="sharding_devices",
        csv="sharding_devices",
        kind="int",
        unit="devices",
        minimum=1,
        maximum=1048576,
        meaning=(
            "Devices that parameters, gradients and optimizer states are split over by their ZeRO stage; groups of so "
            "many are replicas of each other (hybrid sharding). Absent = all data-parallel ranks."
        ),
    ),
    Fact(
        field="recomputed_share",
        row="recomputed_share",
        csv="recomputed_share",
        kind="float",
        unit="",
        minimum=0.0,
        maximum=1.0,
        exclusive_minimum=True,
        meaning="Share of the layers that full recomputation computes again. Absent = 1.",
    ),
    Fact(
        field="family",
        row="family",
        csv="family",
        kind="str",
        unit="",
        maximum_length=64,
        meaning=(
            'Family that the model is of: who built it of which parts, e.g. "ResNet". Models of one family take like '
            "time per FLOP. Empty = not known, or of a family of its own."
        ),
    ),
    Fact(
        field="activation_bytes_per_sample",
        row="activation_bytes_per_sample",
        csv="activation_bytes_per_sample",
        kind="float",
        unit="bytes/sample",
        minimum=0.0,
        exclusive_minimum=True,
        meaning="Bytes that the forward pass keeps for the backward pass, per sample, parameters aside.",
    ),
    Fact(
        field="master_weights",
        row="master_weights",
        csv="master_weights",
        kind="bool",
        unit="",
        default=0,
        minimum=0,
        maximum=1,
        meaning="Whether the optimizer keeps a 32-bit copy of weights that are trained in 16 bits. Absent = not known.",
    ),
    Fact(
        field="optimizer_state_bits",
        row="optimizer_state_bits",
        csv="optimizer_state_bits",
        kind="float",
        unit="bits",
        minimum=1.0,
        maximum=64.0,
        meaning=(
            "Bits of each value of the optimizer's state, e.g. 8 (8-bit Adam). Absent = 32 with master weights, else "
            "those of the number format."
        ),
    ),
    Fact(
        field="fused_loss",
        row="fused_loss",
        csv="fused_loss",
        kind="bool",
        unit="",
        default=0,
        minimum=0,
        maximum=1,
        meaning="Whether output layer and loss run as one kernel that never holds all logits. Absent = not known.",
    ),
    Fact(
        field="execution",
        row="execution",
        csv="execution",
        kind="str",
        unit="",
        maximum_length=16,
        meaning=(
            'How kernels are launched: "eager", "compiled" or "graphs" (CUDA graphs). Empty = that of the software.'
        ),
    ),
    Fact(
        field="pipeline_schedule",
        row="pipeline_schedule",
        csv="pipeline_schedule",
        kind="str",
        unit="",
        maximum_length=16,
        meaning=(
            'Schedule of the pipeline: "1f1b" (interleaved where stages have several chunks), "gpipe", "zero-bubble" '
            'or "dualpipe". Empty = that of the software.'
        ),
    ),
    Fact(
        field="stage_layers",
        row="stage_layers",
        csv="stage_layers",
        kind="int",
        unit="layers",
        minimum=0,
        maximum=1073741824,
        meaning=(
            "Layers of each pipeline stage, in order; they add up to the model's layers. Holds for rows of so many "
            "stages. Empty = as even as possible, with the first and the last stage the shorter ones."
        ),
    ),
    Fact(
        field="busiest_expert_share",
        row="busiest_expert_share",
        csv="busiest_expert_share",
        kind="float",
        unit="",
        minimum=0.0,
        maximum=1.0,
        exclusive_minimum=True,
        meaning=(
            "Share of all routed tokens that the busiest expert gets, e.g. 0.125 of 8 balanced experts. Absent = not "
            "known."
        ),
    ),
    Fact(
        field="expert_capacity",
        row="expert_capacity",
        csv="expert_capacity",
        kind="float",
        unit="",
        minimum=0.0,
        exclusive_minimum=True,
        meaning=(
            "Tokens that an expert takes at most, in parts of its balanced share; more are dropped. Absent = none are "
            "dropped."
        ),
    ),
    Fact(
        field="adapter_rank",
        row="adapter_rank",
        csv="adapter_rank",
        kind="int",
        unit="",
        minimum=1,
        maximum=1048576,
        meaning="Rank of the adapters on all matrices of frozen layers (LoRA). Absent = their cost is not counted.",
    ),
    Fact(
        field="adapter",
        row="adapter",
        csv="adapter",
        kind="str",
        unit="",
        maximum_length=16,
        meaning='Kind of the adapters: "lora" or "dora" (magnitude and direction apart). Empty = "lora".',
    ),
    Fact(
        field="document_tokens",
        row="document_tokens",
        csv="document_tokens",
        kind="float",
        unit="tokens",
        minimum=1.0,
        maximum=1073741824.0,
        meaning=(
            "Mean tokens of the documents that are packed into one sequence; a token attends to its own document "
            "alone. Absent = to the whole sequence."
        ),
    ),
    Fact(
        field="devices_per_worker_count",
        row="devices_per_worker",
        csv="devices_per_worker",
        kind="int",
        unit="devices",
        minimum=1,
        maximum=1024,
        meaning=(
            "Devices of one worker of a parameter server, which add up their gradients before the worker pushes them. "
            "Absent = 1."
        ),
    ),
)
"""Of Workload, by field."""

ENCODER: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="layers_count",
        row="layers",
        csv="encoder_layers",
        kind="int",
        unit="layers",
        minimum=1,
        maximum=1073741824,
        required=True,
        meaning="Its layers.",
    ),
    Fact(
        field="hidden_size",
        row="hidden_size",
        csv="encoder_hidden_size",
        kind="int",
        unit="",
        minimum=1,
        maximum=1073741824,
        required=True,
        meaning="Width of its residual stream.",
    ),
    Fact(
        field="attention_heads_count",
        row="attention_heads",
        csv="encoder_attention_heads",
        kind="int",
        unit="heads",
        minimum=1,
        maximum=1073741824,
        required=True,
        meaning="Its attention heads.",
    ),
    Fact(
        field="tokens_per_sample",
        row="tokens_per_sample",
        csv="encoder_tokens",
        kind="int",
        unit="tokens",
        minimum=1,
        maximum=1073741824,
        required=True,
        meaning="Tokens that it processes per sample, e.g. the patches of all images of a sample.",
    ),
    Fact(
        field="attended_tokens_count",
        row="attended_tokens",
        csv="encoder_attended_tokens",
        kind="int",
        unit="tokens",
        default=0,
        minimum=1,
        maximum=1073741824,
        meaning="Tokens that attend to each other, e.g. the patches of one image. Absent = tokens_per_sample.",
    ),
    Fact(
        field="feed_forward_size",
        row="feed_forward_size",
        csv="encoder_feed_forward_size",
        kind="int",
        unit="",
        default=0,
        minimum=1,
        maximum=1073741824,
        meaning="Width of its feed-forward layer. Absent = four times hidden_size.",
    ),
    Fact(
        field="frozen",
        row="frozen",
        csv="encoder_frozen",
        kind="bool",
        unit="",
        default=0,
        minimum=0,
        maximum=1,
        meaning="It is not trained.",
    ),
)
"""Of Encoder, by field."""

ARCHITECTURES: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="flops_per_sample",
        row="flops_per_sample",
        csv="flops_per_sample",
        kind="float",
        unit="FLOPs/sample",
        default=0.0,
        minimum=0.0,
        meaning="Floating-point operations of forward and backward pass per sample.",
    ),
    Fact(
        field="family_names",
        row="family",
        csv="family",
        kind="str",
        unit="",
        maximum_length=64,
        meaning='Dictionary of families, e.g. "ResNet". One name and no indexes: it holds for all.',
    ),
    Fact(
        field="parameter_bytes",
        row="parameter_bytes",
        csv="parameter_bytes",
        kind="float",
        unit="bytes",
        whole=True,
        default=0,
        minimum=1,
        maximum=9007199254740992,
        meaning="Bytes of the parameters.",
    ),
    Fact(
        field="tensors_counts",
        row="tensors",
        csv="tensors",
        kind="int",
        unit="tensors",
        default=0,
        minimum=1,
        maximum=10000000,
        meaning="Tensors that hold them.",
    ),
    Fact(
        field="activation_bytes_per_sample",
        row="activation_bytes_per_sample",
        csv="activation_bytes_per_sample",
        kind="float",
        unit="bytes/sample",
        default=0.0,
        minimum=0.0,
        meaning="Bytes that the forward pass keeps for the backward pass, per sample.",
    ),
)
"""Of Architectures, by field."""

TRANSFORMER: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="layers_count",
        row="layers",
        csv="layers",
        kind="int",
        unit="layers",
        minimum=1,
        maximum=1073741824,
        required=True,
        meaning="Transformer layers.",
    ),
    Fact(
        field="hidden_size",
        row="hidden_size",
        csv="hidden_size",
        kind="int",
        unit="",
        minimum=1,
        maximum=1073741824,
        required=True,
        meaning="Width of the residual stream.",
    ),
    Fact(
        field="attention_heads_count",
        row="attention_heads",
        csv="attention_heads",
        kind="int",
        unit="heads",
        minimum=1,
        maximum=1073741824,
        required=True,
        meaning="Attention heads.",
    ),
    Fact(
        field="sequence_length_tokens",
        row="sequence_length",
        csv="sequence_length",
        kind="int",
        unit="tokens",
        minimum=1,
        maximum=1073741824,
        required=True,
        meaning="Tokens per sample.",
    ),
    Fact(
        field="vocabulary_size",
        row="vocabulary_size",
        csv="vocabulary_size",
        kind="int",
        unit="tokens",
        minimum=1,
        maximum=1073741824,
        required=True,
        meaning="Entries of the vocabulary.",
    ),
    Fact(
        field="key_value_heads_count",
        row="key_value_heads",
        csv="kv_heads",
        kind="int",
        unit="heads",
        default=0,
        minimum=1,
        maximum=1073741824,
        meaning="Key-value heads of grouped-query attention. Absent = attention_heads_count.",
    ),
    Fact(
        field="feed_forward_size",
        row="feed_forward_size",
        csv="feed_forward_size",
        kind="int",
        unit="",
        default=0,
        minimum=1,
        maximum=1073741824,
        meaning="Width of the feed-forward layer. Absent = four times hidden_size.",
    ),
    Fact(
        field="experts_count",
        row="experts",
        csv="experts",
        kind="int",
        unit="experts",
        default=0,
        minimum=1,
        maximum=1073741824,
        meaning="Experts per mixture layer. Absent = dense.",
    ),
    Fact(
        field="experts_per_token_count",
        row="experts_per_token",
        csv="experts_per_token",
        kind="int",
        unit="experts",
        default=0,
        minimum=1,
        maximum=1073741824,
        meaning="Experts that each token is sent to. Absent = dense.",
    ),
    Fact(
        field="head_size",
        row="head_size",
        csv="head_size",
        kind="int",
        unit="",
        default=0,
        minimum=1,
        maximum=1073741824,
        meaning="Width of an attention head. Absent = hidden_size / attention_heads_count.",
    ),
    Fact(
        field="gated_feed_forward",
        row="gated_feed_forward",
        csv="gated",
        kind="bool",
        unit="",
        default=0,
        minimum=0,
        maximum=1,
        meaning="The feed-forward layer has three matrices and a gate (SwiGLU and its like), not two.",
    ),
    Fact(
        field="untied_embeddings",
        row="untied_embeddings",
        csv="untied_output",
        kind="bool",
        unit="",
        default=0,
        minimum=0,
        maximum=1,
        meaning="The output layer has a matrix of its own. Default: it is that of the input embedding.",
    ),
    Fact(
        field="expert_feed_forward_size",
        row="expert_feed_forward_size",
        csv="expert_feed_forward_size",
        kind="int",
        unit="",
        default=0,
        minimum=1,
        maximum=1073741824,
        meaning="Width of one expert. Absent = feed_forward_size.",
    ),
    Fact(
        field="shared_expert_feed_forward_size",
        row="shared_expert_feed_forward_size",
        csv="shared_expert_feed_forward_size",
        kind="int",
        unit="",
        default=0,
        minimum=1,
        maximum=1073741824,
        meaning="Width of the experts that every token visits, together. Absent = there are none.",
    ),
    Fact(
        field="expert_layers_count",
        row="expert_layers",
        csv="expert_layers",
        kind="int",
        unit="layers",
        default=0,
        minimum=1,
        maximum=1073741824,
        meaning="Layers with experts; the others are dense. Absent = all, where there are experts.",
    ),
    Fact(
        field="key_value_latent_size",
        row="key_value_latent_size",
        csv="key_value_latent_size",
        kind="int",
        unit="",
        default=0,
        minimum=1,
        maximum=1073741824,
        meaning=(
            "Width of the latent that keys and values are projected from (multi-head latent attention, kv_lora_rank). "
            "Absent = attention is not latent."
        ),
    ),
    Fact(
        field="query_latent_size",
        row="query_latent_size",
        csv="query_latent_size",
        kind="int",
        unit="",
        default=0,
        minimum=1,
        maximum=1073741824,
        meaning=(
            "Width of the latent that queries are projected from (q_lora_rank). Absent = queries are projected "
            "directly."
        ),
    ),
    Fact(
        field="rotary_head_size",
        row="rotary_head_size",
        csv="rotary_head_size",
        kind="int",
        unit="",
        default=0,
        minimum=1,
        maximum=1073741824,
        meaning=(
            "Part of head_size whose rotary positions all heads share in latent attention (qk_rope_head_dim). Absent = "
            "none."
        ),
    ),
    Fact(
        field="value_head_size",
        row="value_head_size",
        csv="value_head_size",
        kind="int",
        unit="",
        default=0,
        minimum=1,
        maximum=1073741824,
        meaning="Width of a head's values. Absent = head_size.",
    ),
    Fact(
        field="attention_window_tokens",
        row="attention_window",
        csv="attention_window",
        kind="int",
        unit="tokens",
        default=0,
        minimum=1,
        maximum=1073741824,
        meaning="Tokens that a token attends to at most (sliding window). Absent = all before it.",
    ),
    Fact(
        field="windowed_layers_count",
        row="windowed_layers",
        csv="windowed_layers",
        kind="int",
        unit="layers",
        default=0,
        minimum=1,
        maximum=1073741824,
        meaning=(
            "Layers whose attention has the window; in the others a token attends to all before it. Absent = all, "
            "where there is a window."
        ),
    ),
    Fact(
        field="attention_layers_count",
        row="attention_layers",
        csv="attention_layers",
        kind="int",
        unit="layers",
        default=0,
        minimum=1,
        maximum=1073741824,
        meaning="Layers with attention, of hybrid models. Absent = all that have no state space.",
    ),
    Fact(
        field="state_space_layers_count",
        row="state_space_layers",
        csv="state_space_layers",
        kind="int",
        unit="layers",
        default=0,
        minimum=1,
        maximum=1073741824,
        meaning="Layers with a state-space mixer (Mamba) in the place of attention. Absent = none.",
    ),
    Fact(
        field="state_space_size",
        row="state_space_size",
        csv="state_space_size",
        kind="int",
        unit="",
        default=0,
        minimum=1,
        maximum=1073741824,
        meaning="Channels of the mixer. Absent = twice hidden_size.",
    ),
    Fact(
        field="state_size",
        row="state_size",
        csv="state_size",
        kind="int",
        unit="",
        default=0,
        minimum=1,
        maximum=1073741824,
        meaning="Values of state for each channel. Absent = 128.",
    ),
    Fact(
        field="feed_forward_layers_count",
        row="feed_forward_layers",
        csv="feed_forward_layers",
        kind="int",
        unit="layers",
        default=0,
        minimum=1,
        maximum=1073741824,
        meaning="Layers with a feed-forward part. Absent = all.",
    ),
)
"""Of Transformer, by field."""

LAYER: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="name",
        row="name",
        csv=None,
        kind="str",
        unit="",
        maximum_length=256,
        meaning="Name, for people.",
    ),
    Fact(
        field="kind",
        row="kind",
        csv=None,
        kind="str",
        unit="",
        maximum_length=64,
        meaning='Kind, e.g. "dense", "convolution", "recurrent", "embedding".',
    ),
    Fact(
        field="forward_flops_per_sample",
        row="forward_flops_per_sample",
        csv=None,
        kind="float",
        unit="FLOPs/sample",
        minimum=0.0,
        meaning="Floating-point operations of the forward pass per sample.",
    ),
    Fact(
        field="parameter_bytes",
        row="parameter_bytes",
        csv=None,
        kind="float",
        unit="bytes",
        whole=True,
        minimum=0,
        maximum=9007199254740992,
        meaning="Bytes of its parameters.",
    ),
    Fact(
        field="activation_bytes_per_sample",
        row="activation_bytes_per_sample",
        csv=None,
        kind="float",
        unit="bytes/sample",
        minimum=0.0,
        meaning="Bytes of its output per sample.",
    ),
    Fact(
        field="halo_bytes_per_sample",
        row="halo_bytes_per_sample",
        csv=None,
        kind="float",
        unit="bytes/sample",
        minimum=0.0,
        meaning=(
            "Bytes of its input per sample that a part of it reads beyond each of its two edges, where it can be split "
            "spatially into strips. Absent = it cannot: its parts read all of the input."
        ),
    ),
)
"""Of Layer, by field."""

NETWORK: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="link_bytes_per_second",
        row="link_bytes_per_s",
        csv="link_bytes_per_s",
        kind="float",
        unit="bytes/s",
        minimum=1.0,
        maximum=1000000000000000.0,
        meaning="Link of a parameter server or node, bytes per second and direction, as provisioned.",
    ),
    Fact(
        field="half_duplex",
        row="half_duplex",
        csv="half_duplex",
        kind="bool",
        unit="",
        default=0,
        minimum=0,
        maximum=1,
        meaning="Both directions share the link's rate.",
    ),
    Fact(
        field="worker_link_bytes_per_second",
        row="worker_link_bytes_per_s",
        csv="worker_link_bytes_per_s",
        kind="float",
        unit="bytes/s",
        minimum=1.0,
        maximum=1000000000000000.0,
        meaning="Highest rate of one worker's link, bytes per second.",
    ),
    Fact(
        field="per_message_seconds",
        row="per_message_s",
        csv="per_message_s",
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000.0,
        meaning="Time per message besides its bytes, seconds.",
    ),
    Fact(
        field="round_trip_seconds",
        row="round_trip_s",
        csv="round_trip_s",
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000.0,
        meaning="Round-trip time between worker and server, seconds.",
    ),
)
"""Of Network, by field."""

PHASE_TIMINGS: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="download_seconds",
        row="download_s",
        csv="download_s",
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000.0,
        required=True,
        meaning="Mean seconds to receive the parameters.",
    ),
    Fact(
        field="compute_seconds",
        row="compute_s",
        csv="compute_s",
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000.0,
        required=True,
        meaning="Mean seconds of forward and backward pass.",
    ),
    Fact(
        field="upload_seconds",
        row="upload_s",
        csv="upload_s",
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000.0,
        required=True,
        meaning="Mean seconds to send the gradient, the update not included.",
    ),
    Fact(
        field="update_seconds",
        row="update_s",
        csv="update_s",
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000.0,
        required=True,
        meaning="Mean seconds to apply the gradient at the server.",
    ),
    Fact(
        field="compute_variation",
        row="compute_variation",
        csv="compute_cv",
        kind="float",
        unit="",
        minimum=0.0,
        maximum=100.0,
        meaning="Coefficient of variation of the compute time, dimensionless. Empty = not known.",
    ),
    Fact(
        field="transfer_variation",
        row="transfer_variation",
        csv="transfer_cv",
        kind="float",
        unit="",
        minimum=0.0,
        maximum=100.0,
        meaning="Coefficient of variation of the transfer times, dimensionless. Empty = not known.",
    ),
    Fact(
        field="hidden_seconds",
        row="hidden_s",
        csv="hidden_s",
        kind="float",
        unit="s",
        default=0.0,
        minimum=0.0,
        maximum=10000000.0,
        meaning="Seconds of transfer that ran while the worker computed. Default 0.",
    ),
    Fact(
        field="steps_counts",
        row="steps",
        csv="phase_steps",
        kind="int",
        unit="steps",
        default=0,
        minimum=1,
        meaning="Steps the means were taken over. Empty or 0 in a row: not known.",
    ),
)
"""Of PhaseTimings, by field."""

OBSERVATIONS: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="steps_per_second",
        row="steps_per_s",
        csv="steps_per_s",
        kind="float",
        unit="steps/s",
        minimum=1e-07,
        maximum=1000000000.0,
        required=True,
        meaning=(
            "Measured throughput, steps per second. Asynchronous and hybrid: mini-batches applied per second by all "
            "workers together; otherwise global steps per second."
        ),
    ),
    Fact(
        field="measured_at_unix_seconds",
        row="measured_at_s",
        csv="measured_at",
        kind="float",
        unit="s",
        default=0.0,
        minimum=0.0,
        maximum=1000000000000.0,
        meaning="When, seconds since 1970 (UTC). Empty or 0 in a row: not known.",
    ),
    Fact(
        field="steps_counts",
        row="steps",
        csv="steps",
        kind="int",
        unit="steps",
        default=0,
        minimum=1,
        meaning="Steps that were counted. Empty or 0 in a row: not known.",
    ),
    Fact(
        field="step_variation",
        row="step_variation",
        csv="step_cv",
        kind="float",
        unit="",
        minimum=0.0,
        maximum=100.0,
        meaning="Coefficient of variation of the step time, dimensionless. Empty = not known.",
    ),
    Fact(
        field="exposed_sync_seconds",
        row="exposed_sync_s",
        csv="exposed_sync_s",
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000.0,
        meaning="Synchronization not hidden by compute, seconds per step. Empty = not known.",
    ),
    Fact(
        field="measured_memory_bytes",
        row="measured_memory_bytes",
        csv="measured_memory_bytes",
        kind="float",
        unit="bytes",
        default=0.0,
        minimum=0.0,
        maximum=1000000000000000.0,
        meaning=(
            "Memory that the fullest device held at most, context and the allocator's cache included. Empty or 0 in a "
            "row: not known."
        ),
    ),
)
"""Of Observations, by field."""

TRACE_REFERENCE: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="rank",
        row="rank",
        csv=None,
        kind="int",
        unit="",
        default=-1,
        minimum=0,
        meaning="Rank of the process that recorded it. Absent = as the trace says.",
    ),
    Fact(
        field="world_size",
        row="world_size",
        csv=None,
        kind="int",
        unit="",
        default=0,
        minimum=1,
        meaning="Processes of the job when it was recorded. Absent = as the trace says.",
    ),
)
"""Of TraceReference, by field."""

TRACE_CHUNK: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="rank",
        row="rank",
        csv=None,
        kind="int",
        unit="",
        default=-1,
        minimum=0,
        meaning="Rank of the process that recorded it. Absent = as the trace says. In the first chunk.",
    ),
    Fact(
        field="world_size",
        row="world_size",
        csv=None,
        kind="int",
        unit="",
        default=0,
        minimum=1,
        meaning="Processes of the job. Absent = as the trace says. In the first chunk.",
    ),
)
"""Of TraceChunk, by field."""

PROFILE: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="profile_id",
        row="profile_id",
        csv=None,
        kind="str",
        unit="",
        maximum_length=128,
        meaning=(
            "Name chosen by the client: 1 to 128 letters, digits and - . _ ~ / of which the first and the last are a "
            "letter or digit, without two / in a row. It stands in paths as it is."
        ),
    ),
    Fact(
        field="display_name",
        row="display_name",
        csv=None,
        kind="str",
        unit="",
        maximum_length=256,
        meaning="Name for people, any text. Empty = none.",
    ),
)
"""Of Profile, by field."""

PROFILE_SOURCE: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="minimum_revision",
        row="minimum_revision",
        csv=None,
        kind="int",
        unit="",
        minimum=1,
        meaning=(
            "Do not answer from an older revision: wait for it under WAIT, then REVISION_NOT_REACHED. Absent = any."
        ),
    ),
    Fact(
        field="revision",
        row="revision",
        csv=None,
        kind="int",
        unit="",
        minimum=1,
        meaning=(
            "Answer from exactly this revision, though there are newer ones: the same question has the same answer "
            "later. Absent = the newest. Not with minimum_revision."
        ),
    ),
)
"""Of ProfileSource, by field."""

OBJECTIVE: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="confidence",
        row="confidence",
        csv=None,
        kind="float",
        unit="",
        minimum=0.5,
        maximum=0.9999,
        exclusive_minimum=True,
        meaning="Judge by the bound of the interval that holds with this probability. Absent = by the point.",
    ),
    Fact(
        field="max_extrapolation_ratio",
        row="max_extrapolation_ratio",
        csv=None,
        kind="float",
        unit="",
        default=4.0,
        minimum=0.0,
        meaning=(
            "Recommend no row of more nodes, or more workers, than this many times the most that a run of the job was "
            "measured on, but the current one. Such rows are predicted all the same. Absent = 4; 0 = recommend any "
            "row. Without a measured run nothing is held back. Where phase timings identify more than their own scale, "
            "extrapolation_ratios counts instead. Completion and Plan do not look at it."
        ),
    ),
)
"""Of Objective, by field."""

KNEE: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="share",
        row="share",
        csv=None,
        kind="float",
        unit="",
        default=0.5,
        minimum=0.0,
        maximum=1.0,
        exclusive_minimum=True,
        meaning=(
            "Share of the smallest configuration's throughput per node that each further node must bring. Absent = 0.5."
        ),
    ),
)
"""Of Knee, by field."""

LEAST_TIME: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="max_nodes",
        row="max_nodes",
        csv=None,
        kind="int",
        unit="nodes",
        minimum=1,
        meaning="At most this many nodes, those of parameter servers included. Absent = no limit.",
    ),
    Fact(
        field="max_cost",
        row="max_cost",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        exclusive_minimum=True,
        meaning="At most this cost in the offers' currency. Absent = no limit.",
    ),
)
"""Of LeastTime, by field."""

LEAST_COST: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="deadline_seconds",
        row="deadline_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        exclusive_minimum=True,
        meaning="Finish within this many seconds from now. Absent = no deadline.",
    ),
)
"""Of LeastCost, by field."""

FEWEST_DEVICES: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="deadline_seconds",
        row="deadline_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        exclusive_minimum=True,
        required=True,
        meaning="Finish within this many seconds from now. Must be given.",
    ),
)
"""Of FewestDevices, by field."""

WORK: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="samples",
        row="samples",
        csv=None,
        kind="float",
        unit="samples",
        minimum=0.0,
        exclusive_minimum=True,
        meaning="Samples left to train on; needs a known batch, in the question or in the job's evidence.",
    ),
    Fact(
        field="epochs",
        row="epochs",
        csv=None,
        kind="float",
        unit="epochs",
        minimum=0.0,
        exclusive_minimum=True,
        meaning="Epochs left; needs the workload's samples per epoch.",
    ),
)
"""Of Work, by field."""

OFFER: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="name",
        row="name",
        csv=None,
        kind="str",
        unit="",
        maximum_length=64,
        meaning="Name, unique in the request. Needed only where rows name offers.",
    ),
    Fact(
        field="device_name",
        row="device_name",
        csv=None,
        kind="str",
        unit="",
        maximum_length=64,
        meaning="Accelerator of the node. Empty = any device without an offer of its own.",
    ),
    Fact(
        field="region",
        row="region",
        csv=None,
        kind="str",
        unit="",
        maximum_length=64,
        meaning='Where, e.g. "us-east-1a". Empty = not known.',
    ),
    Fact(
        field="price_per_node_hour",
        row="price_per_node_hour",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        meaning="Price of one node for one hour; parameter servers' nodes are charged alike.",
    ),
    Fact(
        field="currency",
        row="currency",
        csv=None,
        kind="str",
        unit="",
        maximum_length=16,
        meaning="Currency, for people. All offers of a request share one.",
    ),
    Fact(
        field="start_up_seconds",
        row="start_up_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000.0,
        meaning="Seconds until its nodes work, in which they are paid for: part of the time and the cost to finish.",
    ),
)
"""Of Offer, by field."""

STATISTICAL_EFFICIENCY: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="gradient_noise_scale_samples",
        row="gradient_noise_scale_samples",
        csv=None,
        kind="float",
        unit="samples",
        minimum=0.0,
        required=True,
        meaning="Gradient noise scale of the training now.",
    ),
    Fact(
        field="initial_batch_samples",
        row="initial_batch_samples",
        csv=None,
        kind="float",
        unit="samples",
        minimum=0.0,
        exclusive_minimum=True,
        required=True,
        meaning="Global batch that samples are worth one each at.",
    ),
)
"""Of StatisticalEfficiency, by field."""

BATCH_BOUNDS: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="min_global_batch_samples",
        row="least",
        csv=None,
        kind="float",
        unit="samples",
        whole=True,
        minimum=1,
        maximum=2147483647,
        required=True,
        meaning="Least global batch.",
    ),
    Fact(
        field="max_global_batch_samples",
        row="most",
        csv=None,
        kind="float",
        unit="samples",
        whole=True,
        minimum=1,
        maximum=2147483647,
        required=True,
        meaning="Greatest global batch.",
    ),
    Fact(
        field="max_batch_per_worker_samples",
        row="most_per_worker",
        csv=None,
        kind="float",
        unit="samples",
        whole=True,
        minimum=1,
        maximum=2147483647,
        meaning=(
            "Most samples that a worker can take in a micro-step; more are accumulated. Absent = a worker takes its "
            "share at once."
        ),
    ),
)
"""Of BatchBounds, by field."""

CURRENT_CONFIGURATION: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="row",
        row="row",
        csv=None,
        kind="int",
        unit="",
        minimum=0,
        meaning="Its row in the question.",
    ),
    Fact(
        field="restart_cost_seconds",
        row="restart_cost_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000.0,
        meaning="Seconds lost when the job moves.",
    ),
    Fact(
        field="payback_seconds",
        row="payback_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        exclusive_minimum=True,
        meaning=(
            "Seconds in which the move must have paid for itself. Absent = those of the work left, or 3600 where it is "
            "not known."
        ),
    ),
)
"""Of CurrentConfiguration, by field."""

SUGGEST_MEASUREMENTS_REQUEST: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="max_suggestions",
        row="count",
        csv=None,
        kind="int",
        unit="",
        default=1,
        minimum=1,
        maximum=3,
        meaning="At most this many suggestions. Absent = 1. Each rests on those before it.",
    ),
    Fact(
        field="start_up_seconds",
        row="start_up_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000.0,
        meaning="Seconds to start a run, in which its nodes are held.",
    ),
    Fact(
        field="run_steps_count",
        row="run_steps_count",
        csv=None,
        kind="int",
        unit="steps",
        default=100,
        minimum=1,
        meaning="Steps of a run: workers' cycles (asynchronous and hybrid), else global batches. Absent = 100.",
    ),
)
"""Of SuggestMeasurementsRequest, by field."""

PROFILE_BATCH: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="sequence_number",
        row="sequence_number",
        csv=None,
        kind="int",
        unit="",
        minimum=1,
        required=True,
        meaning="1 for the first batch of a session, then one more each.",
    ),
)
"""Of ProfileBatch, by field."""

RETRACT_EVIDENCE_REQUEST: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="reason",
        row="reason",
        csv=None,
        kind="str",
        unit="",
        maximum_length=512,
        meaning="Why, kept in the history.",
    ),
)
"""Of RetractEvidenceRequest, by field."""

GET_PROFILE_REQUEST: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="page_size",
        row="page_size",
        csv=None,
        kind="int",
        unit="",
        default=20000,
        minimum=1,
        maximum=20000,
        meaning="At most this many observations, up to 20,000. Absent = 20,000.",
    ),
    Fact(
        field="revision",
        row="revision",
        csv=None,
        kind="int",
        unit="",
        minimum=1,
        meaning="As it was at this revision. Absent = as it is.",
    ),
)
"""Of GetProfileRequest, by field."""

DELETE_PROFILE_REQUEST: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="etag",
        row="etag",
        csv=None,
        kind="str",
        unit="",
        required=True,
        meaning='Its etag: delete only if this is it still; "*" = whatever it is. Must be given.',
    ),
)
"""Of DeleteProfileRequest, by field."""

NODE_POOL: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="link_bytes_per_second",
        row="link_bytes_per_second",
        csv=None,
        kind="float",
        unit="bytes/s",
        minimum=1.0,
        meaning="Link of a node, bytes per second and direction. Absent = as in the jobs' evidence.",
    ),
    Fact(
        field="price_per_node_hour",
        row="price_per_node_hour",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        meaning="Price of one node for one hour. Absent = not known.",
    ),
    Fact(
        field="devices_per_node",
        row="devices_per_node",
        csv=None,
        kind="int",
        unit="",
        minimum=1,
        meaning=(
            "Nodes are given out whole, each with so many devices: numbers of devices that a job holds, those of "
            "servers included, are then multiples of it. Absent = devices are given out one by one."
        ),
    ),
    Fact(
        field="max_nodes",
        row="max_nodes",
        csv=None,
        kind="int",
        unit="",
        minimum=0,
        meaning="Nodes that the pool may grow to, for PoolDemand.desired_nodes. Absent = it does not grow.",
    ),
)
"""Of NodePool, by field."""

SCHEDULE_JOB: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="min_devices",
        row="min_devices",
        csv=None,
        kind="int",
        unit="",
        minimum=1,
        meaning="Fewest worker devices. Absent = 1.",
    ),
    Fact(
        field="max_devices",
        row="max_devices",
        csv=None,
        kind="int",
        unit="",
        minimum=1,
        meaning="Most worker devices. Absent = as many as the cluster has.",
    ),
    Fact(
        field="requested_devices",
        row="requested_devices",
        csv=None,
        kind="int",
        unit="",
        minimum=1,
        meaning="Worker devices that it asked for; used by policies that do not choose. Absent = min_devices.",
    ),
    Fact(
        field="weight",
        row="weight",
        csv=None,
        kind="float",
        unit="",
        default=1.0,
        minimum=0.0,
        exclusive_minimum=True,
        meaning="Its claim relative to others. Absent = 1.",
    ),
)
"""Of ScheduleJob, by field."""

SHARED_PAIR: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="first_share",
        row="first_share",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=10.0,
        exclusive_minimum=True,
        meaning="Share that the first keeps, 1 = all of its solo speed.",
    ),
    Fact(
        field="second_share",
        row="second_share",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=10.0,
        exclusive_minimum=True,
        meaning="Share that the second keeps.",
    ),
)
"""Of SharedPair, by field."""

CREATE_TOKEN_REQUEST: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="description",
        row="description",
        csv=None,
        kind="str",
        unit="",
        maximum_length=256,
        meaning="For people.",
    ),
    Fact(
        field="roles",
        row="roles",
        csv=None,
        kind="enum",
        unit="",
        default=0,
        minimum=0,
        maximum=4,
        required=True,
        meaning="What it is for: at least one.",
    ),
    Fact(
        field="prefixes",
        row="prefixes",
        csv=None,
        kind="str",
        unit="",
        required=True,
        meaning=(
            'Profiles that it reaches, by whole segments at the start of their names: "team-a" and "team-a/" reach '
            '"team-a/vgg16", and not "team-ab/vgg16". At least one; "*" = all profiles.'
        ),
    ),
    Fact(
        field="lifetime_seconds",
        row="lifetime_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        exclusive_minimum=True,
        meaning="How long it is taken. Absent = 90 days.",
    ),
)
"""Of CreateTokenRequest, by field."""

REVOKE_TOKEN_REQUEST: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="token_id",
        row="token_id",
        csv=None,
        kind="str",
        unit="",
        required=True,
        meaning="Its id.",
    ),
)
"""Of RevokeTokenRequest, by field."""

COMPLETION_OFFER: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="name",
        row="name",
        csv=None,
        kind="str",
        unit="",
        maximum_length=64,
        meaning="Name, unique in the request. Empty = its place, from 1.",
    ),
    Fact(
        field="batch_per_worker_samples",
        row="batch_per_worker",
        csv=None,
        kind="int",
        unit="samples",
        minimum=1,
        meaning="Samples per worker and step. Absent = as the job's evidence has it.",
    ),
    Fact(
        field="global_batch_samples",
        row="global_batch",
        csv=None,
        kind="int",
        unit="samples",
        minimum=1,
        meaning="Samples of one step of all workers, however many are alive. Absent = by worker.",
    ),
    Fact(
        field="parameter_servers_count",
        row="parameter_servers",
        csv=None,
        kind="int",
        unit="servers",
        minimum=0,
        maximum=4096,
        meaning="Parameter servers, on nodes that stay. Absent = as the job's evidence has it.",
    ),
    Fact(
        field="kept_price_per_hour",
        row="kept_per_h",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=1000000000000.0,
        meaning="Price per hour of all that is kept to the end, such as parameter servers and storage.",
    ),
    Fact(
        field="link_bytes_per_second",
        row="link_bytes_per_s",
        csv=None,
        kind="float",
        unit="bytes/s",
        minimum=1.0,
        maximum=1000000000000000.0,
        meaning="Network of one node, bytes per second and direction. Absent = the job's own.",
    ),
    Fact(
        field="restart_seconds",
        row="restart_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000.0,
        meaning="Seconds without progress: RESTART, after all are there again; ELASTIC, of a rendezvous.",
    ),
    Fact(
        field="chief_setup_seconds",
        row="chief_setup_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000.0,
        meaning="Seconds without progress after its loss, where that is stated.",
    ),
    Fact(
        field="burst_probability",
        row="burst_probability",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=1.0,
        meaning="Probability that a loss takes neighbours of its group along.",
    ),
    Fact(
        field="burst_others_count",
        row="burst_others",
        csv=None,
        kind="int",
        unit="nodes",
        minimum=0,
        maximum=4096,
        meaning="How many at most.",
    ),
    Fact(
        field="horizon_seconds",
        row="horizon_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000000.0,
        exclusive_minimum=True,
        meaning="When a run counts as never done. Absent = after 100 times its length without losses.",
    ),
)
"""Of CompletionOffer, by field."""

COMPLETION_GROUP: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="name",
        row="name",
        csv=None,
        kind="str",
        unit="",
        maximum_length=64,
        meaning="Name, unique in the offer. Needed only where another group's losses are replaced here.",
    ),
    Fact(
        field="device_name",
        row="device",
        csv=None,
        kind="str",
        unit="",
        maximum_length=64,
        meaning="Accelerator.",
    ),
    Fact(
        field="nodes",
        row="nodes",
        csv=None,
        kind="int",
        unit="nodes",
        minimum=0,
        maximum=4096,
        meaning="Nodes at the start; 0 where only losses of other groups are replaced here.",
    ),
    Fact(
        field="workers_per_node",
        row="workers_per_node",
        csv=None,
        kind="int",
        unit="devices",
        default=1,
        minimum=1,
        maximum=1024,
        meaning="Devices on each. Absent = 1.",
    ),
    Fact(
        field="region",
        row="region",
        csv=None,
        kind="str",
        unit="",
        maximum_length=64,
        meaning='Where, e.g. "us-east1-c". Empty = not known.',
    ),
    Fact(
        field="price_per_node_hour",
        row="price_per_h",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=1000000000000.0,
        meaning="Price of one node for one hour.",
    ),
    Fact(
        field="ages_seconds",
        row="ages_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=1000000000.0,
        meaning="How long each node has run already, seconds; the last holds for all that follow. Empty = all are new.",
    ),
    Fact(
        field="cap_seconds",
        row="cap_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=1.0,
        maximum=10000000000.0,
        meaning="Age at which the provider ends a node, e.g. 86400. Absent = as the data set says, else never.",
    ),
)
"""Of CompletionGroup, by field."""

NODE_PRICES: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="since_seconds",
        row="since_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000000.0,
        meaning="Seconds from which each holds, ascending, the first 0.",
    ),
    Fact(
        field="prices_per_node_hour",
        row="per_h",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=1000000000000.0,
        meaning="Price of one node for one hour from then on.",
    ),
)
"""Of NodePrices, by field."""

NODE_REPLACEMENT: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="delays_seconds",
        row="delays_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=1000000000.0,
        meaning=(
            "Seconds from the loss until it works (provisioning, start-up, joining), samples that are drawn with equal "
            "chance; at least one."
        ),
    ),
    Fact(
        field="group_name",
        row="joins",
        csv=None,
        kind="str",
        unit="",
        maximum_length=64,
        meaning=(
            "Group that it belongs to from then on: another zone, tier or device. Empty = the group of the one that "
            "was lost."
        ),
    ),
)
"""Of NodeReplacement, by field."""

LIFETIME_DATA_SET: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="name",
        row="name",
        csv=None,
        kind="str",
        unit="",
        required=True,
        maximum_length=64,
        meaning="Its name.",
    ),
)
"""Of LifetimeDataSet, by field."""

LIFETIME_ORIGIN: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="name",
        row="name",
        csv=None,
        kind="str",
        unit="",
        maximum_length=128,
        meaning="Name of the observations.",
    ),
    Fact(
        field="device_name",
        row="device",
        csv=None,
        kind="str",
        unit="",
        maximum_length=64,
        meaning="Accelerator.",
    ),
    Fact(
        field="region",
        row="region",
        csv=None,
        kind="str",
        unit="",
        maximum_length=64,
        meaning="Region or zone.",
    ),
    Fact(
        field="machines_count",
        row="machines",
        csv=None,
        kind="int",
        unit="",
        minimum=0,
        meaning="Machines observed. 0 = as many as there are lives, else not known.",
    ),
)
"""Of LifetimeOrigin, by field."""

EMPIRICAL_LIFETIMES: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="ages_seconds",
        row="ages_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000000.0,
        exclusive_minimum=True,
        meaning="Ages in seconds, ascending.",
    ),
    Fact(
        field="revoked_shares",
        row="revoked",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=1.0,
        meaning="Share of the machines that was revoked by then, not descending.",
    ),
)
"""Of EmpiricalLifetimes, by field."""

OBSERVED_LIFETIMES: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="lives_seconds",
        row="lives_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000000.0,
        exclusive_minimum=True,
        meaning="Seconds that each was there.",
    ),
)
"""Of ObservedLifetimes, by field."""

WEIBULL_LIFETIMES: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="scale_seconds",
        row="scale_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=1000000000000.0,
        exclusive_minimum=True,
        required=True,
        meaning="Scale.",
    ),
    Fact(
        field="shape",
        row="shape",
        csv=None,
        kind="float",
        unit="",
        minimum=0.05,
        maximum=100.0,
        required=True,
        meaning="Shape; below 1, the young are lost first.",
    ),
)
"""Of WeibullLifetimes, by field."""

EXPONENTIAL_LIFETIMES: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="mean_seconds",
        row="mean_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=1000000000000.0,
        exclusive_minimum=True,
        required=True,
        meaning="Mean life.",
    ),
)
"""Of ExponentialLifetimes, by field."""

FLEET_RECORD: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="times_seconds",
        row="times_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000000.0,
        meaning="When, in seconds; not descending.",
    ),
)
"""Of FleetRecord, by field."""

AVAILABILITY_RECORD: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="since_seconds",
        row="since_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000000.0,
        meaning="Seconds from which each number holds, ascending, the first 0.",
    ),
    Fact(
        field="nodes_counts",
        row="nodes",
        csv=None,
        kind="int",
        unit="nodes",
        minimum=0,
        meaning="Nodes that could be had from then on.",
    ),
    Fact(
        field="length_seconds",
        row="length_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000000.0,
        exclusive_minimum=True,
        required=True,
        meaning="Length of the record; after it nothing is known.",
    ),
)
"""Of AvailabilityRecord, by field."""

KNOWN_REVOCATIONS: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="times_seconds",
        row="times_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000000.0,
        meaning="Seconds from the start, one for each node that is lost; the others live.",
    ),
)
"""Of KnownRevocations, by field."""

COMPLETION_CHECKPOINTS: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="seconds",
        row="seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000.0,
        meaning="Seconds.",
    ),
    Fact(
        field="interval_seconds",
        row="interval_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000000.0,
        exclusive_minimum=True,
        meaning="Seconds of work with everybody alive.",
    ),
    Fact(
        field="interval_samples",
        row="interval_samples",
        csv=None,
        kind="float",
        unit="samples",
        minimum=0.0,
        maximum=1e18,
        exclusive_minimum=True,
        meaning="Samples.",
    ),
    Fact(
        field="stopped_ratio",
        row="stopped_ratio",
        csv=None,
        kind="float",
        unit="",
        default=1.0,
        minimum=0.0,
        maximum=1.0,
        meaning="Share of the job's speed that a save costs while it lasts: 1 where everybody waits. Absent = 1.",
    ),
)
"""Of CompletionCheckpoints, by field."""

SAVED_BYTES: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="weights_bytes",
        row="weights_bytes",
        csv=None,
        kind="float",
        unit="bytes",
        minimum=0.0,
        maximum=1000000000000000.0,
        meaning="Weights with the optimizer's state.",
    ),
    Fact(
        field="graph_bytes",
        row="graph_bytes",
        csv=None,
        kind="float",
        unit="bytes",
        minimum=0.0,
        maximum=1000000000000000.0,
        meaning="Description of the graph.",
    ),
    Fact(
        field="measured_seconds",
        row="measured_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000.0,
        exclusive_minimum=True,
        meaning="Seconds of each of some measured saves to the same store, at least two; the law is fitted to them.",
    ),
    Fact(
        field="measured_weights_bytes",
        row="measured_weights_bytes",
        csv=None,
        kind="float",
        unit="bytes",
        minimum=0.0,
        maximum=1000000000000000.0,
        meaning="Weights of each.",
    ),
    Fact(
        field="measured_graph_bytes",
        row="measured_graph_bytes",
        csv=None,
        kind="float",
        unit="bytes",
        minimum=0.0,
        maximum=1000000000000000.0,
        meaning="Graphs of each. Empty = not told apart.",
    ),
)
"""Of SavedBytes, by field."""

COMPLETION_SPEEDS: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="samples_per_second",
        row="samples_per_second",
        csv=None,
        kind="float",
        unit="samples/s",
        minimum=0.0,
        maximum=1e18,
        meaning=(
            "Samples per second with so many nodes of each group alive, the last group's number running fastest, from "
            "none to all that the group may come to hold: of one group of 4 nodes, five numbers, the first with nobody "
            "alive and 0."
        ),
    ),
)
"""Of CompletionSpeeds, by field."""

ON_DEMAND_QUESTION: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="work_seconds",
        row="work_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=1000000000.0,
        exclusive_minimum=True,
        required=True,
        meaning="Length of the job on either kind of machine.",
    ),
    Fact(
        field="deadline_seconds",
        row="deadline_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=1000000000.0,
        exclusive_minimum=True,
        required=True,
        meaning="By when it must be done, from its start.",
    ),
    Fact(
        field="switch_seconds",
        row="switch_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000.0,
        meaning="From asking for either kind to working on it, which is paid for.",
    ),
    Fact(
        field="spot_price_per_hour",
        row="spot_per_h",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=1000000000000.0,
        exclusive_minimum=True,
        required=True,
        meaning="Price of the machines per hour on spot.",
    ),
    Fact(
        field="on_demand_price_per_hour",
        row="on_demand_per_h",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=1000000000000.0,
        exclusive_minimum=True,
        required=True,
        meaning="Price of the same on demand.",
    ),
    Fact(
        field="nodes_needed",
        row="nodes_needed",
        csv=None,
        kind="int",
        unit="nodes",
        default=1,
        minimum=1,
        meaning="Nodes that must be there at once. Absent = 1.",
    ),
    Fact(
        field="tick_seconds",
        row="tick_seconds",
        csv=None,
        kind="float",
        unit="s",
        default=600.0,
        minimum=1.0,
        maximum=1000000.0,
        meaning="How often it is decided. Absent = 600.",
    ),
    Fact(
        field="starts_count",
        row="starts",
        csv=None,
        kind="int",
        unit="",
        default=1000,
        minimum=1,
        maximum=100000,
        meaning="Starts that are played. Absent = 1,000.",
    ),
)
"""Of OnDemandQuestion, by field."""

AVAILABILITY_LAW: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="available_mean_seconds",
        row="available_mean_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=1.0,
        maximum=1000000000.0,
        required=True,
        meaning="Mean length of a run with spot.",
    ),
    Fact(
        field="unavailable_mean_seconds",
        row="unavailable_mean_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=1.0,
        maximum=1000000000.0,
        required=True,
        meaning="Mean length of a run without.",
    ),
)
"""Of AvailabilityLaw, by field."""

HYBRID_QUESTION: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="synchronous_seconds",
        row="synchronous_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000000.0,
        exclusive_minimum=True,
        meaning="All of the work done synchronously. Absent = predicted from the request's profile.",
    ),
    Fact(
        field="asynchronous_seconds",
        row="asynchronous_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000000.0,
        exclusive_minimum=True,
        meaning="All of it done asynchronously. Absent = predicted.",
    ),
    Fact(
        field="batch_per_worker_samples",
        row="batch_per_worker",
        csv=None,
        kind="int",
        unit="samples",
        minimum=1,
        meaning="Samples per worker and step, where times are predicted. Absent = as the job's evidence has it.",
    ),
    Fact(
        field="parameter_servers_count",
        row="parameter_servers",
        csv=None,
        kind="int",
        unit="servers",
        minimum=1,
        maximum=4096,
        meaning="Parameter servers, where times are predicted. Absent = as the job's evidence has it.",
    ),
    Fact(
        field="switch_seconds",
        row="switch_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000.0,
        meaning="Seconds lost once at the switch.",
    ),
    Fact(
        field="fractions",
        row="fractions",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=1.0,
        meaning=(
            "Shares of the work done synchronously that are asked about. Empty = 0, 0.05, 0.1, 0.25, 0.5, 0.75 and 1."
        ),
    ),
    Fact(
        field="deadline_seconds",
        row="deadline_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000000.0,
        exclusive_minimum=True,
        meaning="By when it must be done. Absent = no deadline.",
    ),
    Fact(
        field="least_accuracy",
        row="least_accuracy",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=1.0,
        meaning="Accuracy that must be reached; which shares do is told by the runs alone.",
    ),
    Fact(
        field="slowdown_ratios",
        row="slowdowns",
        csv=None,
        kind="float",
        unit="",
        minimum=1.0,
        maximum=1000000.0,
        meaning=(
            "How much slower than the others each worker is, where some are: 2 = half as fast. One for each worker."
        ),
    ),
)
"""Of HybridQuestion, by field."""

HYBRID_RUN: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="fraction",
        row="fraction",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=1.0,
        meaning="Share of its work done synchronously.",
    ),
    Fact(
        field="accuracy",
        row="accuracy",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=1.0,
        meaning="Accuracy that it reached.",
    ),
)
"""Of HybridRun, by field."""

ESTIMATE_COMPLETION_REQUEST: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="runs_count",
        row="runs_count",
        csv=None,
        kind="int",
        unit="runs",
        default=10000,
        minimum=1,
        maximum=1000000,
        meaning="Runs of each offer. Absent = 10,000. Offers times runs: at most 10,000,000 (LIMIT_EXCEEDED).",
    ),
    Fact(
        field="completion_estimator",
        row="completion_estimator",
        csv=None,
        kind="str",
        unit="",
        maximum_length=63,
        meaning="Who estimates the completion. Empty = the estimator that does, where one is loaded.",
    ),
)
"""Of EstimateCompletionRequest, by field."""

REPLAY_REQUEST: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="diagnoser",
        row="diagnoser",
        csv=None,
        kind="str",
        unit="",
        maximum_length=63,
        meaning="Who answers. Empty = the only diagnoser that is loaded, or the shipped one.",
    ),
    Fact(
        field="budget_seconds",
        row="budget_s",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000.0,
        exclusive_minimum=True,
        meaning="Seconds for the answer. Absent = as long as the call has.",
    ),
)
"""Of ReplayRequest, by field."""

REPLAYED_STEP: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="measured_host_seconds",
        row="measured_host_seconds",
        csv=None,
        kind="float",
        unit="s",
        default=0.0,
        minimum=0.0,
        exclusive_minimum=True,
        meaning="As recorded. Absent = not comparable, because something was changed.",
    ),
    Fact(
        field="predicted_host_seconds",
        row="predicted_host_seconds",
        csv=None,
        kind="float",
        unit="s",
        default=0.0,
        minimum=0.0,
        exclusive_minimum=True,
        meaning="As predicted.",
    ),
    Fact(
        field="measured_device_seconds",
        row="measured_device_seconds",
        csv=None,
        kind="float",
        unit="s",
        default=0.0,
        minimum=0.0,
        exclusive_minimum=True,
        meaning="As recorded. Absent = not comparable, or nothing runs on a device.",
    ),
    Fact(
        field="predicted_device_seconds",
        row="predicted_device_seconds",
        csv=None,
        kind="float",
        unit="s",
        default=0.0,
        minimum=0.0,
        exclusive_minimum=True,
        meaning="As predicted. Absent = nothing runs on a device.",
    ),
    Fact(
        field="lower_host_seconds",
        row="lower_host_seconds",
        csv=None,
        kind="float",
        unit="s",
        default=0.0,
        minimum=0.0,
        exclusive_minimum=True,
        meaning=(
            "The least that the hosts' time may be, where ranks that were not recorded may change too. Absent = "
            "nothing is open."
        ),
    ),
    Fact(
        field="upper_host_seconds",
        row="upper_host_seconds",
        csv=None,
        kind="float",
        unit="s",
        default=0.0,
        minimum=0.0,
        exclusive_minimum=True,
        meaning="The most that it may be.",
    ),
)
"""Of ReplayedStep, by field."""

READ_TRACE: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="world_size",
        row="world_size",
        csv=None,
        kind="int",
        unit="",
        default=0,
        minimum=1,
        meaning="Processes of the job. Absent = not known.",
    ),
)
"""Of ReadTrace, by field."""

DIAGNOSIS_BASIS: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="world_size",
        row="world_size",
        csv=None,
        kind="int",
        unit="",
        default=0,
        minimum=1,
        meaning="Ranks of the job. Absent = not known.",
    ),
)
"""Of DiagnosisBasis, by field."""

DIAGNOSE_REQUEST: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="diagnoser",
        row="diagnoser",
        csv=None,
        kind="str",
        unit="",
        maximum_length=63,
        meaning="Who answers. Empty = the only diagnoser that is loaded, or the shipped one.",
    ),
    Fact(
        field="max_bottlenecks",
        row="bottlenecks",
        csv=None,
        kind="int",
        unit="",
        default=20,
        minimum=0,
        maximum=1000,
        meaning="Most bottlenecks to answer with, up to 1000. Absent = 20; 0 = none.",
    ),
    Fact(
        field="max_strategies",
        row="strategies",
        csv=None,
        kind="int",
        unit="",
        default=20,
        minimum=0,
        maximum=1000,
        meaning="Most strategies to answer with, up to 1000. Absent = 20; 0 = none, which is quicker.",
    ),
    Fact(
        field="largest_batch_ratio",
        row="largest_batch_factor",
        csv=None,
        kind="float",
        unit="",
        default=1.0,
        minimum=1.0,
        maximum=1000000.0,
        meaning=(
            "How many times the batch per worker may grow where memory is freed, 1 or more. Absent = 1: not at all."
        ),
    ),
    Fact(
        field="budget_seconds",
        row="budget_s",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000.0,
        exclusive_minimum=True,
        meaning="Seconds for the answer. Absent = as long as the call has.",
    ),
    Fact(
        field="since_seconds",
        row="since_s",
        csv=None,
        kind="float",
        unit="s",
        default=0.0,
        minimum=0.0,
        maximum=10000000.0,
        exclusive_minimum=True,
        meaning=(
            "Diagnose the times of steps that the stored profile's ranks reported in so many seconds up to now, in "
            "place of traces. Absent = traces."
        ),
    ),
)
"""Of DiagnoseRequest, by field."""

REPORT_STEPS_REQUEST: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="node",
        row="node",
        csv=None,
        kind="int",
        unit="",
        default=-1,
        minimum=0,
        meaning="Number of the machine within the job. Absent = not known.",
    ),
)
"""Of ReportStepsRequest, by field."""

STEP_ALARM: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="node",
        row="node",
        csv=None,
        kind="int",
        unit="",
        default=-1,
        minimum=0,
        meaning="Their machine, where they are those of one. Absent = not one machine.",
    ),
    Fact(
        field="first_step",
        row="first_step",
        csv=None,
        kind="int",
        unit="",
        default=-1,
        minimum=0,
        meaning="Since this step. Absent = the first that is known.",
    ),
    Fact(
        field="begin_unix_seconds",
        row="begin_s",
        csv=None,
        kind="float",
        unit="s",
        meaning="When that step began, seconds since 1970 (UTC).",
    ),
    Fact(
        field="end_unix_seconds",
        row="end_s",
        csv=None,
        kind="float",
        unit="s",
        default=0.0,
        minimum=0.0,
        exclusive_minimum=True,
        meaning="When it was over. Absent = it lasts.",
    ),
)
"""Of StepAlarm, by field."""

BOTTLENECK: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="rank",
        row="rank",
        csv=None,
        kind="int",
        unit="",
        default=-1,
        minimum=0,
        meaning="The rank. Absent = all.",
    ),
)
"""Of Bottleneck, by field."""

STRATEGY: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="lower_step_seconds",
        row="lower_step_seconds",
        csv=None,
        kind="float",
        unit="s",
        default=0.0,
        minimum=0.0,
        exclusive_minimum=True,
        meaning="Lower end of the interval. Absent = not known.",
    ),
    Fact(
        field="upper_step_seconds",
        row="upper_step_seconds",
        csv=None,
        kind="float",
        unit="s",
        default=0.0,
        minimum=0.0,
        exclusive_minimum=True,
        meaning="Upper end of the interval. Absent = not known.",
    ),
)
"""Of Strategy, by field."""

STEP_PART: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="waits_for_rank",
        row="waits_for_rank",
        csv=None,
        kind="int",
        unit="",
        default=-1,
        minimum=0,
        meaning="Of waiting: the rank that comes last. Absent = several, or not known.",
    ),
)
"""Of StepPart, by field."""

RANK_SHARES: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="memory_high_water_bytes",
        row="memory_high_water_bytes",
        csv=None,
        kind="float",
        unit="bytes",
        default=-1.0,
        minimum=0.0,
        meaning="Most memory that the allocator held. Absent = not recorded.",
    ),
)
"""Of RankShares, by field."""

MEASUREMENT_TABLE: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="steps_per_second",
        row="steps_per_s",
        csv="steps_per_s",
        kind="float",
        unit="steps/s",
        default=0.0,
        minimum=1e-07,
        maximum=1000000000.0,
        required=True,
        meaning=(
            "Measured throughput, steps per second. 0 in a row: not measured, so the row is predicted and not scored."
        ),
    ),
    Fact(
        field="measured_at_unix_seconds",
        row="measured_at_s",
        csv="measured_at",
        kind="float",
        unit="s",
        default=0.0,
        minimum=0.0,
        maximum=1000000000000.0,
        meaning="When, seconds since 1970 (UTC). Empty or 0 in a row: not known.",
    ),
    Fact(
        field="exposed_sync_seconds",
        row="exposed_sync_s",
        csv="exposed_sync_s",
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000.0,
        meaning="Synchronization not hidden by compute, seconds per step. Empty = not known.",
    ),
    Fact(
        field="steps_counts",
        row="steps",
        csv="steps",
        kind="int",
        unit="steps",
        default=0,
        minimum=1,
        meaning="Steps that were counted. Empty or 0 in a row: not known.",
    ),
    Fact(
        field="step_variation",
        row="step_variation",
        csv="step_cv",
        kind="float",
        unit="",
        minimum=0.0,
        maximum=100.0,
        meaning="Coefficient of variation of the step time, dimensionless. Empty = not known.",
    ),
    Fact(
        field="measured_memory_bytes",
        row="measured_memory_bytes",
        csv="measured_memory_bytes",
        kind="float",
        unit="bytes",
        default=0.0,
        minimum=0.0,
        maximum=1000000000000000.0,
        meaning=(
            "Memory that the fullest device held at most, context and the allocator's cache included. Empty or 0 in a "
            "row: not known."
        ),
    ),
    Fact(
        field="fitted",
        row="fitted",
        csv="fitted",
        kind="int",
        unit="",
        default=1,
        minimum=0,
        maximum=1,
        meaning="0 = the row ran out of memory.",
    ),
)
"""Of MeasurementTable, by field."""

PLAN_POOL: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="device_name",
        row="device",
        csv=None,
        kind="str",
        unit="",
        maximum_length=64,
        meaning='Accelerator, e.g. "A100-80GB".',
    ),
    Fact(
        field="workers_per_node",
        row="workers_per_node",
        csv=None,
        kind="int",
        unit="devices",
        minimum=1,
        maximum=1024,
        meaning="Devices on each node, all of which are used; at least 1.",
    ),
    Fact(
        field="link_bytes_per_second",
        row="link_bytes_per_second",
        csv=None,
        kind="float",
        unit="bytes/s",
        minimum=1.0,
        meaning=(
            "Network of one node, bytes per second and direction. Absent = the job's own, else as the catalog has it."
        ),
    ),
)
"""Of PlanPool, by field."""

PLAN_CONSTRAINTS: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="memory_headroom_bytes",
        row="memory_headroom_bytes",
        csv=None,
        kind="float",
        unit="bytes",
        minimum=0.0,
        maximum=1000000000000000.0,
        meaning=(
            "Memory of each device that must stay free, bytes; 0 = none. Absent = the upper bound of the memory's 90 % "
            "interval must fit, where the estimator tells one."
        ),
    ),
    Fact(
        field="max_nodes",
        row="max_nodes",
        csv=None,
        kind="int",
        unit="nodes",
        minimum=1,
        maximum=1048576,
        meaning="At most this many nodes of a configuration, those of parameter servers included. Absent = no limit.",
    ),
)
"""Of PlanConstraints, by field."""

PLAN_REQUEST: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="budget_seconds",
        row="budget_s",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000.0,
        exclusive_minimum=True,
        meaning=(
            "Seconds for searching; when they are over, the best so far is the result. Absent = as long as the call "
            "has."
        ),
    ),
    Fact(
        field="max_frontier_points",
        row="frontier_points",
        csv=None,
        kind="int",
        unit="",
        default=100,
        minimum=0,
        maximum=1000,
        meaning=(
            "Most points of the frontier to answer with, up to 1000. Absent = 100; 0 = no frontier, which searches "
            "faster."
        ),
    ),
)
"""Of PlanRequest, by field."""

SHARED_DEVICE: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="device_name",
        row="device",
        csv=None,
        kind="str",
        unit="",
        maximum_length=64,
        meaning='Accelerator, e.g. "V100". Empty = not known; nothing is then looked up.',
    ),
    Fact(
        field="memory_bytes",
        row="memory_bytes",
        csv=None,
        kind="float",
        unit="bytes",
        minimum=0.0,
        maximum=1000000000000000.0,
        exclusive_minimum=True,
        meaning=(
            "Memory that jobs may use, bytes. Absent = as the catalog has it; not known there either = memory is not "
            "checked."
        ),
    ),
)
"""Of SharedDevice, by field."""

DEVICE_PROCESSORS: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="processors_count",
        row="processors",
        csv=None,
        kind="int",
        unit="",
        minimum=1,
        maximum=65536,
        meaning="How many there are.",
    ),
    Fact(
        field="threads_count",
        row="threads",
        csv=None,
        kind="int",
        unit="",
        minimum=32,
        maximum=65536,
        meaning="Threads that one holds.",
    ),
    Fact(
        field="blocks_count",
        row="blocks",
        csv=None,
        kind="int",
        unit="",
        minimum=1,
        maximum=65536,
        meaning="Blocks that one holds.",
    ),
    Fact(
        field="registers_count",
        row="registers",
        csv=None,
        kind="int",
        unit="",
        minimum=1,
        maximum=16777216,
        meaning="Registers of one.",
    ),
    Fact(
        field="shared_bytes",
        row="shared_bytes",
        csv=None,
        kind="int",
        unit="bytes",
        minimum=1,
        maximum=1073741824,
        meaning="Shared memory of one, bytes.",
    ),
)
"""Of DeviceProcessors, by field."""

KERNEL_LAUNCH: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="blocks_count",
        row="blocks",
        csv=None,
        kind="int",
        unit="",
        minimum=1,
        maximum=2147483647,
        meaning="Blocks of the grid.",
    ),
    Fact(
        field="threads_per_block",
        row="threads_per_block",
        csv=None,
        kind="int",
        unit="",
        minimum=1,
        maximum=1024,
        meaning="Threads of a block.",
    ),
    Fact(
        field="registers_per_thread",
        row="registers_per_thread",
        csv=None,
        kind="int",
        unit="",
        minimum=0,
        maximum=255,
        meaning="Registers of a thread. 0 = not known: they limit nothing.",
    ),
    Fact(
        field="shared_bytes_per_block",
        row="shared_bytes_per_block",
        csv=None,
        kind="int",
        unit="bytes",
        minimum=0,
        maximum=1073741824,
        meaning="Shared memory of a block, bytes. 0 = none.",
    ),
)
"""Of KernelLaunch, by field."""

SHARING_JOB: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="name",
        row="name",
        csv=None,
        kind="str",
        unit="",
        maximum_length=128,
        meaning="Name, unique in the request; sets and measured pairs name it.",
    ),
    Fact(
        field="model_name",
        row="model",
        csv=None,
        kind="str",
        unit="",
        maximum_length=128,
        meaning=(
            'What jobs of other batch sizes and precisions share, e.g. "resnet50": what is learned of one counts for '
            "all of its model. Empty = the job's name."
        ),
    ),
    Fact(
        field="device_utilization_ratio",
        row="device_utilisation",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=1.0,
        meaning=(
            'Share of the time in which some kernel ran, 0 to 1 ("GPU-Util"). Absent = inferred from steps on other '
            "devices, else the whole step is taken."
        ),
    ),
    Fact(
        field="memory_utilization_ratio",
        row="memory_utilisation",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=1.0,
        meaning="Share of the time in which device memory was read or written, 0 to 1. Absent = not known.",
    ),
    Fact(
        field="memory_bytes",
        row="memory_bytes",
        csv=None,
        kind="float",
        unit="bytes",
        minimum=0.0,
        maximum=1000000000000000.0,
        meaning="Device memory that it holds, bytes. Absent = not known; it is then taken to fit.",
    ),
    Fact(
        field="step_seconds",
        row="step_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=1000000000.0,
        exclusive_minimum=True,
        meaning="Seconds of a step alone on this device. Absent = from the profile, else not known.",
    ),
    Fact(
        field="slice_ratio",
        row="slice_share",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=1.0,
        exclusive_minimum=True,
        meaning=(
            "MIG alone: share of the device's processors that its slice has, e.g. 0.428571 of a 3g slice of 7. Absent "
            "in this mode = equal slices for the jobs of a set."
        ),
    ),
    Fact(
        field="slice_memory_bytes",
        row="slice_memory_bytes",
        csv=None,
        kind="float",
        unit="bytes",
        minimum=0.0,
        maximum=1000000000000000.0,
        exclusive_minimum=True,
        meaning="MIG alone: memory of its slice, bytes. Absent = slice_ratio of the device's.",
    ),
)
"""Of SharingJob, by field."""

STEP_ELSEWHERE: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="device_name",
        row="device",
        csv=None,
        kind="str",
        unit="",
        maximum_length=64,
        meaning="The other device.",
    ),
    Fact(
        field="step_seconds",
        row="step_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=1000000000.0,
        exclusive_minimum=True,
        meaning="Seconds of the step there.",
    ),
    Fact(
        field="speed_ratio",
        row="speed_ratio",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=1000000.0,
        exclusive_minimum=True,
        meaning="Its peak FLOP/s over this device's. Absent = as the catalog has both.",
    ),
)
"""Of StepElsewhere, by field."""

SHARED_RUN: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="first_job",
        row="first_job",
        csv=None,
        kind="str",
        unit="",
        maximum_length=128,
        meaning="One job.",
    ),
    Fact(
        field="second_job",
        row="second_job",
        csv=None,
        kind="str",
        unit="",
        maximum_length=128,
        meaning="The other; may be the same name: two copies of one job.",
    ),
    Fact(
        field="first_share",
        row="first_share",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=10.0,
        meaning="Share of its solo speed that the first kept, 1 = all of it.",
    ),
    Fact(
        field="second_share",
        row="second_share",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=10.0,
        meaning="The same of the second.",
    ),
)
"""Of SharedRun, by field."""

PREDICT_SHARING_REQUEST: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="coverage",
        row="coverage",
        csv=None,
        kind="float",
        unit="",
        default=0.9,
        minimum=0.0,
        maximum=0.999,
        exclusive_minimum=True,
        meaning="What share of the ranges shall hold the truth. Absent = 0.9.",
    ),
)
"""Of PredictSharingRequest, by field."""

SIMULATION_JOBS: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="arrival_seconds",
        row="arrival_s",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=1e18,
        required=True,
        meaning="When they arrive, ascending, seconds of simulated time. No default.",
    ),
    Fact(
        field="work_samples",
        row="samples",
        csv=None,
        kind="float",
        unit="samples",
        minimum=0.0,
        maximum=1e18,
        exclusive_minimum=True,
        required=True,
        meaning=(
            "Work that the policy is told of, samples (or any other unit that the curve's rates are per second of). No "
            "default."
        ),
    ),
    Fact(
        field="requested_devices",
        row="requested_devices",
        csv=None,
        kind="int",
        unit="devices",
        default=0,
        minimum=0,
        maximum=1048576,
        meaning=(
            "Worker devices asked for; used by policies that do not choose. Empty or 0 for a job: the fewest of the "
            "curve."
        ),
    ),
    Fact(
        field="min_devices",
        row="min_devices",
        csv=None,
        kind="int",
        unit="devices",
        default=0,
        minimum=0,
        maximum=1048576,
        meaning="Fewest worker devices. Empty or 0 for a job: those of the curve.",
    ),
    Fact(
        field="max_devices",
        row="max_devices",
        csv=None,
        kind="int",
        unit="devices",
        default=0,
        minimum=0,
        maximum=1048576,
        meaning="Most worker devices. Empty or 0 for a job: those of the curve.",
    ),
    Fact(
        field="stop_samples",
        row="stop_samples",
        csv=None,
        kind="float",
        unit="samples",
        default=0.0,
        minimum=0.0,
        maximum=1e18,
        meaning=(
            "True work, hidden from the policy, at which the job ends early, samples. Empty or 0 for a job: all of it."
        ),
    ),
    Fact(
        field="step_samples",
        row="samples_per_step",
        csv=None,
        kind="float",
        unit="samples",
        default=0.0,
        minimum=0.0,
        maximum=1e18,
        meaning=(
            "Work is indivisible below this where rounds deal out whole steps, samples. Empty or 0 for a job: it flows."
        ),
    ),
    Fact(
        field="restart_cost_seconds",
        row="restart_cost_s",
        csv=None,
        kind="float",
        unit="s",
        default=0.0,
        minimum=0.0,
        maximum=1e18,
        meaning="Seconds without progress after a change of devices. Empty = as the settings say.",
    ),
    Fact(
        field="weights",
        row="weight",
        csv=None,
        kind="float",
        unit="",
        default=1.0,
        minimum=0.0,
        maximum=1e18,
        exclusive_minimum=True,
        meaning="Claims relative to others. Default 1.",
    ),
    Fact(
        field="deadline_seconds",
        row="deadline_s",
        csv=None,
        kind="float",
        unit="s",
        default=0.0,
        minimum=0.0,
        maximum=1e18,
        meaning="When the job must be done, seconds of simulated time. Empty or 0 for a job: no deadline.",
    ),
    Fact(
        field="minimum_run_seconds",
        row="minimum_run_s",
        csv=None,
        kind="float",
        unit="s",
        default=0.0,
        minimum=0.0,
        maximum=1e18,
        meaning="Seconds that an allocation lasts at least. Default 0.",
    ),
    Fact(
        field="server_devices",
        row="server_devices",
        csv=None,
        kind="int",
        unit="devices",
        default=0,
        minimum=0,
        maximum=1048576,
        meaning="Devices besides the workers, e.g. for a parameter server. Default 0.",
    ),
)
"""Of SimulationJobs, by field."""

SIMULATION_SETTINGS: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="round_seconds",
        row="round_seconds",
        csv=None,
        kind="float",
        unit="s",
        default=60.0,
        minimum=0.0,
        maximum=1000000000000.0,
        exclusive_minimum=True,
        meaning="Length of a round, seconds. Absent = 60.",
    ),
    Fact(
        field="minimum_decision_interval_seconds",
        row="minimum_decision_interval_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=1000000000000.0,
        meaning="Seconds between two decisions at least, while something runs.",
    ),
    Fact(
        field="restart_cost_seconds",
        row="restart_cost_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=1000000000000.0,
        meaning="Seconds without progress when a job's devices change, and when it resumes after a preemption.",
    ),
    Fact(
        field="first_start_cost_seconds",
        row="first_start_cost_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=1000000000000.0,
        meaning="The same when a job starts for the first time.",
    ),
    Fact(
        field="load_factor",
        row="load",
        csv=None,
        kind="float",
        unit="",
        default=1.0,
        minimum=0.0,
        maximum=1000000000.0,
        exclusive_minimum=True,
        meaning="Inter-arrival times are divided by it. Absent = 1.",
    ),
    Fact(
        field="seed",
        row="seed",
        csv=None,
        kind="int",
        unit="",
        minimum=0,
        meaning=(
            "Of failures, early stops and prediction errors, each with a stream of its own, and of a policy that "
            "draws, unless its parameter seed is given. Repetitions count on from it."
        ),
    ),
)
"""Of SimulationSettings, by field."""

SIMULATION_CHECKPOINTS: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="interval_seconds",
        row="interval_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=1000000000000.0,
        exclusive_minimum=True,
        meaning="Each so many seconds of progress.",
    ),
    Fact(
        field="cost_seconds",
        row="cost_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=1000000000000.0,
        meaning="Standing still for so many seconds.",
    ),
)
"""Of SimulationCheckpoints, by field."""

SIMULATION_NODE_FAILURES: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="mean_time_between_failures_seconds",
        row="mean_time_between_failures_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=1000000000000.0,
        exclusive_minimum=True,
        meaning="Mean time to the failure of a node that is up, seconds.",
    ),
    Fact(
        field="mean_repair_seconds",
        row="mean_repair_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=1000000000000.0,
        exclusive_minimum=True,
        meaning="Mean time until it is back, seconds.",
    ),
)
"""Of SimulationNodeFailures, by field."""

SIMULATION_EARLY_STOPS: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="probability",
        row="probability",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=1.0,
        meaning="Of each job, 0 to 1.",
    ),
)
"""Of SimulationEarlyStops, by field."""

SIMULATION_PREDICTION_ERROR: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="job_sigma",
        row="job_sigma",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=5.0,
        meaning="Makes whole curves too high or too low: wrong sizes of jobs.",
    ),
    Fact(
        field="row_sigma",
        row="row_sigma",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=5.0,
        meaning="Bends curves: wrong choices of counts.",
    ),
)
"""Of SimulationPredictionError, by field."""

BY_MESSAGE: Final[Mapping[str, Mapping[str, Fact]]] = MappingProxyType(
    {
        "nodewise.v1.Configurations": CONFIGURATIONS,
        "nodewise.v1.ConfigurationSettings": CONFIGURATION_SETTINGS,
        "nodewise.v1.CountRange": COUNT_RANGE,
        "nodewise.v1.ConfigurationRange": CONFIGURATION_RANGE,
        "nodewise.v1.ModelOptions": MODEL_OPTIONS,
        "nodewise.v1.PredictOptions": PREDICT_OPTIONS,
        "nodewise.v1.SharedDeviceRun": SHARED_DEVICE_RUN,
        "nodewise.v1.Workload": WORKLOAD,
        "nodewise.v1.Encoder": ENCODER,
        "nodewise.v1.Architectures": ARCHITECTURES,
        "nodewise.v1.Transformer": TRANSFORMER,
        "nodewise.v1.Layer": LAYER,
        "nodewise.v1.Network": NETWORK,
        "nodewise.v1.PhaseTimings": PHASE_TIMINGS,
        "nodewise.v1.Observations": OBSERVATIONS,
        "nodewise.v1.TraceReference": TRACE_REFERENCE,
        "nodewise.v1.TraceChunk": TRACE_CHUNK,
        "nodewise.v1.Profile": PROFILE,
        "nodewise.v1.ProfileSource": PROFILE_SOURCE,
        "nodewise.v1.Objective": OBJECTIVE,
        "nodewise.v1.Knee": KNEE,
        "nodewise.v1.LeastTime": LEAST_TIME,
        "nodewise.v1.LeastCost": LEAST_COST,
        "nodewise.v1.FewestDevices": FEWEST_DEVICES,
        "nodewise.v1.Work": WORK,
        "nodewise.v1.Offer": OFFER,
        "nodewise.v1.StatisticalEfficiency": STATISTICAL_EFFICIENCY,
        "nodewise.v1.BatchBounds": BATCH_BOUNDS,
        "nodewise.v1.CurrentConfiguration": CURRENT_CONFIGURATION,
        "nodewise.v1.SuggestMeasurementsRequest": SUGGEST_MEASUREMENTS_REQUEST,
        "nodewise.v1.ProfileBatch": PROFILE_BATCH,
        "nodewise.v1.RetractEvidenceRequest": RETRACT_EVIDENCE_REQUEST,
        "nodewise.v1.GetProfileRequest": GET_PROFILE_REQUEST,
        "nodewise.v1.DeleteProfileRequest": DELETE_PROFILE_REQUEST,
        "nodewise.v1.NodePool": NODE_POOL,
        "nodewise.v1.ScheduleJob": SCHEDULE_JOB,
        "nodewise.v1.SharedPair": SHARED_PAIR,
        "nodewise.v1beta1.CreateTokenRequest": CREATE_TOKEN_REQUEST,
        "nodewise.v1beta1.RevokeTokenRequest": REVOKE_TOKEN_REQUEST,
        "nodewise.v1beta1.CompletionOffer": COMPLETION_OFFER,
        "nodewise.v1beta1.CompletionGroup": COMPLETION_GROUP,
        "nodewise.v1beta1.NodePrices": NODE_PRICES,
        "nodewise.v1beta1.NodeReplacement": NODE_REPLACEMENT,
        "nodewise.v1beta1.LifetimeDataSet": LIFETIME_DATA_SET,
        "nodewise.v1beta1.LifetimeOrigin": LIFETIME_ORIGIN,
        "nodewise.v1beta1.EmpiricalLifetimes": EMPIRICAL_LIFETIMES,
        "nodewise.v1beta1.ObservedLifetimes": OBSERVED_LIFETIMES,
        "nodewise.v1beta1.WeibullLifetimes": WEIBULL_LIFETIMES,
        "nodewise.v1beta1.ExponentialLifetimes": EXPONENTIAL_LIFETIMES,
        "nodewise.v1beta1.FleetRecord": FLEET_RECORD,
        "nodewise.v1beta1.AvailabilityRecord": AVAILABILITY_RECORD,
        "nodewise.v1beta1.KnownRevocations": KNOWN_REVOCATIONS,
        "nodewise.v1beta1.CompletionCheckpoints": COMPLETION_CHECKPOINTS,
        "nodewise.v1beta1.SavedBytes": SAVED_BYTES,
        "nodewise.v1beta1.CompletionSpeeds": COMPLETION_SPEEDS,
        "nodewise.v1beta1.OnDemandQuestion": ON_DEMAND_QUESTION,
        "nodewise.v1beta1.AvailabilityLaw": AVAILABILITY_LAW,
        "nodewise.v1beta1.HybridQuestion": HYBRID_QUESTION,
        "nodewise.v1beta1.HybridRun": HYBRID_RUN,
        "nodewise.v1beta1.EstimateCompletionRequest": ESTIMATE_COMPLETION_REQUEST,
        "nodewise.v1beta1.ReplayRequest": REPLAY_REQUEST,
        "nodewise.v1beta1.ReplayedStep": REPLAYED_STEP,
        "nodewise.v1beta1.ReadTrace": READ_TRACE,
        "nodewise.v1beta1.DiagnosisBasis": DIAGNOSIS_BASIS,
        "nodewise.v1beta1.DiagnoseRequest": DIAGNOSE_REQUEST,
        "nodewise.v1beta1.ReportStepsRequest": REPORT_STEPS_REQUEST,
        "nodewise.v1beta1.StepAlarm": STEP_ALARM,
        "nodewise.v1beta1.Bottleneck": BOTTLENECK,
        "nodewise.v1beta1.Strategy": STRATEGY,
        "nodewise.v1beta1.StepPart": STEP_PART,
        "nodewise.v1beta1.RankShares": RANK_SHARES,
        "nodewise.v1beta1.MeasurementTable": MEASUREMENT_TABLE,
        "nodewise.v1beta1.PlanPool": PLAN_POOL,
        "nodewise.v1beta1.PlanConstraints": PLAN_CONSTRAINTS,
        "nodewise.v1beta1.PlanRequest": PLAN_REQUEST,
        "nodewise.v1beta1.SharedDevice": SHARED_DEVICE,
        "nodewise.v1beta1.DeviceProcessors": DEVICE_PROCESSORS,
        "nodewise.v1beta1.KernelLaunch": KERNEL_LAUNCH,
        "nodewise.v1beta1.SharingJob": SHARING_JOB,
        "nodewise.v1beta1.StepElsewhere": STEP_ELSEWHERE,
        "nodewise.v1beta1.SharedRun": SHARED_RUN,
        "nodewise.v1beta1.PredictSharingRequest": PREDICT_SHARING_REQUEST,
        "nodewise.v1beta1.SimulationJobs": SIMULATION_JOBS,
        "nodewise.v1beta1.SimulationSettings": SIMULATION_SETTINGS,
        "nodewise.v1beta1.SimulationCheckpoints": SIMULATION_CHECKPOINTS,
        "nodewise.v1beta1.SimulationNodeFailures": SIMULATION_NODE_FAILURES,
        "nodewise.v1beta1.SimulationEarlyStops": SIMULATION_EARLY_STOPS,
        "nodewise.v1beta1.SimulationPredictionError": SIMULATION_PREDICTION_ERROR,
    }
)
"""All of them by the full names of their messages."""
