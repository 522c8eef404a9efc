"""Reading of single keys of a `config.json`, with errors that name the key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ImportedModelError(ValueError):
    """A file that no model can be imported from; the text names the key or column and what would be right."""


class Reader:
    """Reads the keys of one configuration, and keeps what was assumed."""

    def __init__(self, config: Mapping[str, Any], source: str) -> None:
        self.config = config
        self.source = source
        self.notes: list[str] = []

    def count(self, names: tuple[str, ...], *, otherwise: int | None = None, least: int = 1) -> int:
        return self.count_in(self.config, names, otherwise=otherwise, least=least)

    def count_in(
        self, config_part: Mapping[str, Any], names: tuple[str, ...], *, otherwise: int | None, least: int = 1
    ) -> int:
        for name in names:
            value = config_part.get(name)
            if value is None:
                continue
            # A bool is an int to Python, and no count.
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise self.wrong(name, f"must be a whole number of at least {least}, found {value!r}")
            return value
        if otherwise is None:
            others = f" (or {', '.join(names[1:])})" if len(names) > 1 else ""
            raise self.wrong(names[0] + others, f"is missing; must be a whole number of at least {least}")
        return otherwise

    def flag(self, name: str, *, otherwise: bool) -> bool:
        value = self.config.get(name)
        if value is None:
            return otherwise
        if not isinstance(value, bool):
            raise self.wrong(name, f"must be true or false, found {value!r}")
        return value

    def present(self, names: tuple[str, ...]) -> str:
        return next(name for name in names if self.config.get(name) is not None)

    def wrong(self, name: str, text: str) -> ImportedModelError:
        return ImportedModelError(f"{self.source}: {name}: {text}")
