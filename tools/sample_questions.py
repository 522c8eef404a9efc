"""Questions of every kind to a server, drawn by a seed from the examples and the recorded traces of this repository.

`tools/replay_questions.py` asks them. Requests are written as protobuf's JSON of the contract.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from google.protobuf.descriptor_pool import Default
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from nodewise_cli.inputs.architectures import read_architectures
from nodewise_cli.inputs.documents import read_document, read_profile, read_value
from nodewise_cli.inputs.profile_names import profile_id_of
from nodewise_cli.inputs.simulation_jobs import prepared_jobs
from nodewise_cli.inputs.simulation_request import simulate_request
from nodewise_cli.inputs.simulation_spec import SimulationSpec, checked_spec
from nodewise_cli.inputs.table_content import measurement_table, profile_content
from nodewise_cli.inputs.tables import read_table
from nodewise_client import EstimateCompletionRequest, PlanRequest, PredictSharingRequest, ScheduleRequest
from nodewise_values.wire import to_message

ROOT: Final = Path(__file__).resolve().parents[1]
EXAMPLES: Final = ROOT / "examples"
TRACES: Final = ROOT / "tests" / "fixtures" / "traces"
sys.path.insert(0, str(ROOT / "tests" / "support"))

from random_messages import mutated  # type: ignore[import-not-found,unused-ignore]  # noqa: E402

Json = dict[str, Any]

TABLES: Final = ("testbed.csv", "cmdare_resnet.csv", "cmdare_shake_shake.csv", "spot.csv", "slurm/cifar10.csv")
ALL_REDUCE_ESTIMATORS: Final = ["auto", "scaling", "power-law", "batch-line", "last-known", "constant-utilisation"]
SERVER_ESTIMATORS: Final = ["auto", "auto", "auto", "auto", "queueing", "queueing", "unseen"]
ESTIMATORS: Final = ["auto", "replay", "transient", "partitioning", "nobody"]
POLICIES: Final = [
    "deadline-aware",
    "efficiency-capped",
    "efficiency-srpt",
    "efficiency-srpt-fill",
    "equal-share",
    "fifo",
    "goodput",
    "las",
    "marginal-gain",
    "max-min-fairness",
    "max-min-fairness-aware",
    "min-makespan-aware",
    "packing",
    "srpt",
]
DEVICES: Final = ["K80", "P100", "V100", "T4", "A100-80GB"]
COLUMNS: Final = [
    "ALL",
    "THROUGHPUT",
    "INTERVAL",
    "BREAKDOWN",
    "UTILIZATION",
    "STALENESS",
    "MEMORY",
    "WORK",
    "EXTRA",
    "GOODPUT",
    "RISK",
]
MODES: Final = ["ASYNC", "SYNC", "ALLREDUCE", "HYBRID"]
LAYERED_DEVICE: Final = "Xeon-E5-2450L"
EXTRAS: Final[list[Json]] = [{}, {}, {"confidence": 0.9}, {"max_extrapolation_ratio": 16}]
COUNTS: Final = {"first": 1, "last": 8}


@dataclass(frozen=True, slots=True)
class Question:
    """A call: its kind, the method as SERVICE/METHOD below the package, and the messages of the caller."""

    kind: str
    method: str
    requests: Sequence[Message]

    @property
    def path(self) -> str:
        """Of the method, as gRPC has it."""
        return path_of(self.method)


def path_of(method: str) -> str:
    """The path of a method in the version of the contract that has its service."""
    service = method.partition("/")[0]
    beta = service not in {"PredictionService", "ProfileService", "ScheduleService"}
    return f"/nodewise.{'v1beta1' if beta else 'v1'}.{method}"


def message_class(path: str, *, reply: bool = False) -> type[Message]:
    """Of the requests or the replies of a method."""
    found = Default().FindMethodByName(path[1:].replace("/", "."))
    return GetMessageClass(found.output_type if reply else found.input_type)


class Sampler:
    """Draws questions: the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self._chance: Final = random.Random(seed)  # noqa: S311 - not for secrets
        self._jobs: dict[str, Json] = {}
        for name in TABLES:
            table = read_table(EXAMPLES / name)
            self._jobs |= {f"{name[:-4]}/{job}": _json(profile_content(table, job)) for job in table.jobs}
        models = {name: _json(read_profile(EXAMPLES / name)) for name in ("profile.json", "mlp.json", "vgg16.json")}
        self._contents: Final = list((self._jobs | models).values()) + [list(self._jobs.values())[-1]] * 2
        plan = read_value(EXAMPLES / "plan_22b_64_devices.json", PlanRequest)
        self._plans: Final = [_json(plan)] + [
            _json(read_value(EXAMPLES / f"plan_{name}_32_machines.json", PlanRequest)) for name in ("mlp", "vgg16")
        ]
        self._transformer: Final = self._plans[0]["profile"]["content"]
        self._stored: Final = [profile_id_of(f"replay/{name}") for name in self._jobs]
        self._traced: Final = sorted(each.name for each in TRACES.iterdir() if each.is_dir())
        place = EXAMPLES / "simulation" / "simulate.json"
        spec = checked_spec(str(place), read_document(place), SimulationSpec)
        self._simulation: Final = _json(simulate_request(spec, prepared_jobs(spec, place)))
        self._schedules: Final = [
            _json(read_value(EXAMPLES / f"schedule{name}.json", ScheduleRequest)) for name in ("", "_deadlines")
        ]
        self._completion: Final = _json(read_value(EXAMPLES / "spot.json", EstimateCompletionRequest))
        self._sharing: Final = _json(read_value(EXAMPLES / "share.json", PredictSharingRequest))
        self._architectures: Final = _json(read_architectures(EXAMPLES / "architectures.csv").architectures)

    def setup(self) -> Iterator[Question]:
        """What stores the profiles that questions name: asked first, and compared as well."""
        for profile_id, content in zip(self._stored, self._jobs.values(), strict=True):
            appended = {"profile_id": profile_id, "request_id": "1", "content": content}
            yield _question("store", "ProfileService/AppendProfile", appended)
        for name in self._traced:
            files = sorted(each for each in (TRACES / name).iterdir() if each.name != "measured.json")
            chunks = [{"trace_id": each.name, "format": "auto", "last": True} for each in files]
            batch = {"sequence_number": 1, "trace_chunks": chunks, "commit": True}
            opened = {"open": {"profile_id": f"traces/{name}", "session_id": "s"}}
            asked = _question("store", "ProfileService/IngestProfile", opened, {"batch": batch})
            for chunk, file in zip(asked.requests[1].batch.trace_chunks, files, strict=True):  # type: ignore[attr-defined]
                chunk.data = file.read_bytes()
            yield asked

    def questions(self, count: int) -> list[Question]:
        """So many, of all kinds in turn by their shares."""
        shares = (
            (40, self._predict), (10, self._again), (8, self._transformers), (6, self._batch), (2, self._rank),
            (2, self._stream), (3, self._suggest), (6, self._schedule), (3, self._simulate), (1, self._plan),
            (2, self._trace), (2, self._complete), (2, self._share), (1, self._backtest), (11, self._wrong),
            (1, self._list),
        )  # fmt: skip
        drawn = self._chance.choices([kind for _, kind in shares], [share for share, _ in shares], k=count)
        self._asked: list[Question] = [self._predict()]
        while len(self._asked) < count:
            self._asked.append(drawn[len(self._asked)]())
        return self._asked

    def _predict(self) -> Question:
        asked = self._job()
        kind = "stored" if "profile_id" in asked["profile"] else "inline"
        return _question(f"predict {kind}", "PredictionService/Predict", asked)

    def _again(self) -> Question:
        """An earlier question to the letter, or with another objective."""
        earlier = self._chance.choice([each for each in self._asked if each.method == "PredictionService/Predict"])
        if self._chance.random() < 0.5:
            return replace(earlier, kind="predict known")
        asked = MessageToDict(earlier.requests[0], preserving_proto_field_name=True)
        return _question("predict objective", earlier.method, asked | {"objective": self._objective()})

    def _transformers(self) -> Question:
        """Partitions of a transformer."""
        draw = self._chance.choice
        content = self._transformer | {"network": {"link_bytes_per_second": draw((2.5e10, 2e11))}}
        hidden, heads = draw(((1024, 16), (2048, 16), (4096, 32), (6144, 64)))
        model = {"layers_count": draw((24, 32, 48)), "hidden_size": hidden, "attention_heads_count": heads}
        workload = content["workload"]
        content["workload"] = workload | {"transformer": workload["transformer"] | model}
        tensor, pipeline, data = draw((1, 2, 4, 8)), draw((1, 2, 4)), draw((1, 2, 4, 8))
        workers = tensor * pipeline * data
        rows: Json = {
            "nodes": [max(1, workers // 8)],
            "workers": [workers],
            "device_names": [draw(("A100-80GB", "H100-SXM5-80GB", "V100"))],
            "sync_modes": ["SYNC_MODE_ALLREDUCE"],
            "tensor_parallel_degrees": [tensor],
            "pipeline_parallel_degrees": [pipeline],
            "data_parallel_degrees": [data],
            "zero_stages": [draw((0, 1, 2, 3))],
            "recomputations": [f"RECOMPUTATION_{draw(('NONE', 'SELECTIVE', 'FULL'))}"],
            "batch_per_worker_samples": [1, 2, 4],
            "global_batch_samples": [64 * data],
        }
        asked = {"profile": {"content": content}, "configurations": rows, "options": self._options("partitioning")}
        return _question("predict transformer", "PredictionService/Predict", asked)

    def _batch(self) -> Question:
        """Jobs with rows of their own and with those of the batch."""
        jobs: list[Json] = [self._job() for _ in range(self._chance.randrange(1, 7))]
        options = [job.pop("options") for job in jobs]
        if self._chance.random() < 0.5:
            jobs = [{"profile": job["profile"]} for job in jobs]
        shared = {"jobs": jobs, "objective": {"knee": {}}, "options": options[0], "ranges": [{"nodes": COUNTS}]}
        return _question("batch", "PredictionService/BatchPredict", shared)

    def _rank(self) -> Question:
        rows = {"workers": [1], "nodes": [1], "device_names": [self._chance.choice(("K80", "P100", "V100"))]}
        rows["batch_per_worker_samples"] = self._chance.sample((32, 64, 128, 256), 2)
        asked = {"architectures": self._architectures, "configurations": rows}
        return _question("batch architectures", "PredictionService/BatchPredict", asked)

    def _stream(self) -> Question:
        asked = []
        for number in range(self._chance.randrange(1, 5)):
            single = self._chance.random() < 0.7
            about = self._predict() if single else self._batch()
            question = MessageToDict(about.requests[0], preserving_proto_field_name=True)
            asked.append({"question_id": str(number), "predict" if single else "batch": question})
        return _question("stream", "PredictionService/StreamPredict", *asked)

    def _suggest(self) -> Question:
        asked = {
            name: value for name, value in self._job().items() if name in {"profile", "objective", "work", "offers"}
        }
        settings = {"batch_per_worker_samples": 128}
        asked |= {"ranges": [{"nodes": COUNTS, "settings": settings}], "max_suggestions": self._chance.randrange(1, 4)}
        return _question("suggest", "PredictionService/SuggestMeasurements", asked)

    def _schedule(self) -> Question:
        draw = self._chance
        asked = draw.choice(self._schedules) | {"policy": draw.choice(POLICIES)}
        asked["jobs"] = [
            each | {"remaining_samples": draw.choice((64_000, 1e4, 1e6)), "restart_cost_seconds": draw.choice((0, 30))}
            for each in asked["jobs"][: draw.randrange(1, 6)]
        ]
        return _question("schedule", "ScheduleService/Schedule", asked)

    def _simulate(self) -> Question:
        draw = self._chance
        settings: Json = {"clock": f"SIMULATION_CLOCK_{draw.choice(('EVENTS', 'FIXED_ROUNDS', 'DRAINED_ROUNDS'))}"}
        settings |= {"restart_cost_seconds": draw.choice((0, 30)), "load_factor": draw.choice((0.5, 1.0, 2.0))}
        asked = self._simulation | {"policy": draw.choice(POLICIES), "settings": settings}
        asked |= {"options": {"seed": draw.randrange(5)}, "repetitions_count": 1, "include_jobs": draw.random() < 0.3}
        return _question("simulate", "SimulationService/Simulate", asked)

    def _plan(self) -> Question:
        asked = self._chance.choice(self._plans)
        constraints = dict(asked["constraints"])
        constraints["pools"] = [
            each | {"nodes": {"values": self._chance.sample((1, 2, 4, 8), 2)}} for each in constraints["pools"][:1]
        ]
        if "global_batch_samples" in constraints:
            constraints["global_batch_samples"] = {"values": [self._chance.choice((32, 64, 128))]}
        asked = asked | {"constraints": constraints, "skip_explanation": self._chance.random() < 0.5}
        return _question("plan", "PlanService/Plan", asked)

    def _trace(self) -> Question:
        asked: Json = {"profile": {"profile_id": f"traces/{self._chance.choice(self._traced)}"}}
        if self._chance.random() < 0.5:
            asked["max_strategies"] = self._chance.randrange(1, 5)
            return _question("diagnose", "DiagnosisService/Diagnose", asked)
        if self._chance.random() < 0.5:
            kind = self._chance.choice(("LINK_BANDWIDTH", "SCALE", "WORLD_SIZE", "BUCKET_BYTES"))
            asked["changes"] = [{"kind": f"REPLAY_CHANGE_KIND_{kind}", "value": self._chance.choice((2.0, 4.0, 0.5))}]
        asked["timeline"] = self._chance.random() < 0.2
        return _question("replay", "DiagnosisService/Replay", asked)

    def _complete(self) -> Question:
        asked = self._completion | {"runs_count": self._chance.choice((100, 1_000))}
        asked["offers"] = self._chance.sample(asked["offers"], self._chance.randrange(1, 4))
        asked["work"] = {"samples": self._chance.choice((1e6, 3.2e7, 3.2e8))}
        asked["objective"] = self._chance.choice(({"least_cost": {"deadline_seconds": 43_200}}, {"least_time": {}}))
        return _question("complete", "CompletionService/EstimateCompletion", asked)

    def _share(self) -> Question:
        jobs = self._chance.sample(self._sharing["jobs"], self._chance.randrange(2, 6))
        names = {each["name"] for each in jobs}
        runs = [each for each in self._sharing["runs"] if {each["first_job"], each["second_job"]} <= names]
        asked = self._sharing | {"jobs": jobs, "runs": runs if self._chance.random() < 0.7 else []}
        asked["device"] = {"device_name": self._chance.choice(("P100", "V100", "K80"))}
        return _question("share", "SharingService/PredictSharing", asked)

    def _backtest(self) -> Question:
        table = _json(measurement_table(read_table(EXAMPLES / self._chance.choice(TABLES[:3]))))
        estimator = self._chance.choice(("queueing", "scaling", "power-law", "transient"))
        return _question("backtest", "EvaluationService/Backtest", {"table": table, "estimators": [estimator]})

    def _wrong(self) -> Question:
        """A question of which some fields are spoilt: most are refused, by field."""
        makers = (self._predict, self._predict, self._batch, self._suggest, self._schedule, self._share, self._complete)
        right = self._chance.choice(makers)()
        wrong = [mutated(each, self._chance) for each in right.requests]
        # The server would wait for a revision, and names the first of several wrong keys of a map, which has no order.
        if any("minimum_revision" in str(each) or str(each).count(" key: ") > 1 for each in wrong):
            return self._wrong()
        return Question("wrong", right.method, wrong)

    def _list(self) -> Question:
        draw = self._chance.choice
        name = draw(("Estimators", "Devices", "Plugins", "Policies", "Profiles"))
        service = {"Policies": "Schedule", "Profiles": "Profile"}.get(name, "Prediction")
        return _question("list", f"{service}Service/List{name}", {"page_size": draw((2, 50, 1000))})

    def _job(self) -> Json:
        """A question about one job, most of them as its evidence was measured."""
        draw = self._chance
        at = draw.randrange(len(self._contents))
        content = self._contents[at]
        modes = content.get("observations", {}).get("configurations", {}).get("sync_modes", ["SYNC_MODE_ASYNC"])
        fitting = ALL_REDUCE_ESTIMATORS if modes[0] == "SYNC_MODE_ALLREDUCE" else SERVER_ESTIMATORS
        objective = self._objective()
        asked: Json = {"objective": objective, "options": self._options(draw.choice(fitting))}
        asked |= self._rows(modes[0], content)
        if at < len(self._stored) and draw.random() < 0.6:
            asked["profile"] = {"profile_id": self._stored[at]}
        else:
            asked["profile"] = {"content": self._varied(content)}
        if objective.keys() & {"least_time", "least_cost", "fewest_devices"} or draw.random() < 0.2:
            asked["work"] = {"samples": draw.choice((64_000, 1e6, 1e7))} if draw.random() < 0.95 else {"epochs": 2}
            offer = {"name": "o", "price_per_node_hour": draw.choice((0.45, 3.06)), "start_up_seconds": 60}
            asked["offers"] = [offer]
        if draw.random() < 0.1:
            asked["current"] = {"row": 0, "restart_cost_seconds": 30}
        if draw.random() < 0.1:
            asked["efficiency"] = {"gradient_noise_scale_samples": 2_000, "initial_batch_samples": 128}
            asked["batch_bounds"] = {"min_global_batch_samples": 64, "max_global_batch_samples": 4096}
        return asked

    def _varied(self, content: Json) -> Json:
        """A profile that was never asked about: its measured rates are a little other than those of an example."""
        if "observations" not in content:
            return content
        factor, runs = self._chance.uniform(0.8, 1.25), content["observations"]
        rates = [rate * factor for rate in runs["steps_per_second"]]
        return content | {"observations": runs | {"steps_per_second": rates}}

    def _objective(self) -> Json:
        draw = self._chance.choice
        rule: Json = draw(
            (
                *({"knee": {}}, {"knee": {"share": draw((0.2, 0.8))}}, {"highest_throughput": {}}),
                *({"least_time": {"max_nodes": draw((4, 16))}}, {"least_cost": {"deadline_seconds": draw((600, 1e5))}}),
                *({"fewest_devices": {"deadline_seconds": draw((3_600, 1e6))}}, {"least_time": {}}),
            )
        )
        return rule | draw(EXTRAS)

    def _rows(self, mode: str, content: Json) -> Json:
        """A range of a job of a sync mode, rows as columns, or nothing."""
        draw = self._chance
        if draw.random() < 0.05:
            return {}
        if draw.random() < 0.1:
            mode = f"SYNC_MODE_{draw.choice(MODES)}"
        layered, batch = "layers" in content.get("workload", {}), draw.choice((32, 128, 512))
        device, stated = LAYERED_DEVICE if layered else draw.choice(DEVICES), layered or draw.random() < 0.15
        if draw.random() < 0.6:
            counts = {"first": 1, "last": draw.choice((4, 8, 16, 64)), "powers_of_two": draw.random() < 0.5}
            settings = {"sync_mode": mode, "batch_per_worker_samples": batch, "device_name": device if stated else ""}
            if mode != "SYNC_MODE_ALLREDUCE":
                return {"ranges": [{draw.choice(("nodes", "workers")): counts, "settings": settings}]}
            return {"ranges": [{"nodes": counts, "workers_per_node": 4, "settings": settings}]}
        nodes = draw.sample((1, 2, 3, 4, 6, 8, 12, 16, 24, 32), draw.randrange(1, 6))
        factor = 4 if mode == "SYNC_MODE_ALLREDUCE" else 1
        rows: Json = {"nodes": nodes, "workers": [count * factor for count in nodes], "sync_modes": [mode]}
        if mode == "SYNC_MODE_HYBRID":
            rows["hybrid_sync_fractions"] = [0.25]
        if mode != "SYNC_MODE_ALLREDUCE":
            rows["parameter_servers"] = [draw.choice((1, 2))]
        if stated:
            rows["device_names"] = [device]
        return {"configurations": rows | {"batch_per_worker_samples": [batch]}}

    def _options(self, estimator: str) -> Json:
        draw = self._chance.choice
        model: Json = {
            "estimator": estimator if self._chance.random() < 0.9 else draw(ESTIMATORS),
            "seed": draw((0, 7)),
            "allow_fallback": draw((True, False)),
            "interval_coverage": draw((0.9, 0.9, 0.5)),
        }
        columns = self._chance.sample(COLUMNS, draw((0, 0, 1, 3)))
        found: Json = {"model": model, "columns": [f"PREDICTION_COLUMN_{each}" for each in columns]}
        if self._chance.random() < 0.05:
            found |= {"fidelity": "FIDELITY_SIMULATE", "simulated_steps_count": 200}
        return found


def _json(value: Any) -> Json:
    return MessageToDict(to_message(value), preserving_proto_field_name=True)


def _question(kind: str, method: str, *requests: Json) -> Question:
    form = message_class(path_of(method))
    return Question(kind, method, [ParseDict(each, form()) for each in requests])
