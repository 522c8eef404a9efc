"""`nodewise simulate`: what policies would have done to jobs that arrive over time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Option

from nodewise_cli.commands.options import TEN_MINUTES, Call, ReportFile, ReportPath
from nodewise_cli.commands.simulation_options import NEVER_FINISHED, SimulationQuestion, specification
from nodewise_cli.failures import CommandError, InputError
from nodewise_cli.outputs import checked_output
from nodewise_cli.refusals import refuse_unanswered
from nodewise_cli.reports import check_report
from nodewise_cli.waiting import waiting
from nodewise_client import Problem, SimulationAnswer, SimulationProgress, SimulationSettings

__all__ = ["simulate"]


def simulate(
    question: SimulationQuestion,
    load: Annotated[float | None, Option(help="Load factor: divides the inter-arrival times.")] = None,
    seed: Annotated[int | None, Option(metavar="NUMBER", help="Seed of all random draws.")] = None,
    repetitions: Annotated[int | None, Option(help="Number of repetitions, each with the next seed.")] = None,
    timeline: Annotated[
        Path | None, Option(metavar="OUT.csv|json", help="Write which devices each job had, and when.")
    ] = None,
    gantt: Annotated[
        Path | None, Option(metavar="OUT.png|svg|html", help="Draw the devices of each job and pool over time.")
    ] = None,
    report: ReportPath = None,
    call: Call = TEN_MINUTES,
) -> None:
    """Simulate how policies schedule jobs: response times, makespan, utilisation, fairness, restarts, wasted work.

    JOBS is a trace of Gavel (with its table of throughputs), a workload of Pollux (with a table of measurements), a log
    of a cluster (Philly, Helios, sacct -P, Alibaba 2020 and 2023), or a table of jobs (with a table of curves),
    compressed by gzip or not. Jobs that cannot be simulated are left out and counted. docs/guides/simulation.md
    describes all of them and the specification.
    """
    # Only here: reading jobs takes NumPy, which other commands need not wait for.
    from nodewise_cli.inputs.simulation_jobs import prepared_jobs
    from nodewise_cli.inputs.simulation_request import policy_parameters, pools_of, simulate_request
    from nodewise_cli.inputs.simulation_spec import SimulationSpec
    from nodewise_cli.pictures.figures import checked_plot
    from nodewise_cli.pictures.gantt import GANTT_FORMATS, draw_gantt
    from nodewise_cli.views.simulation import document, headline, show, write_timeline

    spec = specification(question, SimulationSpec, "simulate", load=load, seed=seed, repetitions=repetitions)
    checked_output(timeline, "--timeline", (".csv", ".json"))
    checked_plot(gantt, "--gantt", GANTT_FORMATS)
    check_report(report, draws=True)
    keep = any(path is not None for path in (timeline, gantt, report))
    if timeline is not None and len(spec.policy) > 1:
        raise InputError("--timeline: needs exactly one policy")
    jobs = prepared_jobs(spec, question.given)
    request = simulate_request(spec, jobs)
    results: dict[str, SimulationAnswer] = {}
    with call.connect() as client, waiting("simulating") as progress:

        def tell(event: SimulationProgress) -> None:
            total = event.repetitions_count * event.jobs_count
            progress.tell(min(event.repetitions_done_count * event.jobs_count + event.finished_count, total), total)

        for policy in spec.policy:
            policy_request = replace(
                request,
                policy=policy.name,
                policy_parameters=policy_parameters(policy, jobs.format),
                repetitions_count=spec.repetitions,
                include_timeline=keep,
                include_jobs=gantt is not None or report is not None,
            )
            result = client.simulate(policy_request, on_progress=tell, timeout_s=call.timeout_s)
            results[policy.display_name or result.policy] = result
    if timeline is not None:
        write_timeline(timeline, next(iter(results.values())), pools_of(spec))
    if gantt is not None:
        draw_gantt(gantt, results, pools_of(spec))
    settings, left_out = request.settings or SimulationSettings(), jobs.left_out
    page = None
    if report is not None:
        page = ReportFile(report, headline(results), lambda path: draw_gantt(path, results, pools_of(spec)))
    call.tell(
        lambda answers: document(answers, settings, left_out), lambda answers: show(answers, left_out), results, page
    )
    never = Problem(message=NEVER_FINISHED)
    refuse_unanswered(
        (
            None if not result.complete or any(run.finished_count for run in result.runs) else never
            for result in results.values()
        ),
        "policy",
    )
    late = [name for name, result in results.items() if not result.complete]
    if late:
        raise CommandError(f"the time limit ended the simulation of {', '.join(late)}; raise --timeout-s")
