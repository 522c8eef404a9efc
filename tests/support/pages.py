"""What pages of the documentation show."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

__all__ = ["ADDRESS", "APART", "ROOT", "blocks", "blocks_of"]

ROOT: Final = Path(__file__).parents[2]
ADDRESS: Final = re.compile(r"127\.0\.0\.1:50[05]51")
APART: Final = {
    "docs/integrations/optuna.md": "ray",
    "docs/integrations/ray.md": "ray",
    "docs/integrations/skypilot.md": "skypilot",
}
"""Pages whose programs run in the environment of a manager, by page."""


def blocks(page: str, language: str) -> list[str]:
    """Its blocks of a language, from top to bottom."""
    return _blocks((ROOT / page).read_text(encoding="utf-8"), language)


def blocks_of(page: str, section: str, language: str) -> list[str]:
    """Those of the section with this heading."""
    _, _, text = (ROOT / page).read_text(encoding="utf-8").partition(f"\n## {section}\n")
    return _blocks(text.partition("\n## ")[0], language)


def _blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
