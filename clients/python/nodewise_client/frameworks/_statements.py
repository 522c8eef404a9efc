"""The layout that a file of a framework states, completed by the cluster and the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Final, NoReturn

from nodewise_client.frameworks._layout import Layout
from nodewise_values import Recomputation, Workload

__all__ = ["LayoutFileError", "StatedLayout", "Statement"]

_DEGREES: Final = ("tensor", "pipeline", "context")
_BATCHES: Final = ("micro_batch", "global_batch")
_PLAIN: Final = (
    *("tensor", "pipeline", "context", "expert", "interleave", "recomputation", "sequence_parallel", "zero_stage"),
    "precision",
)
"""Fields of a layout that a file states as they are."""


class LayoutFileError(ValueError):
    """A file that states no layout that can run; the text names the file, its field and what is right."""

    def __init__(self, text: str, missing: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.missing = tuple(missing)
        """Parameters of `StatedLayout.layout` that may be given instead of the file's fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedLayout:
    """What a file states of a layout."""

    source: str
    framework: str
    """One of FRAMEWORKS."""
    values: Mapping[str, Any]
    """Fields of `Layout` that the file states, and `devices`, `data`, `accumulation`, `sequence_length`."""
    names: Mapping[str, str]
    """Each field's name in the file, also of those that it leaves out."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Facts of the workload, by the fields of `Workload`."""
    notes: tuple[str, ...] = ()
    """What the file leaves to a default or to the script."""

    def workload(self, workload: Workload) -> Workload:
        """A workload with what the file states of it."""
        transformer, length = workload.transformer, self.values.get("sequence_length")
        if transformer is not None and length is not None:
            transformer = replace(transformer, sequence_length_tokens=length)
        return replace(workload, transformer=transformer, **self.facts)

    def layout(
        self,
        workload: Workload,
        nodes: int,
        devices_per_node: int,
        *,
        micro_batch: int | None = None,
        global_batch: int | None = None,
    ) -> Layout:
        """The layout on a cluster.

        Parameters
        ----------
        workload : the model, with what the file states of it.
        nodes, devices_per_node : the cluster. A file that states its number of devices or nodes takes so many of it.
        micro_batch, global_batch : samples; they override the file.

        Raises
        ------
        LayoutFileError
            Naming what the file lacks, or what in it contradicts the cluster.
        """
        values = {**self.values}
        values |= {name: value for name, value in zip(_BATCHES, (micro_batch, global_batch)) if value is not None}
        devices_per_node = values.get("devices_per_node", devices_per_node)
        devices = values.get("devices", values.get("nodes", nodes) * devices_per_node)
        nodes_taken, rest = divmod(devices, devices_per_node)
        if rest and devices < devices_per_node:
            nodes_taken, devices_per_node, rest = 1, devices, 0
        if rest or nodes_taken > nodes:
            self._wrong(
                "devices" if "devices" in values else "nodes",
                f"{devices} devices are not some of the {nodes} nodes with {devices_per_node} devices each",
            )
        if workload.transformer is None:
            raise LayoutFileError(f"{self.source}: states the layout of a transformer, which the model is not")
        layers = workload.transformer.layers_count
        if values.get("layers", layers) != layers:
            self._wrong("layers", f"must be the {layers} of the model, found {values['layers']}")
        degrees = [values.get(name, 1) for name in _DEGREES]
        replicas, rest = divmod(devices, prod(degrees))
        if rest:
            stated = " x ".join(f"{self.names[name]} {values[name]}" for name in _DEGREES if values.get(name, 1) > 1)
            raise LayoutFileError(f"{self.source}: {stated} must divide the {devices} devices")
        if values.get("data", replicas) != replicas:
            self._wrong(
                "data", f"must be {replicas}, the {devices} devices by the other degrees; found {values['data']}"
            )
        if "layers_per_chunk" in values:
            values["interleave"], rest = divmod(layers, values.get("pipeline", 1) * values["layers_per_chunk"])
            if rest or not values["interleave"]:
                self._wrong("layers_per_chunk", f"times the pipeline stages must divide the model's {layers} layers")
        if "replicate" in values:  # FSDP shards over the ranks that are left
            shards, rest = divmod(replicas, values["replicate"])
            if rest:
                self._wrong("data", f"{values['replicate']} replicas must divide {replicas} data-parallel ranks")
            workload = replace(workload, sharding_devices_count=shards)
        micro_batch, global_batch = self._batches(values, replicas)
        plain = {name: value for name, value in values.items() if name in _PLAIN}
        return Layout(
            workload=workload,
            nodes=nodes_taken,
            devices_per_node=devices_per_node,
            micro_batch=micro_batch,
            global_batch=global_batch,
            **{"precision": workload.precision, **plain},
        )

    def _batches(self, values: Mapping[str, Any], replicas: int) -> tuple[int, int]:
        micro_batch: Any = values.get("micro_batch")
        global_batch: Any = values.get("global_batch")
        steps = values.get("accumulation")
        if micro_batch is None and global_batch is None:
            names = " or ".join(self.names[name] for name in _BATCHES if name in self.names)
            raise LayoutFileError(f"{self.source}: {names or 'the batch'}: must be stated", _BATCHES)
        if micro_batch is None:
            micro_batch, rest = divmod(global_batch, replicas * (steps or 1))
            micro_batch = micro_batch if not rest else 0
        if global_batch is None:
            global_batch = micro_batch * replicas * (steps or 1)
        if not micro_batch or global_batch % (micro_batch * replicas):
            found = f" x {micro_batch} samples" if micro_batch else ""
            text = f"{global_batch} samples of a step must be a multiple of {replicas} replicas{found}"
            self._wrong("global_batch", text + (f" x {steps} micro-batches" if not micro_batch and steps else ""))
        if steps and global_batch != micro_batch * replicas * steps:
            self._wrong(
                "accumulation",
                f"{steps} micro-batches x {micro_batch} samples x {replicas} replicas are not the {global_batch} "
                "samples of a step",
            )
        return micro_batch, global_batch

    def _wrong(self, name: str, text: str) -> NoReturn:
        where = self.names.get(name)
        raise LayoutFileError(f"{self.source}: {where}: {text}" if where else f"{self.source}: {text}")


class Statement:
    """What is read of one file."""

    def __init__(self, source: str, framework: str) -> None:
        self.source, self.framework = source, framework
        self.values: dict[str, Any] = {}
        self.names: dict[str, str] = {}
        self.facts: dict[str, Any] = {}
        self.notes: list[str] = []

    def count(self, field_name: str, name: str, value: Any, least: int = 1) -> int | None:
        """Take a whole number; None and "auto" state nothing, and the field's name is kept for what is missing."""
        self.names.setdefault(field_name, name)
        if value is None or value == "auto":
            return None
        try:
            number = int(value) if not isinstance(value, bool) and float(value) == int(value) else None
        except (TypeError, ValueError, OverflowError):
            number = None
        if number is None or not least <= number <= 1 << 30:
            self.wrong(name, f"must be a whole number of at least {least}, found {value!r}")
        self.names[field_name] = name
        self.values[field_name] = number
        return number

    def flag(self, name: str, value: Any) -> bool:
        """Whether a switch is on."""
        if isinstance(value, str) and value.lower() in ("true", "false", "yes", "no"):
            return value.lower() in ("true", "yes")
        if value is None or value == "auto":
            return False
        if not isinstance(value, bool):
            self.wrong(name, f"must be true or false, found {value!r}")
        return bool(value)

    def choice(self, name: str, value: Any, words: Mapping[str, Any]) -> Any:
        """One of some words."""
        word = str(value).lower()
        if word not in words:
            self.wrong(name, f"must be one of {', '.join(words)}, found {value!r}")
        return words[word]

    def section(self, name: str, value: Any) -> Mapping[str, Any]:
        """An object of the file; one that is missing is empty."""
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self.wrong(name, f"must be an object, found {value!r}")
        section: Mapping[str, Any] = value
        return section

    def recomputation(self, value: Recomputation) -> None:
        """Take what the backward pass recomputes."""
        self.values["recomputation"] = value

    def wrong(self, name: str, text: str) -> NoReturn:
        """Raise LayoutFileError at a field."""
        raise LayoutFileError(f"{self.source}: {name}: {text}")

    def result(self) -> StatedLayout:
        """What was read."""
        return StatedLayout(
            source=self.source,
            framework=self.framework,
            values=self.values,
            names=self.names,
            facts=self.facts,
            notes=tuple(self.notes),
        )
