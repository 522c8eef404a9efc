"""The question of `nodewise predict` and `nodewise suggest`: which job, which configurations, and how."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final

from typer import Argument, Option

from nodewise_cli.failures import InputError
from nodewise_cli.inputs.bounds import check_bounds
from nodewise_cli.inputs.columns import RATES
from nodewise_cli.inputs.configurations import SETTINGS, settings_by_csv
from nodewise_cli.inputs.counts import parse_counts
from nodewise_cli.inputs.documents import holds_json, read_profile
from nodewise_cli.inputs.profile_names import profile_id_of
from nodewise_cli.inputs.table_content import profile_content, train_rows
from nodewise_cli.inputs.table_errors import in_rows
from nodewise_cli.inputs.tables import Table, read_table
from nodewise_cli.inputs.training import Training
from nodewise_cli.inputs.typed_runs import typed_table
from nodewise_client import (
    Client,
    ConfigurationRange,
    GetProfileRequest,
    ModelOptions,
    NodewiseError,
    PlacementRule,
    ProfileContent,
    ProfileSource,
    ProfileView,
    Recomputation,
    SyncMode,
    profile_source,
)
from nodewise_values.facts import CONFIGURATION_SETTINGS, MODEL_OPTIONS

__all__ = ["AskedJob", "Question", "asked_job", "asked_ranges", "locate_errors", "options_of"]

SAMPLES: Final = "samples_per_s"
_HOW: Final = (
    *("device", "sync", "parameter_servers", "batch_per_worker", "global_batch", "accumulation"),
    *("backup_workers", "hybrid_sync_fraction", "hybrid_switch_s"),
)
"""Columns that state how a job runs, without its scale."""
_SPLIT: Final = (
    *("tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel", "sequence_parallel"),
    *("interleave", "zero_stage", "recompute"),
)
"""Columns that state how a model is split over the workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Training):
    """What the options state about the job, the configurations and the estimator."""

    source: Annotated[
        Path | None,
        Argument(
            metavar="TABLE.csv|PROFILE.json",
            help="Table of measurements, profile (see `nodewise schema profile`), or a model's config.json.",
        ),
    ] = None
    job: Annotated[str | None, Option(help="Job of the table. Default: its only job.")] = None
    measured_runs: Annotated[
        str | None,
        Option(
            "--measured",
            metavar="NODES=RATE,...",
            help="Instead of a file: measured throughput by nodes, such as 1=19800,2=38100.",
        ),
    ] = None
    gpus_per_node: Annotated[
        int | None, Option(metavar="COUNT", min=1, help="measured: devices used on each node. Default: 1.")
    ] = None
    unit: Annotated[str, Option(metavar="UNIT", help=f"measured: unit of the throughput: {', '.join(RATES)}.")] = (
        SAMPLES
    )
    profile: Annotated[
        str | None, Option(metavar="ID", help="Instead of a file: a profile that the server stores.")
    ] = None
    nodes: Annotated[
        str | None,
        Option(
            metavar="COUNTS",
            help="Numbers of nodes: 1-16, 1,2,4,8, 1-64:2 or pow2:1-64. Default: up to 4 times the largest measured.",
        ),
    ] = None
    workers: Annotated[str | None, Option(metavar="COUNTS", help="Instead of --nodes: numbers of workers.")] = None
    workers_per_node: Annotated[
        int | None, Option(min=1, help="Devices used on each node. Default: as in the evidence.")
    ] = None
    placement: Annotated[PlacementRule, Option(help="How workers are placed on nodes.")] = PlacementRule.PACKED
    parameter_servers: Annotated[
        int | None, Option("--servers", min=0, help="Parameter servers. Default: as in the evidence.")
    ] = None
    sync: Annotated[SyncMode | None, Option(help="How workers exchange gradients. Default: as in the evidence.")] = None
    batch_per_worker: Annotated[
        int | None,
        Option(
            "--batch-per-worker", "--micro-batch", min=1, help="Samples that a worker processes at once (weak scaling)."
        ),
    ] = None
    global_batch: Annotated[
        int | None,
        Option(
            min=1,
            help="Samples per step (strong scaling). Replicas of a transformer split their share into micro-batches of "
            "--micro-batch samples. Default: the fastest size that fits.",
        ),
    ] = None
    accumulation: Annotated[int | None, Option(min=1, help="Micro-batches of a replica in each step.")] = None
    sequence_length: Annotated[
        int | None,
        Option(metavar="TOKENS", min=1, help="config.json, measured: tokens per sample. Default: the model's longest."),
    ] = None
    tensor_parallel: Annotated[int | None, Option(min=1, help="Parts that each layer is split into.")] = None
    pipeline_parallel: Annotated[int | None, Option(min=1, help="Pipeline stages that the layers are split into.")] = (
        None
    )
    context_parallel: Annotated[int | None, Option(min=1, help="Parts that each sequence is split into.")] = None
    expert_parallel: Annotated[int | None, Option(min=1, help="Parts that the experts are split into.")] = None
    sequence_parallel: Annotated[
        bool | None,
        Option("--sequence-parallel/--no-sequence-parallel", help="Also split layer norms along the sequence."),
    ] = None
    interleave: Annotated[int | None, Option(min=1, help="Model chunks of each pipeline stage.")] = None
    zero_stage: Annotated[
        int | None, Option(metavar="STAGE", min=0, max=3, help="Stage of ZeRO: what is split over replicas.")
    ] = None
    recompute: Annotated[
        Recomputation | None, Option(help="Activations to recompute. Default: as few as fit into memory.")
    ] = None
    precision: Annotated[
        str | None, Option(metavar="FORMAT", help="Number format, such as bf16. Default: the job's own.")
    ] = None
    device: Annotated[str | None, Option(help="Accelerator. Default: as in the evidence.")] = None
    backup_workers: Annotated[
        int | None, Option(min=0, help="sync: the slowest workers of each step, whose results are dropped.")
    ] = None
    hybrid_sync_fraction: Annotated[
        float | None, Option(min=0, max=1, help="hybrid: share of mini-batches run synchronously.")
    ] = None
    hybrid_switch_s: Annotated[
        float | None, Option(metavar="SECONDS", min=0, help="hybrid: time lost at the switch.")
    ] = None
    link_bytes_per_s: Annotated[
        float | None,
        Option(
            "--link", metavar="BYTES_PER_S", help="Bandwidth of the link of a server or node. Default: the job's own."
        ),
    ] = None
    estimator: Annotated[str, Option(help="Name of an estimator, or auto.")] = "auto"
    coverage: Annotated[float | None, Option(metavar="SHARE", help="Coverage of the intervals. Default: 0.9.")] = None
    seed: Annotated[int, Option(metavar="NUMBER", help="Seed of random draws.")] = 0

    @property
    def settings(self) -> dict[str, Any]:
        """How every configuration runs, as far as the options state it, by column."""
        values = {name: getattr(self, name, None) for name in SETTINGS}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class AskedJob:
    """The job of the question: its profile, its name for people, and its table if it has one."""

    profile: str | ProfileContent
    name: str
    table: Table | None = None

    @property
    def counts(self) -> str:
        """What its throughputs count where its batch is not known: "samples" or "tokens"; "" = it is known."""
        return "" if self.table is None else self.table.counts.get(self.name, "")

    def tokens_per_sample(self, client: Client) -> int | None:
        """Tokens in a sample of the profile; None = samples have no tokens."""
        profile = self.profile
        if isinstance(profile, str):
            view = GetProfileRequest(profile_id=profile, view=ProfileView.FACTS)
            profile = client.get_profile(view).content or ProfileContent()
        transformer = None if profile.workload is None else profile.workload.transformer
        if transformer is not None:
            return transformer.sequence_length_tokens
        lengths = {self.table.columns["sequence_length"][row] for row in self.rows} if self.table is not None else set()
        return lengths.pop() if len(lengths) == 1 else None

    @property
    def source(self) -> ProfileSource:
        """The same, for a request."""
        return profile_source(self.profile)

    @property
    def rows(self) -> tuple[int, ...]:
        """Its rows in the table."""
        return () if self.table is None else self.table.rows_by_job[self.name]


def asked_job(question: Question, server: str | None, *, without_batch: bool = False) -> AskedJob:
    """The job that the options name; ``without_batch`` as of :func:`tables.read_table`.

    Raises
    ------
    InputError
        Naming the option or the file and what would be right.
    """
    source, job, profile, sequence_length = question.source, question.job, question.profile, question.sequence_length
    if question.measured_runs is not None:
        return _job_of_options(question, without_batch=without_batch)
    if question.gpus_per_node is not None or question.unit != SAMPLES:
        option = "--unit" if question.gpus_per_node is None else "--gpus-per-node"
        raise InputError(f"{option}: needs --measured; a table states it in its columns")
    if profile is not None:
        if source is not None or job is not None:
            raise InputError("--profile: must be given alone: it replaces the file and --job")
        if server is None:
            raise InputError("--server: must name the server that stores the profile; the embedded server stores none")
        if question.values:
            option = next(iter(question.values)).replace("_", "-")
            raise InputError(f"--{option}: must be left out when --profile is given: the stored profile states it")
        return AskedJob(profile_id_of(profile), profile)
    if source is None:
        raise InputError("TABLE.csv: must be given, or a PROFILE.json, a --profile of the server or --measured runs")
    if holds_json(source):
        if job is not None:
            raise InputError(f"--job: must be left out: {source} is a single profile")
        return AskedJob(_apply_training(read_profile(source, sequence_length), question), source.stem)
    return _of_table(question, source, without_batch=without_batch)


def _apply_training(content: ProfileContent, question: Question) -> ProfileContent:
    """The same profile, with the options of training applied."""
    return replace(content, workload=question.of(content.workload))


def _job_of_options(question: Question, *, without_batch: bool) -> AskedJob:
    """The job whose runs the options state."""
    if question.source is not None or question.profile is not None:
        raise InputError("--measured: must be given alone: it replaces the file and --profile")
    table = typed_table(question, without_batch=without_batch)
    (name,) = table.jobs
    return AskedJob(_apply_training(profile_content(table, name), question), name, table)


def _of_table(question: Question, source: Path, *, without_batch: bool) -> AskedJob:
    """The job of a table."""
    job = question.job
    if question.sequence_length is not None:
        raise InputError(f"--sequence-length: needs the config.json of a model, but {source} is a table")
    table = read_table(source, predicted=True, without_batch=without_batch)
    if job is None and len(table.jobs) == 1:
        (job,) = table.jobs
    if job is None or job not in table.rows_by_job:
        job_text = "none" if job is None else repr(job)
        raise InputError(f"--job: must be a job of {source} ({', '.join(table.jobs)}), found {job_text}")
    question_job = AskedJob(_apply_training(profile_content(table, job), question), job, table)
    for name in ("batch_per_worker", "global_batch", "accumulation"):
        if question_job.counts and question.settings.get(name) is not None:
            text = f"needs the measured batch: state batch_per_worker or global_batch in {source}"
            raise InputError(f"--{name.replace('_', '-')}: {text}")
    return question_job


def asked_ranges(question: Question, job: AskedJob) -> tuple[ConfigurationRange, ...]:
    """The configurations that the options name, in their order; without counts, the server chooses them.

    Raises
    ------
    InputError
        Naming the option and what would be right.
    """
    nodes, workers = question.nodes, question.workers
    if nodes is not None and workers is not None:
        raise InputError("--workers: must be left out when --nodes is given")
    check_bounds("--link", question.link_bytes_per_s, CONFIGURATION_SETTINGS["link_bytes_per_second"])
    common: dict[str, Any] = {
        "workers_per_node": question.workers_per_node or _workers_per_node(job),
        "placement_rule": question.placement,
        "settings": settings_by_csv(_as_all_rows_say(job) | question.settings),
    }
    if nodes is None and workers is None:
        return (ConfigurationRange(**common),)
    axis, counts_text = ("workers", workers or "") if nodes is None else ("nodes", nodes)
    return tuple(ConfigurationRange(**common | {axis: counts}) for counts in parse_counts(counts_text, f"--{axis}"))


def options_of(question: Question) -> ModelOptions:
    """The estimator, and the coverage of its intervals.

    Raises
    ------
    InputError
        Naming the option and what would be right.
    """
    check_bounds("--coverage", question.coverage, MODEL_OPTIONS["interval_coverage"])
    return ModelOptions(estimator=question.estimator, interval_coverage=question.coverage, seed=question.seed)


@contextmanager
def locate_errors(job: AskedJob) -> Iterator[None]:
    """Add the table's line to errors about a row of the job's table; name the option for missing counts.

    Raises
    ------
    CommandError, NodewiseError
    """
    try:
        yield
    except NodewiseError as error:
        if any(violation.field == "ranges[0]" for violation in error.violations):
            text = "must be given, such as --nodes 1-16: the default range needs a measured run of this job"
            raise InputError(f"--nodes: {text}") from None
        table = job.table
        if table is None:
            raise
        raise in_rows(error, table, train_rows(table, job.name), "profile.content") or error from None


def _workers_per_node(job: AskedJob) -> int | None:
    """Devices on a node by a table without train rows: the maximum over rows; None = from the evidence."""
    table = job.table
    if table is None or any(table.columns["split"][row] == "train" for row in job.rows):
        return None
    sizes = ((table.columns["workers"][row], table.columns["nodes"][row]) for row in job.rows)
    return max((-(-workers // nodes) for workers, nodes in sizes if workers and nodes), default=None)


def _as_all_rows_say(job: AskedJob) -> dict[str, Any]:
    """Parallelism that all rows of a job agree on; for a job without train rows, also how else they run."""
    table = job.table
    if table is None:
        return {}
    has_train_rows = any(table.columns["split"][row] == "train" for row in job.rows)
    names = _SPLIT if has_train_rows else (*_HOW, *_SPLIT)
    values = {name: {table.columns[name][row] for row in job.rows} for name in names}
    if not has_train_rows and values["batch_per_worker"] == {None}:
        values["batch_per_worker"] = {table.columns["micro_batch"][row] for row in job.rows}
    return {name: only for name, distinct in values.items() if len(distinct) == 1 and (only := next(iter(distinct)))}
