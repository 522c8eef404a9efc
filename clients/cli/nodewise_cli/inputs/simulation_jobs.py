"""Jobs of a simulation from files, lists and laws; the format of a file follows from its content."""

from __future__ import annotations

import csv
import gzip
import io
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from nodewise_cli.failures import InputError, decode_utf8, unreadable
from nodewise_cli.inputs.documents import DocumentReader
from nodewise_cli.inputs.simulation_spec import CurveSpec, GenerateSpec, InlineJob, LawSpec, Rates, SimulationSpec
from nodewise_client import SimulationCurve, SimulationProfileCurve
from nodewise_job_traces import Curve, Job, JobsFileError, LeftOut, generators, helios, philly
from nodewise_job_traces.alibaba import POD_COLUMNS, is_job_table, is_task_table, read_alibaba_pods, read_alibaba_tasks
from nodewise_job_traces.gavel import read_gavel_table, read_gavel_trace
from nodewise_job_traces.logs import LoggedJob, jobs_of_log, runnable
from nodewise_job_traces.pollux import APPLICATIONS, pollux_curves, read_pollux_workload, read_step_times
from nodewise_job_traces.slurm import is_sacct, read_sacct
from nodewise_job_traces.table import TableCurve, read_curve_table, read_job_table

__all__ = ["PreparedJobs", "prepared_jobs"]

_LOGS: Final[Mapping[str, Callable[..., Iterator[LoggedJob | JobsFileError]]]] = {
    "philly": philly.read_philly,
    "helios": helios.read_helios,
    "sacct": read_sacct,
    "alibaba-2020": read_alibaba_tasks,
    "alibaba-2023": read_alibaba_pods,
}
_HEADERS: Final = {
    "philly": set(philly.EXTRACT_COLUMNS),
    "helios": set(helios.COLUMNS),
    "alibaba-2023": set(POD_COLUMNS),
    "pollux": {"name", "time", "application", "num_replicas", "batch_size"},
    "table": {"job", "arrival_s", "samples", "curve"},
}
_GZIP: Final = b"\x1f\x8b"
_TAR, _TAR_AT = b"ustar", 257
_ARRIVALS: Final = ("bursty", "diurnal", "poisson")
_SIZES: Final = ("constant", "exponential", "log_normal", "pareto")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PreparedJobs:
    """Jobs by arrival, and the curves that a server has to predict.

    Attributes
    ----------
    format : str
        Of the file they came from; empty = no file.
    predicted : dict
        By identity of the curve that stands in its place, which the jobs hold.
    curves : dict
        The true ones by name, where they have names.
    left_out : LeftOut
        Jobs of the file that cannot be simulated.
    """

    jobs: list[Job]
    format: str = ""
    predicted: dict[int, SimulationCurve] = field(default_factory=dict)
    curves: dict[str, Curve] = field(default_factory=dict)
    left_out: LeftOut = field(default_factory=LeftOut)


def prepared_jobs(spec: SimulationSpec, place: Path, seed: int | None = None) -> PreparedJobs:
    """The jobs that a specification asks for.

    Parameters
    ----------
    place : Path
        File that says so; others are found relative to it.
    seed : int or None
        Of what is drawn: generated jobs, and curves dealt to Philly's; None = the specification's.

    Raises
    ------
    InputError
        Naming file, line and column, or the field.
    """
    try:
        return _Preparation(spec, place, spec.seed if seed is None else seed).prepare()
    except JobsFileError as error:
        raise InputError(str(error)) from None


class _Preparation:
    """One specification's jobs."""

    def __init__(self, spec: SimulationSpec, place: Path, seed: int) -> None:
        self._spec = spec
        self._place = place
        self._seed = seed
        self._pools = [pool.name for pool in spec.cluster]
        self._pool_devices = [pool.nodes * pool.devices_per_node for pool in spec.cluster]
        self._predicted: dict[int, SimulationCurve] = {}
        self._named: dict[str, Curve] = {}
        self._documents = DocumentReader(place)
        self._left_out = LeftOut()

    def prepare(self) -> PreparedJobs:
        jobs, form = self._jobs()
        if self._spec.jobs.file is not None:
            jobs = runnable(jobs, self._pool_devices, self._left_out)
        if not jobs:
            why = f" that can be simulated; left out: {self._left_out.summary}" if self._left_out.total else ""
            raise self._wrong(f"jobs: must contain a job, found none{why}")
        for number, pair in enumerate(self._spec.shared_pairs):
            for name in pair.curves:
                if name not in self._named:
                    raise self._wrong(f"shared_pairs.{number}.curves: {_unknown(name, self._named)}")
        return PreparedJobs(
            jobs=jobs, format=form, predicted=self._predicted, curves=self._named, left_out=self._left_out
        )

    def _wrong(self, text: str) -> InputError:
        return InputError(f"{self._place}: {text}")

    def _jobs(self) -> tuple[list[Job], str]:
        jobs_spec = self._spec.jobs
        if jobs_spec.listed is not None:
            return self._list_jobs(jobs_spec.listed, self._curves()), ""
        if jobs_spec.generate is not None:
            return self._generate_jobs(jobs_spec.generate), ""
        path = self._place.parent / (jobs_spec.file or "")
        stream = _open_text(path)
        form = jobs_spec.format if jobs_spec.format != "auto" else _recognise(stream, path)
        file = str(path)
        if form == "gavel":
            table = read_gavel_table(_open_text(self._throughputs(form)), str(self._throughputs(form)))
            return read_gavel_trace(stream, table, self._pools, left_out=self._left_out, file=file), form
        if form == "pollux":
            return self._pollux(stream, file), form
        if form in _LOGS:
            true = self._true_rates(
                self._curves(optional=True).values(), "jobs of this format get curves by their rates"
            )
            log, devices = _LOGS[form](stream, file=file), self._pool_devices
            return list(jobs_of_log(log, self._left_out, curves=true, pool_devices=devices, seed=self._seed)), form
        return read_job_table(stream, self._curves(), left_out=self._left_out, file=file), form

    def _list_jobs(self, entries: Sequence[InlineJob], curves: Mapping[str, TableCurve]) -> list[Job]:
        jobs: dict[str, Job] = {}
        for number, job in enumerate(entries):
            if job.curve not in curves:
                raise self._wrong(f"jobs[{number}].curve: {_unknown(job.curve, curves)}")
            if job.job in jobs:
                raise self._wrong(f"jobs[{number}].job: must be unique, found {job.job!r} twice")
            true, prediction = curves[job.curve]
            values: dict[str, Any] = job.model_dump(exclude={"job", "curve"})
            jobs[job.job] = Job(job_id=job.job, curve=true, predicted=prediction, **values)
        return sorted(jobs.values(), key=lambda job: (job.arrival_s, job.job_id))

    def _pollux(self, stream: io.StringIO, file: str) -> list[Job]:
        if len(self._pools) != 1:
            raise self._wrong("cluster: must have one pool for jobs of this format")
        path, pool = self._throughputs("pollux"), self._spec.cluster[0]
        times = read_step_times(_open_text(path), pool.devices_per_node, str(path))
        times_by_job = {
            job.partition("/")[0]: steps for job, steps in times.items() if job.partition("/")[0] in APPLICATIONS
        }
        if not times_by_job:
            right = ", ".join(sorted(APPLICATIONS))
            raise InputError(f"{path}: job: must be one of {right}, found {', '.join(sorted(times))}")
        devices = pool.nodes * pool.devices_per_node
        try:
            curves = pollux_curves(times_by_job, devices)
        except ValueError as error:
            raise InputError(f"{path}: {error}, of at most {devices} in the cluster") from None
        only, rigid = self._spec.jobs.applications, self._spec.jobs.rigid
        return read_pollux_workload(stream, curves, only=only, rigid=rigid, left_out=self._left_out, file=file)

    def _throughputs(self, form: str) -> Path:
        if self._spec.throughputs is None:
            raise self._wrong(f"throughputs: must name the table of throughputs that {form} jobs need")
        return self._place.parent / self._spec.throughputs

    def _generate_jobs(self, generate_spec: GenerateSpec) -> list[Job]:
        curves = self._curves()
        names = generate_spec.curves or tuple(curves)
        for name in names:
            if name not in curves:
                raise self._wrong(f"jobs.generate.curves: {_unknown(name, curves)}")
        true = self._true_rates(
            [curves[name] for name in names], "sizes of generated jobs are in seconds at the rates of a curve"
        )
        laws = self._law(generate_spec.arrivals, "arrivals", _ARRIVALS), self._law(generate_spec.sizes, "sizes", _SIZES)
        values = generate_spec.model_dump(include={"jobs", "requested", "rigid"})
        return list(generators.generate_jobs(*laws, true, seed=self._seed, **values))

    def _law(self, law_spec: LawSpec, name: str, law_names: Sequence[str]) -> generators.Draw:
        place = f"{self._place}: jobs.generate.{name}"
        if law_spec.law not in law_names:
            raise InputError(f"{place}.law: must be one of {', '.join(law_names)}, found {law_spec.law!r}")
        parameters = law_spec.model_extra or {}
        for key, value in parameters.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise InputError(f"{place}.{key}: must be a number, found {value!r}")
        law: Callable[..., generators.Draw] = getattr(generators, law_spec.law)
        try:
            return law(**parameters)
        except TypeError as error:
            detail = str(error).partition("() ")[2]
            raise InputError(f"{place}: law {law_spec.law!r} {detail}") from None
        except JobsFileError as error:
            raise InputError(f"{place}.{error}") from None

    def _true_rates(self, curves: Iterable[TableCurve], why: str) -> list[Curve]:
        """The true rates of curves, which must be stated."""
        true = [curve for curve, _ in curves]
        if any(id(curve) in self._predicted for curve in true):
            raise self._wrong(f"curves: must all state samples_per_s: {why}")
        return true

    def _curves(self, *, optional: bool = False) -> dict[str, TableCurve]:
        """Curves by name: those of the table of throughputs, and those in the specification."""
        curves: dict[str, TableCurve] = {}
        if self._spec.throughputs is not None:
            path = self._throughputs("such")
            curves |= read_curve_table(_open_text(path), self._pools, file=str(path))
        for name, curve_spec in self._spec.curves.items():
            curves[name] = self._curve(f"curves.{name}", curve_spec)
        if not curves and not optional:
            raise self._wrong("curves: must contain a curve, unless throughputs names a table of curves")
        self._named = {name: true for name, (true, _) in curves.items()}
        return curves

    def _curve(self, path: str, curve_spec: CurveSpec) -> TableCurve:
        prediction = None
        if curve_spec.profile is not None:
            source = self._documents.source(dict(curve_spec.profile), f"{path}.profile")
            prediction = Curve.of({})
            profile_curve = SimulationProfileCurve(profile=source, allowed_devices=curve_spec.allowed_devices)
            self._predicted[id(prediction)] = SimulationCurve(profile=profile_curve)
        if curve_spec.samples_per_s is None:
            assert prediction is not None
            return prediction, None
        true = self._rates(f"{path}.samples_per_s", curve_spec.samples_per_s)
        if curve_spec.predicted_samples_per_s is not None:
            prediction = self._rates(f"{path}.predicted_samples_per_s", curve_spec.predicted_samples_per_s)
        return true, prediction

    def _rates(self, path: str, rates_by_pool: Rates) -> Curve:
        rates: dict[tuple[int, int], float] = {}
        for pool, by_count in rates_by_pool.items():
            if pool not in self._pools:
                raise self._wrong(f"{path}: {_unknown(pool, self._pools)}")
            rates |= {(self._pools.index(pool), devices): rate for devices, rate in by_count.items()}
        try:
            return Curve.of(rates)
        except ValueError as error:
            raise self._wrong(f"{path}: {error}") from None


def _unknown(name: str, names: Mapping[str, Any] | Sequence[str]) -> str:
    return f"must be one of {', '.join(names) or 'none'}, found {name!r}"


def _open_text(path: Path) -> io.StringIO:
    """The content of a text file, decompressed if it is compressed by gzip, or by tar and gzip."""
    try:
        data = path.read_bytes()
        if data.startswith(_GZIP):
            data = _unpack(path, gzip.decompress(data))
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError(f"{path}: the compressed file is damaged or ends early") from None
    except OSError as error:
        raise unreadable(path, error) from None
    return io.StringIO(decode_utf8(path, data, "text"), newline=None)


def _unpack(path: Path, data: bytes) -> bytes:
    """The one file of an archive; other data as it is."""
    if data[_TAR_AT : _TAR_AT + len(_TAR)] != _TAR:
        return data
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            files = [archive.extractfile(member) for member in archive if member.isfile()]
            if len(files) != 1 or files[0] is None:
                raise InputError(f"{path}: must be an archive of one file, found {len(files)}")
            return files[0].read()
    except tarfile.TarError:
        raise InputError(f"{path}: the archive is damaged or ends early") from None


def _recognise(stream: io.StringIO, path: Path) -> str:
    """The format of a file, by its first line; the stream is reset to the beginning."""
    first = next((line for line in stream if line.strip()), "")
    stream.seek(0)
    if first.count("\t") in (6, 9):
        return "gavel"
    if first.lstrip().startswith("["):
        return "philly"
    if is_sacct(first):
        return "sacct"
    if is_task_table(first):
        return "alibaba-2020"
    if is_job_table(first):
        raise InputError(f"{path}: is Alibaba's pai_job_table, which has no GPUs; use its pai_task_table")
    header = {name.strip() for name in next(csv.reader([first]), [])}
    for form, columns_needed in _HEADERS.items():
        if columns_needed <= header | {name.lower() for name in header}:
            return form
    forms = "; ".join(f"{form}: {', '.join(sorted(columns_needed))}" for form, columns_needed in _HEADERS.items())
    raise InputError(
        f"{path}: is no list of jobs: its first line must be a row of 7 or 10 columns separated by tabs (gavel), a "
        "row of pai_task_table (alibaba-2020), the header of sacct -P with JobID, a JSON list of jobs (philly), or "
        f"a header with ({forms})"
    )
