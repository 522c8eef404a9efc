"""`nodewise predict`: how fast a job would be elsewhere, how sure that is, and how many nodes it is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from nodewise_cli.commands.options import ONE_MINUTE, Call, ReportFile, ReportPath
from nodewise_cli.device_names import nearest_named
from nodewise_cli.failures import InputError
from nodewise_cli.inputs.measured_points import measured_points
from nodewise_cli.inputs.objectives import ObjectiveOptions, goal_of
from nodewise_cli.inputs.questions import Question, asked_job, asked_ranges, locate_errors, options_of
from nodewise_cli.pictures.figures import checked_plot
from nodewise_cli.pictures.memory import draw_memory
from nodewise_cli.pictures.prediction import draw
from nodewise_cli.refusals import refuse_unanswered
from nodewise_cli.reports import check_report
from nodewise_cli.views.memory_timeline import show_memory
from nodewise_cli.views.predict import document, headline, problem_of, show
from nodewise_cli.views.units import unit_of
from nodewise_cli.waiting import waiting
from nodewise_client import Fidelity, PredictOptions, PredictRequest, PredictResult

__all__ = ["predict"]


def predict(
    question: Question,
    objective: ObjectiveOptions,
    fidelity: Annotated[
        Fidelity, Option(help="Use the estimator's model, or its simulation if it has one.")
    ] = Fidelity.MODEL,
    simulated_steps: Annotated[
        int | None, Option(min=1, help="simulate: steps to simulate for each row. Default: the estimator's choice.")
    ] = None,
    plot: Annotated[
        Path | None,
        Option(
            metavar="FILE.png", help="Draw the curve, its interval and the measured points; or the memory timeline."
        ),
    ] = None,
    memory_timeline: Annotated[
        bool, Option("--memory-timeline", help="Show the memory in use on a device over a step.")
    ] = False,
    report: ReportPath = None,
    call: Call = ONE_MINUTE,
) -> None:
    """Predict a job on configurations that never ran, and recommend one."""
    goal = goal_of(objective)
    checked_plot(plot)
    check_report(report, draws=True)
    asked_about = asked_job(question, call.server, without_batch=True)
    if asked_about.counts == "tokens" and goal["work"] is not None:
        raise InputError("--samples: the tokens of a sample are not known; state the column sequence_length")
    ranges = asked_ranges(question, asked_about)
    options = PredictOptions(model=options_of(question), fidelity=fidelity, simulated_steps_count=simulated_steps)
    if simulated_steps is not None and fidelity is not Fidelity.SIMULATE:
        raise InputError(f"--simulated-steps: must come with --fidelity simulate, found {fidelity}")
    with (
        call.connect() as client,
        waiting("predicting"),
        locate_errors(asked_about),
        nearest_named(client, [question.device]),
    ):
        result = client.predict(PredictRequest(profile=asked_about.source, ranges=ranges, options=options, **goal))
        unit = unit_of(result, asked_about.counts, asked_about.tokens_per_sample(client))
    points = measured_points(asked_about, question.settings, result)
    shown_row = result.recommended or next((each for each in result if each.memory_bytes), result[0])
    title = f"Memory of the fullest device over a step, {shown_row.workers:,} workers"
    if plot is not None and memory_timeline:
        draw_memory(plot, title, shown_row)
    elif plot is not None:
        draw(plot, asked_about.name, result, points, unit, by_nodes=question.workers is None)

    def show_all(answer: PredictResult) -> None:
        show(asked_about.name, answer, points, objective.currency, unit, verbose=call.verbose)
        if memory_timeline:
            show_memory(shown_row, title)

    by_nodes = question.workers is None
    page = None
    if report is not None:
        page = ReportFile(
            report,
            headline(asked_about.name, result, unit),
            lambda path: draw(path, asked_about.name, result, points, unit, by_nodes=by_nodes),
        )
    call.tell(lambda predictions: document(predictions, unit, memory_timeline=memory_timeline), show_all, result, page)
    refuse_unanswered(map(problem_of, result), "row")
