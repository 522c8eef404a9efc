"""What `nodewise predict` and `nodewise suggest` ask: which job, which configurations, and how."""

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
"""Columns that say how a job runs, without its scale."""
_SPLIT: Final = (
    *("tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel", "sequence_parallel"),
    *("interleave", "zero_stage", "recompute"),
)
"""Columns that say how a model is split over the workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Training):
    """What the options say of the job, of the configurations asked about, and of who answers."""

    source: Annotated[
        Path | None,
        Argument(
            metavar="TABLE.csv|PROFILE.json",
            help="Measurements, JSON of nodewise.v1.ProfileContent, or a model's config.json.",
        ),
    ] = None
    job: Annotated[str | None, Option(help="Job of the table.")] = None
    measured_runs: Annotated[
        str | None,
        Option(
            "--measured",
            metavar="NODES=RATE,...",
            help="Instead of a file: measured throughput by nodes, such as 1=19800,2=38100.",
        ),
    ] = None
    gpus_per_node: Annotated[
        int | None, Option(metavar="COUNT", min=1, help="measured: devices used on each node. Default 1.")
    ] = None
    unit: Annotated[str, Option(help=f"measured: unit of the throughput: {', '.join(RATES)}.")] = SAMPLES
    profile: Annotated[str | None, Option(metavar="ID", help="A profile that the server holds, instead.")] = None
    nodes: Annotated[
        str | None,
        Option(
            metavar="COUNTS",
            help="Numbers of nodes: 1-16, 1,2,4,8, 1-64:2 or pow2:1-64. Default: up to 4 times the most measured.",
        ),
    ] = None
    workers: Annotated[str | None, Option(metavar="COUNTS", help="Numbers of workers, instead.")] = None
    workers_per_node: Annotated[
        int | None, Option(min=1, help="Devices used on each node. Default: as in the evidence.")
    ] = None
    placement: Annotated[PlacementRule, Option(help="How workers are laid over nodes.")] = PlacementRule.PACKED
    parameter_servers: Annotated[
        int | None, Option("--servers", min=0, help="Parameter servers. Default: as in the evidence.")
    ] = None
    sync: Annotated[SyncMode | None, Option(help="Exchange of gradients. Default: as in the evidence.")] = None
    batch_per_worker: Annotated[
        int | None,
        Option(
            "--batch-per-worker", "--micro-batch", min=1, help="Samples that a worker takes at once (weak scaling)."
        ),
    ] = None
    global_batch: Annotated[
        int | None,
        Option(
            min=1,
            help="Samples per step (strong scaling). Of a transformer each replica cuts its share into micro-batches: "
            "those of --micro-batch, else the quickest that fit.",
        ),
    ] = None
    accumulation: Annotated[int | None, Option(min=1, help="Micro-batches of a replica in each step.")] = None
    sequence_length: Annotated[
        int | None,
        Option(metavar="TOKENS", min=1, help="config.json, measured: tokens per sample. Default: the model's longest."),
    ] = None
    tensor_parallel: Annotated[int | None, Option(min=1, help="Parts that each layer is split into.")] = None
    pipeline_parallel: Annotated[int | None, Option(min=1, help="Consecutive parts that the layers are laid over.")] = (
        None
    )
    context_parallel: Annotated[int | None, Option(min=1, help="Parts that each sequence is split into.")] = None
    expert_parallel: Annotated[int | None, Option(min=1, help="Parts that the experts are spread over.")] = None
    sequence_parallel: Annotated[
        bool | None, Option("--sequence-parallel/--no-sequence-parallel", help="Split norms along the sequence too.")
    ] = None
    interleave: Annotated[int | None, Option(min=1, help="Model chunks of each pipeline stage.")] = None
    zero_stage: Annotated[int | None, Option(min=0, max=3, help="What ZeRO splits over replicas.")] = None
    recompute: Annotated[
        Recomputation | None, Option(help="Activations that are computed again. Default: the least that fits.")
    ] = None
    precision: Annotated[str | None, Option(help="Number format, such as bf16. Default: the job's own.")] = None
    device: Annotated[str | None, Option(help="Accelerator. Default: as in the evidence.")] = None
    backup_workers: Annotated[
        int | None, Option(min=0, help="sync: workers of each step whose result is not waited for.")
    ] = None
    hybrid_sync_fraction: Annotated[
        float | None, Option(min=0, max=1, help="hybrid: share of mini-batches run synchronously.")
    ] = None
    hybrid_switch_s: Annotated[
        float | None, Option(metavar="SECONDS", min=0, help="hybrid: time lost once at the switch.")
    ] = None
    link_bytes_per_s: Annotated[
        float | None, Option("--link", metavar="BYTES_PER_S", help="Link of a server or node. Default: the job's own.")
    ] = None
    estimator: Annotated[str, Option(help="Estimator's name, or auto.")] = "auto"
    coverage: Annotated[float | None, Option(help="Coverage of the interval. Default 0.9.")] = None
    seed: Annotated[int, Option(help="Of whatever is random.")] = 0

    @property
    def settings(self) -> dict[str, Any]:
        """How every configuration runs, as far as the options say it, by column."""
        stated = {name: getattr(self, name, None) for name in SETTINGS}
        return {name: value for name, value in stated.items() if value is not None}


@dataclass(frozen=True, slots=True)
class AskedJob:
    """The job asked about: what the service is told of it, its name for people, and its table if it has one."""

    profile: str | ProfileContent
    name: str
    table: Table | None = None

    @property
    def counts(self) -> str:
        """What its throughputs count where its batch is not known: "samples" or "tokens"; "" = it is known."""
        return "" if self.table is None else self.table.counts.get(self.name, "")

    def tokens_per_sample(self, client: Client) -> int | None:
        """Tokens of a sample, of a profile as the server holds it; None = its samples have none."""
        profile = self.profile
        if isinstance(profile, str):
            view = GetProfileRequest(profile_id=profile, view=ProfileView.FACTS)
            profile = client.get_profile(view).content or ProfileContent()
        transformer = None if profile.workload is None else profile.workload.transformer
        if transformer is not None:
            return transformer.sequence_length_tokens
        stated = {self.table.columns["sequence_length"][row] for row in self.rows} if self.table is not None else set()
        return stated.pop() if len(stated) == 1 else None

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
        raise InputError(f"{option}: must come with --measured; of a table its columns say it")
    if profile is not None:
        if source is not None or job is not None:
            raise InputError("--profile: must stand alone: it names a stored profile, instead of a file and --job")
        if server is None:
            raise InputError("--server: must name the server that holds the profile: an embedded one holds none")
        if question.values:
            option = next(iter(question.values)).replace("_", "-")
            raise InputError(f"--{option}: must be left out beside --profile: the stored profile says it")
        return AskedJob(profile_id_of(profile), profile)
    if source is None:
        raise InputError(
            "must be asked about a TABLE.csv, a PROFILE.json, a --profile of the server or --measured runs; found none"
        )
    if holds_json(source):
        if job is not None:
            raise InputError(f"--job: must be left out: {source} holds one profile")
        return AskedJob(_apply_training(read_profile(source, sequence_length), question), source.stem)
    return _of_table(question, source, without_batch=without_batch)


def _apply_training(content: ProfileContent, question: Question) -> ProfileContent:
    """The same, trained as the options say."""
    return replace(content, workload=question.of(content.workload))


def _job_of_options(question: Question, *, without_batch: bool) -> AskedJob:
    """The job whose runs the options state."""
    if question.source is not None or question.profile is not None:
        raise InputError("--measured: must stand alone: it is given instead of a file or a --profile")
    table = typed_table(question, without_batch=without_batch)
    (name,) = table.jobs
    return AskedJob(_apply_training(profile_content(table, name), question), name, table)


def _of_table(question: Question, source: Path, *, without_batch: bool) -> AskedJob:
    """The job of a table."""
    job = question.job
    if question.sequence_length is not None:
        raise InputError(f"--sequence-length: must come with the config.json of a model, {source} is a table")
    table = read_table(source, predicted=True, without_batch=without_batch)
    if job is None and len(table.jobs) == 1:
        (job,) = table.jobs
    if job is None or job not in table.rows_by_job:
        found = "none" if job is None else repr(job)
        raise InputError(f"--job: must be a job of {source} ({', '.join(table.jobs)}), found {found}")
    asked = AskedJob(_apply_training(profile_content(table, job), question), job, table)
    for name in ("batch_per_worker", "global_batch", "accumulation"):
        if asked.counts and question.settings.get(name) is not None:
            text = f"needs the batch that was measured: give batch_per_worker or global_batch in {source}"
            raise InputError(f"--{name.replace('_', '-')}: {text}")
    return asked


def asked_ranges(question: Question, asked: AskedJob) -> tuple[ConfigurationRange, ...]:
    """The configurations that the options name, in their order; the server counts where they count nothing.

    Raises
    ------
    InputError
        Naming the option and what would be right.
    """
    nodes, workers = question.nodes, question.workers
    if nodes is not None and workers is not None:
        raise InputError("--workers: must be left out beside --nodes: count one of them, such as --nodes 1-16")
    check_bounds("--link", question.link_bytes_per_s, CONFIGURATION_SETTINGS["link_bytes_per_second"])
    common: dict[str, Any] = {
        "workers_per_node": question.workers_per_node or _workers_per_node(asked),
        "placement_rule": question.placement,
        "settings": settings_by_csv(_as_all_rows_say(asked) | question.settings),
    }
    if nodes is None and workers is None:
        return (ConfigurationRange(**common),)
    axis, given = ("workers", workers or "") if nodes is None else ("nodes", nodes)
    return tuple(ConfigurationRange(**common | {axis: counts}) for counts in parse_counts(given, f"--{axis}"))


def options_of(question: Question) -> ModelOptions:
    """Who answers, and how sure.

    Raises
    ------
    InputError
        Naming the option and what would be right.
    """
    check_bounds("--coverage", question.coverage, MODEL_OPTIONS["interval_coverage"])
    return ModelOptions(estimator=question.estimator, interval_coverage=question.coverage, seed=question.seed)


@contextmanager
def locate_errors(asked: AskedJob) -> Iterator[None]:
    """What is about a row of the job's table, with the table's line; counts that are missing, by their option.

    Raises
    ------
    CommandError, NodewiseError
    """
    try:
        yield
    except NodewiseError as error:
        if any(found.field == "ranges[0]" for found in error.violations):
            text = (
                "must be given, such as --nodes 1-16: no run of this job was measured, from which a range would follow"
            )
            raise InputError(f"--nodes: {text}") from None
        table = asked.table
        if table is None:
            raise
        raise in_rows(error, table, train_rows(table, asked.name), "profile.content") or error from None


def _workers_per_node(asked: AskedJob) -> int | None:
    """Devices of a full node by a table of which no run may be seen, the most of a row; None = the evidence says."""
    table = asked.table
    if table is None or any(table.columns["split"][row] == "train" for row in asked.rows):
        return None
    sizes = ((table.columns["workers"][row], table.columns["nodes"][row]) for row in asked.rows)
    return max((-(-workers // nodes) for workers, nodes in sizes if workers and nodes), default=None)


def _as_all_rows_say(asked: AskedJob) -> dict[str, Any]:
    """How a job's rows are split where all say the same; where no run of it may be seen, also how else they run."""
    table = asked.table
    if table is None:
        return {}
    seen = any(table.columns["split"][row] == "train" for row in asked.rows)
    names = _SPLIT if seen else (*_HOW, *_SPLIT)
    values = {name: {table.columns[name][row] for row in asked.rows} for name in names}
    if not seen and values["batch_per_worker"] == {None}:
        values["batch_per_worker"] = {table.columns["micro_batch"][row] for row in asked.rows}
    return {name: only for name, found in values.items() if len(found) == 1 and (only := next(iter(found)))}
