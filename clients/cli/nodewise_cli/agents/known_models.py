"""Published models that an agent may name in the place of their config.json.

`known_models.json` has their names, parameters as published, and the keys of `config.json` that state their dimensions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

__all__ = ["KnownModel", "known_model", "known_models"]

_PART: Final = re.compile(r"\bv\d+(?:\.\d+)?|[a-z]+|\d+(?:\.\d+)?(?:x\d+)?[a-z]*")
_VARIANT: Final = re.compile(r"base|beta|chat|deduped|hf|instruct|it|preview|pt|v\d+(\.\d+)?|\d+k|\d{4}")
"""What may end a name without another architecture: Llama-2-7b-chat-hf, Mistral-7B-Instruct-v0.3. A number alone may be
a size.
"""
_MAKERS: Final = frozenset({"meta", "facebook", "google", "openai"})


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model by its first name, with its published parameters and the dimensions of its config.json."""

    name: str
    parameters: float
    config: Mapping[str, Any]


@cache
def known_models() -> Mapping[tuple[str, ...], KnownModel]:
    """Models by the parts of every name."""
    text = resources.files("nodewise_cli.agents").joinpath("known_models.json").read_text(encoding="utf-8")
    return {
        _parts(name): KnownModel(each["names"][0], each["parameters"], each["config"])
        for each in json.loads(text)
        for name in each["names"]
    }


def known_model(name: str) -> KnownModel | None:
    """The model that a name means, whoever publishes which variant of it; None = it is not known."""
    parts = _parts(name.rpartition("/")[2])
    if parts and parts[0] in _MAKERS:
        parts = parts[1:]
    models = known_models()
    while parts not in models and parts and _VARIANT.fullmatch(parts[-1]):
        parts = parts[:-1]
    return models.get(parts)


def _parts(name: str) -> tuple[str, ...]:
    return tuple(_PART.findall(name.casefold()))
