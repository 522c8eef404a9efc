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
    "ESTIMATE_RUN_REQUEST",
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
    "RUN_FAILURES",
    "RUN_POWER",
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
            "Training processes in total, one per device. Default: the sum of the row's placement or groups, else "
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
            "Parameter servers. Default 0 for all-reduce, otherwise as in the job's evidence, or 1 where the evidence "
            "does not say."
        ),
    ),
    Fact(
        field="device_names",
        row="device",
        csv="device",
        kind="str",
        unit="",
        maximum_length=64,
        meaning='Dictionary of accelerator names, e.g. "V100". One name without indexes holds for all rows.',
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
            "Samples per worker and micro-step. Empty or 0 in a row: as in the job's evidence, where that says. Whole "
            "numbers only; the type allows for fractions, for samples that several workers share."
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
        meaning="Micro-steps whose gradients are accumulated before an exchange. Default 1.",
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
            "0 in a row: replicas times batch per worker times accumulation steps. If it is given without a batch per "
            "worker (strong scaling), the batch per worker is rounded up."
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
            "Link of a parameter server or node, bytes per second in each direction. Empty or 0 in a row: the job's "
            "own."
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
        meaning="Which activations the backward pass recomputes. Default: the job's own setting.",
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
        meaning="Synchronous training: the number of workers whose results each step does not wait for. Default 0.",
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
        meaning="Hybrid training: share of each worker's mini-batches that runs synchronously, 0 to 1. Other modes: 0.",
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
        meaning="Dictionary of names of the question's offers. One name without indexes holds for all rows.",
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
            "Parameter servers. Absent = 0 for all-reduce, otherwise as in the job's evidence, or 1 where the evidence "
            "does not say."
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
            "Samples per worker and micro-step. Absent = as in the job's evidence, where that says. Whole numbers only."
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
        meaning="Micro-steps whose gradients are accumulated before an exchange. Absent = 1.",
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
            "replicas times batch per worker times accumulation steps. If it is given without a batch per worker "
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
        meaning="Link of a parameter server or node, bytes per second in each direction. Absent = the job's own.",
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
        meaning="Which activations the backward pass recomputes. Absent = the job's own setting.",
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
        meaning="Synchronous training: the number of workers whose results each step does not wait for. Absent = 0.",
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
            "Hybrid training: share of each worker's mini-batches that runs synchronously, 0 to 1. Absent = 0. Other "
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
        meaning="Name of one of the question's offers. Empty = the offer that Offer's rule assigns.",
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
        meaning="Increment. Absent = 1. Must not be given with powers_of_two.",
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
        meaning="Devices used on each node. Absent = as in the job's evidence, or 1 where the evidence does not say.",
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
            "Steps that a simulation counts in each row after its warm-up: workers' cycles (asynchronous), else "
            "rounds. Absent = the estimator decides. Rows times steps are limited (LIMIT_EXCEEDED, "
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
        meaning="Id of the other job's profile. The profile need not be stored.",
    ),
    Fact(
        field="share",
        row="share",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=10.0,
        meaning="Speed of this job in the run as a share of its speed alone, 1 = as fast as alone.",
    ),
    Fact(
        field="partner_share",
        row="partner_share",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=10.0,
        meaning="Speed of the other job in the run as a share of its speed alone.",
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
            "Bytes of the parameters (and of the gradient) that each worker sends and receives in a step, per "
            "direction."
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
        meaning="Number of tensors in which the parameters are sent.",
    ),
    Fact(
        field="flops_per_sample",
        row="flops_per_sample",
        csv="flops_per_sample",
        kind="float",
        unit="FLOPs/sample",
        minimum=0.0,
        exclusive_minimum=True,
        meaning="Floating-point operations of the forward and backward pass per sample.",
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
            "Bytes of parameters on each parameter server, one entry per server. They add up to parameter_bytes if "
            "that is known. Empty = not known."
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
            "Tensors on each parameter server, one entry per server. They add up to tensors_count if that is known. "
            "Empty = not known."
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
            "Whether dropout sets values to 0, so its masks occupy memory. Absent = not known; estimators state what "
            "they assume."
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
        meaning=(
            "Share of the weights that is not trained, as with adapters (LoRA). Absent = 0: all weights are trained."
        ),
    ),
    Fact(
        field="frozen_weight_bits",
        row="frozen_weight_bits",
        csv="frozen_weight_bits",
        kind="float",
        unit="bits",
        minimum=1.0,
        maximum=64.0,
        meaning="Bits that store one weight that is not trained, e.g. 4 (QLoRA). Absent = those of the number format.",
    ),
    Fact(
        field="offload",
        row="offload",
        csv="offload",
        kind="str",
        unit="",
        maximum_length=16,
        meaning=(
            'What is stored in host memory: "none", "optimizer" (its states; the host also runs its step) or '
            '"parameters" (the parameters as well). Empty = none.'
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
            'Number format in which gradients are summed over replicas, e.g. "bf16". Empty = the software\'s default.'
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
            "Number of devices over which the ZeRO stage splits parameters, gradients and optimizer states. Groups of "
            "this many devices are replicas of each other (hybrid sharding). Absent = all data-parallel ranks."
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
        meaning="Share of the layers that full recomputation recomputes. Absent = 1.",
    ),
    Fact(
        field="family",
        row="family",
        csv="family",
        kind="str",
        unit="",
        maximum_length=64,
        meaning=(
            'Model family, e.g. "ResNet": models that the same authors built of the same parts. Models of one family '
            "take a similar time per FLOP. Empty = not known, or the model is the only one of its family."
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
        meaning="Bytes per sample that the forward pass stores for the backward pass, without the parameters.",
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
        meaning=(
            "Whether the output layer and the loss run as one kernel that never stores all logits. Absent = not known."
        ),
    ),
    Fact(
        field="execution",
        row="execution",
        csv="execution",
        kind="str",
        unit="",
        maximum_length=16,
        meaning=(
            'How kernels are launched: "eager", "compiled" or "graphs" (CUDA graphs). Empty = the software\'s default.'
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
            'or "dualpipe". Empty = the software\'s default.'
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
            "Layers of each pipeline stage, in order. They add up to the model's layers, and apply to rows with this "
            "many stages. Empty = layers are split as evenly as possible, and the first and last stages are the "
            "shorter ones."
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
            "Share of all routed tokens that the busiest expert gets, e.g. 0.125 with 8 balanced experts. Absent = not "
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
            "Most tokens that an expert processes, as a multiple of its balanced share; further tokens are dropped. "
            "Absent = none are dropped."
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
        meaning=(
            "Rank of the adapters (LoRA), which are on all matrices of frozen layers. Absent = the cost of adapters is "
            "not counted."
        ),
    ),
    Fact(
        field="adapter",
        row="adapter",
        csv="adapter",
        kind="str",
        unit="",
        maximum_length=16,
        meaning='Kind of the adapters: "lora" or "dora" (separate magnitude and direction). Empty = "lora".',
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
            "Mean tokens of the documents that are packed into one sequence. A token attends only to its own document. "
            "Absent = a token attends to the whole sequence."
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
            "Devices in one worker of a parameter server. They sum their gradients before the worker sends them. "
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
        meaning="Layers of the encoder.",
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
        meaning="Width of the encoder's residual stream.",
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
        meaning="Attention heads of the encoder.",
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
        meaning="Tokens that the encoder processes per sample, e.g. the patches of all images of a sample.",
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
        meaning="Width of the encoder's feed-forward layer. Absent = four times hidden_size.",
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
        meaning="The encoder is not trained.",
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
        meaning="Floating-point operations of the forward and backward pass per sample.",
    ),
    Fact(
        field="family_names",
        row="family",
        csv="family",
        kind="str",
        unit="",
        maximum_length=64,
        meaning='Dictionary of families, e.g. "ResNet". One name without indexes holds for all.',
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
        meaning="Tensors that the parameters consist of.",
    ),
    Fact(
        field="activation_bytes_per_sample",
        row="activation_bytes_per_sample",
        csv="activation_bytes_per_sample",
        kind="float",
        unit="bytes/sample",
        default=0.0,
        minimum=0.0,
        meaning="Bytes per sample that the forward pass stores for the backward pass.",
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
        meaning="Experts per mixture-of-experts layer. Absent = the model is dense.",
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
        meaning="Experts that each token is sent to. Absent = the model is dense.",
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
        meaning="The feed-forward layer has three matrices and a gate (e.g. SwiGLU) instead of two matrices.",
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
        meaning="The output layer has its own matrix. Default: it shares the matrix of the input embedding.",
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
        meaning="Total width of the experts that process every token. Absent = there are none.",
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
        meaning="Layers with experts; the others are dense. Absent = all layers, if there are experts.",
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
            "Width of the latent vector from which keys and values are projected (multi-head latent attention, "
            "kv_lora_rank). Absent = attention is not latent."
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
            "Width of the latent vector from which queries are projected (q_lora_rank). Absent = queries are projected "
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
            "Part of head_size that holds rotary positions, shared by all heads in latent attention "
            "(qk_rope_head_dim). Absent = none."
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
        meaning="Most tokens that a token attends to (sliding window). Absent = all before it.",
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
            "Layers whose attention uses the window; in the other layers a token attends to all tokens before it. "
            "Absent = all layers, if there is a window."
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
        meaning="Layers with attention, in hybrid models. Absent = all layers without a state-space mixer.",
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
        meaning="Layers with a state-space mixer (Mamba) instead of attention. Absent = none.",
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
        meaning="Channels of the state-space mixer. Absent = twice hidden_size.",
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
        meaning="State values per channel. Absent = 128.",
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
            "Halo of a layer that can be split spatially into strips: bytes of input per sample that a strip reads "
            "beyond each of its two edges. Absent = the layer cannot be split; its parts read all of the input."
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
        meaning="Provisioned rate of the link of a parameter server or node, bytes per second in each direction.",
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
        meaning="Both directions together share the link's rate.",
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
        meaning="Seconds that each message takes in addition to the transfer of its bytes.",
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
        meaning="Mean seconds of the forward and backward pass.",
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
        meaning="Mean seconds to send the gradient, without the update.",
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
        meaning="Mean seconds in which the server applies the gradient.",
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
        meaning="Seconds of transfer that overlap with the worker's compute. Default 0.",
    ),
    Fact(
        field="steps_counts",
        row="steps",
        csv="phase_steps",
        kind="int",
        unit="steps",
        default=0,
        minimum=1,
        meaning="Number of steps that the means are taken over. Empty or 0 in a row: not known.",
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
            "Measured throughput, steps per second. Asynchronous and hybrid: mini-batches that all workers together "
            "apply per second; otherwise global steps per second."
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
        meaning="When the run was measured, seconds since 1970 (UTC). Empty or 0 in a row: not known.",
    ),
    Fact(
        field="steps_counts",
        row="steps",
        csv="steps",
        kind="int",
        unit="steps",
        default=0,
        minimum=1,
        meaning="Number of steps that were measured. Empty or 0 in a row: not known.",
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
        meaning="Seconds of synchronization per step that compute does not hide. Empty = not known.",
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
            "Peak memory on the device that used the most, including the context and the allocator's cache, bytes. "
            "Empty or 0 in a row: not known."
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
        meaning="Rank of the process that recorded the trace. Absent = the rank stated in the trace.",
    ),
    Fact(
        field="world_size",
        row="world_size",
        csv=None,
        kind="int",
        unit="",
        default=0,
        minimum=1,
        meaning="Number of processes of the job at the time of recording. Absent = the number stated in the trace.",
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
        meaning=(
            "Rank of the process that recorded the trace. Absent = the rank stated in the trace. In the first chunk."
        ),
    ),
    Fact(
        field="world_size",
        row="world_size",
        csv=None,
        kind="int",
        unit="",
        default=0,
        minimum=1,
        meaning="Number of processes of the job. Absent = the number stated in the trace. In the first chunk.",
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
            "Name that the client chooses: 1 to 128 letters, digits and - . _ ~ / of which the first and the last are "
            "a letter or digit, without two / in a row. Paths need no escapes for it."
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
            "Least revision to answer from. With WAIT the call waits for it. If the profile has not reached it by "
            "then, or without WAIT at once, the call fails with REVISION_NOT_REACHED. Absent = any revision."
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
            "Answer from exactly this revision even if there are newer ones, so that the same question has the same "
            "answer later. Absent = the newest. Must not be given with minimum_revision."
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
        meaning=(
            "Compare rows by the bound of the interval that holds with this probability. Absent = compare by the "
            "predicted value itself."
        ),
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
            "Largest scale to recommend, as a multiple of the most nodes and the most workers that a run of the job "
            "was measured on. Larger rows are still predicted but not recommended, except for the current "
            "configuration. Absent = 4; 0 = any row may be recommended. Without a measured run there is no limit. "
            "Where phase timings identify more than their own scale, extrapolation_ratios counts instead. Completion "
            "and Plan ignore this field."
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
            "Share of the smallest configuration's throughput per node that each further node must add. Absent = 0.5."
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
        meaning="Most nodes, including those of parameter servers. Absent = no limit.",
    ),
    Fact(
        field="max_cost",
        row="max_cost",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        exclusive_minimum=True,
        meaning="Highest cost, in the offers' currency. Absent = no limit.",
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
        meaning="Seconds from now within which the job must finish. Absent = no deadline.",
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
        meaning="Seconds from now within which the job must finish. Must be given.",
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
        meaning="Samples left to train on. Needs a known batch, in the question or in the job's evidence.",
    ),
    Fact(
        field="epochs",
        row="epochs",
        csv=None,
        kind="float",
        unit="epochs",
        minimum=0.0,
        exclusive_minimum=True,
        meaning="Epochs left. Needs the workload's samples per epoch.",
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
        meaning="Name, unique in the request. Needed only if rows name offers.",
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
        meaning='Region or zone, e.g. "us-east-1a". Empty = not known.',
    ),
    Fact(
        field="price_per_node_hour",
        row="price_per_node_hour",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        meaning="Price of one node for one hour. Nodes of parameter servers cost the same.",
    ),
    Fact(
        field="currency",
        row="currency",
        csv=None,
        kind="str",
        unit="",
        maximum_length=16,
        meaning="Currency, for people. All offers of a request use the same one.",
    ),
    Fact(
        field="start_up_seconds",
        row="start_up_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000.0,
        meaning=(
            "Seconds from the order until the nodes work. They are paid for, and count in the time and the cost to "
            "finish."
        ),
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
        meaning="Gradient noise scale of the training at present.",
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
        meaning="Global batch at which the efficiency of a sample is 1.",
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
            "Most samples that a worker can process in a micro-step; larger batches are accumulated. Absent = a worker "
            "processes its share in one micro-step."
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
        meaning="Row of the question that holds it.",
    ),
    Fact(
        field="restart_cost_seconds",
        row="restart_cost_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000.0,
        meaning="Seconds lost when the job moves to another configuration.",
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
            "Seconds within which the move must pay for itself. Absent = the seconds of the work left, or 3600 if the "
            "work is not known."
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
        meaning="Most suggestions. Absent = 1. Each suggestion assumes that those before it are measured.",
    ),
    Fact(
        field="start_up_seconds",
        row="start_up_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000.0,
        meaning="Seconds that a run takes to start; it occupies its nodes meanwhile.",
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
        meaning="1 for the first batch of a session; each further batch increases it by 1.",
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
        meaning="Reason for the retraction, stored in the history.",
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
        meaning="Most observations in the reply, up to 20,000. Absent = 20,000.",
    ),
    Fact(
        field="revision",
        row="revision",
        csv=None,
        kind="int",
        unit="",
        minimum=1,
        meaning="Revision to return. Absent = the newest.",
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
        meaning='Etag of the profile: the call deletes only if it is still the same; "*" = any. Must be given.',
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
        meaning="Link of a node, bytes per second in each direction. Absent = as in the jobs' evidence.",
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
            "Devices per node, if nodes are allocated whole. The number of devices that a job holds, those of servers "
            "included, is then a multiple of it. Absent = devices are allocated one by one."
        ),
    ),
    Fact(
        field="max_nodes",
        row="max_nodes",
        csv=None,
        kind="int",
        unit="",
        minimum=0,
        meaning="Most nodes that the pool may grow to, for PoolDemand.desired_nodes. Absent = the pool does not grow.",
    ),
    Fact(
        field="device_hours_between_failures",
        row="device_hours",
        csv=None,
        kind="float",
        unit="h",
        minimum=0.0,
        maximum=1000000000000.0,
        exclusive_minimum=True,
        meaning=(
            "Mean hours of one device between failures that stop the job on it or its node. The mean of a job is this "
            "divided by its devices. Policies then compare goodput: throughput times the share of time that is "
            "progress. Absent = failures are not considered."
        ),
    ),
    Fact(
        field="restart_seconds",
        row="restart_seconds",
        csv=None,
        kind="float",
        unit="s",
        default=600.0,
        minimum=0.0,
        maximum=10000000.0,
        meaning="Seconds from a failure until the job runs again. Absent = 600.",
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
        meaning="Worker devices that the job requests, for policies that do not choose a number. Absent = min_devices.",
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
        meaning="Priority of the job relative to others. Absent = 1.",
    ),
    Fact(
        field="checkpoint_seconds",
        row="checkpoint_s",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000.0,
        meaning=(
            "Seconds of a checkpoint, for pools that state failures; jobs save at the best interval. Absent = each "
            "node writes the weights and the optimizer's state of its devices at 1 GB/s, or 60 if their size is not "
            "known."
        ),
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
        meaning="Share of its solo speed that the first job keeps, 1 = all of it.",
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
        meaning="Share of its solo speed that the second job keeps.",
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
        meaning="Description, for people.",
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
        meaning="What callers with the token may do: at least one role.",
    ),
    Fact(
        field="prefixes",
        row="prefixes",
        csv=None,
        kind="str",
        unit="",
        required=True,
        meaning=(
            'Profiles that the token gives access to, by whole segments at the start of their names: "team-a" and '
            '"team-a/" include "team-a/vgg16", but not "team-ab/vgg16". At least one; "*" = all profiles.'
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
        meaning="Seconds until the token expires. Absent = 90 days.",
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
        meaning="Id of the token.",
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
        meaning="Name, unique in the request. Empty = the offer's position, from 1.",
    ),
    Fact(
        field="batch_per_worker_samples",
        row="batch_per_worker",
        csv=None,
        kind="int",
        unit="samples",
        minimum=1,
        meaning="Samples per worker and step. Absent = as in the job's evidence.",
    ),
    Fact(
        field="global_batch_samples",
        row="global_batch",
        csv=None,
        kind="int",
        unit="samples",
        minimum=1,
        meaning=(
            "Samples of one step of all workers, independent of the number of running workers. Absent = the batch per "
            "worker is fixed."
        ),
    ),
    Fact(
        field="parameter_servers_count",
        row="parameter_servers",
        csv=None,
        kind="int",
        unit="servers",
        minimum=0,
        maximum=4096,
        meaning="Parameter servers, on nodes that are not revoked. Absent = as in the job's evidence.",
    ),
    Fact(
        field="kept_price_per_hour",
        row="kept_per_h",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=1000000000000.0,
        meaning="Price per hour of all that is paid for until the end, such as parameter servers and storage.",
    ),
    Fact(
        field="link_bytes_per_second",
        row="link_bytes_per_s",
        csv=None,
        kind="float",
        unit="bytes/s",
        minimum=1.0,
        maximum=1000000000000000.0,
        meaning="Network of one node, bytes per second in each direction. Absent = the job's own.",
    ),
    Fact(
        field="restart_seconds",
        row="restart_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000.0,
        meaning=(
            "Seconds without progress: for RESTART, after all nodes are available again; for ELASTIC, during a "
            "rendezvous."
        ),
    ),
    Fact(
        field="chief_setup_seconds",
        row="chief_setup_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000.0,
        meaning="Seconds without progress after the loss of the chief, if chief_loss is stated.",
    ),
    Fact(
        field="burst_probability",
        row="burst_probability",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=1.0,
        meaning="Probability that a loss also takes neighbouring nodes of its group.",
    ),
    Fact(
        field="burst_others_count",
        row="burst_others",
        csv=None,
        kind="int",
        unit="nodes",
        minimum=0,
        maximum=4096,
        meaning="Most neighbouring nodes that are lost with it.",
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
        meaning=(
            "Seconds after which a simulated run counts as never done. Absent = 100 times its duration without losses."
        ),
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
        meaning="Name, unique in the offer. Needed only if nodes of this group replace losses of another group.",
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
        meaning="Nodes at the start; 0 if nodes of this group only replace losses of other groups.",
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
        meaning="Devices on each node. Absent = 1.",
    ),
    Fact(
        field="region",
        row="region",
        csv=None,
        kind="str",
        unit="",
        maximum_length=64,
        meaning='Region or zone, e.g. "us-east1-c". Empty = not known.',
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
        meaning=(
            "Seconds that each node has already run; the last entry holds for all further nodes. Empty = all nodes are "
            "new."
        ),
    ),
    Fact(
        field="cap_seconds",
        row="cap_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=1.0,
        maximum=10000000000.0,
        meaning=(
            "Age at which the provider ends a node, seconds, e.g. 86400. Absent = the limit that the data set states, "
            "else none."
        ),
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
        meaning="Seconds from which each price holds, ascending; the first is 0.",
    ),
    Fact(
        field="prices_per_node_hour",
        row="per_h",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=1000000000000.0,
        meaning="Price of one node for one hour from that time on.",
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
            "Samples of the seconds from the loss until the new node works (provisioning, start-up, joining). Each is "
            "equally likely; at least one must be given."
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
            "Group that the new node belongs to, if it has another zone, tier or device. Empty = the group of the lost "
            "node."
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
        meaning="Name of the law.",
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
        meaning="Number of machines observed. 0 = the number of lifetimes, if there are any, else not known.",
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
        meaning="Share of the machines that was revoked by each age, not descending.",
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
        meaning="Seconds for which each machine was observed.",
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
        meaning="Scale, seconds.",
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
        meaning="Shape; below 1, young machines are lost more often.",
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
        meaning="Mean lifetime, seconds.",
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
        meaning="Time of each event, seconds; not descending.",
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
        meaning="Seconds from which each number holds, ascending; the first is 0.",
    ),
    Fact(
        field="nodes_counts",
        row="nodes",
        csv=None,
        kind="int",
        unit="nodes",
        minimum=0,
        meaning="Number of nodes that were available from that time on.",
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
        meaning="Length of the record, seconds; later availability is not known.",
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
        meaning="Seconds from the start, one entry for each lost node; the other nodes are not lost.",
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
        meaning="Stated seconds.",
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
        meaning="Seconds of work with all nodes running.",
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
        meaning="Samples of work.",
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
        meaning="Share of the job's speed that is lost while a checkpoint is saved; 1 = all workers wait. Absent = 1.",
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
        meaning="Bytes of the weights, including the optimizer's state.",
    ),
    Fact(
        field="graph_bytes",
        row="graph_bytes",
        csv=None,
        kind="float",
        unit="bytes",
        minimum=0.0,
        maximum=1000000000000000.0,
        meaning="Bytes of the graph's description.",
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
        meaning="Seconds of measured checkpoints to the same store, at least two. The law is fitted to them.",
    ),
    Fact(
        field="measured_weights_bytes",
        row="measured_weights_bytes",
        csv=None,
        kind="float",
        unit="bytes",
        minimum=0.0,
        maximum=1000000000000000.0,
        meaning="Bytes of weights in each measured checkpoint.",
    ),
    Fact(
        field="measured_graph_bytes",
        row="measured_graph_bytes",
        csv=None,
        kind="float",
        unit="bytes",
        minimum=0.0,
        maximum=1000000000000000.0,
        meaning=(
            "Bytes of graph description in each measured checkpoint. Empty = the law has no separate term for graphs."
        ),
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
            "Samples per second for each number of running nodes in each group. The number of the last group varies "
            "fastest. Each group counts from 0 to all nodes that it may have. For example, one group of 4 nodes has "
            "five entries, of which the first, with no node running, is 0."
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
        meaning="Seconds of work of the job; the same on spot and on-demand machines.",
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
        meaning="Seconds from the job's start by which it must be done.",
    ),
    Fact(
        field="switch_seconds",
        row="switch_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000.0,
        meaning="Seconds from the request for either kind of machine until it works. They are paid for.",
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
        meaning="Price per hour of the machines on spot.",
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
        meaning="Price per hour of the same machines on demand.",
    ),
    Fact(
        field="nodes_needed",
        row="nodes_needed",
        csv=None,
        kind="int",
        unit="nodes",
        default=1,
        minimum=1,
        meaning="Number of nodes that must be available at once. Absent = 1.",
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
        meaning="Seconds between two decisions. Absent = 600.",
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
        meaning="Number of starting times to simulate. Absent = 1,000.",
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
        meaning="Mean seconds of a period with spot machines.",
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
        meaning="Mean seconds of a period without spot machines.",
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
        meaning="Seconds for all of the work in synchronous mode. Absent = predicted from the request's profile.",
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
        meaning="Seconds for all of the work in asynchronous mode. Absent = predicted.",
    ),
    Fact(
        field="batch_per_worker_samples",
        row="batch_per_worker",
        csv=None,
        kind="int",
        unit="samples",
        minimum=1,
        meaning="Samples per worker and step, for predicted times. Absent = as in the job's evidence.",
    ),
    Fact(
        field="parameter_servers_count",
        row="parameter_servers",
        csv=None,
        kind="int",
        unit="servers",
        minimum=1,
        maximum=4096,
        meaning="Parameter servers, for predicted times. Absent = as in the job's evidence.",
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
        meaning="Shares of the work in synchronous mode to evaluate. Empty = 0, 0.05, 0.1, 0.25, 0.5, 0.75 and 1.",
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
        meaning="Seconds by which the job must be done. Absent = no deadline.",
    ),
    Fact(
        field="least_accuracy",
        row="least_accuracy",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=1.0,
        meaning="Accuracy that must be reached. Only the runs show which shares reach it.",
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
            "Slowdown of each worker relative to the others, if some are slower: 2 = half as fast. One entry per "
            "worker."
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
        meaning="Share of its work in synchronous mode.",
    ),
    Fact(
        field="accuracy",
        row="accuracy",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=1.0,
        meaning="Accuracy that the run reached.",
    ),
)
"""Of HybridRun, by field."""

RUN_FAILURES: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="device_hours_between_failures",
        row="device_hours",
        csv=None,
        kind="float",
        unit="h",
        default=50000.0,
        minimum=0.0,
        maximum=1000000000000.0,
        exclusive_minimum=True,
        meaning=(
            "Mean hours of one device between failures that stop the job or the device's node. The job's own mean is "
            "this divided by its devices. Absent = 50,000."
        ),
    ),
    Fact(
        field="restart_seconds",
        row="restart_seconds",
        csv=None,
        kind="float",
        unit="s",
        default=600.0,
        minimum=0.0,
        maximum=10000000.0,
        meaning="Seconds from a failure until the job runs again. Absent = 600.",
    ),
)
"""Of RunFailures, by field."""

RUN_POWER: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="idle_watts",
        row="idle_watts",
        csv=None,
        kind="float",
        unit="W",
        minimum=0.0,
        maximum=100000.0,
        meaning=(
            "Power of a device of the job while it waits, W. Absent = that of the catalog, else a share of the "
            "device's limit."
        ),
    ),
    Fact(
        field="training_watts",
        row="training_watts",
        csv=None,
        kind="float",
        unit="W",
        minimum=0.0,
        maximum=100000.0,
        exclusive_minimum=True,
        meaning=(
            "Power of a device of this job while it computes, W, e.g. measured in a short run. Absent = a share of the "
            "limit of the device."
        ),
    ),
    Fact(
        field="host_power_ratio",
        row="host_ratio",
        csv=None,
        kind="float",
        unit="",
        default=1.4,
        minimum=1.0,
        maximum=100.0,
        meaning="Power of whole nodes divided by that of their devices. Absent = 1.4.",
    ),
    Fact(
        field="power_usage_effectiveness",
        row="facility_ratio",
        csv=None,
        kind="float",
        unit="",
        default=1.0,
        minimum=1.0,
        maximum=100.0,
        meaning="Power of the facility divided by that of its nodes (PUE). Absent = 1: cooling is not counted.",
    ),
    Fact(
        field="grid_grams_per_kilowatt_hour",
        row="grid_grams_per_kwh",
        csv=None,
        kind="float",
        unit="g/kWh",
        minimum=0.0,
        maximum=100000.0,
        meaning="Emissions of the grid, grams of CO2 equivalent for each kWh. Absent = emissions are not estimated.",
    ),
)
"""Of RunPower, by field."""

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
        meaning=(
            "Simulated runs of each offer. Absent = 10,000. Offers times runs may be at most 10,000,000 "
            "(LIMIT_EXCEEDED)."
        ),
    ),
    Fact(
        field="completion_estimator",
        row="completion_estimator",
        csv=None,
        kind="str",
        unit="",
        maximum_length=63,
        meaning="Estimator of the completion. Empty = the estimator that can do this, if one is loaded.",
    ),
)
"""Of EstimateCompletionRequest, by field."""

ESTIMATE_RUN_REQUEST: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="price_per_node_hour",
        row="price_per_h",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=1000000000000.0,
        meaning="Price of one node for one hour. Absent = cost is not estimated.",
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
        meaning="Seconds from the start by which the run must be done. Absent = no deadline.",
    ),
    Fact(
        field="runs_count",
        row="runs_count",
        csv=None,
        kind="int",
        unit="runs",
        default=10000,
        minimum=1,
        maximum=1000000,
        meaning="Simulated runs. Absent = 10,000.",
    ),
)
"""Of EstimateRunRequest, by field."""

REPLAY_REQUEST: Final[Mapping[str, Fact]] = by_field(
    Fact(
        field="diagnoser",
        row="diagnoser",
        csv=None,
        kind="str",
        unit="",
        maximum_length=63,
        meaning="Name of the diagnoser. Empty = the only diagnoser that is loaded, or the shipped one.",
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
        meaning="Seconds within which to answer. Absent = the call's time.",
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
        meaning="Recorded host seconds. Absent = not comparable, because something was changed.",
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
        meaning="Predicted host seconds.",
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
        meaning="Recorded device seconds. Absent = not comparable, or no work runs on a device.",
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
        meaning="Predicted device seconds. Absent = no work runs on a device.",
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
            "Lower bound of the host seconds, if changes also affect ranks that were not recorded. Absent = all ranks "
            "are known."
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
        meaning="Upper bound of the host seconds.",
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
        meaning="Number of processes of the job. Absent = not known.",
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
        meaning="Number of ranks of the job. Absent = not known.",
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
        meaning="Name of the diagnoser. Empty = the only diagnoser that is loaded, or the shipped one.",
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
        meaning="Most bottlenecks in the result, up to 1000. Absent = 20; 0 = none.",
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
        meaning="Most strategies in the result, up to 1000. Absent = 20; 0 = none, which is quicker.",
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
            "Largest factor by which a strategy may increase the batch per worker where it frees memory, 1 or more. "
            "Absent = 1: no increase."
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
        meaning="Seconds within which to answer. Absent = the call's time.",
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
            "Diagnose the step times that the stored profile's ranks reported in the last so many seconds, instead of "
            "traces. Absent = diagnose traces."
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
        meaning="Machine of the slow ranks. Absent = they are not all on one machine.",
    ),
    Fact(
        field="first_step",
        row="first_step",
        csv=None,
        kind="int",
        unit="",
        default=-1,
        minimum=0,
        meaning="First slow step. Absent = all reported steps are slow.",
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
        meaning="When the slowdown ended. Absent = it has not ended.",
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
        meaning="Rank that loses the time. Absent = all ranks.",
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
        meaning="Lower bound of the interval of the step's seconds. Absent = not known.",
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
        meaning="Upper bound of the interval of the step's seconds. Absent = not known.",
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
        meaning="For waiting, the rank that arrives last. Absent = several ranks, or not known.",
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
        meaning="Highest memory of the allocator, bytes. Absent = not recorded.",
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
        meaning="Measured throughput, steps per second. 0 in a row: not measured; the row is predicted but not scored.",
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
        meaning="When the row was measured, seconds since 1970 (UTC). Empty or 0 in a row: not known.",
    ),
    Fact(
        field="exposed_sync_seconds",
        row="exposed_sync_s",
        csv="exposed_sync_s",
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=10000000.0,
        meaning="Seconds of synchronization per step that compute does not hide. Empty = not known.",
    ),
    Fact(
        field="steps_counts",
        row="steps",
        csv="steps",
        kind="int",
        unit="steps",
        default=0,
        minimum=1,
        meaning="Number of steps that were measured. Empty or 0 in a row: not known.",
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
            "Peak memory on the device that used the most, including the context and the allocator's cache, bytes. "
            "Empty or 0 in a row: not known."
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
        meaning="Whether the row fitted into memory: 0 = it ran out of memory.",
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
        meaning="Devices on each node, at least 1. A configuration uses all of them.",
    ),
    Fact(
        field="link_bytes_per_second",
        row="link_bytes_per_second",
        csv=None,
        kind="float",
        unit="bytes/s",
        minimum=1.0,
        meaning=(
            "Network of one node, bytes per second in each direction. Absent = the job's own, else that of the catalog."
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
            "Memory of each device that must stay free, bytes; 0 = none. Absent = the upper bound of the 90 % interval "
            "of the memory must fit, if the estimator states one."
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
        meaning="Most nodes of a configuration, including those of parameter servers. Absent = no limit.",
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
        meaning="Seconds for the search. When they end, the result holds the best so far. Absent = the call's time.",
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
            "Most points of the frontier in the result, up to 1000. Absent = 100; 0 = no frontier, which makes the "
            "search faster."
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
        meaning='Accelerator, e.g. "V100". Empty = not known; the catalog is then not used.',
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
            "Memory that jobs may use, bytes. Absent = that of the catalog. If it is not known there either, memory is "
            "not checked."
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
        meaning="Number of streaming multiprocessors.",
    ),
    Fact(
        field="threads_count",
        row="threads",
        csv=None,
        kind="int",
        unit="",
        minimum=32,
        maximum=65536,
        meaning="Threads that one multiprocessor can hold.",
    ),
    Fact(
        field="blocks_count",
        row="blocks",
        csv=None,
        kind="int",
        unit="",
        minimum=1,
        maximum=65536,
        meaning="Blocks that one multiprocessor can hold.",
    ),
    Fact(
        field="registers_count",
        row="registers",
        csv=None,
        kind="int",
        unit="",
        minimum=1,
        maximum=16777216,
        meaning="Registers of one multiprocessor.",
    ),
    Fact(
        field="shared_bytes",
        row="shared_bytes",
        csv=None,
        kind="int",
        unit="bytes",
        minimum=1,
        maximum=1073741824,
        meaning="Shared memory of one multiprocessor, bytes.",
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
        meaning="Number of blocks in the grid.",
    ),
    Fact(
        field="threads_per_block",
        row="threads_per_block",
        csv=None,
        kind="int",
        unit="",
        minimum=1,
        maximum=1024,
        meaning="Threads per block.",
    ),
    Fact(
        field="registers_per_thread",
        row="registers_per_thread",
        csv=None,
        kind="int",
        unit="",
        minimum=0,
        maximum=255,
        meaning="Registers per thread. 0 = not known; registers then limit nothing.",
    ),
    Fact(
        field="shared_bytes_per_block",
        row="shared_bytes_per_block",
        csv=None,
        kind="int",
        unit="bytes",
        minimum=0,
        maximum=1073741824,
        meaning="Shared memory per block, bytes. 0 = none.",
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
        meaning="Name, unique in the request. Sets and measured pairs refer to it.",
    ),
    Fact(
        field="model_name",
        row="model",
        csv=None,
        kind="str",
        unit="",
        maximum_length=128,
        meaning=(
            'Model that jobs of different batch sizes and precisions share, e.g. "resnet50". Measurements of one such '
            "job count for all of them. Empty = the job's name."
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
            'Share of the time in which any kernel runs, 0 to 1 ("GPU-Util"). Absent = inferred from steps on other '
            "devices, else 1 is assumed."
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
        meaning="Device memory that the job uses, bytes. Absent = not known; the job is assumed to fit.",
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
        meaning="Seconds of a step alone on this device. Absent = that of the profile, else not known.",
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
            "Only for MIG: share of the device's processors in the job's slice, e.g. 0.428571 for a 3g slice of 7. "
            "Absent = equal slices for the jobs of a set."
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
        meaning="Only for MIG: memory of the job's slice, bytes. Absent = slice_ratio times the device's memory.",
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
        meaning="Seconds of the step on that device.",
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
        meaning="Peak FLOP/s of that device divided by those of this device. Absent = the catalog's values.",
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
        meaning="Name of one job.",
    ),
    Fact(
        field="second_job",
        row="second_job",
        csv=None,
        kind="str",
        unit="",
        maximum_length=128,
        meaning="Name of the other job. The same name means two copies of one job.",
    ),
    Fact(
        field="first_share",
        row="first_share",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=10.0,
        meaning="Share of its solo speed that the first job kept, 1 = all of it.",
    ),
    Fact(
        field="second_share",
        row="second_share",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=10.0,
        meaning="Share of its solo speed that the second job kept.",
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
        meaning="Share of the ranges that should hold the true value. Absent = 0.9.",
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
        meaning="When each job arrives, ascending, seconds of simulated time. No default.",
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
            "Work that the job declares to the policy, samples (or any other unit, if the curve's rates are per second "
            "of it). No default."
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
            "Worker devices that the job requests, for policies that do not choose a number. Empty or 0 for a job: the "
            "fewest of its curve."
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
        meaning="Fewest worker devices. Empty or 0 for a job: the fewest of its curve.",
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
        meaning="Most worker devices. Empty or 0 for a job: the most of its curve.",
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
            "Work after which the job ends early, samples. The policy does not see it. Empty or 0 for a job: the job "
            "does all of its work."
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
            "Samples of one step: rounds that allocate whole steps do not divide work any further. Empty or 0 for a "
            "job: work is divided freely."
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
        meaning="Seconds without progress after a change of devices. Empty = the value in the settings.",
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
        meaning="Priority of each job relative to others. Default 1.",
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
        meaning="When each job must be done, seconds of simulated time. Empty or 0 for a job: no deadline.",
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
        meaning="Least seconds that an allocation lasts. Default 0.",
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
        meaning="Devices that each job needs in addition to its workers, e.g. for a parameter server. Default 0.",
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
        meaning="Least seconds between two decisions while any job runs.",
    ),
    Fact(
        field="restart_cost_seconds",
        row="restart_cost_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=1000000000000.0,
        meaning="Seconds without progress when a job's devices change, and when a job resumes after a preemption.",
    ),
    Fact(
        field="first_start_cost_seconds",
        row="first_start_cost_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=1000000000000.0,
        meaning="Seconds without progress when a job starts for the first time.",
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
        meaning="Factor that inter-arrival times are divided by. Absent = 1.",
    ),
    Fact(
        field="seed",
        row="seed",
        csv=None,
        kind="int",
        unit="",
        minimum=0,
        meaning=(
            "Seed. Failures, early stops and prediction errors each have a random stream of their own. It also seeds a "
            "policy that uses random numbers, unless the policy's parameter seed is given. Each repetition increases "
            "it by 1."
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
        meaning="Seconds of progress between two checkpoints.",
    ),
    Fact(
        field="cost_seconds",
        row="cost_seconds",
        csv=None,
        kind="float",
        unit="s",
        minimum=0.0,
        maximum=1000000000000.0,
        meaning="Seconds without progress while a checkpoint is saved.",
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
        meaning="Mean seconds until a running node fails.",
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
        meaning="Mean seconds until a failed node is repaired.",
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
        meaning="Probability that a job ends early, 0 to 1.",
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
        meaning="Error of whole curves, which makes jobs look too large or too small.",
    ),
    Fact(
        field="row_sigma",
        row="row_sigma",
        csv=None,
        kind="float",
        unit="",
        minimum=0.0,
        maximum=5.0,
        meaning="Error of single rows, which leads to wrong numbers of devices.",
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
        "nodewise.v1beta1.RunFailures": RUN_FAILURES,
        "nodewise.v1beta1.RunPower": RUN_POWER,
        "nodewise.v1beta1.EstimateCompletionRequest": ESTIMATE_COMPLETION_REQUEST,
        "nodewise.v1beta1.EstimateRunRequest": ESTIMATE_RUN_REQUEST,
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
