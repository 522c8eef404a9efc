"""Arguments of tools: typed, bounded, and described for the agent that states them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, WithJsonSchema, model_validator

from nodewise_cli.agents.reading import (
    count_and_device,
    read_amount,
    read_counts,
    read_format,
    read_framework,
    read_link,
    read_number,
    read_recomputation,
)
from nodewise_cli.device_names import catalogue_key
from nodewise_cli.inputs.objectives import Rule
from nodewise_client import Recomputation

__all__ = [
    "Arguments",
    "CardQuestion",
    "DiagnoseQuestion",
    "FitQuestion",
    "JobQuestion",
    "MeasuredRun",
    "Model",
    "PlanQuestion",
    "PredictQuestion",
    "RecommendQuestion",
    "Record",
    "SuggestQuestion",
    "example_of",
    "schema_of",
]

Name: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._+/()-]{0,63}$")]
"""A word of a catalogue: no text that an agent could take for an instruction."""
ProfileName: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._~/-]{0,127}$")]
_NOT_BOOLEAN: Final = BeforeValidator(read_number)
Counts: TypeAlias = Annotated[int | Annotated[str, BeforeValidator(read_counts)], _NOT_BOOLEAN]
Count: TypeAlias = Annotated[int, Field(ge=1, le=1 << 30), _NOT_BOOLEAN]
_Positive: TypeAlias = Annotated[float, Field(gt=0, le=1e18, allow_inf_nan=False), _NOT_BOOLEAN]
Hours: TypeAlias = _Positive
"""No text with a scale: 30m would be 30 million hours."""
Amount: TypeAlias = Annotated[_Positive, BeforeValidator(read_amount)]
_NUMBER_OR_TEXT: Final = WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string"}]})
Size: TypeAlias = Annotated[Amount, _NUMBER_OR_TEXT]
Link: TypeAlias = Annotated[_Positive, BeforeValidator(read_link), _NUMBER_OR_TEXT]
Format: TypeAlias = Annotated[Name, BeforeValidator(read_format)]
Framework: TypeAlias = Annotated[Name, BeforeValidator(read_framework)]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), _NOT_BOOLEAN]


UNUSUAL: Final = 1e9
FULL_SHARDING: Final = 3
"""Stage of ZeRO that FSDP does unless told otherwise."""


class Arguments(BaseModel):
    """Arguments of a tool; an unknown one is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _says(text: str, *examples: Any) -> Any:
    return Field(default=None, description=text, examples=list(examples) or None)


class Model(Arguments):
    """A model: its Hugging Face config, the name of a well-known one, or its size and dimensions.

    Dimensions that are missing are usual ones of dense language models.
    """

    config: dict[str, Any] | None = _says("Content of the model's Hugging Face config.json. Nothing else is needed.")
    parameters: Size | None = _says(
        "Number of parameters. Alone it describes a dense language model; convolutional and diffusion models need "
        "`measured` in the place of `model`.",
        "7B",
        124e6,
    )
    layers: Count | None = _says("Transformer layers.", 32)
    hidden_size: Count | None = _says("Width of the residual stream.", 4096)
    attention_heads: Count | None = _says("Attention heads.", 32)
    vocabulary_size: Count | None = _says("Entries of the vocabulary.", 32000)
    kv_heads: Count | None = _says("Key-value heads. Default: attention_heads.", 8)
    feed_forward_size: Count | None = _says("Width of the feed-forward layer.", 11008)
    gated: bool | None = _says("The feed-forward layer has a gate (SwiGLU).")
    untied_output: bool | None = _says("The output layer has its own matrix.")
    experts: Count | None = _says("Experts in a layer of a mixture of experts.", 8)
    experts_per_token: Count | None = _says("Experts that process each token.", 2)
    expert_feed_forward_size: Count | None = _says("Width of an expert. Default: feed_forward_size.")
    flops_per_sample: Amount | None = _says(
        "Models that are no transformers: FLOPs of forward and backward pass per sample.", 12.3e9
    )
    activation_bytes_per_sample: Amount | None = _says("Models that are no transformers: bytes stored per sample.")
    name: Annotated[str, StringConstraints(max_length=256)] | None = _says(
        "Its name. Of a well-known language model it is enough, such as Llama-3-8B or Mixtral-8x7B.", "Llama-3-8B"
    )


class MeasuredRun(Arguments):
    """A measured run."""

    nodes: Count = Field(description="Nodes of the run.", examples=[1])
    throughput: Amount = Field(description="Its throughput, in `unit`.", examples=[1200.0])


Unit: TypeAlias = Literal[
    "samples_per_s", "images_per_s", "tokens_per_s", "steps_per_s", "it_per_s", "step_s", "ms_per_step"
]


def _with_devices(others: dict[str, Any], count: int, device: str, *, is_total: bool) -> dict[str, Any]:
    """Arguments with devices written as one, such as 8xA100: all, or those of a node where another number is stated.

    Raises
    ------
    ValueError
        If the others contradict it.
    """
    named, per_node, nodes, total = (others.get(key) for key in ("device", "devices_per_node", "nodes", "devices"))
    name = "devices" if is_total and nodes is None and total in (None, count, str(count)) else "devices_per_node"
    in_all = per_node * nodes if isinstance(per_node, int) and isinstance(nodes, int) else per_node
    other = ""
    if isinstance(named, str) and catalogue_key(device) not in catalogue_key(named):
        other = f"device {named}"
    elif name == "devices_per_node" and per_node is not None and str(count) not in (str(per_node), str(in_all)):
        other = f"devices_per_node {per_node}"
    elif name == "devices_per_node" and isinstance(total, int) and (count < 1 or total % count):
        other = f"devices {total}"
    if other:
        raise ValueError(f"{count} x {device} contradicts {other}: state one of them")
    return {"device": device, name: count} | others


class JobQuestion(Arguments):
    """A job, and how it runs."""

    @model_validator(mode="before")
    @classmethod
    def _read_shorthand(cls, values: Any) -> Any:
        """A model by its name or size alone, devices whose number is written beside their name, and FSDP's stage."""
        if not isinstance(values, dict):
            return values
        values = {key: value for key, value in values.items() if value is not None}
        model = values.get("model")
        if "fsdp" in str(values.get("framework")).casefold():
            values = {"zero_stage": FULL_SHARDING} | values
        if isinstance(model, str):
            values["model"] = {"parameters" if model[:1].isdigit() and "/" not in model else "name": model}
        for name in ("device", "devices") if "devices" in cls.model_fields else ("device",):
            text = values.get(name)
            counted = count_and_device(text) if isinstance(text, str) else None
            if counted is not None:
                others = {key: value for key, value in values.items() if key != name}
                values = _with_devices(others, *counted, is_total="devices" in cls.model_fields)
        return values

    model: Model | None = _says("The model: this, `profile` or `measured` must be given.", {"parameters": "7B"})
    profile: ProfileName | None = _says("Name of a profile that the server stores.", "team-a/llama")
    measured: Annotated[list[MeasuredRun], Field(min_length=1, max_length=64)] | None = _says(
        "Runs of the same job that were measured.", [{"nodes": 1, "throughput": 1200}]
    )
    unit: Unit = Field(default="samples_per_s", description="Unit of `measured`.")
    device: Name | None = _says(
        "Accelerator with its memory, or a machine of a cloud (resource nodewise://devices).", "H100", "A100-80GB"
    )
    devices_per_node: Count | None = _says("Devices in a node. Default: 8, or as in the evidence.", 8)
    global_batch: Count | None = _says("Samples (sequences) in a step, over all devices.", 512)
    micro_batch: Count | None = _says("Samples that a device processes at once. Default: the fastest that fits.", 1)
    sequence_length: Count | None = _says("Tokens in a sample.", 4096)
    precision: Format | None = _says("Number format of training: bf16, fp16, fp8, fp32 or tf32.", "bf16")
    master_weights: bool | None = _says(
        "Keep 32-bit weights beside 16-bit ones (usual mixed precision). false: pure 16-bit training.", True
    )
    framework: Framework | None = _says("Training framework.", "pytorch", "deepspeed", "megatron-core")
    optimizer: Name | None = _says("Optimizer.", "adamw", "sgd", "adafactor")
    optimizer_state_bits: Amount | None = _says("Bits of each value of the optimizer's state. 8: 8-bit Adam.", 8)
    frozen_weights: Share | None = _says("Share of weights that are not trained. LoRA: about 0.995.", 0.995)
    frozen_weight_bits: Amount | None = _says("Bits of a frozen weight. QLoRA: 4.", 4)
    adapter_rank: Count | None = _says("Rank of LoRA adapters.", 16)
    offload: Literal["none", "optimizer", "parameters"] | None = _says("What is stored in host memory.")
    fused_loss: bool | None = _says("Output layer and loss in one kernel (Liger).")
    tensor_parallel: Count | None = _says("Parts that each layer is split into.", 8)
    pipeline_parallel: Count | None = _says("Pipeline stages.", 4)
    context_parallel: Count | None = _says("Parts that each sequence is split into.", 2)
    expert_parallel: Count | None = _says("Parts that the experts are split into.", 8)
    sequence_parallel: bool | None = _says("Also split layer norms along the sequence.")
    zero_stage: Annotated[int, Field(ge=0, le=3), _NOT_BOOLEAN] | None = _says(
        "Stage of ZeRO; 3 is FSDP's full sharding.", 3
    )
    recompute: Annotated[Recomputation, BeforeValidator(read_recomputation)] | None = _says(
        "Recomputation of activations (gradient checkpointing: full). Default: the least that fits.", "full"
    )
    link_bytes_per_s: Link | None = _says("Network of a node, bytes/s in each direction: 25e9 for 200 Gb/s.", 50e9)


class _Scale(Arguments):
    nodes: Counts | None = _says("Numbers of nodes: 4, 1-16, 1,2,4 or pow2:1-64. Else give `devices`.", 4, "pow2:1-64")
    devices: Counts | None = _says("Numbers of devices in all (GPUs), instead of `nodes`.", 64, "8,16,32")


class _Work(Arguments):
    tokens: Size | None = _says("Work of the run in tokens.", 300e9)
    samples: Size | None = _says("Work in samples: epochs x samples of the data set.", 1e9)
    epochs: Amount | None = _says("Work in epochs, of a profile that has the size of its data set.", 90)
    price_per_device_hour: Amount | None = _says("Price of one device (GPU) for an hour.", 2.0)
    price_per_node_hour: Amount | None = _says("Price of one node for an hour, instead.", 98.32)
    deadline_h: Hours | None = _says("Hours until the run must be done.", 72)


class PredictQuestion(JobQuestion, _Scale, _Work):
    """Arguments of `predict`."""


class FitQuestion(JobQuestion, _Scale):
    """Arguments of `fits`."""


class RecommendQuestion(JobQuestion, _Scale, _Work):
    """Arguments of `recommend`."""

    objective: Rule = Field(
        default=Rule.KNEE,
        description="What best means. knee: where more nodes stop paying. With deadline_h: fewest-devices.",
    )
    max_nodes: Count | None = _says("least-time: number of nodes, at most.", 32)
    max_cost: Amount | None = _says("least-time: cost, at most.", 10000)
    confidence: Share | None = _says("Judge by the throughput that is reached with this probability.", 0.9)


class PlanQuestion(JobQuestion):
    """Arguments of `plan`."""

    nodes: Count | None = _says("Available nodes; fewer may be used.", 4)
    tokens: Size | None = _says("Work of the run in tokens.", 300e9)


class CardQuestion(JobQuestion, _Scale, _Work):
    """Arguments of `card`."""

    device_hours_between_failures: Amount | None = _says("Mean hours of a device between failures.", 50000)
    grid_g_per_kwh: Amount | None = _says("Emissions of the grid, g of CO2 per kWh.", 400)


class DiagnoseQuestion(Arguments):
    """Arguments of `diagnose`."""

    profile: ProfileName = Field(description="Profile with traces or step times.", examples=["team-a/llama"])
    since_h: Hours | None = _says("Running job: diagnose the step times of so many hours. Default: its traces.", 1)


class SuggestQuestion(JobQuestion, _Scale):
    """Arguments of `suggest_measurement`."""

    count: Annotated[int, Field(ge=1, le=3)] = Field(default=1, description="Runs to suggest, at most.")


class Record(JobQuestion):
    """Arguments of `record`."""


_EXAMPLES: Final[Mapping[str, Any]] = {
    name: field.examples[0]
    for kind in (MeasuredRun, Model, CardQuestion, RecommendQuestion, PredictQuestion)
    for name, field in kind.model_fields.items()
    if field.examples
}


def example_of(name: str) -> Any:
    """A value that an argument may have; None = none is known."""
    return _EXAMPLES.get(name)


def schema_of(kind: type[BaseModel]) -> dict[str, Any]:
    """The JSON Schema of a model, short: without titles, null where a field may be absent, and self-evident bounds."""
    schema: dict[str, Any] = _short(kind.model_json_schema())
    return {"type": "object", **schema}


def _is_wanted(key: str, value: Any) -> bool:
    if key in ("maximum", "minimum", "exclusiveMinimum"):
        return bool(1 < value < UNUSUAL)
    if key in ("pattern", "additionalProperties", "maxLength"):
        return False
    if key == "examples":
        return isinstance(value[0], str)
    return key != "title" and not (key == "default" and value in (None, []))


def _short(node: Any, *, names: bool = False) -> Any:
    if isinstance(node, list):
        return [_short(each) for each in node]
    if not isinstance(node, dict):
        return node
    node = {
        key: _short(value, names=key in ("properties", "$defs"))
        for key, value in node.items()
        if names or _is_wanted(key, value)
    }
    options = [each for each in node.get("anyOf", ()) if each != {"type": "null"}]
    if names or "anyOf" not in node:
        return node
    rest = {key: value for key, value in node.items() if key != "anyOf"}
    return options[0] | rest if len(options) == 1 else {"anyOf": options} | rest
