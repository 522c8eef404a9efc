"""The support matrix: on which device, in which format, what kind of model and training is answered, and how well.

What was measured comes from rows that are held back whole, with nothing but facts shown. Elsewhere the estimator
`partitioning` is asked about one node: it answers from the catalogue and its models, or refuses.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from accuracy.manifest import FACTS, Case
from accuracy.predicting import Predicted
from nodewise.domain.columns import as_ints, constant_floats, constant_ints
from nodewise.domain.configurations import Configurations, Recomputation, SyncMode
from nodewise.domain.profile import Profile
from nodewise.domain.workload import Encoder, Transformer, Workload
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import AUTO, Question, Terms
from nodewise.plugin import CatalogueDevice

__all__ = ["RESULTS", "SUPPORT", "is_of_support", "measured", "support_page", "written_results"]

SUPPORT: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "support.md"
RESULTS: Final = Path(__file__).parent / "support.json"
FORMATS: Final = ("fp32", "tf32", "fp16", "bf16", "fp8", "fp4")
NODE_DEVICES: Final = 8
"""Of a device whose entry tells no node's."""

HEAD: Final = """# What is supported, and how well

Written by `python research/write_support.py` from [measured results](../../research/accuracy/support.json), which `make
accuracy` saves, and from the catalogue and the estimators as they are; a test fails where it is stale. It is about
transformers; other networks are in [accuracy](../accuracy.md).

## Measured
Rows of public tables, of which nothing but the facts was shown to `auto`: no run of the job, nor of another one.
**median**, **mean**: of |predicted / measured - 1| of step time; **covers**: share of rows within their 90 % interval;
**refused**: rows that were not answered. What one measured run makes of it is in [accuracy](../accuracy.md).

| device | format | model | training | rows | refused | median | mean | covers |
|---|---|---|---|---:|---:|---:|---:|---:|
"""
MATRIX: Final = """
## Everything else
One node of a device, by format, with all facts stated, was asked about these kinds:
{kinds}.
**Bold**: what was measured (above). All others are answered from the catalogue and the models, **without measurements**
(*extrapolated*), unless they are named after "not": expect the errors of neighbours, and believe the interval. A dash:
refused, for the catalogue tells no peak in this format, or no link between devices of a node.

"""
_DENSE: Final = Transformer(
    layers=8, hidden_size=2048, attention_heads=16, sequence_length=2048, vocabulary_size=32000, key_value_heads=8,
    feed_forward_size=7168, gated_feed_forward=True, untied_embeddings=True,
)  # fmt: skip


def _shape(**changes: Any) -> Workload:
    columns = {name: getattr(_DENSE, name) for name in Transformer.__slots__}
    return Workload(transformer=Transformer(**{**columns, **changes}))


MODELS: Final[Mapping[str, Workload]] = {
    "dense": _shape(),
    "experts": _shape(experts=8, experts_per_token=2, expert_feed_forward_size=1024),
    "latent attention": _shape(
        key_value_heads=0, key_value_latent_size=512, rotary_head_size=64, head_size=192, value_head_size=128
    ),
    "sliding windows": _shape(attention_window=1024, windowed_layers=4),
    "state spaces": _shape(state_space_layers=6, attention_layers=2),
    "vision-language": Workload(
        transformer=_DENSE, encoder=Encoder(layers=24, hidden_size=1024, attention_heads=16, tokens_per_sample=576)
    ),
}
"""Kinds of models, with a small one of each to ask about."""
ALL_WEIGHTS: Final = "all weights"
TRAININGS: Final[Mapping[str, dict[str, Any]]] = {
    ALL_WEIGHTS: {},
    "LoRA": {"frozen_weights_share": 0.99},
    "QLoRA": {"frozen_weights_share": 0.99, "frozen_weight_bits": 4.0},
}
KINDS: Final = tuple(
    (model, training) for model in MODELS for training in TRAININGS if training == ALL_WEIGHTS or model == "dense"
)
"""Kinds of models and of training that are asked about."""
Key = tuple[str, str, str, str]
"""Device, format, model, training."""


def is_of_support(case: Case) -> bool:
    """Whether a case is about transformers of which nothing but all facts is shown, scored by its throughputs."""
    table = case.tables[0]
    return (
        (case.held, case.rows, case.dropped, case.calibration) == (FACTS, 0, (), ())
        and "memory" not in table
        and not table.startswith("vtrain")
    )


def model_of(workload: Workload) -> str:
    """Which kind of model a job trains."""
    shape = workload.transformer
    if workload.encoder is not None:
        return "vision-language"
    if shape is None:
        return ""
    kinds = {
        "state spaces": shape.state_space_layers,
        "latent attention": shape.key_value_latent_size,
        "experts": shape.experts,
        "sliding windows": shape.attention_window,
    }
    return next((name for name, value in kinds.items() if value), "dense")


def training_of(workload: Workload) -> str:
    """Which weights are trained, and how the others are held."""
    if not workload.frozen_weights_share:
        return ALL_WEIGHTS
    return "QLoRA" if (workload.frozen_weight_bits or 16.0) <= 8.0 else "LoRA"


def measured(found: Iterable[Predicted]) -> dict[Key, dict[str, float]]:
    """Errors of `auto` by device, format, model and training."""
    errors: dict[Key, list[float]] = {}
    covered: dict[Key, list[bool]] = {}
    refused: dict[Key, int] = {}
    for each in found:
        outcomes, rows = each.outcomes[AUTO], each.configurations
        devices = rows.device_names()
        for row, workload in enumerate(each.workloads):
            truth = outcomes.measured_steps_per_s[row]
            if truth <= 0.0:
                continue
            number_format = rows.precisions[rows.precision_index[row]] or workload.precision or ""
            key = (devices[row], number_format, model_of(workload), training_of(workload))
            if not outcomes.answered[row]:
                refused[key] = refused.get(key, 0) + 1
                continue
            errors.setdefault(key, []).append(abs(truth / outcomes.predicted_steps_per_s[row] - 1.0))
            covered.setdefault(key, []).append(
                bool(outcomes.lower_steps_per_s[row] <= truth <= outcomes.upper_steps_per_s[row])
            )
    return {
        key: {
            "rows": len(errors.get(key, ())) + refused.get(key, 0),
            "refused": refused.get(key, 0),
            **(
                {
                    "median": round(float(np.median(errors[key])), 4),
                    "mean": round(float(np.mean(errors[key])), 4),
                    "covers": round(float(np.mean(covered[key])), 4),
                }
                if key in errors
                else {}
            ),
        }
        for key in sorted({*errors, *refused})
    }


def written_results(results: Mapping[Key, Mapping[str, float]]) -> str:
    """A line for each kind of row."""
    return (
        "{\n"
        + ",\n".join(f" {json.dumps(' | '.join(key))}: {json.dumps(each)}" for key, each in results.items())
        + "\n}\n"
    )


def support_page(answers: Answers, results: Mapping[str, Mapping[str, float]]) -> str:
    """Markdown, of results as they are saved."""
    kinds = ", ".join(map(_kind, KINDS))
    return "".join([HEAD, *_measured(results), MATRIX.format(kinds=kinds), *_matrix(answers, set(results))])


def _measured(results: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    for key, found in results.items():
        cells = [f"{found[name]:.1%}".replace("%", " %") if name in found else "" for name in ("median", "mean")]
        covers = f"{found['covers']:.0%}".replace("%", " %") if "covers" in found else ""
        yield f"| {key} | {found['rows']:.0f} | {found['refused']:.0f} | {' | '.join(cells)} | {covers} |\n"


def _matrix(answers: Answers, known: set[str]) -> Iterator[str]:
    devices = [each for each in answers.estimators.catalogue.listed if "cores" not in each.facts]
    names = {name: each.name for each in devices for name in (each.name, *each.aliases)}
    # Tables call a device by any of its names.
    seen = {(names[device], *rest) for device, *rest in (key.split(" | ") for key in known)}
    pairs = [(each, name) for each in devices for name in FORMATS if f"{name}_flops_per_s" in each.facts]
    answered = {kind: _answered(answers, kind, pairs) for kind in KINDS}
    cells: dict[tuple[str, str], str] = {}
    for place, (device, number_format) in enumerate(pairs):
        good = [kind for kind in KINDS if answered[kind][place]]
        bold = [_kind(kind) for kind in good if (device.name, number_format, *kind) in seen]
        lacking = [_kind(kind) for kind in KINDS if kind not in good]
        found = f"**{', '.join(bold)}**" if bold else "extrapolated"
        if good:
            cells[device.name, number_format] = found + (f"; not {', '.join(lacking)}" if lacking else "")
    yield f"| device | {' | '.join(FORMATS)} |\n|---|{'---|' * len(FORMATS)}\n"
    for device in devices:
        yield f"| {device.name} | {' | '.join(cells.get((device.name, each), '-') for each in FORMATS)} |\n"


def _kind(kind: tuple[str, str]) -> str:
    """The model, or how a dense one is trained."""
    return kind[0] if kind[1] == ALL_WEIGHTS else kind[1] if kind[0] == "dense" else " by ".join(kind)


def _answered(answers: Answers, kind: tuple[str, str], pairs: Sequence[tuple[CatalogueDevice, str]]) -> list[bool]:
    """Whether one node of each device is answered about in each format; all that may be unsaid is said."""
    model, training = kind
    plain = MODELS[model]
    profile = Profile(
        workload=Workload(
            transformer=plain.transformer, encoder=plain.encoder, optimizer="adam", framework="pytorch flash-attention",
            **TRAININGS[training],
        )
    )  # fmt: skip
    count = len(pairs)
    sizes = as_ints([int(device.facts.get("devices_per_node", NODE_DEVICES)) for device, _ in pairs])
    places = as_ints(np.arange(count))
    rows = Configurations.of(
        count, nodes=1, workers=sizes, sync_mode=SyncMode.ALLREDUCE, batch_per_worker=1
    ).replaced(
        devices=tuple(device.name for device, _ in pairs), device_index=places,
        precisions=tuple(number_format for _, number_format in pairs), precision_index=places,
        global_batch=as_ints(2 * sizes), zero_stage=constant_ints(count, 3),
        recomputation=constant_ints(count, Recomputation.FULL), link_bytes_per_s=constant_floats(count, 100e9),
    )  # fmt: skip
    question = Question(profile=profile, configurations=rows, terms=Terms(estimator="partitioning"))
    found: list[bool] = answers.answer(question).predictions.answered.tolist()
    return found
