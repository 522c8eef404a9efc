"""Values of arguments as models and people write them: 300B tokens, 100 Gb/s, bfloat16, 8xA100."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

__all__ = [
    "count_and_device",
    "read_amount",
    "read_counts",
    "read_format",
    "read_framework",
    "read_link",
    "read_number",
    "read_recomputation",
]

ResultT = TypeVar("ResultT")
_AMOUNT: Final = re.compile(
    r"((?:[1-9]\d{0,2}(?:[,_]\d{3})+|\d{1,21})(?:\.\d{1,9})?(?:e\+?\d{1,2}$)?)\s*([a-z]*)", re.IGNORECASE
)
"""Commas part thousands alone: 1,5 may mean 1.5."""
_SCALES: Final = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12} | {
    "thousand": 1e3,
    "million": 1e6,
    "billion": 1e9,
    "trillion": 1e12,
}
LONGEST: Final = 64
"""Characters of a name with a number beside it."""
_LINK: Final = re.compile(
    r"(\d{1,6}(?:\.\d{1,6})?)\s*([kmgt]?)(i?)(b(?:it)?s?(?:ps|/s|/sec)?|bytes/s|be)", re.IGNORECASE
)
SLOWEST_LINK: Final = 1e6
"""Bytes/s of a node, at least: less was meant in another unit."""
_PREFIXES: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
"""Powers of 1000, or of 1024."""
_BITS: Final = ("bit", "be")
"""How units begin that count bits however they are written: GBit/s, 10GBE."""
_EXPERTS: Final = re.compile(r"\d+\s*x\s*\d+(\.\d+)?\s*b", re.IGNORECASE)
_COUNTS: Final = re.compile(r"[0-9pow][0-9pow,: -]{0,63}")
_COUNTED: Final = (
    re.compile(r"(?P<count>\d{1,6})\s*[x×*]\s*(?P<device>[a-z].*|\d{4}.*)", re.IGNORECASE),
    re.compile(r"(?P<device>[a-z].*\d[a-z]*?)(?:\s+[x×*]\s*|[x×](?=\d)|\s*:\s*)(?P<count>\d{1,6})", re.IGNORECASE),
)
_FORMATS: Final = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "float": "fp32",
    "float8": "fp8",
    "bf16mixed": "bf16",
    "16mixed": "fp16",
}
_PYTORCH: Final = ("fsdp", "huggingface", "transformers", "accelerate", "trl", "lightning", "torch", "axolotl", "hf")
"""How the names of libraries begin that train by PyTorch itself."""


def _of_text(read: Callable[[str], ResultT]) -> Callable[[Any], Any]:
    """A reader of texts that leaves other values as they are."""
    return lambda value: read(value.strip()) if isinstance(value, str) else value


def read_number(value: Any) -> Any:
    """A value as it is, unless it is true or false, which Python takes for 1 and 0.

    Raises
    ------
    ValueError
        It is true or false; pydantic reports this kind of error alone.
    """
    if isinstance(value, bool):
        raise ValueError(f"must be a number, found {str(value).casefold()}")  # noqa: TRY004
    return value


@_of_text
def read_amount(text: str) -> float:
    """A number with its scale, such as 7B or 2 trillion.

    Raises
    ------
    ValueError
        It is no number with a known scale, or the size of a mixture of experts.
    """
    if _EXPERTS.match(text):
        raise ValueError(
            f"{text} is a mixture of experts, of which a size says too little: give the model's config, or the name of "
            "a published model"
        )
    match = _AMOUNT.fullmatch(text.lstrip("$€£ "))
    scale = None if match is None else _SCALES.get(match[2].casefold())
    if match is None or scale is None:
        raise ValueError(f"must be a number, with K, M, B or T for thousands to trillions, found {text!r}")
    return float(match[1].replace(",", "").replace("_", "")) * scale


def read_link(value: Any) -> Any:
    """Bytes/s of a bandwidth, also of one such as 100 Gb/s, 12.5 GB/s or 10GbE; a capital B alone counts bytes.

    Raises
    ------
    ValueError
        It is no bandwidth, may mean bits or bytes, or is too slow for the link of a node.
    """
    match = _LINK.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is not None:
        unit = match[4]
        if unit == "BPS":
            raise ValueError(f"must be in Gb/s or GB/s, found {value!r}, which may mean either")
        is_bytes = unit.startswith(("B", "bytes")) and not unit.casefold().startswith(_BITS)
        scale = (1024.0 if match[3] else 1e3) ** _PREFIXES[match[2].casefold()]
        value = float(match[1]) * scale / (1.0 if is_bytes else 8.0)
    value = read_amount(value)
    if isinstance(value, int | float) and 0 < value < SLOWEST_LINK:
        raise ValueError(f"must be bytes/s, or such as 100 Gb/s or 12.5 GB/s, found {value:g} bytes/s")
    return value


@_of_text
def read_format(text: str) -> str:
    """A number format by its short name."""
    letters = "".join(letter for letter in text.casefold() if letter.isalnum())
    return _FORMATS.get(letters.removeprefix("torch"), text)


@_of_text
def read_framework(text: str) -> str:
    """A framework, where libraries that train by PyTorch itself are pytorch, unless DeepSpeed trains for them."""
    letters = "".join(letter for letter in text.casefold() if letter.isalnum())
    if not letters.startswith(_PYTORCH):
        return text
    return "deepspeed" if "deepspeed" in letters else "pytorch"


@_of_text
def read_counts(text: str) -> str:
    """Counts as they are.

    Raises
    ------
    ValueError
        The text is no number, list or range.
    """
    if _COUNTS.fullmatch(text) is None:
        raise ValueError(f"must be a number, a list such as 8,16 or a range such as 1-16, found {text!r}")
    return text


def read_recomputation(value: Any) -> Any:
    """True is full recomputation, false none."""
    return {True: "full", False: "none"}[value] if isinstance(value, bool) else value


def count_and_device(text: str) -> tuple[int, str] | None:
    """Number and name of devices written as one, such as 8xA100 or H100:8; None = there is no number."""
    if len(text) > LONGEST:
        return None
    match = next((match for pattern in _COUNTED if (match := pattern.fullmatch(text.strip()))), None)
    return None if match is None else (int(match["count"]), match["device"])
