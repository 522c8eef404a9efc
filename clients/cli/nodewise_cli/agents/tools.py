"""The tools: what each asks the service, and how its answer is told."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from nodewise_cli.agents.answers import MOST_LINES, Figure, FullAnswer, Row, figures_of, memory_of, row_of
from nodewise_cli.agents.arguments import (
    Arguments,
    CardQuestion,
    DiagnoseQuestion,
    FitQuestion,
    JobQuestion,
    PlanQuestion,
    PredictQuestion,
    RecommendQuestion,
    Record,
    SuggestQuestion,
)
from nodewise_cli.agents.questions import DEVICES_PER_NODE, AskedQuestion, MissingArgumentsError, ask, counts_of
from nodewise_cli.agents.quoting import clean, quote
from nodewise_cli.failures import CommandError, InputError, RefusedAnswer
from nodewise_cli.inputs.objectives import ObjectiveOptions, Rule, goal_of
from nodewise_cli.inputs.plan_files import pools_of, with_counts
from nodewise_cli.inputs.questions import locate_errors
from nodewise_cli.views import card as card_view
from nodewise_cli.views import diagnose as diagnose_view
from nodewise_cli.views import plan as plan_view
from nodewise_cli.views import predict as predict_view
from nodewise_cli.views import suggest as suggest_view
from nodewise_cli.views.numbers import count_of, format_number, lasting, milliseconds, percent
from nodewise_cli.views.units import Unit, unit_of
from nodewise_client import (
    AppendProfileRequest,
    Client,
    ConfigurationRange,
    DiagnoseRequest,
    EstimateRunRequest,
    PlanConstraints,
    PlanRequest,
    PredictRequest,
    PredictResult,
    ProfileContent,
    SuggestMeasurementsRequest,
    profile_source,
)
from nodewise_values.wire import from_json

__all__ = ["TOOLS", "Tool"]

_SEARCHED: Final = (
    *(1, 2, 4, 8, 16, 24, 32, 40, 48, 64, 80, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 4096),
)
"""Numbers of devices among which the fewest that fit are looked for."""
_CONSTRAINTS: Final = {
    **{f"{kind}_parallel": f"{kind}_parallel_degrees" for kind in ("tensor", "pipeline", "context", "expert")},
    "global_batch": "global_batch_samples",
    "micro_batch": "micro_batch_samples",
    "zero_stage": "zero_stages",
    "sequence_parallel": "sequence_parallel",
}
"""Constraints of a plan, by argument."""
USUAL_NODES: Final = "1,2,4,8,16,32,64"
NODES_FOR_DEADLINES: Final = "1,2,3,4,6,8,10,12,16,20,24,32,40,48,64,80,96,128,192,256,384,512,768,1024"
MOST_ROWS: Final = 256
_VERDICTS: Final = {"yes": "Yes", "probably": "Probably", "borderline": "Borderline", "no": "No", None: "Not known"}


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its name, arguments and function."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    answer: Callable[[Client, Any, float], FullAnswer]
    """Of a client, the arguments, and the seconds that it may take."""
    writes: bool = False


# --- predictions ------------------------------------------------------------------------------------------------------


def _predict(client: Client, arguments: PredictQuestion, _timeout_s: float) -> FullAnswer:
    """The configurations that the arguments name."""
    asked = _asked_on(client, arguments)
    result, unit, rows = _prediction(client, asked, arguments, asked.ranges, asked.goal(arguments, client))
    answer = _of_rows(asked, result, unit, rows)
    answer.headline = (
        f"{_place(rows[0], asked)}: {figures_of(rows[0])}."
        if len(rows) == 1
        else (f"{len(rows)} configurations{_on_device(asked)}:")
    )
    if len(rows) == 1 and rows[0].fits == "no":
        answer.headline += _too_much(result, 0)
    return answer


def _recommend(client: Client, arguments: RecommendQuestion, _timeout_s: float) -> FullAnswer:
    """The best of the configurations by the objective; with a deadline alone, the fewest that meet it."""
    if arguments.deadline_h is not None and "objective" not in arguments.model_fields_set:
        arguments = arguments.model_copy(update={"objective": Rule.FEWEST_DEVICES})
    if arguments.nodes is None and arguments.devices is None and arguments.model is not None:
        nodes = NODES_FOR_DEADLINES if arguments.objective is Rule.FEWEST_DEVICES else USUAL_NODES
        arguments = arguments.model_copy(update={"nodes": nodes})
        asked = _asked_on(client, arguments)
        asked.assumed.append(f"nodes {nodes} to choose from")
    else:
        asked = _asked_on(client, arguments, required=arguments.model is not None)
    result, unit, rows = _prediction(client, asked, arguments, asked.ranges, _goal(asked, arguments, client))
    answer = _of_rows(asked, result, unit, rows)
    recommendation = result.recommendation
    if recommendation is None:
        answer.headline = f"None of {len(rows)} configurations can be recommended{_on_device(asked)}."
        if rows and all(row.fits == "no" for row in rows):
            answer.headline += " None fits into memory."
        elif quickest := min((row for row in rows if row.hours), key=lambda row: row.hours or 0.0, default=None):
            answer.headline += f" The quickest, {_place(quickest, asked)}: {figures_of(quickest)}."
        return answer
    best = rows[recommendation.row]
    answer.recommended = best
    answer.rows = rows[max(0, min(recommendation.row - MOST_LINES // 2, len(rows) - MOST_LINES)) :]
    answer.headline = f"Recommended ({recommendation.rule}): {_place(best, asked)}: {figures_of(best)}."
    answer.texts.insert(0, f"Why: {quote(unit.in_words(recommendation.why))}")
    return answer


def _fits(client: Client, arguments: FitQuestion, _timeout_s: float) -> FullAnswer:
    """Whether the job fits, and the fewest devices on which it does."""
    counts = counts_of(arguments.devices, "devices")
    asked = ask(arguments, client)
    per_node = asked.devices_per_node or DEVICES_PER_NODE
    counts = counts or tuple(per_node * count for count in counts_of(arguments.nodes, "nodes"))
    if arguments.model is None and asked.job.tokens_per_sample(client) is None:
        raise InputError("--model: must be given: without a model's dimensions its memory is not known")
    more = (count for count in _SEARCHED if count > max(counts, default=0))
    ranges: list[ConfigurationRange] = []
    for count in (*counts, *more):
        # Without a batch, the least that devices can process: one sample on each.
        samples = arguments.global_batch or count * (arguments.micro_batch or 1)
        question = replace(asked.question, workers=str(count), global_batch=samples)
        ranges += replace(asked, question=question).ranges
    result, unit, rows = _prediction(client, asked, arguments, tuple(ranges), {})
    if not any(row.fits for row in rows):
        raise RefusedAnswer("the model's dimensions are not known, so its memory is not", reason="EVIDENCE_MISSING")
    least = next((row for row in rows if row.fits in ("yes", "probably")), None)
    places = (
        list(range(len(counts))) or [place for place, row in enumerate(rows) if row.fits in ("no", "borderline")][-3:]
    )
    if least is not None and rows.index(least) not in places:
        places.append(rows.index(least))
    answer = _of_rows(asked, result, unit, rows, places, about_memory=True)
    if arguments.global_batch is None:
        answer.assumed.insert(0, f"a global batch of {count_of(arguments.micro_batch or 1, 'sample')} for each device")
    fewest = f"none up to {_SEARCHED[-1]:,} devices" if least is None else _place(least, asked)
    if len(counts) == 1:
        row = rows[0]
        answer.headline = f"{_VERDICTS[row.fits]}: {_place(row, asked)}: {row.refused or memory_of(row)}."
        if row.fits not in ("yes", "probably"):
            answer.headline += f"{_too_much(result, 0)} Fewest that fit: {fewest}."
    else:
        answer.headline = f"Fewest that fit: {fewest}{'' if least is None else f': {memory_of(least)}'}."
    return answer


def _suggest(client: Client, arguments: SuggestQuestion, _timeout_s: float) -> FullAnswer:
    """The runs to measure next."""
    asked = _asked_on(client, arguments, required=False)
    with locate_errors(asked.job):
        request = SuggestMeasurementsRequest(
            profile=asked.job.source,
            ranges=asked.ranges,
            max_suggestions=arguments.count,
            start_up_seconds=30.0,
            run_steps_count=100,
            **goal_of(ObjectiveOptions()),
        )
        result = client.suggest_measurements(request)
    _require_answer(is_answer=result.basis is not None and result.basis.estimator != "")
    runs = result.suggestions
    answer = FullAnswer("No measurement is needed.", suggest_view.document(result), assumed=asked.assumed)
    if runs:
        answer.headline = (
            f"Measure next: {count_of(runs[0].nodes, 'node')} with {count_of(runs[0].workers, 'device')}, "
            f"{format_number(runs[0].cost_node_seconds)} node-seconds."
        )
    answer.texts = [f"Why {number}: {quote(run.why)}" for number, run in enumerate(runs, 1)]
    answer.texts.append(f"Expected regret of deciding now: {percent(result.expected_regret)} of the best throughput.")
    answer.tell_basis(result.basis)
    answer.tell_notices(result.warnings)
    return answer


# --- plans and cards --------------------------------------------------------------------------------------------------


def _plan(client: Client, arguments: PlanQuestion, timeout_s: float) -> FullAnswer:
    """The best split of the model over the nodes."""
    asked = ask(arguments, client, required=["device", "nodes", "global_batch"])
    per_node, device = asked.devices_per_node or 8, asked.question.device or ""
    stated = {field: value for name, field in _CONSTRAINTS.items() if (value := getattr(arguments, name)) is not None}
    link = {} if arguments.link_bytes_per_s is None else {"link_bytes_per_second": arguments.link_bytes_per_s}
    stated["pools"] = [pool | link for pool in pools_of(f"{device}={arguments.nodes}x{per_node}")]
    constraints = from_json(with_counts(stated), PlanConstraints)
    if arguments.recompute is not None:
        constraints = replace(constraints, recomputations=(arguments.recompute,))
    request = PlanRequest(
        profile=asked.job.source,
        constraints=constraints,
        work=asked.work(arguments, client),
    )
    capacity = asked.memory_bytes
    result = client.plan(request, timeout_s=timeout_s)
    capacities = {} if capacity is None else {device: capacity}
    answer = FullAnswer(plan_view.headline(result), plan_view.document(result, capacities), assumed=asked.assumed)
    if result.best is not None:
        answer.headline = f"Best: {plan_view.describe(result.best)}: {plan_view.figures_of(result.best, capacities)}"
        answer.recommended = row_of(result.best.prediction, capacity, None, None)
        if result.best.prediction.finish_seconds is not None:
            answer.texts.append(f"Time of the work: {lasting(result.best.prediction.finish_seconds)}")
    if result.recommendation is not None:
        answer.texts.append(f"Why: {quote(result.recommendation.why)}")
    if result.explanation is not None:
        answer.texts += [f"Alternative: {quote(each.why)}" for each in result.explanation.alternatives[:2]]
    answer.notes += [rejection.message for rejection in result.rejections]
    answer.tell_basis(result.basis)
    answer.tell_notices(result.warnings)
    return answer


def _card(client: Client, arguments: CardQuestion, timeout_s: float) -> FullAnswer:
    """One run before its start."""
    if arguments.profile is None and arguments.tokens is None is arguments.samples:
        raise MissingArgumentsError(["tokens"])
    asked = _asked_on(client, arguments)
    with locate_errors(asked.job):
        request = EstimateRunRequest(profile=asked.job.source, ranges=asked.ranges, **asked.run(arguments, client))
        result = client.estimate_run(request, timeout_s=timeout_s)
    answer = FullAnswer("", card_view.document(result), assumed=asked.assumed)
    problem = card_view.problem_of(result)
    answer.headline = quote(problem.message) if problem else card_view.headline("The run", request, result, "")
    if problem and result.memory is None:
        raise RefusedAnswer(problem.message, reason=problem.reason)
    answer.figures = [
        Figure(name=line.figure, value=line.value, interval=line.interval, unsure=clean(line.unsure))
        for line in card_view.lines_of(request, result, "")
    ]
    answer.assumed += [f"{each.field} {each.value:,.6g}: {each.why}" for each in result.assumptions]
    predictions = result.predictions
    answer.tell_notices(predictions.warnings if predictions else ())
    return answer


# --- traces and evidence ----------------------------------------------------------------------------------------------


def _diagnose(client: Client, arguments: DiagnoseQuestion, timeout_s: float) -> FullAnswer:
    """What bounds a recorded or a running job."""
    since_s = None if arguments.since_h is None else 3600.0 * arguments.since_h
    request = DiagnoseRequest(
        profile=profile_source(arguments.profile), since_seconds=since_s, max_bottlenecks=20, max_strategies=20
    )
    result = client.diagnose(request, timeout_s=timeout_s)
    answer = FullAnswer(
        f"A step takes {milliseconds(result.step_seconds)} ms, of which "
        f"{milliseconds(result.exposed_communication_seconds)} ms are exchanges and waiting.",
        diagnose_view.document(result),
    )
    if result.verdict or result.bound_by:
        answer.texts.append(f"Verdict: {quote(result.verdict or str(result.bound_by))}")
    answer.texts += [
        f"Bottleneck: {quote(each.what, 80)} ({quote(each.kind, 40)}), {milliseconds(each.seconds)} ms a step"
        for each in result.bottlenecks[:4]
    ]
    answer.texts += [
        f"Change: {quote(each.name, 80)}, {each.speedup_ratio:.3f} times as fast" for each in result.strategies[:4]
    ]
    answer.tell_notices(result.warnings)
    return answer


def _record(client: Client, arguments: Record, _timeout_s: float) -> FullAnswer:
    """Store measured runs in a profile."""
    missing = [name for name in ("profile", "measured", "device") if getattr(arguments, name) is None]
    if missing:
        raise MissingArgumentsError(missing)
    asked = ask(arguments.model_copy(update={"profile": None, "model": None}), client)
    assert isinstance(asked.job.profile, ProfileContent)
    name = arguments.profile or ""
    profile = client.append_profile(AppendProfileRequest(profile_id=name, content=asked.job.profile))
    _require_answer(is_answer=profile.revision > 0)
    count = len(arguments.measured or ())
    return FullAnswer(
        f"Stored {count_of(count, 'run')} in {quote(name)}, revision {profile.revision:,}.",
        {"profile": name, "revision": profile.revision, "stored": count},
    )


# --- what tools share -------------------------------------------------------------------------------------------------


def _asked_on(client: Client, arguments: Any, *, required: bool = True) -> AskedQuestion:
    """The question on the stated numbers of nodes or devices."""
    nodes, devices = arguments.nodes, arguments.devices
    for name, value in (("nodes", nodes), ("devices", devices)):
        if len(counts_of(value, name)) > MOST_ROWS:
            raise InputError(f"--{name}: must be at most {MOST_ROWS} numbers, found {value!r}")
    needs_batch = required and arguments.model is not None and arguments.micro_batch is None
    return ask(
        arguments,
        client,
        nodes=None if nodes is None else str(nodes),
        devices=None if devices is None else str(devices),
        required=[*(["nodes"] if required else []), *(["global_batch"] if needs_batch else [])],
    )


def _prediction(
    client: Client, asked: AskedQuestion, arguments: JobQuestion, ranges: Any, goal: Mapping[str, Any]
) -> tuple[PredictResult, Unit, list[Row]]:
    """The service's answer about ranges; asks for a device of the catalogue where nothing was measured."""
    job = asked.job
    with locate_errors(job):
        result = client.predict(PredictRequest(profile=job.source, ranges=ranges, **goal))
    best = 0 if result.recommendation is None else result.recommendation.row
    numbers = [row.steps_per_second or 0.0 for row in result if row.answered]
    _require_answer(is_answer=0 <= best < len(result) and all(0.0 < number < math.inf for number in numbers))
    unit = unit_of(result, job.counts, job.tokens_per_sample(client))
    price = getattr(arguments, "price_per_device_hour", None)
    rows = [row_of(row, asked.memory_bytes, unit.tokens_per_sample, price) for row in result]
    refused = [row.refused for row in rows if row.refused]
    if rows and len(refused) == len(rows):
        problem = predict_view.refusal_of(result[0])
        raise RefusedAnswer(refused[0], reason="" if problem is None else problem.reason)
    return result, unit, rows


def _require_answer(*, is_answer: bool) -> None:
    """Refuse a reply that answers nothing, such as that of another program."""
    if not is_answer:
        raise CommandError("the server's answer does not fit the question: another program may listen at its address")


def _of_rows(
    asked: AskedQuestion,
    result: PredictResult,
    unit: Unit,
    rows: Sequence[Row],
    places: Sequence[int] | None = None,
    *,
    about_memory: bool = False,
) -> FullAnswer:
    """An answer with the rows, or with those at some places, and everything that it rests on."""
    shown = list(rows) if places is None else [rows[place] for place in places]
    document = predict_view.document(result, unit)
    answer = FullAnswer("", document, rows=shown, assumed=list(asked.assumed), about_memory=about_memory)
    answer.tell_basis(result.basis)
    answer.tell_notices((*unit.notices, *result.warnings), places)
    return answer


def _goal(asked: AskedQuestion, arguments: RecommendQuestion, client: Client) -> dict[str, Any]:
    return asked.goal(
        arguments,
        client,
        rule=arguments.objective,
        deadline_s=None if arguments.deadline_h is None else 3600.0 * arguments.deadline_h,
        max_nodes=arguments.max_nodes,
        max_cost=arguments.max_cost,
        confidence=arguments.confidence,
    )


def _too_much(result: PredictResult, row: int) -> str:
    excess = result[row].excess_memory_bytes
    return "" if excess is None else f" {format_number(excess / 2**30, 3)} GiB too much in the nearest layout."


def _on_device(asked: AskedQuestion) -> str:
    return "" if asked.label is None else f" on {quote(asked.label)}"


def _place(row: Row, asked: AskedQuestion) -> str:
    device = "devices" if asked.label is None else quote(asked.label)
    return f"{row.devices:,} {device} on {count_of(row.nodes, 'node')}"


TOOLS: Final = (
    Tool(
        "predict",
        "Predict throughput",
        "How fast a training job runs on given nodes or devices: samples/s, tokens/s, step time, MFU and memory with "
        "90 % intervals; with `tokens` (or samples, epochs) also the time, with a price the cost.",
        PredictQuestion,
        _predict,
    ),
    Tool(
        "fits",
        "Does it fit into memory",
        "Whether training (full fine-tuning, LoRA, QLoRA, pretraining; not inference) fits into the memory of the "
        "devices, and the fewest devices on which it fits. Give `devices` or `nodes` to ask about these; without them "
        "it looks for the fewest.",
        FitQuestion,
        _fits,
    ),
    Tool(
        "recommend",
        "How many nodes",
        "How many nodes or devices a training job is worth: by the knee, highest throughput, least time, least cost or "
        "fewest devices for a deadline. Choose among `nodes` or `devices`.",
        RecommendQuestion,
        _recommend,
    ),
    Tool(
        "plan",
        "Best parallelism",
        "The fastest split of a model over nodes: tensor, pipeline, context, expert and data parallelism, micro-batch, "
        "recomputation, ZeRO stage. Needs model, device, nodes and global_batch.",
        PlanQuestion,
        _plan,
    ),
    Tool(
        "card",
        "Time, cost and risk of a run",
        "One training run before its start: memory, time with failures, cost, chance to meet a deadline, energy, CO2. "
        "Needs the work (tokens, samples or epochs) and one number of nodes or devices.",
        CardQuestion,
        _card,
    ),
    Tool(
        "diagnose",
        "What slows a job",
        "What bounds the steps of a stored job, by its recorded traces or by the step times that its ranks report, and "
        "which changes would help.",
        DiagnoseQuestion,
        _diagnose,
    ),
    Tool(
        "suggest_measurement",
        "What to measure next",
        "Which run to measure next to decide better, with its expected gain and its cost.",
        SuggestQuestion,
        _suggest,
    ),
    Tool(
        "record",
        "Store measured runs",
        "Add measured runs to a profile, which is created if it does not exist. Needs profile, measured and device.",
        Record,
        _record,
        writes=True,
    ),
)
