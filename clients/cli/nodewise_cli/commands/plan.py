"""`nodewise plan`: the best way to partition a model over devices, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from nodewise_cli.commands.options import TEN_MINUTES, Call, ReportFile, ReportPath
from nodewise_cli.device_names import nearest_named
from nodewise_cli.failures import InputError, RefusedAnswer
from nodewise_cli.inputs.plan_files import OfModel, Question, read_plan
from nodewise_cli.pictures.plan import draw_frontier
from nodewise_cli.reports import check_report
from nodewise_cli.views.launch import FileAnswer, LaunchAnswer, file_document, launch_document, show_file, show_launch
from nodewise_cli.views.memory_timeline import show_memory, timeline_document
from nodewise_cli.views.plan import Capacities, document, headline, show
from nodewise_cli.waiting import waiting
from nodewise_client import (
    Client,
    ModelOptions,
    PlanAnswer,
    Planned,
    PlanProgress,
    PredictOptions,
    PredictRequest,
    configuration_rows,
    configurations,
    numbers_by_name,
)
from nodewise_client.frameworks import Layout, LayoutError, launch

__all__ = ["plan"]


class Framework(StrEnum):
    """Frameworks whose settings are generated."""

    MEGATRON = "megatron"
    DEEPSPEED = "deepspeed"
    TORCHTITAN = "torchtitan"
    NEMO = "nemo"
    ACCELERATE = "accelerate"


def plan(
    spec: Annotated[
        Path,
        Argument(
            metavar="SPEC.json|config.json",
            help="Plan specification (see `nodewise schema plan`), or a model's config.json with --cluster, --batch.",
        ),
    ],
    of_model: OfModel,
    estimator: Annotated[str | None, Option(help="Estimator. Default: the one in the specification.")] = None,
    exhaustive: Annotated[
        bool, Option("--exhaustive", help="Evaluate every configuration. The answer is the same; the search is slower.")
    ] = False,
    explain: Annotated[
        bool, Option(help="Explain the choice: why it is best, which constraints bind, and what would change it.")
    ] = True,
    memory_timeline: Annotated[
        bool, Option("--memory-timeline", help="Show the memory in use on a device of the best plan over a step.")
    ] = False,
    flags: Annotated[
        Framework | None, Option(help="Print the launch command and the configuration of the best plan in a framework.")
    ] = None,
    report: ReportPath = None,
    call: Call = TEN_MINUTES,
) -> None:
    """Find the best configuration of a space before the model is built.

    The profile is the name of a stored one ({"profileId": ...}), the profile itself ({"content": ...}), or a job of a
    measurements table beside the specification ({"table": "file.csv", "job": ...}).
    """
    check_report(report, draws=True)
    question = read_plan(spec, of_model, flags)
    request = question.request
    if flags is not None and question.workload is None:
        raise InputError("--flags: needs the workload in the specification, which names a stored profile")
    if estimator is not None:
        request = replace(request, options=replace(request.options or ModelOptions(), estimator=estimator))
    request = replace(
        request, exhaustive=exhaustive or request.exhaustive, skip_explanation=request.skip_explanation or not explain
    )
    with call.connect() as client, waiting("searching") as progress:

        def tell(event: PlanProgress) -> None:
            progress.tell(event.evaluated_count + event.pruned_count, event.space_count)

        pools = request.constraints.pools if request.constraints else ()
        names = [pool.device_name for pool in pools]
        with nearest_named(client, names):
            result = client.plan(request, on_progress=tell, timeout_s=call.timeout_s)
        capacities = _capacities(client, names)
        of_file = _of_file(client, replace(question, request=request), names, result.best)
    launch_answer = None if flags is None else _launch_of(result, question, flags)
    shown = _Views(
        capacities, of_file, launch_answer, of_model.tokens, memory_timeline=memory_timeline, verbose=call.verbose
    )
    page = None if report is None else ReportFile(report, headline(result), lambda path: draw_frontier(path, result))
    call.tell(shown.document, shown.show, result, page)
    if result.best is None:
        raise RefusedAnswer(
            "; ".join(rejection.message for rejection in result.rejections) or "no configuration is feasible"
        )


@dataclass(frozen=True, slots=True)
class _Views:
    """What is shown beside the plan."""

    capacities: Capacities
    of_file: FileAnswer | None
    launch_answer: LaunchAnswer | None
    tokens: float | None
    memory_timeline: bool
    verbose: bool

    def document(self, answer: PlanAnswer) -> dict[str, Any]:
        """As JSON."""
        fields = document(answer, self.capacities)
        if self.memory_timeline and answer.best is not None:
            fields["best"] |= timeline_document(answer.best.prediction)
        if self.of_file is not None:
            fields["from"] = file_document(self.of_file, self.capacities)
        if self.launch_answer is not None:
            fields["flags"] = launch_document(self.launch_answer)
        return fields

    def show(self, answer: PlanAnswer) -> None:
        """For people."""
        if self.of_file is not None:
            show_file(self.of_file, self.capacities, self.tokens)
        show(answer, self.capacities, self.tokens, verbose=self.verbose)
        if self.memory_timeline and answer.best is not None:
            show_memory(answer.best.prediction, "Memory of the fullest device of the best plan over a step")
        if self.launch_answer is not None:
            show_launch(self.launch_answer)


def _capacities(client: Client, names: Iterable[str]) -> Capacities:
    """Bytes of memory by the question's names of devices that the catalogue knows."""
    memory = {
        name.casefold(): numbers_by_name(device.facts).get("memory_bytes")
        for device in client.list_devices().devices
        for name in (device.name, *device.aliases)
    }
    sizes = {name: memory.get(name.casefold()) for name in names}
    return {name: size for name, size in sizes.items() if size is not None}


def _of_file(client: Client, question: Question, devices: list[str], best: Planned | None) -> FileAnswer | None:
    """What the layout of a file would do; None = there is no file."""
    if question.layout is None or question.stated is None:
        return None
    rows = configurations(**question.layout.configuration(devices[0]))
    request = question.request
    asked = PredictRequest(
        profile=request.profile, configurations=rows, work=request.work, options=PredictOptions(model=request.options)
    )
    planned = Planned(configuration=configuration_rows(rows)[0], prediction=client.predict(asked)[0])
    return FileAnswer(question.stated.source, planned, best, question.stated.notes)


def _launch_of(result: PlanAnswer, question: Question, framework: Framework) -> LaunchAnswer | None:
    """What to paste for the best layout, or else for the fastest of the frontier that the framework can express.

    Raises
    ------
    RefusedAnswer
        Naming what the framework lacks for the best.
    """
    if result.best is None or question.workload is None:
        return None
    refused = ""
    fastest = sorted(result.frontier, key=lambda point: -(point.prediction.samples_per_second or 0.0))
    for each in (result.best, *fastest):
        try:
            return LaunchAnswer(launch(Layout.of(each.configuration, question.workload), framework), each, refused)
        except LayoutError as error:
            refused = refused or str(error)
    raise RefusedAnswer(f"--flags: {refused}")
